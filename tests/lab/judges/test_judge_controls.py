"""Controls: what has to pass holds nothing that is wanted, to the word; what has to be caught stood nowhere else."""

from collections.abc import Sequence

from judge_scenes import BULK, TICKET
from tenure.engine.meter.tokens import o200k
from tenure.engine.policies import PEERS
from tenure.engine.record.entry import Draft
from tenure.lab.judges.cases import Case, cases
from tenure.lab.source import SessionSource
from tenure.testing.builders import call, human, reply, result, thinking

TOKENIZER = o200k()
LINE = f"see {TICKET} for the rest"


def source(drafts: Sequence[Draft]) -> SessionSource:
    return SessionSource("made-up", lambda: ("made-up", iter(drafts)))


def worked(parts: dict[int, str], *last: Draft, first: str = "Look through all parts.", calls: int = 20) -> list[Draft]:
    """Reads of parts, some of which hold more than the bulk; then what came last."""
    drafts: list[Draft] = [human(first)]
    for n in range(calls):
        drafts += [reply(call("read", f"c{n}", path=f"part_{n}.txt")), result(f"part {n}\n{parts.get(n, '')}\n{BULK}", f"c{n}")]
    return [*drafts, *last]


EDIT = reply(call("edit", "e", path="notes.txt", old_string=LINE, new_string="done"))


def controls(drafts: Sequence[Draft]) -> dict[str, Case]:
    """The first pair."""
    return {case.facts.control: case for case in cases(source(drafts), {}, TOKENIZER, pairs=1)}


def taken(case: Case) -> set[str]:
    return {piece.name.partition("@")[0] for piece in case.removed}


def test_what_an_edit_needs_to_the_letter_is_taken_with_all_that_held_it() -> None:
    pair = controls(worked({1: LINE, 2: LINE}, EDIT))
    assert taken(pair["needed"]) - taken(pair["unused"]) == {"read:2", "read:3"}


def test_what_stands_elsewhere_too_is_no_control_even_inside_a_longer_word() -> None:
    """The detector looks for whole words; a control must not hang on that."""
    assert controls(worked({1: LINE}, EDIT))
    assert controls(worked({1: LINE}, EDIT, first=f"Mind that x{LINE}x is there.")) == {}


def test_what_the_future_gives_again_before_it_is_used_is_no_control() -> None:
    again = [reply(call("read", "again", path="part_1.txt")), result(f"part 1\n{LINE}", "again")]
    assert controls(worked({1: LINE}, *again, EDIT)) == {}


def test_a_word_that_later_steps_say_never_leaves_with_the_last_that_held_it() -> None:
    said = reply("It was the kumquat after all.", call("bash", "k", command="true"))
    pair = controls(worked({1: LINE, 0: "a kumquat", 2: "the kumquat"}, said, EDIT))
    assert {"read:1", "read:3"} & taken(pair["unused"]) == {"read:1"}
    assert any("kumquat" in piece.text for piece in pair["unused"].kept)


def test_what_a_later_step_uses_as_a_whole_stays_though_its_words_stand_elsewhere() -> None:
    words = {3: "deep/orchard/kumquat.yaml", 4: "deep orchard", 6: "kumquat yaml deep orchard"}
    used = reply(call("read", "u", path="deep/orchard/kumquat.yaml"))
    pair = controls(worked({1: LINE} | words, used, result("gone", "u"), EDIT))
    assert "read:4" not in taken(pair["unused"])


def test_reasoning_is_no_part_of_the_future_and_needs_nothing() -> None:
    thought = reply(thinking(f"I remember {TICKET}."), call("bash", "t", command="true"))
    policy = {"tool-prune": PEERS["tool-prune"]}
    found = list(cases(source(worked({1: LINE}, thought, result("", "t"))), policy, TOKENIZER))
    assert found
    for case in found:
        assert not [need for need in case.needs if TICKET in need.text]
        assert not [piece for piece in case.future if "I remember" in piece.text]
