"""What a process loads once - the tokenizer, prices, what the policy has learned -, loaded before the first conversation needs it (an edge)."""

from typing import Final

from tenure.context.context import Context
from tenure.context.exchange import Management
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.record.entry import Draft, Origin, Role, Text, ToolCall, ToolResult
from tenure.store.store import Store

_LINES: Final = "".join(f"line {n}: the value of item {n} is {n * 7919}\n" for n in range(120))
_PRICED: Final = "claude-opus-5"  # any model that has prices
_BUDGET: Final = Budget(ceiling=4_000)


def warm(management: Management) -> None:
    """Manage a made-up conversation in memory, from which something leaves."""
    drafts = [Draft(role=Role.USER, blocks=(Text(text="go", origin=Origin.HUMAN),))]
    for n in range(8):
        call = ToolCall(call_id=f"c{n}", name="read", arguments=f'{{"path": "src/f{n}.py"}}')
        drafts.append(Draft(role=Role.ASSISTANT, blocks=(call,)))
        drafts.append(Draft(role=Role.USER, blocks=(ToolResult(call_id=f"c{n}", text=f"{n}\n{_LINES}"),)))
    with Store("sqlite://") as store:
        context = Context(store=store, budget=_BUDGET, policy=management.policy, clip=management.clip, model=_PRICED)
        context.extend(drafts)
        context.wire()
