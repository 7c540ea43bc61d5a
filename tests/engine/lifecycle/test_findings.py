"""What was found in expl episodes stays in the view: described, then named, within budgets of its own."""

import re

from driven import Driven

from tenure.engine.lifecycle.decision import Propose, Unmet
from tenure.engine.lifecycle.residues import RESIDUE_SHARE
from tenure.engine.record.episodes import Episode
from tenure.engine.view.residue import DESCRIPTION_SHARE, NAME_SHARE
from tenure.testing.builders import call, end_act, end_expl, human, reply, result, start_act, start_expl

WORDS = "session token verify handler buffer parse commit index window layer cache signal module branch".split()


def text(seed: int, words: int) -> str:
    return " ".join(WORDS[(seed * 7 + n * n) % len(WORDS)] for n in range(words))


def task(session: Driven, number: int) -> None:
    name = f"locate-{WORDS[number % len(WORDS)]}-{number}"
    session.say(human(f"Mend part {number}."))
    for made, answer in (
        (start_expl(name), "started"),
        (call("read", path=f"src/part_{number}.py"), text(number, 400)),
        (end_expl(f"Part {number} is read in src/part_{number}.py: {text(number, 40)}"), "ended"),
        (start_act(f"fix-{number}", name), "started"),
        (call("edit", path=f"src/part_{number}.py"), text(number, 120)),
        (end_act(), "ended"),
    ):
        decide(session)
        session.say(reply(made), result(answer))
    decide(session)
    session.say(reply("Done."))


def decide(session: Driven) -> None:
    decision = session.decide()
    assert not isinstance(decision, Unmet), decision.held_by
    if isinstance(decision, Propose):
        session.carry_out(decision)


def worked(tasks: int, ceiling: int) -> Driven:
    session = Driven(ceiling=ceiling)
    for number in range(tasks):
        task(session, number)
    return session


def left(session: Driven) -> list[Episode]:
    """The expl episodes of which nothing is shown."""
    ended = [session.index.episodes[ordinal] for ordinal in range(len(session.index.episodes))]
    return [e for e in ended if e.description and e.ordinal not in session.situation().alive]


def shown(session: Driven) -> str:
    return "\n".join(insert.text for insert in session.view.inserts)


def test_of_120_tasks_every_expl_that_left_is_described_or_named_and_recalled_by_its_name() -> None:
    session = worked(120, 20_000)
    gone, view = left(session), shown(session)
    assert len(gone) > 90
    described = [episode for episode in gone if episode.description in view]
    assert described == gone[-len(described) :]
    assert len(described) > 10
    for episode in gone:
        assert re.search(rf"(?<![\w-]){episode.name}(?![\w-])", view)
        assert episode.description in session.asked(handle=episode.name)


def test_what_was_found_weighs_no_more_than_its_budgets_however_long_a_session_lasts() -> None:
    session = Driven(ceiling=6_000)
    most = 0
    for number in range(300):
        task(session, number)
        most = max(most, sum(insert.tokens for insert in session.view.inserts))
    assert most <= 6_000 * (RESIDUE_SHARE + DESCRIPTION_SHARE + NAME_SHARE) + 60
    oldest = left(session)[1]  # the very first is the end of a stretch
    assert oldest.name not in shown(session)
    assert oldest.description in session.asked(handle=oldest.name)
    assert "Part 1 is read" in session.asked(words="Part 1 is read in src/part_1.py").splitlines()[1]
