"""CrewAI: a model whose conversations are kept to a budget (an edge).

    llm = tenure_llm("anthropic/claude-opus-4-5", store="sqlite:///agent.db", budget=Budget(ceiling=80_000))
    agent = Agent(role="Reader", goal="…", backstory="…", tools=[read], llm=llm)

CrewAI's own hook, `register_before_llm_call_hook`, can only edit the executor's one list of messages, in place and for good, and sees no reply's calls or usage. So the clients of
the official SDKs that CrewAI's models speak through are wrapped, as by `tenure.wrap`: the executor keeps all messages, each request sends the managed ones.
"""

import copy
from typing import TYPE_CHECKING, Any

from crewai import LLM, BaseLLM

from tenure.adapters.messages import histories
from tenure.adapters.wrapping import wrap
from tenure.context.histories import Histories
from tenure.engine.lifecycle.budget import Budget
from tenure.errors import InputError

if TYPE_CHECKING:
    from tenure.store.records import Records


def tenure_llm(
    llm: str | BaseLLM,
    *,
    store: "str | Records" = "sqlite:///tenure.db",
    budget: Budget | None = None,
    shared: Histories | None = None,
) -> BaseLLM:
    """The same model with managed conversations; it serves any number of agents and crews, side by side.

    It never asks for CrewAI's own summary of a long history (`respect_context_window`), which would rewrite what is managed.

    `shared` are conversations that other adapters manage too. Raises InputError for a model that CrewAI does not reach through the SDK of Anthropic, OpenAI or Google, or
    whose key is not set yet; StoreError when the store cannot be opened.
    """
    inner: Any = LLM(model=llm) if isinstance(llm, str) else llm
    made: Any = copy.copy(inner)
    kept = histories(store, budget=budget, shared=shared)
    clients = {name: getattr(inner, f"_{name}", None) for name in ("client", "async_client")}
    if not any(clients.values()):
        allowed = "one of Anthropic's, OpenAI's or Google's native ones, with its key set"
        raise InputError("llm", f"{inner.model!r} ({type(inner).__name__}), which has no client", allowed)
    for name, client in clients.items():
        if client is not None:
            setattr(made, f"_{name}", wrap(client, histories=kept))
    made.is_context_window_overflowing_threshold = _fits
    return made


def _fits(*_: Any, **__: Any) -> bool:
    return False  # overflowing: no
