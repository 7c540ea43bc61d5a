"""Tenure manages the life of everything in an LLM agent's context window.

from tenure import Context, Budget
context = Context(dialect="anthropic", budget=Budget(target=80_000), policy="graph", store="sqlite:///agent.db")
context.extend(messages)                                     # dictionaries, as they are
reply = client.messages.create(**context.request(model="…", tools=tools, max_tokens=4096))
context.append(reply)                                        # also learns from reply.usage

Importing this loads nothing else; each name is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenure.adapters.wrapping import wrap as wrap
    from tenure.context import Context as Context
    from tenure.engine.lifecycle.budget import Budget as Budget
    from tenure.engine.lifecycle.decision import Propose as Propose
    from tenure.engine.lifecycle.decision import Stay as Stay
    from tenure.engine.lifecycle.decision import Unmet as Unmet
    from tenure.engine.policies.cwl import Cwl as Cwl
    from tenure.engine.record.tools import ToolKind as ToolKind
    from tenure.errors import Conflict as Conflict
    from tenure.errors import InputError as InputError
    from tenure.errors import StoreError as StoreError
    from tenure.errors import TenureError as TenureError
    from tenure.store.store import Store as Store

__version__ = "0.1.0"

_PLACES = {
    "Budget": "tenure.engine.lifecycle.budget",
    "Conflict": "tenure.errors",
    "Context": "tenure.context",
    "Cwl": "tenure.engine.policies.cwl",
    "InputError": "tenure.errors",
    "Propose": "tenure.engine.lifecycle.decision",
    "Stay": "tenure.engine.lifecycle.decision",
    "Store": "tenure.store.store",
    "StoreError": "tenure.errors",
    "TenureError": "tenure.errors",
    "ToolKind": "tenure.engine.record.tools",
    "Unmet": "tenure.engine.lifecycle.decision",
    "wrap": "tenure.adapters.wrapping",
}

__all__ = [
    "Budget",
    "Conflict",
    "Context",
    "Cwl",
    "InputError",
    "Propose",
    "Stay",
    "Store",
    "StoreError",
    "TenureError",
    "ToolKind",
    "Unmet",
    "wrap",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'tenure' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
