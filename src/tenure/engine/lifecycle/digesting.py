"""Digests of large results at their birth.

Pure: `ask_digests` makes what an edge asks a helper model about messages that were placed and not yet stored, `answer_digest` puts an answer
into the commit that clips the result. So the digest is stored with the clip, in the transaction that stores the result.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.clip.clip import sign_of
from tenure.engine.clip.digest import digested
from tenure.engine.lifecycle.admission import FRAMING
from tenure.engine.lifecycle.session import Placed
from tenure.engine.planners.digest import ROOM, ask, read
from tenure.engine.policies.situation import Count, Read
from tenure.engine.record.entry import Entry, Origin, Role, Text, ToolCall, ToolResult
from tenure.engine.record.index import Index
from tenure.engine.view.edit import Commit, Replace

At = tuple[int, int]  # (entry, block)
ABOVE: Final = 8_000  # o200k tokens: a smaller result is clipped and not digested


class AskDigest(Struct, frozen=True, kw_only=True):
    """What a model is to be asked about one clipped result."""

    place: At
    system: str
    text: str
    output_tokens: int


def ask_digests(
    index: Index, placed: Placed, read_entry: Read, count: Count, *, above: int = ABOVE, room: int = ROOM
) -> Iterator[AskDigest]:
    """One question for each result of more than `above` o200k tokens that `placed` clips and no reply has seen yet, in order.

    `index` is that of the record without them. What a model has answered already, as in a history taken in at once, is not digested.
    """
    entries = placed.entries
    clipped = {(edit.entry, edit.block) for commit in placed.commits for edit in _clips(commit)}
    unseen = max((entry.n for entry in entries if entry.role is Role.ASSISTANT), default=-1)

    def entry(n: int) -> Entry:
        return entries[n - len(index)] if n >= len(index) else read_entry(n)

    for answering in index.answers_in(entries) if clipped else ():
        at = answering.result
        result, tokens = entry(at[0]).blocks[at[1]], entry(at[0]).tokens[at[1]]
        if at not in clipped or at[0] < unseen or tokens <= above or not isinstance(result, ToolResult):
            continue
        call = entry(answering.call[0]).blocks[answering.call[1]]
        request = ask(
            tool=answering.tool,
            arguments=call.arguments if isinstance(call, ToolCall) else "",
            asked=_asked(index, entries, at[0], entry),
            text=result.text,
            tokens=tokens,
            handle=answering.handle,
            count=count,
            room=room,
        )
        yield AskDigest(place=at, system=request.system, text=request.user, output_tokens=request.output_tokens)


def answer_digest(placed: Placed, asked: AskDigest, reply: str, count: Count, *, by: str = "") -> Placed:
    """The messages with the digest that a reply holds beside the clip; as they were when it holds none, or the clip would save nothing."""
    digest = read(reply, count)
    found = next((edit for commit in placed.commits for edit in _clips(commit) if (edit.entry, edit.block) == asked.place), None)
    if not digest or found is None:
        return placed
    entry = placed.entries[found.entry - placed.entries[0].n]
    text = digested(found.text, sign_of(entry.blocks[found.block].text), digest, by)
    tokens = count(text) + FRAMING * (found.block == 0)
    if tokens >= entry.tokens[found.block]:
        return placed
    return replace(placed, commits=tuple(_exchanged(placed.commits, found, replace(found, text=text, tokens=tokens))))


def _clips(commit: Commit) -> Iterator[Replace]:
    return (edit for edit in commit.edits if commit.moment == "admission" and isinstance(edit, Replace))


def _exchanged(commits: Sequence[Commit], old: Replace, new: Replace) -> Iterator[Commit]:
    """The commits with one edit in place of another, and weights that say so."""
    more = 0
    for commit in commits:
        before = commit.tokens_before + more
        if any(edit is old for edit in commit.edits):
            more += new.tokens - old.tokens
            commit = replace(commit, edits=tuple(new if edit is old else edit for edit in commit.edits))
        yield replace(commit, tokens_before=before, tokens_after=commit.tokens_after + more)


def _asked(index: Index, entries: Sequence[Entry], before: int, read_entry: Callable[[int], Entry]) -> str:
    """What a person last said before an entry; empty when nobody has spoken."""
    new = (entry for entry in reversed(entries) if entry.n <= before)
    old = (read_entry(index.turns[-1].start[0]) for _ in index.turns[-1:])
    said = ("\n".join(_human(entry)) for each in (new, old) for entry in each)
    return next((words for words in said if words.strip()), "")


def _human(entry: Entry) -> Iterator[str]:
    return (block.text for block in entry.blocks if isinstance(block, Text) and block.origin is Origin.HUMAN)
