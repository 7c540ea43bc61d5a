"""The compaction-conformance-kit (PyPI) on our policies and briefs: planted facts, five rounds, fixed output budgets.

    pip install compaction-conformance-kit
    python bench/conformance.py docs/evidence/conformance.md

The kit hands over turns and asks for a text of at most so many characters, then plants that text as the whole history of the next round. Its facts stand in words of a
person, which no policy of ours takes: there a text that is too long stays too long, and that is shown. So each policy runs a second time on sessions in which the same turns are
results of tools, and a third row says what of those `recall` still brings back.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any, Final

from msgspec import Struct

from tenure import Budget, Context
from tenure.errors import InputError
from tenure.lab.planner import RuleModel, briefed
from tenure.testing.store import MemoryStore

ROUNDS: Final = 5
SEEDS: Final = (1, 2, 3, 4)
BUDGETS: Final = (0.10, 0.20, 0.30)
POLICIES: Final = (
    "graph",
    "tiered",
    "cwl",
    "observation-masking",
    "oldest-turn",
    "sliding-window",
    "clear-tool-uses",
    "handoff",
)
MODEL: Final = "gpt-5.1"
TRIES: Final = 6  # at a limit that fills the kit's budget
CHARS: Final = 4  # of a token, here: budgets are in characters


def tokens(text: str) -> int:
    """A quarter of the characters."""
    return (len(text) + CHARS - 1) // CHARS


@cache
def _recall_tokens() -> int:
    """What `recall` weighs in a request, which offers it once something has left."""
    return tokens(json.dumps(Context(dialect="openai-chat", model=MODEL, store=MemoryStore()).request()["tools"]))


class TenureCompactor:
    """`compact(turns)` as the kit calls it. `tools`: turns of a person come as results of tools. `recalls`: with what `recall` brings back of them."""

    def __init__(self, policy: str, *, tools: bool, recalls: bool = False) -> None:
        self.name = f"tenure {policy}"
        self._policy, self._tools, self._recalls = policy, tools, recalls

    def compact(self, turns: Sequence[Any], round_num: int = 1, budget_chars: int | None = None) -> Any:
        """What the model would see, as much of it as the budget takes.

        A limit of ours holds for a request: for its calls, framing and the tool `recall` too. The kit counts the text alone, so the limit is raised while that leaves room.
        """
        from compaction_kit.compacted import CompactedContext

        budget = budget_chars or 10**7
        limit = max(64, budget // CHARS) + _recall_tokens()
        text = self._shown(turns, limit)
        for _ in range(TRIES):
            limit += (budget - len(text)) // CHARS
            more = self._shown(turns, limit) if len(text) < budget else ""
            if not len(text) < len(more) <= budget:
                break
            text = more
        return CompactedContext(text=text, compactor_name=self.name, round_num=round_num)

    def _shown(self, turns: Sequence[Any], limit: int) -> str:
        policy: Any = "graph" if self._policy == "handoff" else self._policy
        context = Context(
            dialect="openai-chat",
            model=MODEL,
            policy=policy,
            budget=Budget(ceiling=limit, floor=limit, window=10**6),  # asked once: no room is wanted for what comes next
            store=MemoryStore(),
            tokenizer=tokens,
            clip=0,
        )
        context.extend([each for n, turn in enumerate(turns) for each in self._messages(n, turn)])
        if self._policy == "handoff" and len(turns) > 1:
            context.handoff(RuleModel(rule=briefed))
        shown = context.request(model=MODEL, annotate=False)["messages"]
        text = "\n".join(_line_of(each) for each in shown)
        if self._recalls:
            text += "".join(f"\n{self._back(context, n)}" for n in range(1, len(turns) + 1))
        return text

    def _messages(self, n: int, turn: Any) -> list[dict[str, Any]]:
        if turn.role == "user" and self._tools and n > 1:
            call = {"id": f"c{n}", "type": "function", "function": {"name": "note", "arguments": f'{{"n":{n}}}'}}
            return [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": f"c{n}", "content": turn.text},
            ]
        role = turn.role if turn.role in ("system", "assistant") else "user"
        return [{"role": role, "content": turn.text}]

    def _back(self, context: Context, n: int) -> str:
        try:
            return context.recall(f"note:{n}")
        except InputError:
            return ""


def _line_of(message: Mapping[str, Any]) -> str:
    """A message with its role; what a system says is the text of the round before, which would grow by a mark in each."""
    text = str(message.get("content") or "")
    return text if message["role"] == "system" else f"[{message['role']}] {text}"


class KitRow(Struct, frozen=True, kw_only=True):
    """One policy at one budget."""

    policy: str
    how: str
    budget: float
    first: float  # share (0 to 1) of the planted facts after one round
    last: float  # and after the last
    size: float  # of the last text, as a share of the session
    kept_budget: bool


def measured(policy: str, how: str, make: Callable[[], Any], budget: float) -> KitRow:
    """The kit's own run over its randomized sessions."""
    from compaction_kit.corpus import build_random_session
    from compaction_kit.runner import run_conformance

    firsts: list[float] = []
    lasts: list[float] = []
    sizes: list[float] = []
    kept = True
    for seed in SEEDS:
        session, canaries = build_random_session(seed)
        run = run_conformance(session, make(), rounds=ROUNDS, canaries=canaries, budget_fraction=budget)
        firsts.append(mean(run.rounds[0].survived.values()))
        lasts.append(mean(run.rounds[-1].survived.values()))
        sizes.append(run.rounds[-1].output_chars / run.rounds[0].input_chars)
        kept = kept and all(each.within_budget for each in run.rounds)
    return KitRow(policy=policy, how=how, budget=budget, first=mean(firsts), last=mean(lasts), size=mean(sizes), kept_budget=kept)


