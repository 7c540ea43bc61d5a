"""Cases and verdicts as tables: pieces of a made-up session, and what a judge may answer."""

import json
from pathlib import Path
from typing import Any

from msgspec import UNSET, UnsetType

from tenure.engine.view.edit import LoggedAction
from tenure.lab.events import Category
from tenure.lab.judges.cases import INSERTED, Case, CaseFacts, CaseNeed, CasePiece, Control, Kind
from tenure.testing.builders import by_words

BULK = "\n".join(f"{n}: nothing here is ever wanted again, row {n * n}" for n in range(160))
TICKET = "TICKET-90417753.txt"


def piece(
    entry: int, kind: Kind, text: str, *, name: str = "", turn: int = 1, block: int = 0, is_part: bool = False
) -> CasePiece:
    return CasePiece(
        entry=entry, block=block, turn=turn, kind=kind, name=name, text=text, tokens=by_words(text) + 4, is_part=is_part
    )


def residue(before: int, text: str, *, turn: int = 1) -> CasePiece:
    return piece(before, "note", text, turn=turn, block=INSERTED)


def facts(
    policy: str = "cwl", *, cut: int = 0, control: Control = "", source: str = "a.jsonl", pruned: float = 0.45
) -> CaseFacts:
    return CaseFacts(
        source=source, cut=cut, before_call=7, entry=10, line=21, policy=policy, control=control, tokens=9_000, pruned=pruned
    )


def need(
    text: str = TICKET, *, held: tuple[int, int] = (2, 0), entry: int = 10, block: int = 0, stands: Any = "lost"
) -> CaseNeed:
    return CaseNeed(
        call=7,
        entry=entry,
        block=block,
        line=22,
        kind="locator",
        form="file",
        text=text,
        objects=("read:1",),
        held=(held,),
        stands=stands,
        category=Category.LOCATOR,
    )


def case(
    *,
    policy: str = "cwl",
    kept: tuple[CasePiece, ...] | None = None,
    removed: tuple[CasePiece, ...] | None = None,
    future: tuple[CasePiece, ...] | None = None,
    needs: tuple[CaseNeed, ...] | UnsetType = UNSET,
    control: Control = "",
    cut: int = 0,
    source: str = "a.jsonl",
) -> Case:
    """A ticket was read, taken out of view, and is wanted again; unless something else is given."""
    return Case(
        facts=facts(policy, cut=cut, control=control, source=source),
        acts=(LoggedAction(kind="prune", object="read:1"),),
        kept=kept if kept is not None else (piece(0, "human", "Find the ticket, then close it."), piece(1, "words", "Looking.")),
        removed=removed
        if removed is not None
        else (
            piece(1, "call", '{"path":"tickets.txt"}', name="read:1@41aa", block=1),
            piece(2, "result", f"open: {TICKET}", name="read:1@41aa"),
        ),
        future=future
        if future is not None
        else (
            piece(10, "call", f'{{"path":"{TICKET}"}}', name="read:2@77b0"),
            piece(11, "result", "closed on Monday", name="read:2@77b0"),
        ),
        calls={10: 7},
        needs=(need(),) if needs is UNSET else needs,
    )


def harmless(*, policy: str = "cwl", control: Control = "", cut: int = 0) -> Case:
    """The same, but the ticket is still in view."""
    kept = (piece(0, "human", f"Find the ticket {TICKET}, then close it."), piece(1, "words", "Looking."))
    return case(policy=policy, kept=kept, needs=(), control=control, cut=cut)


def said(**changes: Any) -> dict[str, Any]:
    """A whole no-impact answer as JSON; changes replace its fields."""
    answer: dict[str, Any] = {
        "dependencies": [],
        "valid": True,
        "uncertain": False,
        "overall_score": 5,
        "summary": "All is there.",
        "dimension_scores": {
            name: {"score": 5, "verdict": "pass"}
            for name in ("goal_retention", "evidence_retention", "continuation_readiness", "compression_safety")
        },
        "failure_culprit": None,
    }
    return answer | changes


def blamed(**changes: Any) -> dict[str, Any]:
    """A whole no-impact answer that finds a loss."""
    lost = [{"what": TICKET, "used_by": "call 7", "stands": "lost", "object": "read:1"}]
    culprit = {"target_id": "read:1", "category": "locator-handle", "missing": TICKET}
    return said(valid=False, overall_score=1, summary="The ticket is gone.", dependencies=lost, failure_culprit=culprit) | changes


def chosen(verdict: str = "tie") -> str:
    """A whole A/B answer."""
    answer = {
        "summary": "One keeps the ticket.",
        "rationale": TICKET,
        "verdict": verdict,
        "stronger_aspects": ["keeps the ticket"],
        "risks": [],
        "confidence": 0.9,
    }
    return json.dumps(answer)


VALID = json.dumps(said())
INVALID = json.dumps(blamed())


def recorded(folder: Path, *, calls: int = 20, wanted: int | None = None, name: str = "session.json") -> Path:
    """A session of reads; the `wanted`-th returned a ticket that the last call edits to the letter."""
    messages: list[dict[str, object]] = [{"role": "user", "content": "Look through all parts."}]
    for n in range(calls):
        tool, arguments = "read", {"path": f"part_{n}.txt"}
        if n == calls - 1 and wanted is not None:
            tool, arguments = "edit", {"path": "notes.txt", "old_string": f"see {TICKET} for the rest", "new_string": "done"}
        call = {"id": f"c{n}", "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
        found = f"\nsee {TICKET} for the rest\n{BULK}" if n == wanted else BULK
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": f"part {n}{found}"},
        ]
    path = folder / name
    path.write_text(json.dumps(messages), encoding="utf-8")
    return path
