"""Digests in the commit that clips a result at its birth."""

from tenure.engine.clip.setting import Clip
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.digest import AskDigest, answer_digest, ask_digests
from tenure.engine.lifecycle.session import Placed, Session, Setup
from tenure.engine.meter.tokens import o200k
from tenure.engine.record.entry import Draft, Entry
from tenure.engine.view.edit import Replace
from tenure.engine.view.rules import Rules
from tenure.testing.builders import call, human, reply, result, results, returned

COUNT = o200k()
LONG = "\n".join(f"line {n} of what was printed" for n in range(300))
LONGER = "\n".join(f"line {n} of what was printed" for n in range(600))
SETUP = Setup(budget=Budget(ceiling=100_000), rules=Rules(provider="t", dialect="openai-chat"), clip=Clip(above=200, room=200))


class Told:
    """A session, the messages before the newest, and those placed behind them."""

    def __init__(self, *before: Draft, then: tuple[Draft, ...]) -> None:
        self.session = Session(SETUP, weigh=lambda blocks: tuple(COUNT(block.text) + 4 for block in blocks), count=COUNT)
        self.entries: list[Entry] = []
        for draft in before:
            self.entries += self.session.append(draft).entries
        self.placed = self.session.propose(then)

    def asked(self, above: int = 1_000) -> list[AskDigest]:
        return list(ask_digests(self.session.index, self.placed, self.entries.__getitem__, COUNT, above=above))

    def answered(self, asked: AskDigest, said: str) -> Placed:
        return answer_digest(self.placed, asked, said, COUNT, by="gpt-5-mini")


def one() -> Told:
    return Told(human("Why does it fail?"), reply(call("bash", "c1", command="make")), then=(result(LONG, "c1"),))


def shown(placed: Placed) -> list[str]:
    return [edit.text for commit in placed.commits for edit in commit.edits if isinstance(edit, Replace)]


def test_a_digest_is_put_into_the_commit_that_clips_the_result_and_weighed() -> None:
    told = one()
    (asked,) = told.asked()
    placed = told.answered(asked, "300 lines, none of them an error.")
    (before,), (after,) = shown(told.placed), shown(placed)
    top, _, body = before.partition("\n")
    assert after.startswith(top + "\n[clip ")
    assert "digest by gpt-5-mini, not the tool's words" in after
    assert after.endswith(body)
    told.session.accept(placed)
    assert told.session.view.tokens == placed.commits[-1].tokens_after
    assert told.session.view.weight(2, 0) == COUNT(after) + 4


def test_a_reply_that_is_no_digest_changes_nothing() -> None:
    told = one()
    (asked,) = told.asked()
    for said in ("", "none", "word " * 2_000):
        assert told.answered(asked, said) is told.placed


def test_a_digest_that_would_leave_nothing_saved_is_not_shown() -> None:
    narrow = "\n".join(f"line {n} of what was printed" for n in range(32))
    told = Told(human("Go."), reply(call("bash", "c1")), then=(result(narrow, "c1"),))
    (asked,) = told.asked(above=0)
    assert told.answered(asked, "all is well " * 30) is told.placed


def test_only_results_above_the_threshold_are_asked_about_each_with_its_own_call() -> None:
    made = reply(call("bash", "c1", command="make one"), call("bash", "c2", command="make two"), call("bash", "c3"))
    told = Told(human("Go."), made, then=(results(returned(LONG, "c1"), returned(LONGER, "c2"), returned("short", "c3")),))
    first, second = told.asked()
    assert "make one" in first.text
    assert "make two" in second.text
    assert [each.place for each in told.asked(above=4_000)] == [(2, 1)]
    placed = answer_digest(told.answered(first, "one"), second, "two", COUNT)
    assert ["one" in text.split("\n")[2] for text in shown(placed)] == [True, False]
    told.session.accept(placed)
    assert told.session.view.tokens == placed.commits[-1].tokens_after


def test_what_a_person_last_asked_goes_with_the_question() -> None:
    assert "Why does it fail?" in one().asked()[0].text
    drafts = (human("And now?"), reply(call("bash", "c1")), result(LONG, "c1"))
    (asked,) = Told(human("Why does it fail?"), then=drafts).asked()
    assert "And now?" in asked.text
    assert "Why does it fail?" not in asked.text


def test_a_history_taken_in_at_once_is_not_digested() -> None:
    assert Told(then=(human("Go."), reply(call("bash", "c1")), result(LONG, "c1"), reply("Done."))).asked() == []


def test_without_a_clip_nothing_is_asked() -> None:
    told = Told(human("Go."), reply(call("skill", "c1")), then=(result(LONG, "c1"),))
    assert told.asked(above=0) == []
