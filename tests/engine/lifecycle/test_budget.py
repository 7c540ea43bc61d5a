import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.engine.lifecycle.budget import Budget, parse_tokens
from tenure.errors import InputError


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("80k", 80_000),
        ("80K", 80_000),
        ("80 k", 80_000),
        ("80k tokens", 80_000),
        ("80_000", 80_000),
        ("80,000", 80_000),
        ("80000", 80_000),
        (80_000, 80_000),
        ("1.5M", 1_500_000),
        ("1,500,000", 1_500_000),
        ("1.001k", 1_001),
        ("2.3k", 2_300),
        ("50%", 100_000),
        ("12.5 %", 25_000),
        ("100%", 200_000),
        (" 7 ", 7),
    ],
)
def test_amounts_are_read_as_people_write_them(text: str | int, tokens: int) -> None:
    assert parse_tokens("target", text, of=200_000) == tokens


NONSENSE = [
    "80,5",
    "8,00",
    "-1",
    "0",
    "0k",
    "0.0001k",
    "1.5",
    "abc",
    "80kk",
    "k",
    "200%",
    "0%",
    "%",
    "nan",
    "inf",
    "8e4",
    "",
    " ",
    "1__0",
    "80g",
    -1,
    0,
]


@pytest.mark.parametrize("text", NONSENSE)
@pytest.mark.parametrize("name", ["target", "ceiling", "floor", "window"])
def test_nonsense_is_refused_in_clear_words(name: str, text: str | int) -> None:
    with pytest.raises(InputError) as refused:
        Budget.parse(**{name: text})
    assert str(refused.value).startswith(f"{name}: ")
    assert "expected" in str(refused.value)


def test_a_number_too_large_to_be_meant_is_refused() -> None:
    with pytest.raises(InputError, match="more than the window holds"):
        Budget.parse(target="9" * 400)


def test_a_share_is_of_the_window_and_a_floors_of_the_limit() -> None:
    assert Budget.parse(ceiling="50%", floor="50%", window="200k") == Budget(ceiling=100_000, floor=50_000, window=200_000)


def test_a_window_is_no_share() -> None:
    with pytest.raises(InputError, match="window: '50%', expected tokens"):
        Budget.parse(window="50%")


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"target": 0}, "a whole number of tokens above 0"),
        ({"ceiling": True}, "a whole number of tokens above 0"),
        ({"target": 300_000}, "more than the window holds"),
        ({"target": 2_000, "ceiling": 1_000}, "above the ceiling"),
        ({"ceiling": 1_000, "floor": 2_000}, "above the limit"),
    ],
)
def test_limits_that_contradict_each_other_are_refused(limits: dict[str, int], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Budget(**limits)


def test_the_lowest_limit_is_the_limit_and_the_floor_its_share() -> None:
    budget = Budget(target=50_000, ceiling=80_000, window=100_000)
    assert (budget.limit, budget.floor_of(80_000)) == (50_000, 48_000)
    assert Budget(ceiling=80_000, floor=70_000).floor_of(80_000) == 70_000


@given(text=st.text())
def test_any_text_is_a_number_above_0_or_refused(text: str) -> None:
    try:
        tokens = parse_tokens("target", text, of=1_000)
    except InputError:
        tokens = 1
    assert tokens >= 1
