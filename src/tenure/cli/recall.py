"""`tenure recall`: bring back the original bytes of anything in a session, by the handle that a view prints, or find the handle."""

import codecs
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from itertools import chain
from time import monotonic
from typing import Annotated, Final

import typer
from msgspec.structs import replace

from tenure.apis.media import medium_bytes
from tenure.cli.options import EmbeddingsOption, argument, flag, nearness, option
from tenure.cli.words import plain as words_plain
from tenure.engine.lifecycle.budget import parse_tokens
from tenure.engine.meter.tokens import o200k
from tenure.engine.record.objects import parse_handle
from tenure.engine.record.query import Query
from tenure.engine.record.recall import Original, answer, raw, source_of, spilled
from tenure.engine.record.visible import visible
from tenure.errors import InputError
from tenure.lab.loading import load, source, sources_of, spills_of
from tenure.logs.places.files import STDIN
from tenure.logs.places.stores import OWN
from tenure.store.spills import Spills

LOST_SHOWN: Final = 3  # messages that cannot be read, named
_NO_TEXT: Final = re.compile("[\0\ud800-\udfff]")


def recall(
    sessions: Annotated[
        list[str],
        argument(
            "SESSION... [HANDLE]",
            "Session files, then a handle: read:12@3fa9, user:3, step:17, episode:locate-auth, skill:release or entry:40; "
            "several handles with commas between them.",
        ),
    ],
    words: Annotated[str, typer.Option(help="Find the texts that have most of these words, best first.")] = "",
    path: Annotated[str, typer.Option(help="Find the calls about this file or folder, and the texts that name it.")] = "",
    pattern: Annotated[str, typer.Option(help="Find the lines that match this regular expression, newest first.")] = "",
    lines: Annotated[str, option("FROM-TO", "Only these lines: 120-180, or 120- for the rest.")] = "",
    cap: Annotated[str, option("TOKENS", "Print at most this many tokens, such as 10k; the end says how to get the rest.")] = "",
    embeddings: EmbeddingsOption = "",
    as_bytes: Annotated[bool, flag("--raw", "Print the original bytes and nothing else.")] = False,
) -> None:
    """Print what a handle names, or find where a session speaks of something.

    What a terminal would obey is shown as signs. With --raw, a tool call prints its result, entry:N the message's JSON, anything larger its texts in order; all as they were recorded. An
    image or document prints its bytes: entry:N/M, or entry:N/M/K where a result holds several. A terminal gets signs all the same, a file or a pipe the bytes.
    """
    query = Query(words=words, path=path, pattern=pattern, lines=lines)
    named, handle = _parted(sessions, optional=query.searches)
    most = parse_tokens("--cap", cap, of=None) if cap else 0
    if as_bytes and (query.searches or lines or cap):
        raise InputError("--raw", "a search, lines or a cap beside it", "a handle alone")
    loaded = load([source(name) for name in named], o200k())
    lost = loaded.skipped if OWN in loaded.formats else ()
    for each in lost[:LOST_SHOWN]:
        typer.echo(f"tenure: {words_plain(each.reason)}", err=True)
    if len(lost) > LOST_SHOWN:
        typer.echo(f"tenure: {len(lost) - LOST_SHOWN:,} more messages cannot be read; tenure verify lists them", err=True)
    opened = Spills.among(map(spills_of, named))

    def sources() -> Iterator[Original]:
        return chain.from_iterable(map(sources_of, named))

    if as_bytes:
        of = source_of(Original(loaded.index, loaded.read), sources, handle)
        spill = spilled(of.index, of.read, handle)
        _write(opened(spill) if spill else iter((raw(of.index, of.read, handle, medium=medium_bytes),)))
        return
    query = replace(query, handle=handle)
    text = answer(
        loaded.index,
        loaded.read,
        query,
        count=o200k(),
        cap=most,
        now=monotonic,
        opened=opened,
        sources=sources,
        nearest=nearness(embeddings),
    )
    typer.echo(visible(text))


def _write(chunks: Iterator[bytes]) -> None:
    """Write bytes as they are, but to a terminal only text, and what a terminal would obey as signs. Raises InputError for what is no text there."""
    if not sys.stdout.isatty():
        for chunk in chunks:
            sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
        return
    for text in codecs.iterdecode(chunks, "utf-8", "surrogateescape"):
        if _NO_TEXT.search(text):
            raise InputError("--raw", "bytes that are no text, and a terminal", "a file or a pipe behind it, such as > FILE")
        sys.stdout.write(visible(text))
    sys.stdout.flush()


def _parted(arguments: list[str], *, optional: bool) -> tuple[list[str], str]:
    """The sessions and the handle behind them; in a search, the last argument is a handle only where it names no file."""
    *before, last = arguments
    if optional and (not before or last == STDIN or _accepts(source, last)):
        return arguments, ""
    if not before:
        raise InputError(
            "recall", f"{last!r} alone", "a session, then a handle such as read:12@3fa9; or --words, --path or --pattern"
        )
    if not _accepts(source, before[0]) and _accepts(source, last) and _accepts(parse_handle, before[0]):
        raise InputError(
            "recall", f"the handle {before[0]!r} first", f"the session first: tenure recall {shlex.quote(last)} {before[0]}"
        )
    return before, last


def _accepts(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except InputError:
        return False
    return True