def main() -> None:
    """Measure, and print or write the table."""
    from compaction_kit.compactors import ChecklistCompactor, LossyTruncationCompactor, NaiveSummaryCompactor

    kit = (LossyTruncationCompactor, NaiveSummaryCompactor, ChecklistCompactor)
    lines = [_line(kind.name, {"a person's words": kind}) for kind in kit]
    lines += [_line(f"Tenure, `{policy}`", _ways(policy)) for policy in POLICIES]
    text = HEAD + "".join(lines)
    print(text)
    if len(sys.argv) > 1:
        page = Path(sys.argv[1])
        start, mark, _ = page.read_text(encoding="utf-8").partition("<!-- table -->\n")
        page.write_text(f"{start}{mark}\n{text}", encoding="utf-8")


HEAD: Final = (
    "| what compacts | a person's words: survive round 1 | round 5 | size | results of tools: survive round 1 | round 5 | size | and by `recall` |\n"
    "|---|--:|--:|--:|--:|--:|--:|--:|\n"
)


def _ways(policy: str) -> dict[str, Callable[[], Any]]:
    return {
        "a person's words": lambda: TenureCompactor(policy, tools=False),
        "results of tools": lambda: TenureCompactor(policy, tools=True),
        "recall": lambda: TenureCompactor(policy, tools=True, recalls=True),
    }


def _line(name: str, ways: dict[str, Callable[[], Any]]) -> str:
    """A row: each cell at the budgets of 10, 20 and 30 %; a size over its budget is bold."""
    cells: list[str] = []
    for how in ("a person's words", "results of tools"):
        rows = [measured(name, how, ways[how], budget) for budget in BUDGETS] if how in ways else []
        cells += [" / ".join(f"{getattr(row, field):.0%}" for row in rows) or "–" for field in ("first", "last")]
        cells.append(" / ".join(f"{row.size:.0%}" if row.kept_budget else f"**{row.size:.0%}**" for row in rows) or "–")
    back = [measured(name, "recall", ways["recall"], budget) for budget in BUDGETS] if "recall" in ways else []
    cells.append(" / ".join(f"{row.first:.0%}" for row in back) or "–")
    return f"| {name} | {' | '.join(cells)} |\n"


if __name__ == "__main__":
    main()
