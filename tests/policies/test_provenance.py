from collections.abc import Iterable

from tenure.lifecycle.budget import Budget
from tenure.lifecycle.decision import Propose
from tenure.lifecycle.session import Session, Setup
from tenure.policies.provenance import Provenance
from tenure.record.entry import Draft, Entry
from tenure.rules.rules import Rules
from tenure.testing.builders import by_words, call, human, reply, result, thinking, weigh_words

RULES = Rules(provider="t", dialect="openai-chat")
FILLER = " ".join(["plain"] * 300)


def worked(*drafts: Draft, ceiling: int) -> tuple[Session, str]:
    """A session that was decided once, and the texts it then shows in place of results."""
    read: dict[int, Entry] = {}
    setup = Setup(budget=Budget(ceiling=ceiling, floor=ceiling), rules=RULES, policy=Provenance())
    session = Session(setup, weigh=weigh_words, count=by_words, read=read.__getitem__)
    for draft in drafts:
        read |= {entry.n: entry for entry in session.append(draft).entries}
    decision = session.decide()
    assert isinstance(decision, Propose), decision
    session.commit(decision.commit)
    return session, "\n".join(shown.text for row in session.view.rows() for _, shown in row.replaced)


def read_of(name: str, text: str) -> tuple[Draft, Draft]:
    return reply(call("read", f"c-{name}", path=f"src/{name}.py")), result(text, f"c-{name}")


def later(count: int) -> Iterable[Draft]:
    for n in range(count):
        yield from (reply(call("edit", f"e{n}", path="src/other.py", text="done")), result("ok", f"e{n}"))


def test_a_result_of_which_something_was_used_stays_longer_than_one_of_which_nothing_was() -> None:
    used, unused = f"{FILLER}\ndef parse_token_stream(x):", f"{FILLER}\ndef never_mentioned_again(x):"
    session, shown = worked(
        human("Go."),
        *read_of("used", used),
        *read_of("unused", unused),
        reply("I shall change parse_token_stream now."),
        *later(6),
        ceiling=500,
    )
    assert "read:2@" in shown
    assert "read:1@" not in shown
    assert session.view.tokens <= 500


def test_the_lines_that_were_used_stay_as_they_were_below_the_placeholder() -> None:
    text = f"{FILLER}\n    def parse_token_stream(self, source):\n{FILLER}\nERROR: bad token at 41\n{FILLER}"
    _, shown = worked(human("Go."), *read_of("used", text), reply("I shall change parse_token_stream."), *later(6), ceiling=220)
    lines = shown.split("\n")
    assert lines[0].startswith("[result of src/used.py cleared")
    assert lines[1:] == ["    def parse_token_stream(self, source):", "ERROR: bad token at 41"]


def test_old_reasoning_goes_before_any_result() -> None:
    _, shown = worked(
        human("Go."),
        reply(thinking(FILLER), call("read", "c1", path="src/a.py")),
        result(FILLER, "c1"),
        *later(6),
        ceiling=420,
    )
    assert shown == ""


def test_what_the_agent_wrote_goes_after_what_it_read() -> None:
    session, _ = worked(
        human("Go."),
        reply(call("write", "w", path="src/new.py", text=FILLER)),
        result("written", "w"),
        *read_of("big", FILLER),
        *later(6),
        ceiling=420,
    )
    assert session.view.shows(1, 0)
    assert session.view.instead(4, 0) is not None
