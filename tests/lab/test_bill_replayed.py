"""What a replay bills, where a log says more than its text: of the cache's life, of models, and of the provider's tokens."""

import json
from collections.abc import Sequence
from itertools import pairwise

import pytest

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.cache import seconds_of
from tenure.engine.meter.price import prices_for
from tenure.engine.meter.tokens import o200k
from tenure.engine.record.entry import Draft, Usage
from tenure.lab.events import CallLine, Line, ReplayLine
from tenure.lab.replay import Options, replay
from tenure.lab.source import SessionSource
from tenure.logs.detect import read
from tenure.logs.reader import Event, Rewritten
from tenure.testing.builders import call, human, reply, result

CLAUDE, OTHER = "claude-sonnet-4-5", "claude-opus-4-5"
VAST = Budget(window=10_000_000)


def text(n: int) -> str:
    return "\n".join(f"{k}: step {n} of the parser reads a token and {k} more" for k in range(90))


def worked(steps: int, *, models: Sequence[str] = (CLAUDE,), usages: Sequence[Usage | None] = (None,)) -> list[Event]:
    events: list[Event] = [human("Mend the parser.")]
    for n in range(steps):
        model, usage = models[min(n, len(models) - 1)], usages[min(n, len(usages) - 1)]
        events += [reply(call("read", f"c{n}", path=f"{n}.py"), model=model, usage=usage), result(text(n), f"c{n}")]
    return events


def lines(events: Sequence[Event], **options: object) -> list[Line]:
    source = SessionSource("made", lambda: ("test", iter(events)))
    return list(replay([source], Options(**({"budget": VAST, "policy": None} | options)), o200k()))  # type: ignore[arg-type]


def calls(events: Sequence[Event], **options: object) -> list[CallLine]:
    return [line for line in lines(events, **options) if isinstance(line, CallLine)]


# --- The provider's tokens


def test_a_ratio_that_rises_writes_nothing_that_was_written_before() -> None:
    """The log's reports teach that the provider makes more tokens of the same text."""
    bare = calls(worked(12))
    usages = [Usage(uncached=round(1.7 * each.view_tokens)) for each in bare]
    found = calls(worked(12, usages=usages))
    assert found[-1].ratio > 1.5 > found[0].ratio
    for before, after in pairwise(found[1:]):
        new = after.view_tokens - before.view_tokens
        assert after.cache_write <= new * after.ratio + 1


def test_a_ratio_that_is_known_beforehand_holds_from_the_first_call_on() -> None:
    usages = [Usage(uncached=9_000 * n) for n in range(1, 8)]
    assert {each.ratio for each in calls(worked(8, usages=usages), ratio=1.3)} == {1.3}


def test_a_compaction_teaches_nothing_of_the_ratio() -> None:
    """It takes along what the log never held: here a prompt falls by far more than the log's text."""
    bare = calls(worked(8))
    usages = [Usage(uncached=each.view_tokens + 60_000) for each in bare[:5]] + [Usage(uncached=2_000 * n) for n in (1, 2, 3)]
    events = worked(8, usages=usages)
    events.insert(11, Rewritten(reason="compaction", drop_before=11))
    assert calls(events)[6].ratio == pytest.approx(1.0, abs=0.01)


# --- Models and caches


def test_a_model_finds_nothing_in_the_cache_of_another_one() -> None:
    found = calls(worked(6, models=[CLAUDE, CLAUDE, CLAUDE, OTHER]))
    assert [each.cache_read > 0 for each in found] == [False, False, True, False, True, True]


def test_a_session_that_is_priced_as_one_model_is_one_models() -> None:
    found = calls(worked(6, models=[CLAUDE, CLAUDE, CLAUDE, OTHER]), model=CLAUDE)
    assert [each.cache_read > 0 for each in found] == [False, False, True, True, True, True]


def header(events: Sequence[Event], **options: object) -> ReplayLine:
    first = lines(events, **options)[0]
    assert isinstance(first, ReplayLine)
    return first


def test_the_log_tells_for_how_long_its_prompts_were_cached_unless_somebody_says_otherwise() -> None:
    asked = Draft(role=reply("a").role, blocks=reply("Done.").blocks, model=CLAUDE, cache_life="1h")
    events = [human("Go."), reply("First.", model=CLAUDE), human("On."), asked]
    told = header(events)
    assert told.settings["cache_life"] == "1h"
    assert (told.prices.ttl_s, told.prices.write) == (3600, prices_for(CLAUDE, life="1h").write)
    other = header(events, cache_life="5m")
    assert (other.prices.ttl_s, other.prices.write) == (300, prices_for(CLAUDE).write)


@pytest.mark.parametrize(
    ("written", "life"),
    [
        ({"ephemeral_1h_input_tokens": 900, "ephemeral_5m_input_tokens": 0}, "1h"),
        ({"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 900}, "5m"),
        ({"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0}, ""),
        (None, ""),
    ],
)
def test_claude_code_logs_for_how_long_each_prompt_was_cached(written: dict[str, int] | None, life: str) -> None:
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 900, "output_tokens": 5, "cache_creation": written}
    said = {"id": "m1", "role": "assistant", "model": CLAUDE, "content": [{"type": "text", "text": "Done."}], "usage": usage}
    common = {"sessionId": "s", "version": "2.1.0", "timestamp": "2026-01-02T03:04:05.000Z", "isSidechain": False}
    asked = {"type": "user", "uuid": "u1", "parentUuid": None, "message": {"role": "user", "content": "Go."}, **common}
    answer = {"type": "assistant", "uuid": "u2", "parentUuid": "u1", "message": said, **common}
    log = "\n".join(json.dumps(line) for line in (asked, answer)).encode()
    _, events = read(iter((log,)), "made.jsonl", "")
    (found,) = [event for event in events if isinstance(event, Draft) and event.model]
    assert found.cache_life == life


def test_times_are_the_same_on_every_machine() -> None:
    assert (
        seconds_of("1970-01-01T00:01:00") == seconds_of("1970-01-01T00:01:00Z") == seconds_of("1970-01-01T01:01:00+01:00") == 60
    )
    assert seconds_of("") is seconds_of("yesterday") is None
