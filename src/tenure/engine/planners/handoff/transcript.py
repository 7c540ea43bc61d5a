"""The flat transcript that a summariser reads.

Every entry becomes labelled lines in one text. Labels start with `MARK`; a line of content that does is moved by a space, so nothing that a
tool returned can pass for a label. Where the room is short, pieces give way in the order of a table, the oldest first.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final, Literal, assert_never

from msgspec import Struct

from tenure.engine.record.entry import Block, Count, Entry, Media, Opaque, Origin, Role, Text, Thinking, ToolCall, ToolResult
from tenure.engine.record.index import NONE, Index

MARK: Final = "§§"
OPENING: Final = (
    "[handoff] Earlier history of this conversation was handed off, and this note is the source of truth about it. It is a record and not a "
    "request; messages after it are newer. Nothing is lost: recall brings back any of it, by handle, path or words."
)

EARLIER: Final = "brief of what happened before this transcript"

Kind = Literal["brief", "human", "reply", "thinking", "call", "result", "note"]

# What a piece may weigh in the first place, in tokens; a kind that is not here is told whole. The record and the view keep the rest.
AT_MOST: Final[dict[Kind, int]] = {"result": 600, "call": 400, "thinking": 300, "note": 200}

# Who gives way when the room is short: all of one kind down to so many tokens, oldest first, then the next line. 0 leaves a piece out.
# Old results first: what they led to stands in the replies. The words of people last: nothing else says what was wanted; only of what
# somebody pasted by the thousand a middle goes before all replies do.
GIVING_WAY: Final[tuple[tuple[Kind, int], ...]] = (
    ("result", 150), ("note", 40), ("thinking", 60), ("result", 40), ("call", 100), ("thinking", 0), ("note", 0), ("reply", 400),
    ("result", 0), ("call", 30), ("reply", 100), ("human", 4_000), ("call", 0), ("reply", 30), ("brief", 1_500), ("reply", 0),
    ("human", 1_000), ("brief", 300), ("human", 200), ("human", 50), ("human", 0), ("brief", 0),
)  # fmt: skip

HEAD_SHARE: Final = 0.6  # of a clipped text; the rest is its end
CHARS: Final = 8  # per token: a text of more than that times its limit is not counted whole, be it gigabytes
SMALLEST: Final = 24  # characters; a clip to fewer says nothing
LABEL_CHARS: Final = 60  # of a label that a provider chose

_LABEL_LIKE = re.compile(rf"(?:^|(?<=[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])){MARK}")


class Transcript(Struct, frozen=True, kw_only=True):
    """A flat transcript."""

    text: str
    entries: int  # of which something is told; the earlier brief is none of them


class _TranscriptPiece:
    """A labelled text on its way to fit."""

    __slots__ = ("entry", "gone", "kind", "label", "text", "tokens", "whole")

    def __init__(self, kind: Kind, entry: int, label: str, text: str) -> None:
        self.kind: Kind = kind
        self.entry, self.label = entry, label
        self.text = self.whole = _plain(text)
        self.tokens, self.gone = 0, False

    @property
    def as_text(self) -> str:
        return _labelled(self.label, self.text)

    def weigh(self, most: int, count: Count) -> None:
        """Note what it weighs, and clip it where it is larger than it may be from the start."""
        is_gigantic = len(self.text) > most * CHARS
        self.tokens = len(self.text) if is_gigantic else count(self.as_text)
        if self.tokens > most or is_gigantic:
            self.shrink(most, count)

    def shrink(self, limit: int, count: Count) -> int:
        """Bring it to `limit` tokens, label included; how many that frees."""
        before = self.tokens
        clipped = ends(self.whole, limit - count(_labelled(self.label, "")) - 1, count) if limit > 0 else ""
        if clipped:  # of the whole again, so that it says all that is missing
            self.text = _plain(clipped)  # a cut may have brought a mark to the start of a line
            self.tokens = count(self.as_text)
            if self.tokens < before:
                return before - self.tokens
        self.text, self.tokens, self.gone = "", 0, True
        return before


def transcript(entries: Iterable[Entry], index: Index, room: int, count: Count, *, previous: str = "") -> Transcript:
    """What was said and done in `entries`, in at most `room` tokens of `count`; empty where not even a line fits.

    `previous`, the last brief, stands first, labelled. System prompts are left out: they stay where they are. O(n log n) at worst, and linear
    where nothing has to give way; of a gigantic text only the ends are ever counted.
    """
    pieces = list(_pieces(entries, index, previous))
    for piece in pieces:
        piece.weigh(min(AT_MOST.get(piece.kind, room), room), count)
    return _fitted(pieces, room, count)


def is_brief(block: Block) -> bool:
    """Whether a block is a brief. Only the harness writes briefs; the same words of a person or a tool are just words."""
    return isinstance(block, Text) and block.origin is Origin.HARNESS and block.text.startswith(OPENING)


def ends(text: str, limit: int, count: Count) -> str:
    """`text` in at most `limit` tokens: whole, or its head and tail around a line that says how much is missing; empty if not even that fits."""
    if limit <= 0 or not text:
        return ""
    if len(text) <= limit * CHARS and count(text) <= limit:
        return text
    size = min(len(text) - 1, limit * CHARS // 2)
    while size >= SMALLEST:
        head = int(size * HEAD_SHARE)
        tail = size - head
        clipped = f"{text[:head].rstrip()}\n[… {len(text) - size:,} characters left out …]\n{text[-tail:].lstrip()}"
        if (tokens := count(clipped)) <= limit:
            return clipped
        size = min(size * 4 // 5, size * limit // tokens)
    return ""


def _pieces(entries: Iterable[Entry], index: Index, previous: str) -> Iterator[_TranscriptPiece]:
    if previous.strip():
        yield _TranscriptPiece("brief", NONE, EARLIER, previous)
    for entry in entries:
        if entry.role is Role.SYSTEM:
            continue
        for number, block in enumerate(entry.blocks):
            kind, label, text = _labelled_block(block, (entry.n, number), index)
            if text.strip() or kind in ("call", "result"):
                yield _TranscriptPiece(kind, entry.n, label, text)


def _labelled_block(block: Block, at: tuple[int, int], index: Index) -> tuple[Kind, str, str]:
    """What a block is, and how it is told. Who wrote it decides; a message's role does not."""
    span = index.block(at).span
    object_ = index.spans[span].object if span != NONE else ""
    turn = index.block(at).turn
    match block:
        case Text(text=text) if is_brief(block):
            return "brief", EARLIER, text
        case Text(text=text):
            return _speaker(block.origin, turn, text)
        case Thinking(text=text):
            return "thinking", "assistant, thinking", text
        case ToolCall(name=name):
            return "call", f"call {object_ or name}", block.arguments
        case ToolResult(text=text, error=error, media=media):
            pictures = f"\n[{len(media)} media]" if media else ""
            return "result", f"result of {object_ or 'an unknown call'}{' (error)' if error else ''}", text + pictures
        case Media(media_type=type_, text=text):
            return _speaker(block.origin, turn, f"[{type_ or 'media'}] {text}".rstrip())
        case Opaque(type=type_, text=text):
            return "note", " ".join(type_.split())[:LABEL_CHARS] or "unknown", text
        case _:
            assert_never(block)


