"""Texts inside JSON are clipped as what they are."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.engine.clip.clip import Clipped, clip, sign_of
from tenure.engine.clip.setting import Clip
from tenure.engine.clip.wrapped import inner_texts
from tenure.engine.meter.tokens import o200k

COUNT = o200k()
LOG = "\n".join(
    [
        *(f"tests/test_{n}.py::test_name PASSED" for n in range(300)),
        "FAILED tests/test_9.py::test_x - assert 1 == 2",
        "1 failed, 300 passed in 3.2s",
    ]
)
PROSE = "\n".join(f'Paragraph {n}\tsays "something" \\ that \u00e9 nobody reads.' for n in range(300))
GREP = "\n".join(f"src/part_{n // 9}.py:{n}:    return registry_{n}.lookup(key)" for n in range(1, 400))
GAP = re.compile(r"([\d,]+) lines? left out \(lines=(\d+)@(\d+)-(\d+)\)")


def clipped(value: object, room: int = 600, indent: int | None = None) -> tuple[str, Clipped]:
    text = json.dumps(value, indent=indent)
    found = clip(text, COUNT(text), "bash:1@3fa9", Clip(above=room, room=room), COUNT)
    assert found is not None
    return text, found


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"stdout": LOG, "stderr": "", "exit_code": 1}, ".stdout"),
        ({"result": {"stdout": LOG, "exit_code": 1}}, ".result.stdout"),
        ({"content": [{"type": "text", "text": LOG}], "isError": False}, ".content[0].text"),
        ({"output": LOG, "metadata": {"exit_code": 1}}, ".output"),
        ([{"type": "text", "text": LOG}], "[0].text"),
    ],
)
def test_a_log_inside_json_is_clipped_as_a_log(value: object, path: str) -> None:
    _, found = clipped(value)
    assert found.shape == "log inside JSON"
    assert "FAILED tests/test_9.py::test_x - assert 1 == 2\n1 failed, 300 passed in 3.2s" in found.text
    assert f"{path}, a string of {len(LOG):,} characters: log" in found.text


def test_the_json_around_a_text_stays() -> None:
    _, found = clipped({"stdout": LOG, "stderr": "warning: x", "exit_code": 1})
    assert '{"stdout": "…", "stderr": "warning: x", "exit_code": 1}' in found.text


def test_two_texts_share_the_room_and_each_has_its_own_shape() -> None:
    _, found = clipped({"stdout": GREP, "stderr": LOG}, room=1_200)
    assert ".stdout, a string of" in found.text
    assert "FAILED tests/test_9.py::test_x - assert 1 == 2" in found.text
    assert "399 hits in 45 files" in found.text


def test_json_that_holds_more_than_texts_stays_json() -> None:
    assert inner_texts(json.dumps({"text": LOG, "items": [{"id": n, "name": f"thing {n}"} for n in range(2_000)]})) == ()
    assert inner_texts(json.dumps([{"text": f"line\n{n}\n" * 9} for n in range(400)])) == ()


@given(
    st.sampled_from((LOG, PROSE, GREP)),
    st.sampled_from((None, 1)),
    st.integers(300, 1_500),
    st.text('ab\n\\"\u00e9\t', max_size=60),
)
@settings(max_examples=40, deadline=None)
def test_gaps_and_kept_lines_are_all_lines_of_the_text_inside(inside: str, indent: int | None, room: int, more: str) -> None:
    inside = f"{more}{inside}{more}"
    text, found = clipped({"id": 7, "stdout": inside}, room, indent)
    sign = f"[clip {sign_of(text)}"
    lines = text.split("\n")
    at = 0
    body = found.text.split("\n")
    first = next(n for n, line in enumerate(body) if line.startswith(f"{sign}] .stdout, a string of"))
    for line in body[first + 1 :]:
        if not line.startswith(sign):
            assert line == inside.split("\n")[at]
            at += 1
        elif gap := GAP.match(line, len(sign) + 2):
            source = lines[int(gap[2]) - 1][int(gap[3]) - 1 :]
            assert gap[2] == gap[4]
            assert json.JSONDecoder().raw_decode(f'"{source}')[0].split("\n") == inside.split("\n")[at:]
            at += int(gap[1].replace(",", ""))
    assert at == len(inside.split("\n"))


def test_a_mark_that_is_escaped_in_the_json_cannot_pass_for_one() -> None:
    forged = (f'{{"n": {n}, "text": "\\u005b\\u0063lip 1234] x"}}' for n in range(2_000_000))
    text = next(text for text in forged if sign_of(text).startswith("1234"))
    assert len(sign_of(text)) > 4
