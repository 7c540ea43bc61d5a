"""Random conversations for property-based tests.

Needs Hypothesis, which nothing else in the package does. What is drawn is what real logs hold: parallel calls, results out of order, late,
missing or without a call, one call id for everything, people who speak while tools run, several delimiters in a message.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from hypothesis import strategies as st

from tenure.engine.record.entry import Block, Draft, Origin, Role, Text, ToolCall, ToolResult
from tenure.engine.record.tools import DELIMITER
from tenure.testing.builders import (
    call,
    end_act,
    end_expl,
    harness,
    picture,
    reminder,
    start_act,
    start_expl,
    system,
    thinking,
    unknown,
)

TOOLS: Final = (
    "read",
    "grep",
    "edit",
    "bash",
    "ls",
    "user",
    "episode",
    "Read",
    "mcp__files__read",
    "weird:name",
    "naïve",
    "step",
)
WORDS: Final = (
    "verify the token",
    "größe 道 🙂",
    "x",
    "src/auth.py:12 def verify(token)",
    "",
    "a b c d e f g h i j k l m n o p q r s t",
)


class Move(StrEnum):
    """What happens next in a conversation."""

    HUMAN = "human"
    STEP = "step"
    HARNESS = "harness"
    SYSTEM = "system"
    ORPHAN = "orphan"
    LATE = "late"


_MOVES: Final = st.sampled_from([*[Move.STEP] * 12, *[Move.HUMAN] * 2, Move.HARNESS, Move.SYSTEM, Move.ORPHAN, Move.LATE])
_MOVES_TIDY: Final = st.sampled_from([*[Move.STEP] * 8, Move.HUMAN])
_texts: Final = st.sampled_from([*WORDS, *(" ".join(["word"] * length) for length in (3, 10, 40, 120))])
_spoken: Final = _texts.filter(bool)
_seldom: Final = st.sampled_from([True, *[False] * 5])
_often: Final = st.sampled_from([False, *[True] * 3])


class _Writer:
    """Writes one conversation. It knows what episodes are open, so that most delimiters are valid; some are not."""

    def __init__(self, draw: st.DrawFn, *, one_id: bool, wild: bool, annotated: bool) -> None:
        self._draw = draw
        self._one_id = one_id
        self._wild = wild
        self._annotated = annotated
        self._calls = 0
        self._open = ""
        self._ended: list[str] = []
        self._names = 0
        self._interrupted: list[ToolCall] = []
        self._thoughts = 0

    def write(self, move: Move) -> Iterator[Draft]:
        match move:
            case Move.HUMAN:
                yield self._human()
            case Move.STEP:
                yield from self._step()
            case Move.HARNESS:
                yield harness(self._draw(_spoken))
            case Move.SYSTEM:
                yield system(self._draw(_spoken))
            case Move.ORPHAN:
                yield Draft(role=Role.TOOL, blocks=(ToolResult(call_id="nobody", text=self._draw(_texts)),))
            case Move.LATE:
                if self._interrupted:
                    yield self._results([self._interrupted.pop()])

    def _human(self) -> Draft:
        blocks: list[Block] = [Text(text=self._draw(_spoken), origin=Origin.HUMAN)]
        if self._wild and self._draw(_seldom):
            blocks.append(picture())
        if self._wild and self._draw(_seldom):
            blocks.append(reminder("mind the gap"))
        return Draft(role=Role.USER, blocks=tuple(blocks))

    def _step(self) -> Iterator[Draft]:
        blocks = list(self._parts())
        if self._wild and self._draw(_seldom) and len(blocks) > 1:  # a reply that its host logged in two pieces
            cut = self._draw(st.integers(1, len(blocks) - 1))
            yield Draft(role=Role.ASSISTANT, blocks=tuple(blocks[:cut]))
            yield Draft(role=Role.ASSISTANT, blocks=tuple(blocks[cut:]))
        else:
            yield Draft(role=Role.ASSISTANT, blocks=tuple(blocks))
        yield from self._answers([block for block in blocks if isinstance(block, ToolCall)])

    def _parts(self) -> Iterator[Block]:
        if self._draw(st.booleans()):
            yield self._thinking()
        if self._draw(_seldom):
            yield Text(text=self._draw(_texts), origin=Origin.MODEL)
        if self._annotated and self._draw(st.booleans()):
            yield from self._delimiters()
        for _ in range(self._draw(st.sampled_from([0, 1, 1, 1, 2, 3]))):
            if self._wild and self._draw(_seldom):
                yield self._thinking()
            yield self._call(self._draw(st.sampled_from(TOOLS if self._wild else TOOLS[:5])))
        if self._annotated and self._draw(_seldom):
            yield from self._delimiters()
        if self._annotated and self._draw(_seldom):
            yield self._part()
        if self._wild and self._draw(_seldom):
            yield self._draw(
                st.sampled_from([unknown("server tool", Origin.MODEL), picture(origin=Origin.MODEL), self._thinking()])
            )
        elif self._draw(_seldom):
            yield Text(text=self._draw(_spoken), origin=Origin.MODEL)
        else:
            yield self._call("read")

    def _thinking(self) -> Block:
        self._thoughts += 1
        return thinking(f"{self._draw(_texts)} {self._thoughts}", signed=self._draw(_often))

    def _call(self, tool: str) -> ToolCall:
        return call(tool, self._id(), path=f"src/{self._calls}.py")

    def _part(self) -> ToolCall:
        """Work for a sub-agent."""
        type_ = self._draw(st.sampled_from(["expl", "act"]))
        needed = self._ended[-1:] if type_ == "act" else []
        return call("task", self._id(), type=type_, name=f"p{self._calls}", dependencies=needed)

    def _id(self) -> str:
        self._calls += 1
        return f"call_{0 if self._one_id else self._calls}"

    def _delimiters(self) -> Iterator[ToolCall]:
        if self._wild and self._draw(_seldom):
            yield ToolCall(call_id=self._id(), name=DELIMITER, arguments=self._draw(st.sampled_from(REFUSED)))
        if self._open:
            type_, self._open = self._open, ""
            if type_ == "act":
                yield end_act(self._id())
            else:
                self._ended.append(f"e{self._names}")
                yield end_expl(self._draw(st.sampled_from(["found it", "auth lives in src/auth.py", "nothing"])), self._id())
            if self._draw(st.booleans()):
                return
        self._names += 1
        if self._ended and self._draw(st.booleans()):
            self._open = "act"
            chosen = self._draw(st.lists(st.sampled_from(self._ended[-4:]), min_size=1, max_size=2, unique=True))
            yield start_act(f"e{self._names}", *chosen, call_id=self._id())
        else:
            self._open = "expl"
            yield start_expl(f"e{self._names}", self._id())

    def _answers(self, calls: list[ToolCall]) -> Iterator[Draft]:
        if self._wild:
            calls = self._draw(st.permutations(calls)) if len(calls) > 1 else calls
            kept = [each for each in calls if not self._draw(_seldom)]
            self._interrupted += [each for each in calls if each not in kept]
            calls = kept
            if calls and self._draw(_seldom):
                yield self._human()
        if len(calls) > 1 and self._draw(st.booleans()):
            yield from (self._results([each]) for each in calls)
        elif calls:
            yield self._results(calls)

    def _results(self, calls: list[ToolCall]) -> Draft:
        media = (picture(origin=Origin.TOOL),) if self._wild and self._draw(_seldom) else ()
        blocks: list[Block] = [ToolResult(call_id=each.call_id, text=self._draw(_texts), media=media) for each in calls]
        if self._wild and self._draw(_seldom):
            words = Text(text=self._draw(_spoken), origin=Origin.HUMAN)
            return Draft(role=Role.USER, blocks=(*blocks, words, reminder("stay on task")))
        return Draft(role=Role.TOOL, blocks=tuple(blocks))


REFUSED: Final = (
    '{"action":"end","description":"early","name":"somebody else"}',
    '{"action":"start","name":"","type":"expl"}',
    '{"action":"start","name":"act without dependencies","type":"act"}',
    '{"action":"start","name":"future","type":"act","dependencies":["not there"]}',
    '{"action":"pause"}',
    "not json",
    "[]",
    "",
)


@st.composite
def transcripts(draw: st.DrawFn, *, wild: bool = True, annotated: bool | None = None, longest: int = 24) -> tuple[Draft, ...]:
    """A conversation of up to `longest` moves. Without `wild` every call has its result at once, and every delimiter is valid."""
    writer = _Writer(
        draw,
        one_id=draw(_seldom) if wild else False,
        wild=wild,
        annotated=draw(_often) if annotated is None else annotated,
    )
    moves = draw(st.lists(_MOVES if wild else _MOVES_TIDY, min_size=1, max_size=longest))
    opening = [system("You are a coding agent.")] if draw(st.booleans()) else []
    first = next(writer.write(Move.HUMAN))
    return (*opening, first, *(draft for move in moves for draft in writer.write(move)))
