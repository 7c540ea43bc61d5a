"""A conversation goes on under the policy, gate, clip and budget that it was held to."""

from collections.abc import Iterator

import pytest

from tenure import Budget, Context
from tenure.engine.lifecycle.terms import Terms
from tenure.engine.policies import POLICIES
from tenure.engine.policies.cwl import Cwl
from tenure.engine.policies.policy import Conduct
from tenure.engine.policies.situation import Situation
from tenure.engine.view.action import Action
from tenure.errors import Damaged, InputError
from tenure.store.records import Conversation
from tenure.testing.store import MemoryStore


class Own:
    """A policy of a host's."""

    name = "mine"
    conduct = Conduct()

    def __call__(self, _: Situation, /) -> Iterator[Action]:
        return iter(())


def again(store: MemoryStore, context: Context, **asked: object) -> Context:
    return Context(store=store, conversation=context.conversation, **asked)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def name(context: Context) -> str:
    policy = context.session.setup.policy
    return policy.name if policy is not None else "none"


def test_a_conversation_goes_on_under_its_policy_gate_clip_and_budget() -> None:
    store = MemoryStore()
    first = Context(store=store, policy="cwl", gate="selfgc-paper", clip=900, budget=Budget(ceiling=9_000), model="gpt-5")
    assert again(store, first).session.setup == first.session.setup


def test_so_does_a_fork() -> None:
    store = MemoryStore()
    first = Context(store=store, compat="paper", clip=0)
    store.fork(first.conversation, 0, "fork")
    assert Context(store=store, conversation="fork").session.setup.policy == Cwl.paper()
    assert Context(store=store, conversation="fork").session.setup.clip is None


def test_what_is_asked_for_overrides_and_is_kept() -> None:
    store = MemoryStore()
    first = Context(store=store, policy="cwl", budget=Budget(ceiling=9_000))
    assert name(again(store, first, policy="tiered", budget=Budget(target=5_000))) == "tiered"
    third = again(store, first)
    assert (name(third), third.session.setup.budget) == ("tiered", Budget(target=5_000))
    assert name(again(store, first, policy=None)) == "none"
    assert name(again(store, first)) == "none"
    again(store, first, compat="pi-cwl")
    assert name(again(store, first)) == "pi-cwl"
    assert name(again(store, first, policy="cwl")) == name(again(store, first)) == "cwl"


def test_nothing_is_written_when_nothing_is_asked_for() -> None:
    store = MemoryStore()
    first = Context(store=store)
    sheet = store.conversation(first.conversation)
    again(store, first)
    assert store.conversation(first.conversation) is sheet


def test_an_object_that_has_a_name_here_is_kept_by_its_name() -> None:
    store = MemoryStore()
    assert name(again(store, Context(store=store, policy=POLICIES["cwl"]))) == "cwl"


def test_a_policy_of_the_hosts_own_is_asked_for_again_and_never_replaced() -> None:
    store = MemoryStore()
    first = Context(store=store, policy=Own())
    with pytest.raises(InputError, match=r"'mine', an object of the host's .* the same object again"):
        again(store, first)
    assert name(again(store, first, policy=Own())) == "mine"
    assert name(again(store, first, policy="cwl")) == name(again(store, first)) == "cwl"


def test_a_conversation_of_an_older_version_goes_on_under_the_usual() -> None:
    store = MemoryStore()
    store.create(Conversation(id="old", dialect="openai-chat"))
    context = Context(store=store, conversation="old")
    assert (name(context), context.session.setup.budget, context.rules.dialect) == (
        "graph",
        Budget(target=80_000),
        "openai-chat",
    )


@pytest.mark.parametrize("wrong", [{"policy": "cvl"}, {"gate": "free"}, {"compat": "book"}, {"dialect": "morse"}])
def test_an_unknown_name_leaves_no_conversation_behind(wrong: dict[str, str]) -> None:
    store = MemoryStore()
    with pytest.raises(InputError, match="one of"):
        Context(store=store, **wrong)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    assert store.conversations() == ()


def test_a_conversation_goes_on_in_its_own_dialect_and_model_until_others_are_given() -> None:
    store = MemoryStore()
    first = Context(store=store, dialect="openai-chat", model="gpt-5")
    first.extend([{"role": "user", "content": "Go."}])
    assert again(store, first).request(model="m")["messages"] == [{"role": "user", "content": "Go."}]
    assert again(store, first).rules == first.rules
    other = again(store, first, dialect="anthropic", model="claude-sonnet-4-5")
    sent = other.request(model="m", max_tokens=9)
    assert [part["text"] for part in sent["messages"][0]["content"]] == ["Go."]
    assert again(store, first).rules == other.rules
    sheet = store.conversation(first.conversation)
    assert (sheet.dialect, sheet.model) == ("anthropic", "claude-sonnet-4-5")


def test_a_conversation_makes_the_same_requests_after_a_restart() -> None:
    store = MemoryStore()
    first = Context(store=store, model="claude-opus-4-5", provider="anthropic", cache_life="1h", notes=True)
    first.extend([{"role": "user", "content": "Go."}])
    body = first.request(model="m", max_tokens=9)
    assert "'ttl': '1h'" in str(body)
    assert "note" in str(body["tools"])
    assert again(store, first).request(model="m", max_tokens=9) == body
    bare = again(store, first, notes=False, markers=False).request(model="m", max_tokens=9)
    assert "cache_control" not in str(bare)
    assert again(store, first).request(model="m", max_tokens=9) == bare


def test_a_provider_and_its_url_are_kept_together_and_not_for_another_model() -> None:
    store = MemoryStore()
    first = Context(store=store, dialect="openai-chat", model="llama", provider="groq", base_url="https://api.groq.com/openai/v1")
    assert again(store, first).base_url == first.base_url == "https://api.groq.com/openai/v1"
    assert again(store, first).session.setup == first.session.setup
    assert again(store, first).rules.provider == "groq"
    other = again(store, first, model="qwen3")
    assert (other.base_url, other.rules.provider) == ("", again(store, first).rules.provider)
    assert Terms.stored(store.conversation(first.conversation).terms).provider == ""


@pytest.mark.parametrize(("budget", "terms"), [("{", ""), ('{"target": -1}', ""), ("", "[]")])
def test_a_stored_budget_or_policy_that_cannot_be_read_says_where(budget: str, terms: str) -> None:
    store = MemoryStore()
    store.create(Conversation(id="c", budget=budget, terms=terms))
    with pytest.raises(
        Damaged, match=r"the store in memory: conversation 'c': its (budget|terms): the stored ones? cannot be read"
    ):
        Context(store=store, conversation="c")


def test_a_budget_that_is_given_is_the_way_out_of_a_stored_one_that_cannot_be_read() -> None:
    store = MemoryStore()
    store.create(Conversation(id="c", budget="{"))
    Context(store=store, conversation="c", budget=Budget(target=5_000))
    assert Context(store=store, conversation="c").session.setup.budget == Budget(target=5_000)
