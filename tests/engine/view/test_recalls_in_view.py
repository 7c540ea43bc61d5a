"""What a recall brought back, in the view: a copy that stays for a while and then leaves at no loss."""

from hypothesis import given, settings

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.decision import Propose
from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.record.entry import Draft
from tenure.engine.record.tools import Kinds, ToolKind
from tenure.engine.view.edit import Commit, Insert
from tenure.engine.view.guard import RECALL_CALLS, fresh_recalls
from tenure.engine.view.rules import Rules
from tenure.testing.builders import call, human, reply, result, session
from tenure.testing.transcripts import transcripts

RULES = Rules(provider="t", dialect="openai-chat")
WIDE = Setup(budget=Budget(window=10**9), rules=RULES)


def read(path: str, words: int = 40) -> list[Draft]:
    return [reply(call("read", path=path)), result("word " * words)]


def recall(weight: int = 40, **query: str) -> list[Draft]:
    return [reply(call("recall", **query)), result("word " * weight)]


def of(*parts: list[Draft], setup: Setup = WIDE) -> Session:
    return session(setup, human("go"), *(draft for part in parts for draft in part))


def fresh(opened: Session, limit: int = 10**6) -> list[str]:
    return sorted(opened.index.spans[ordinal].object for ordinal in fresh_recalls(opened.index, opened.view, limit))


def evicted(opened: Session) -> Session:
    policy = opened.setup.policy
    assert policy is not None
    edits = opened.rehearse(policy, 0).edits
    opened.commit(Commit(n=len(opened.commits), entries=opened.length, policy="t", moment="manual", reason="t", edits=edits))
    return opened


def test_what_a_recall_brought_back_is_exempt_for_three_calls() -> None:
    parts = [read("a.py"), recall(handle="read:1")]
    seen = [fresh(of(*parts, *[read(f"{n}.py") for n in range(later)])) for later in range(RECALL_CALLS + 1)]
    assert seen == [["recall:1"]] * RECALL_CALLS + [[]]


def test_a_reply_that_its_host_logged_in_pieces_is_one_call() -> None:
    pieces = [reply("I see."), reply("And so."), reply(call("read", path="b.py")), result("b")]
    assert fresh(of(read("a.py"), recall(handle="read:1"), pieces, pieces)) == ["recall:1"]


def test_recalls_are_exempt_up_to_a_tenth_of_the_budget_the_newest_first() -> None:
    opened = of(read("a.py"), recall(90, handle="read:1"), recall(90, handle="read:1", lines="1"))
    assert fresh(opened, 2_200) == ["recall:1", "recall:2"]
    assert fresh(opened, 1_500) == ["recall:2"]
    assert fresh(opened, 500) == []


def test_a_policy_leaves_fresh_recalls_alone_and_takes_them_when_they_are_old() -> None:
    others = [read(f"{n}.py", 1_500) for n in range(2)]  # too much for a tail of a fifth of the budget
    setup = Setup(budget=Budget(ceiling=5_000, window=10**9), rules=RULES)
    opened = of(read("a.py", 3_000), recall(100, handle="read:1"), *others, setup=setup)
    decision = opened.decide()
    assert isinstance(decision, Propose)
    opened.commit(decision.commit)
    recalled = opened.index.spans[1]
    assert recalled.result is not None
    assert opened.view.shows(*recalled.result)
    assert not opened.view.shows(*opened.index.spans[0].call)
    for draft in [draft for n in range(4) for draft in read(f"late{n}.py", 1_500)]:
        opened.append(draft)
    later = opened.decide()
    proposal = later if isinstance(later, Propose) else getattr(later, "proposal", None)
    assert isinstance(proposal, Propose)
    opened.commit(proposal.commit)
    assert not opened.view.shows(*recalled.result)


def test_a_residue_names_the_source_of_a_recall_and_never_the_recall() -> None:
    parts = [read(f"{n}.py") for n in range(7)]
    opened = evicted(of(read("a.py"), recall(handle="read:1"), recall(words="flux"), *parts))
    texts = [insert.text for insert in opened.view.inserts]
    assert any("read:1@" in text for text in texts)
    assert not any("recall:" in text or " recall," in text for text in texts)
    assert not any("recall:" in route for insert in opened.view.inserts for route in insert.routes)


def test_recall_output_is_cheap_to_have_again() -> None:
    assert Kinds().of("recall") is Kinds().of("mcp__tenure__recall") is ToolKind.BULK


@settings(max_examples=40)
@given(transcripts())
def test_nothing_of_a_conversation_without_recalls_is_exempt(drafts: tuple[Draft, ...]) -> None:
    opened = session(WIDE, *drafts)
    assert fresh(opened) == []
    assert all(isinstance(insert, Insert) for insert in opened.view.inserts)
