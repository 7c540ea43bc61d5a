import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.errors import Failure
from tenure.models.failures import SENTENCES, Trouble, redacted, sentence, trouble, trouble_in

keys = st.text(string.ascii_letters + string.digits + "-_", min_size=6, max_size=60)
messages = st.text(max_size=400)


@given(key=keys, before=messages, after=messages)
def test_no_sentence_holds_the_key(key: str, before: str, after: str) -> None:
    said = sentence("m at h", Trouble(kind=Failure.NOT_ACCEPTED, detail=before + key + after), (key,))
    assert key not in said.removeprefix(f"m at h: {SENTENCES[Failure.NOT_ACCEPTED]}").replace("[key]", "")
    assert "\n" not in said
    assert len(said) < 500


@pytest.mark.parametrize(
    "key", ["sk-ant-api03-abcdef", "sk-proj-ab**********yz", "gsk_abcdef123", "AIzaSyA0123456789", "Bearer abc.def"]
)
def test_what_looks_like_a_key_is_never_shown(key: str) -> None:
    assert redacted(f"wrong key {key}!", ()).startswith("wrong key [key]")
    assert redacted("a risk-free task", ()) == "a risk-free task"


def test_a_stand_in_for_a_key_is_left_in_words() -> None:
    assert redacted("well-known", ("-",)) == "well-known"


def test_every_kind_has_a_sentence() -> None:
    assert set(SENTENCES) == set(Failure)


def test_an_error_of_our_own_is_nobodys_trouble() -> None:
    assert trouble(ZeroDivisionError("x")) is None
    assert trouble(TypeError("x")) is None


def test_a_broken_connection_is_no_answer_before_a_word_and_half_of_one_after() -> None:
    for error in (ConnectionResetError("reset"), TimeoutError("slow")):
        kinds = [found.kind for begun in (False, True) if (found := trouble(error, begun=begun))]
        assert kinds == [Failure.UNAVAILABLE, Failure.CUT_SHORT]
    found = trouble(json.JSONDecodeError("x", "{", 1))
    assert found
    assert found.kind is Failure.BAD_REPLY


def test_what_the_error_says_of_itself_counts_before_the_status() -> None:
    assert trouble_in({"type": "overloaded_error"}, begun=True).kind is Failure.UNAVAILABLE
    assert trouble_in({"code": "context_length_exceeded", "type": "invalid_request_error"}, begun=True).kind is Failure.TOO_LONG
    assert trouble_in({"message": "?"}, begun=True).kind is Failure.CUT_SHORT
    assert trouble_in({"code": 502, "message": ["odd"]}, begun=False).kind is Failure.UNAVAILABLE
