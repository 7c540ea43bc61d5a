"""A judge without a model: the mechanical detector, reading nothing but the question.

It shows what the engine does with verdicts, and how far the detector gets on what a question has room for. It is no second opinion: where it agrees
with the detector, the detector agrees with itself, and what only a reader would see it does not.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from tenure.engine.record.entry import Role, Usage
from tenure.engine.view.edit import Drop, Edit, Insert, Replace
from tenure.lab.events import BlockLine, EntryLine, HarmLine
from tenure.lab.harm.holdings import Message, of_line
from tenure.lab.harm.watch import after_cut, uses_of
from tenure.lab.judges.contracts import AB, DIMENSIONS
from tenure.models.question import Answer, Cancel, Question

NAME: Final = "stand-in/1"  # verdicts are remembered by it: another rule, another name
NAMED: Final = 12  # dependencies of a verdict

_SIGN: Final = re.compile(r"\[([0-9a-f]+) case: ")
_LABEL: Final = (
    r"^\[{sign} (?P<side>(?:[AB] )?(?:retained|removed)|future) (?:call (?P<call>\d+), )?(?:entry (?P<entry>\d+)|between entries): "
    r"(?P<who>system prompt|the person|the agent, thinking|the agent|note of the program|(?P<part>call|result of) (?P<name>.+?))"
    r"(?:, what of it is not shown any more)?(?P<error> \(error\))?\]$"
)
_ANY: Final = r"^\[{sign} [^\n]*\]$"
_KINDS: Final = {"call": "tool_call", "result of": "tool_result"}
_ORIGINS: Final = {"system prompt": "harness", "the person": "human", "note of the program": "harness"}
_LEFT_OUT: Final = (" left out of this question, for room]", " characters left out …]")


class _LabelledBlock(Struct, frozen=True, kw_only=True):
    """One labelled block of a question."""

    side: str
    entry: int  # -1 between entries
    kind: str
    origin: str
    name: str  # of a call, with its handle
    error: bool
    call: str
    text: str


class DetectorJudge:
    """A `Model` that judges by rule. It costs nothing."""

    name: str = NAME

    def __call__(self, question: Question, *, cancel: Cancel | None = None) -> Answer:  # noqa: ARG002 - it answers at once
        """The verdict that the question's contract asks for."""
        text = "\n".join(message for message in question.messages if isinstance(message, str))
        said = preferred(text) if question.system == AB.system else judged(text)
        return Answer(text=said, model=self.name, stop="stop", usage=Usage(), cost_usd=0.0)


def judged(question: str) -> str:
    """A no-impact verdict: what the detector calls lost is lost, what it calls routed is recoverable."""
    pieces = tuple(_pieces(question))
    lines = list(_needs(pieces, "retained", "removed"))
    lost = [line for line in lines if line.verdict == "lost"]
    called = {piece.entry: f"call {piece.call}" for piece in pieces if piece.call}
    ordered = [
        *lost,
        *(line for line in lines if line.verdict == "routed"),
        *(line for line in lines if line.verdict == "visible"),
    ]
    score = max(0, 5 - len(lost))
    verdict = {
        "dependencies": [_dependency(line, called) for line in ordered[:NAMED]],
        "valid": not lost,
        "uncertain": any(mark in question for mark in _LEFT_OUT),
        "overall_score": score,
        "summary": f"By the mechanical detector, on what this question shows: {len(lost)} of {len(lines)} needs that were touched are lost.",
        "dimension_scores": {name: {"score": score, "verdict": "fail" if lost else "pass"} for name in DIMENSIONS},
        "failure_culprit": _culprit(lost[0]) if lost else None,
    }
    return msgspec.json.encode(verdict).decode()


def preferred(question: str) -> str:
    """An A/B verdict: the candidate with fewer lost needs."""
    pieces = tuple(_pieces(question))
    first, second = (
        sum(line.verdict == "lost" for line in _needs(pieces, f"{letter} retained", f"{letter} removed")) for letter in "AB"
    )
    better = "A_better" if first < second else "B_better" if second < first else "tie"
    verdict = {
        "summary": "By the mechanical detector, on what this question shows.",
        "rationale": f"needs that are lost: {first} in A, {second} in B",
        "verdict": better,
        "stronger_aspects": list[str](),
        "risks": list[str](),
        "confidence": 0.5 if better == "tie" else 1.0,
    }
    return msgspec.json.encode(verdict).decode()


