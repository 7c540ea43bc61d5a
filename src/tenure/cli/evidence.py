"""`tenure evidence`: every policy and peers' rules on a corpus of recorded sessions, as tables and figures that anyone can make again."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console

from tenure.cli import words
from tenure.cli.options import MarkFiles, Quiet, argument, flag, option
from tenure.cli.progress import ProgressLine
from tenure.errors import InputError

if TYPE_CHECKING:  # a good deal to load, and wanted by this command only
    from tenure.lab.evidence.measure import CorpusEvents

SECTIONS: Final = ("cuts", "whole", "accumulating", "marks", "sweep", "bounds", "bill", "detector", "sessions")
OUT: Final = "docs/evidence"
LABELS: Final = "labels.jsonl"
FAILED: Final = 1  # exit codes
INTERRUPTED: Final = 130  # as shells have it
_SHOWN: Final = 10  # failures that are named on the screen; the index has all


def evidence(
    folder: Annotated[Path, argument("FOLDER", "A folder of recorded sessions.")],
    out: Annotated[Path, option("FOLDER", "Write pages, figures and rows here.")] = Path(OUT),
    engine: Annotated[
        str, option("NAME", "Run in this process (local), in several (processes), or on a cluster (ray).")
    ] = "local",
    workers: Annotated[int, option("N", "Number of processes; 0: one per core.", min=0)] = 0,
    only: Annotated[
        list[str] | None, option("SECTION", f"Make only this section; may be repeated: {', '.join(SECTIONS)}.")
    ] = None,
    cap: Annotated[
        list[str] | None,
        option("N", "Take at most N sessions of each folder below FOLDER, chosen by hash; cuts=N: for the cuts only."),
    ] = None,
    marks: MarkFiles = None,
    resume: Annotated[bool, flag("--resume", "Use the finished work of an interrupted run.")] = False,
    keep: Annotated[str, option("FOLDER", "Keep finished work here. Default: your cache folder.")] = "",
    quiet: Quiet = False,
) -> None:
    """Compare all policies on a folder of recorded sessions, and write pages with the results.

    The same sessions and code give the same files, to the byte, whoever does the work. Exit codes: 0 done, 1 some work failed or a file
    could not be written, 2 bad input, 130 interrupted.
    """
    if wrong := [name for name in only or () if name not in SECTIONS]:
        raise InputError("--only", repr(wrong[0]), "one of " + ", ".join(SECTIONS))
    from tenure.lab.evidence import pages
    from tenure.lab.evidence.corpus import corpus_of
    from tenure.lab.evidence.measure import EVERYTHING, gathered, labels_of
    from tenure.lab.marks import marks_in
    from tenure.lab.spread import ResultFolder, engine_named

    runner = engine_named(engine, workers)
    names = [name for name in SECTIONS if name in (only or SECTIONS)]
    needed = {need for name in names for need in pages.SECTIONS[name][0]}
    console = words.screen(stderr=True, quiet=quiet)
    corpus = corpus_of(folder)
    read_by_hand = out / LABELS
    labels = labels_of(read_by_hand.read_bytes(), str(read_by_hand)) if read_by_hand.is_file() else ()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")) / "tenure" / "evidence"
    kept = ResultFolder(Path(keep) if keep else cache, reads=resume)
    try:
        with ProgressLine(console) as line:
            found = gathered(
                corpus,
                [what for what in EVERYTHING if what in needed],
                runner,
                caps=_caps(cap or (), EVERYTHING),
                marks=marks_in(marks) if marks else None,
                keep=kept,
                labels=labels,
                progress=lambda what, done, of: line.update(description=what, completed=done, total=of),
            )
    except KeyboardInterrupt:
        console.print("interrupted; what was finished is kept: go on with --resume", style="yellow")
        raise typer.Exit(INTERRUPTED) from None
    kept.prune()
    files = pages.files_of(found, names, is_whole=not only)
    pages.write(out, files, is_whole=not only)
    _print_end(found, out, len(files), console)
    if any(failed.kind != InputError.__name__ for failed in found.failed):
        raise typer.Exit(FAILED)


def _caps(given: Sequence[str], known: Sequence[str]) -> dict[str, int]:
    """Caps by what they are for. Raises InputError for what is none."""
    caps: dict[str, int] = {}
    for each in given:
        what, _, count = each.rpartition("=")
        if (what and what not in known) or not count.isdecimal():
            raise InputError(
                "--cap", repr(each), "a number, or a number behind one of " + ", ".join(f"{name}=" for name in known)
            )
        caps[what] = int(count)
    return caps


def _print_end(found: "CorpusEvents", out: Path, files: int, console: Console) -> None:
    for failed in found.failed[:_SHOWN]:
        console.print(words.plain(f"{failed.name}: {failed.kind}: {failed.reason}"), style="yellow", soft_wrap=True)
    if (more := len(found.failed) - _SHOWN) > 0:
        console.print(f"and {more} more", style="yellow")
    console.print(f"{len(found.profiles)} sessions, {files} files in {words.plain(str(out))}", soft_wrap=True)
