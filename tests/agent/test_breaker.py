from hypothesis import given
from hypothesis import strategies as st

from tenure.agent.breaker import Breaker, CallAndResult


def deed(result: str, arguments: str = "{}", tool: str = "bash") -> CallAndResult:
    return CallAndResult(tool=tool, arguments=arguments, result=result)


def after(*steps: list[CallAndResult]) -> Breaker:
    breaker = Breaker()
    for step in steps:
        breaker = breaker.after(step)
    return breaker


def test_a_cycle_is_counted_from_its_newest_step_backwards() -> None:
    one, two, three = ([deed(text)] for text in ("a", "b", "c"))
    assert after(one, one, one).cycle.times == 3
    assert after(one, one, two).cycle.times == 1
    assert (after(two, one, two, one, two).cycle.times, after(one, two, one, two).cycle.steps) == (2, 2)
    assert after(*[one, two, three] * 3).cycle.times == 3


def test_what_passes_is_no_difference() -> None:
    results = ("1 failed in 0.03s, at 0x7f01ab23cd, 12:01:07", "1 failed in 1.2s, at 0x7f99ab23cd, 12:02:09")
    assert after(*([deed(text)] for text in results)).cycle.times == 2


def test_arguments_count_in_any_order_of_keys_and_calls_of_one_step_in_any_order() -> None:
    one = [deed("x", '{"a":1,"b":2}'), deed("y", "{}")]
    other = [deed("y", "{}"), deed("x", '{"b":2, "a":1}')]
    assert after(one, other).cycle.times == 2


@given(st.lists(st.integers(0, 3).map(str), max_size=30))
def test_no_turn_ends_while_every_step_gives_something_new(noise: list[str]) -> None:
    steps = [[deed(f"{n}:{text}")] for n, text in enumerate(noise)]
    assert not after(*steps).cycle.tells


@given(st.integers(1, 3), st.integers(1, 40))
def test_any_short_cycle_ends_however_long_it_is_watched(length: int, times: int) -> None:
    cycle = [[deed(str(n))] for n in range(length)]
    found = after(*cycle * times).cycle
    assert found.stops == (times >= 6)
    assert found.tells == (times >= 3)
