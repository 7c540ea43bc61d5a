"""Pieces in the room there is: the largest lose their middle, then the middle of the side goes, as one gap."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_scenes import BULK, case, piece
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.session import Setup
from tenure.engine.view.edit import Replace
from tenure.engine.view.rules import Rules
from tenure.lab.judges import no_impact
from tenure.lab.judges import request as shown
from tenure.lab.judges.cases import of_edits
from tenure.lab.judges.request import LABEL, LEAST_ROOM, Side, Telling, fitted, parts, sign_of, telling
from tenure.testing.builders import by_words, call, human, placed, reply, result, session


def side(*sizes: int, share: float = 1.0, front: float = 0.5, name: str = "a") -> Side:
    pieces = tuple(piece(n, "result", f"n{n} " + "word " * size) for n, size in enumerate(sizes))
    return Side(name=name, share=share, pieces=pieces, front=front)


def test_the_largest_give_way_before_the_small_lose_a_word() -> None:
    found = fitted(side(30, 3_000, 40), 600, by_words)
    whole = [text == each.text for each, text in found.rows]
    assert whole == [True, False, True]
    assert (found.shortened, found.left_out) == (1, 0)


def test_what_leaves_is_one_gap_in_the_middle_though_something_small_in_it_would_fit() -> None:
    sizes = [200] * 30
    sizes[15] = 1
    found = fitted(side(*sizes), 1_560, by_words)
    kept = [n for n, (_, text) in enumerate(found.rows) if text is not None]
    assert kept[0] == 0
    assert kept[-1] == 29
    assert sum(after - before > 1 for before, after in pairwise(kept)) == 1
    assert 15 not in kept
    assert found.left_out == 30 - len(kept)


def test_a_side_may_keep_more_of_its_beginning() -> None:
    found = fitted(side(*[200] * 40, front=0.75), 2_000, by_words)
    kept = [n for n, (_, text) in enumerate(found.rows) if text is not None]
    assert sum(n < 20 for n in kept) > 2 * sum(n >= 20 for n in kept) > 0


def test_what_a_side_does_not_need_the_others_get() -> None:
    small, large = side(10, share=0.5, name="small"), side(5_000, share=0.5, name="large")
    found = parts([small, large], 1_000)
    assert found["small"] == small.weight
    assert found["large"] > 900


@given(st.lists(st.integers(0, 400), max_size=30), st.integers(0, 3_000))
def test_a_side_keeps_to_its_room_whatever_its_pieces_weigh(sizes: list[int], room: int) -> None:
    found = fitted(side(*sizes), room, by_words)
    weights = [by_words(text) + 4 + LABEL for _, text in found.rows if text is not None]
    assert sum(weights) <= max(room, 0)


def test_labels_that_weigh_more_than_foreseen_are_made_up_for() -> None:
    """A tokenizer for which the labels alone are heavy: what was planned does not fit, and is planned again."""

    def heavy(text: str) -> int:
        return len(text.split()) + 60 * text.count("[")

    crowd = tuple(piece(n, "words", "a word") for n in range(400))
    request = no_impact.ask(case(kept=crowd, removed=(), future=crowd, needs=()), count=heavy, room=LEAST_ROOM + 5_000)
    assert request.tokens <= LEAST_ROOM + 5_000


def test_a_sign_grows_until_no_text_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown, "SIGN", 1)
    digits = "0123456789abcdef"
    assert len(sign_of(["no such sign"])) >= 1
    sign = sign_of([digits, "".join(a + b for a in digits for b in digits)])
    assert len(sign) > 2
    assert sign not in digits


# --- What tells


def test_rare_words_that_were_removed_and_are_said_later_tell_and_common_ones_do_not() -> None:
    prefix = [piece(n, "result", f"common {'rare' if n == 3 else ''}") for n in range(30)]
    found = telling([piece(40, "call", "rare common unheard")], prefix[3:4], prefix)
    assert found.words == {"rare"}


def test_results_after_the_cut_say_nothing_of_what_is_needed() -> None:
    prefix = [piece(0, "result", "rare")]
    assert telling([piece(40, "result", "rare"), piece(41, "human", "rare")], prefix, prefix) == Telling()


def test_whole_lines_tell_however_common_their_words_are() -> None:
    line = "return the common word here"
    prefix = [piece(n, "result", "return the common word here again") for n in range(30)] + [piece(31, "result", line)]
    assert telling([piece(40, "call", f"x\n{line}\ny")], prefix[-1:], prefix).lines == {line}


# --- What was removed


def test_of_a_shortened_block_only_the_lines_that_are_gone_are_removed() -> None:
    drafts = [human("go"), reply(call("read", path="a")), result("first\nsecond\nthird\nfourth")]
    opened = session(Setup(budget=Budget(window=10**6), rules=Rules(provider="t", dialect="openai-chat")), *drafts)
    entries = placed(*drafts)
    edit = Replace(entry=2, block=0, text="first\n[2 lines left out]\nfourth", tokens=6)
    (found,) = of_edits((edit,), opened.view, opened.index, entries.__getitem__, by_words)
    assert (found.text, found.is_part, found.name) == ("second\nthird\n…", True, opened.index.handle("read:1", 1))
    assert BULK not in found.text
