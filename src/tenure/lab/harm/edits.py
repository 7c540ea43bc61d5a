"""Strict edits: whether the whole text that an edit has to find stands together in the view, short lines included.

An edit fails when one character of what it looks for is remembered wrongly, so nothing short of all of it counts. Lines are compared without the
white space and the numbers of listings at their ends.
"""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from tenure.lab.events import EditTarget
from tenure.lab.harm.holdings import Holdings, Message, Passage
from tenure.lab.harm.judge import WindowTrace
from tenure.lab.harm.names import BODIES, PATCHES, TARGETS
from tenure.lab.harm.use import PATCH_MARKS

LOOKED_AT: Final = 400  # passages with the rarest word of a text that is looked for
_LONGEST: Final = 100_000  # characters of one text
_NUMBERED = re.compile(r"[ \t]*\d{1,6}(?:→|\t|: |\| ?)")


class StepEdit(Struct, frozen=True, kw_only=True):
    """A text that an edit of a step has to find, and the passages that held all of it before."""

    entry: int
    block: int
    tool: str
    text: str  # in the spelling of `spelling`
    holders: tuple[Passage, ...]


def spelling(text: str) -> str:
    """A text in the spelling in which edits are looked for. O(text)."""
    return "\n".join([_NUMBERED.sub("", line, count=1).strip() for line in text.split("\n")])


def edits_of(message: Message, holdings: Holdings) -> Iterator[StepEdit]:
    """What the edits of an assistant's message have to find, where the record held all of it before."""
    for passage in message.passages if message.role == "assistant" else ():
        if passage.kind != "tool_call":
            continue
        for text in dict.fromkeys(_wanted(passage)):
            holders = _holders(text, message.entry, holdings)
            if holders:
                yield StepEdit(entry=message.entry, block=passage.at[1], tool=passage.tool, text=text, holders=holders)


def judge_edit(edit: StepEdit, window: WindowTrace, call: int) -> EditTarget | None:
    """Whether an edit still finds its text in the view; None when nothing that held it was touched, or it was had again since."""
    holders = [held for held in edit.holders if held.at not in window.unseen]
    taken = [window.taken[held.at] for held in holders if held.at in window.taken]
    if not taken:
        return None
    newest = max(taken, key=lambda each: each.commit)
    if any(held.at[0] >= newest.entries for held in holders):
        return None
    longest = max(edit.text.split("\n"), key=len)  # of what is shown only what holds it is spelled out
    shown = (text for text in (*(each.instead for each in taken), *(each.text for each in window.residues())) if longest in text)
    is_whole = any(held.at not in window.taken for held in holders) or any(edit.text in spelling(text) for text in shown)
    return EditTarget(
        call=call,
        entry=edit.entry,
        block=edit.block,
        tool=edit.tool,
        lines=edit.text.count("\n") + 1,
        held=tuple(held.at for held in holders),
        whole=is_whole,
        commit=newest.commit,
    )


def _wanted(passage: Passage) -> Iterator[str]:
    replaces = any(field.name in BODIES for field in passage.fields)
    for field in passage.fields:
        if field.name in TARGETS and replaces:
            yield spelling(field.text[:_LONGEST]).strip("\n")
        elif field.name in PATCHES and any(mark in field.text for mark in PATCH_MARKS):
            yield from _hunks(field.text[:_LONGEST])


def _hunks(patch: str) -> Iterator[str]:
    """Of each hunk what it takes away and what it leaves around, which have to stand together."""
    hunk: list[str] = []
    for line in (*patch.split("\n"), "@@"):
        if line[:1] in ("-", " ") and not line.startswith("---"):
            hunk.append(line[1:])
        elif not line.startswith("+") or line.startswith("+++"):
            if text := spelling("\n".join(hunk)).strip("\n"):
                yield text
            hunk = []


def _holders(text: str, entry: int, holdings: Holdings) -> tuple[Passage, ...]:
    if not text:
        return ()
    return tuple(held for held in holdings.candidates(text, entry, LOOKED_AT) or () if text in holdings.spelling(held, spelling))