def _dependency(line: HarmLine, called: dict[int, str]) -> dict[str, str]:
    stands = {"lost": "lost", "routed": "recoverable", "visible": "visible"}[line.verdict]
    return {
        "what": line.text,
        "used_by": called.get(line.entry, ""),
        "stands": stands,
        "object": line.objects[0] if line.objects else f"entry:{line.held[0][0]}",
    }


def _culprit(line: HarmLine) -> dict[str, str]:
    named = line.objects[0] if line.objects else f"entry:{line.held[0][0]}"
    return {"target_id": named, "category": line.category.value, "missing": line.text}


def _pieces(question: str) -> Iterator[_LabelledBlock]:
    """The labelled blocks of a question, in order."""
    found = _SIGN.search(question)
    if found is None:
        return
    label = re.compile(_LABEL.replace("{sign}", found[1]), re.MULTILINE)
    bounds = list(re.compile(_ANY.replace("{sign}", found[1]), re.MULTILINE).finditer(question))
    for bound, following in zip(bounds, [*bounds[1:], None], strict=True):
        said = label.fullmatch(question, bound.start(), bound.end())
        if said is not None:
            stop = following.start() - 1 if following is not None else len(question)
            yield _LabelledBlock(
                side=said["side"],
                entry=int(said["entry"]) if said["entry"] else -1,
                kind=_KINDS.get(said["part"] or "", "thinking" if said["who"] == "the agent, thinking" else "text"),
                origin="tool" if said["part"] == "result of" else _ORIGINS.get(said["who"], "model"),
                name=said["name"] or "",
                error=said["error"] is not None,
                call=said["call"] or "",
                text=question[bound.end() + 1 : stop],
            )


def _needs(pieces: Sequence[_LabelledBlock], retained: str, removed: str) -> Iterator[HarmLine]:
    """What the detector finds of one candidate, reasoning left aside."""
    entries: dict[int, list[_LabelledBlock]] = {}
    for piece in pieces:
        if piece.side in (retained, removed, "future") and piece.entry >= 0:
            entries.setdefault(piece.entry, []).append(piece)
    cut = min((piece.entry for piece in pieces if piece.side == "future"), default=len(entries))
    edits: list[Edit] = []
    messages: list[Message] = []
    for entry, found in sorted(entries.items()):
        messages.append(_message(entry, _whole(entry, found, removed, edits)))
    for number, piece in enumerate(each for each in pieces if each.side == retained and each.entry < 0):
        edits.append(Insert(before_entry=0, order=number, key=f"n{number}", role=Role.USER, text=piece.text, tokens=0))
    for line in after_cut(uses_of(messages), cut, (), edits):
        if line.part != "thinking":
            yield line


def _whole(entry: int, found: Sequence[_LabelledBlock], removed: str, edits: list[Edit]) -> list[_LabelledBlock]:
    """The blocks of an entry before anything was removed; what was done to them goes to `edits`."""
    standing = {(piece.kind, piece.name): piece for piece in found if piece.side != removed and piece.name}
    blocks: list[_LabelledBlock] = []
    gone = {(piece.kind, piece.name) for piece in found if piece.side == removed and piece.name}
    for piece in found:
        if piece.side != removed and (piece.kind, piece.name) in gone:
            continue  # what stands in place of a block is no block of its own
        if piece.side == removed:
            shorter = standing.get((piece.kind, piece.name))
            number = len(blocks)
            edits.append(
                Drop(entry=entry, block=number)
                if shorter is None
                else Replace(entry=entry, block=number, text=shorter.text, tokens=0)
            )
        blocks.append(piece)
    return blocks


def _message(entry: int, pieces: Iterable[_LabelledBlock]) -> Message:
    blocks = tuple(
        BlockLine(
            kind=piece.kind,
            origin=piece.origin,
            text=piece.text,
            name=piece.name.removeprefix("function:").partition(":")[0],
            objects=(piece.name.partition("@")[0],) if piece.name else (),
            error=piece.error,
        )
        for piece in pieces
    )
    origins = {block.origin for block in blocks}
    role = "assistant" if "model" in origins else "tool" if "tool" in origins else "user"
    line = EntryLine(entry=entry, id="", parent="", sha256="", source=0, line=0, role=role, turn=0, at="", blocks=blocks)
    return of_line(line)