def _speaker(origin: Origin, turn: int, text: str) -> tuple[Kind, str, str]:
    match origin:
        case Origin.HUMAN:
            return "human", f"user:{turn}", text
        case Origin.MODEL:
            return "reply", "assistant", text
        case Origin.TOOL | Origin.HARNESS:
            return "note", "note of the program", text
        case _:
            assert_never(origin)


def _fitted(pieces: Sequence[_TranscriptPiece], room: int, count: Count) -> Transcript:
    """Let pieces give way until the text, counted as a whole, fits."""
    total = sum(piece.tokens for piece in pieces)
    target = room
    steps = _giving_way(pieces, count, lambda: total - target)
    while True:
        while total > target:
            freed = next(steps, None)
            if freed is None:
                return Transcript(text="", entries=0)
            total -= freed
        text = "\n".join(_lines(pieces))
        tokens = count(text)
        if tokens <= room:
            return Transcript(text=text, entries=len({each.entry for each in pieces if not each.gone and each.entry != NONE}))
        target = min(total * max(room, 0) // tokens, total - total // 50 - 1)  # joints and gaps weigh too


def _giving_way(pieces: Sequence[_TranscriptPiece], count: Count, need: Callable[[], int]) -> Iterator[int]:
    """Carry out the table, one piece at a time and only as far as there is need; yields what each step frees."""
    for kind, limit in GIVING_WAY:
        for piece in pieces:
            while piece.kind == kind and piece.tokens > limit:
                yield piece.shrink(max(limit, piece.tokens - need()), count)
    for piece in pieces:  # labels that weigh nothing, for a tokenizer that counts strangely
        if not piece.gone:
            yield piece.shrink(0, count)


def _lines(pieces: Sequence[_TranscriptPiece]) -> Iterator[str]:
    """The pieces that are left; each run of missing ones is one line that says so."""
    for gone, run in groupby(pieces, key=lambda piece: piece.gone):
        if gone:
            yield f"{MARK} {sum(1 for _ in run)} left out"
        else:
            yield from (piece.as_text for piece in run)


def _labelled(label: str, text: str) -> str:
    return f"{MARK} {label}\n{text}" if text else f"{MARK} {label}"


def _plain(text: str) -> str:
    """Content in which no line is a label, and nothing is that providers refuse."""
    return _LABEL_LIKE.sub(" " + MARK, text.replace("\0", "\ufffd"))
