"""`tenure audit`: where the window of recorded sessions went, what each policy would have done to it, and what that costs and loses."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Annotated, Final

import typer
from msgspec import Struct, field
from rich.console import Console

from tenure.cli import words
from tenure.cli.asked import STDOUT, Ceiling, Floor, HeadTokens, PricedAs, Quiet, Target, Window, budget_of, head_of, output
from tenure.cli.audit_progress import Watched
from tenure.cli.audit_screen import Brief, brief, corpus, screen, unreadable
from tenure.cli.audit_sessions import Chosen, chosen
from tenure.engine.meter.figures import several
from tenure.engine.meter.tokens import o200k
from tenure.engine.policies import PEERS, POLICIES, UNBOUNDED, policy_named
from tenure.engine.record.visible import json_of
from tenure.errors import InputError
from tenure.lab.audit.audit import Asked, Auditor, budget_line
from tenure.lab.audit.kept import Kept
from tenure.lab.audit.report import Audit, Total, Unread
from tenure.lab.audit.tables import Totals
from tenure.logs.places.here import here

NEWEST: Final = 10  # of the user's own sessions, where none are named
# Beside "none": ours, and the rules that agents in wide use follow, or that were measured in public.
USUAL: Final = (*POLICIES, "observation-masking", "opencode-prune", "clear-tool-uses")
NOWHERE: Final = "no"
BROKEN: Final = 1  # exit codes
UNREAD: Final = 2
INTERRUPTED: Final = 130  # as shells have it


def audit(
    sessions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SESSION...",
            help="Session files, stores, or folders of them; - for standard input. Default: your newest sessions.",
        ),
    ] = None,
    policy: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help=f"Try this policy; may be repeated. Default: {', '.join(USUAL)}.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Try every policy, and every rule of other tools.")] = False,
    newest: Annotated[
        int, typer.Option(min=1, metavar="N", help="Without SESSION: audit this many of your newest sessions.")
    ] = NEWEST,
    target: Target = "",
    ceiling: Ceiling = "",
    floor: Floor = "",
    window: Window = "",
    model: PricedAs = "",
    head_tokens: HeadTokens = "",
    json: Annotated[str, typer.Option(metavar="FILE", help="Write every event as JSON lines (- for standard output).")] = "",
    html: Annotated[str, typer.Option(metavar="FILE", help="Write a self-contained HTML page.")] = "",
    keep: Annotated[
        str,
        typer.Option(metavar="FOLDER", help=f"Keep finished work here; {NOWHERE!r} keeps none. Default: your cache folder."),
    ] = "",
    fresh: Annotated[bool, typer.Option("--fresh", help="Audit again what was kept.")] = False,
    quiet: Quiet = False,
) -> None:
    """Show what filled the window of recorded sessions, and what each policy would have saved and lost.

    An interrupted audit continues where it stopped.

    Exit codes: 0 done, 1 a law was broken or a file could not be written, 2 nothing could be read, 130 interrupted.
    """
    asked = Asked(
        policies=_policies(policy or (), every=every),
        budget=budget_of(target, ceiling, floor, window),
        model=model,
        head_tokens=head_of(head_tokens),
    )
    console = words.screen(stderr=json == STDOUT, quiet=quiet)
    errors = words.screen(stderr=True, quiet=quiet)
    picked = chosen(sessions or (), newest, here())
    if not picked.addresses and not picked.unread:
        raise InputError(
            "audit",
            "no session" + (" below these folders" if sessions else " of any known tool"),
            "one; `tenure sessions` lists those found",
        )
    if sessions is None and picked.older:
        errors.print(f"your {several(len(picked.addresses), 'newest session')}; --newest for more of them", style="dim")
    page = _page() if html else None  # what it needs is missing before anything is played, or not at all
    with output(json) as out:
        done = _all(picked, asked, _kept(keep, errors), fresh, out, errors, pages=bool(html))
    if page is not None:
        with output(html) as file:
            assert file is not None
            file.write(page(done.audits, done.total.unread).encode())
    _show(done, picked, asked, console)
    for line in unreadable(done.total.unread):
        words.screen(stderr=True).print(line, soft_wrap=True)
    if any(run.violations for run in done.total.runs):
        raise typer.Exit(BROKEN)
    if not done.total.sessions:
        raise typer.Exit(UNREAD)


class Done(Struct, kw_only=True):
    """What is kept of the sessions as they are audited: rows, and whole reports where a page or the only screen wants them."""

    briefs: list[Brief] = field(default_factory=list[Brief])
    audits: list[Audit] = field(default_factory=list[Audit])
    total: Total


def _page() -> Callable[[Sequence[Audit], Sequence[Unread]], str]:
    from tenure.lab.audit.page import page

    return page


def _policies(names: Sequence[str], *, every: bool) -> tuple[str, ...]:
    """Raises InputError for a name that is none."""
    wanted = (*POLICIES, *PEERS) if every else tuple(names) or USUAL
    for name in wanted:
        policy_named(name)
    return tuple(name for name in dict.fromkeys(wanted) if name != UNBOUNDED)


def _all(
    picked: Chosen, asked: Asked, kept: Kept | None, fresh: bool, out: IO[bytes] | None, errors: Console, *, pages: bool
) -> Done:
    """Audit them, telling what is kept when that is interrupted."""
    auditor = Auditor(asked, o200k(), kept=kept, fresh=fresh, out=out)
    totals, unread = Totals(), list(picked.unread)
    briefs: list[Brief] = []
    audits: list[Audit] = []
    whole = pages or len(picked.addresses) == 1
    try:
        with Watched(errors, len(picked.addresses), 1 + len(asked.policies)) as watched:
            for number, outcome in enumerate(auditor.each(picked.addresses, watched.note), start=1):
                watched.session(number)
                if isinstance(outcome, Unread):
                    unread.append(outcome)
                    continue
                totals.take(outcome)
                briefs.append(brief(outcome))
                audits += [outcome] if whole else []
    except KeyboardInterrupt:
        goes_on = " and kept: the same command goes on from there" if kept is not None else ", and nothing is kept"
        errors.print(f"interrupted: {len(briefs)} of {several(len(picked.addresses), 'session')} done{goes_on}", style="yellow")
        raise typer.Exit(INTERRUPTED) from None
    finally:
        if kept is not None:
            kept.prune()
            for path in kept.damaged:
                errors.print(f"{words.plain(str(path))} was damaged, and its session is audited again", style="yellow")
    total = totals.total(unread)
    if out is not None:
        out.write(json_of(total) + b"\n")
    if auditor.reused:
        errors.print(f"{several(auditor.reused, 'session')} as audited before (--fresh to audit again)", style="dim")
    return Done(briefs=briefs, audits=audits, total=total)


def _show(done: Done, picked: Chosen, asked: Asked, console: Console) -> None:
    if len(done.audits) == 1 and done.total.sessions == 1:
        console.print(screen(done.audits[0], console.width))
    elif done.briefs:
        console.print(corpus(done.briefs, done.total, budget_line(asked.budget), console.width))
    if picked.passed_over:
        verb = "holds" if picked.passed_over == 1 else "hold"
        console.print(f"{several(picked.passed_over, 'file')} below the folders {verb} no session", style="dim")


def _kept(folder: str, errors: Console) -> Kept | None:
    """Where audits are kept; that they cannot be is said, and nobody is kept from auditing."""
    if folder == NOWHERE:
        return None
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    try:
        return Kept(Path(folder) if folder else Path(base) / "tenure" / "audits")
    except OSError as error:
        if folder:
            raise InputError("--keep", f"{folder!r} cannot be written to ({error.strerror or error})", "a folder") from error
        errors.print(f"nothing is kept: {words.plain(str(error))}", style="dim")
        return None
