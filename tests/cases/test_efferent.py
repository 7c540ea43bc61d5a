"""Acceptance cases of the agent efferent that failed or were not looked at; each by its number there."""

import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from tenure import Budget, Context
from tenure.agent.screens.build import Picks
from tenure.agent.screens.contents import Segment, lists
from tenure.agent.screens.history import of_address
from tenure.agent.screens.status import StatusFacts, line
from tenure.agent.screens.tree import end_of, nodes
from tenure.engine.clip.clip import clip
from tenure.engine.clip.setting import Clip
from tenure.engine.meter import figures
from tenure.engine.meter.gauge import Gauge
from tenure.engine.meter.tokens import o200k
from tenure.engine.planners.handoff.sections import SECTIONS
from tenure.engine.policies import POLICIES, policy_named
from tenure.engine.policies.peers import observation_masking
from tenure.engine.policies.policy import chain
from tenure.models.question import Answer, Question
from tenure.testing.store import MemoryStore

COUNT = o200k()


def clipped(text: str, room: int = 2_000, handle: str = "bash:1@abcd") -> str:
    found = clip(text, COUNT(text), handle, Clip(above=room, room=room), COUNT)
    return text if found is None else found.text


def chatted(*results: str, **options: object) -> Context:
    """A task, and calls of `bash` with these results."""
    context = Context(store=MemoryStore(), **{"policy": None, "clip": 0} | options)  # type: ignore[arg-type]
    context.extend([{"role": "user", "content": "Go."}])
    for n, text in enumerate(results):
        use = {"type": "tool_use", "id": f"c{n}", "name": "bash", "input": {"command": f"make {n}"}}
        context.extend([{"role": "assistant", "content": [use]}])
        context.extend([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"c{n}", "content": text}]}])
    return context


def test_22_a_buried_failure_its_stack_and_the_counts_stay_and_gaps_add_up() -> None:
    middle = [f"  compiling module_{n} ... ok" for n in range(1_200)]
    failure = ["ERROR: cannot resolve symbol verify_token", "    at src/auth.py:41 in check", "    at src/app.py:9 in main"]
    lines = [
        "BUILD v3.1",
        *middle[:600],
        *failure,
        "warning: deprecated flag",
        *middle[600:],
        "warning: deprecated flag",
        "1 failed, 1199 passed",
        "exit code 1",
    ]
    shown = clipped("\n".join(lines))
    for wanted in ("BUILD v3.1", *failure, "warning: deprecated flag", "1 failed, 1199 passed", "exit code 1"):
        assert wanted in shown, wanted
    kept = [each for each in shown.splitlines() if each in set(lines)]
    told = sum(
        int(number.replace(",", ""))
        for number in re.findall(
            r"([\d,]+) lines?\b", "\n".join(each for each in shown.splitlines()[1:] if each not in set(lines))
        )
    )
    assert told + len(kept) == len(lines)


def test_25_of_a_result_in_json_only_the_large_text_is_shortened() -> None:
    result = json.dumps(
        {"stdout": "\n".join(f"row {n} of the table that was printed" for n in range(4_000)), "exitCode": 0, "cwd": "/srv/app"}
    )
    shown = clipped(result)
    assert '"exitCode": 0' in shown
    assert '"cwd": "/srv/app"' in shown
    context = chatted(result, clip=2_000)
    assert context.session.view.instead(0, 0) is None  # the person's words stand as they are


def test_28_a_policy_of_ones_own_overrides_and_several_pass_through_in_order() -> None:
    assert policy_named("none") is None
    both = chain(POLICIES["tiered"], POLICIES["cwl"])
    assert [each.name for each in both.policies] == ["tiered", "cwl"]
    assert chatted("x", policy=both).session.setup.policy is both


def test_29_of_two_results_the_older_is_elided_and_of_as_many_as_may_stay_none_is() -> None:
    context = chatted(*(f"line of result {n}\n" * 40 for n in range(8)))
    situation = context.session.situation()
    assert [context.session.index.spans[each.span].object for each in observation_masking(situation, window=1)] == [
        "bash:1",
        "bash:2",
        "bash:3",
    ]  # four more are the tail
    assert list(observation_masking(situation, window=8)) == []


def test_31_long_lines_do_not_leave_a_bare_mark() -> None:
    lines = [f"ERROR {n}: " + "x" * 4_000 for n in range(60)]
    shown = clipped("\n".join(lines))
    assert COUNT(shown) > 0.15 * 2_000
    assert "ERROR 0" in shown
    one = clipped("ERROR: " + "y " * 60_000)
    assert COUNT(one) > 0.15 * 2_000


def test_33_what_is_cut_twice_comes_back_byte_for_byte() -> None:
    large = "\n".join(f"{n}: a line of the build log, as it was printed" for n in range(9_000))
    context = chatted(large, "done", "done", "done", "done", "done", clip=3_000, policy="tiered", budget=Budget(ceiling=4_000))
    context.request(model="claude-opus-5", max_tokens=9)
    assert large in context.recall("bash:1")


def test_36_of_two_folds_in_one_millisecond_the_later_one_stands() -> None:
    brief = "\n\n".join(f"## {section.title}\nPart {{n}}; its {section.key}." for section in SECTIONS) + "\n[end of brief]"
    context = chatted(*(f"line of result {n}\n" * 200 for n in range(12)), clock=lambda: "2026-01-01T00:00:00.000000Z")

    def first(_: Question) -> Answer:
        return Answer(text=brief.replace("{n}", "one"))

    def second(_: Question) -> Answer:
        return Answer(text=brief.replace("{n}", "two"))

    assert context.handoff(first) is not None
    for n in range(20, 26):
        use = {"type": "tool_use", "id": f"d{n}", "name": "bash", "input": {"command": f"make {n}"}}
        context.extend([{"role": "assistant", "content": [use]}])
        context.extend(
            [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"d{n}", "content": "a line\n" * 200}]}]
        )
    assert context.handoff(second) is not None
    again = Context(store=context.store, conversation=context.conversation, policy=None)
    (insert,) = again.session.view.inserts
    assert "Part two" in insert.text
    assert [commit.n for commit in again.session.commits] == sorted(commit.n for commit in again.session.commits)


def test_56_a_folded_turn_hides_its_messages_and_later_rows_keep_their_keys(tmp_path: Path) -> None:
    messages = [{"role": role, "content": f"{role} {n}"} for n in range(4) for role in ("user", "assistant")]
    (tmp_path / "session.json").write_text(json.dumps(messages))
    history = of_address(str(tmp_path / "session.json"), COUNT)
    contents = lists(history)
    folded = [node.key for node in nodes(history, contents, frozenset())]
    open_ = [node.key for node in nodes(history, contents, frozenset({"user:2"}))]
    assert [key for key in open_ if key in folded] == folded == ["user:1", "user:2", "user:3", "user:4"]
    assert [key for key in open_ if key not in folded] == ["entry:2", "entry:3"]
    assert [end_of(history, contents, key) for key in folded] == [2, 4, 6, 8]


def segments() -> tuple[Segment, ...]:
    folded = Segment(start=0, stop=8, title="brief", tokens=9, shown=0, key="p0", text="b", turns=(1, 2))
    return folded, Segment(start=8, stop=12, title="live tail", tokens=9, shown=9, turns=(3,))


def test_55_a_brief_and_its_inner_turns_exclude_each_other_and_a_loaded_turn_is_left_alone() -> None:
    every = segments()
    picks = Picks().turn(1, every).turn(3, every).brief(every[0])
    assert picks == Picks(turns=frozenset({3}), briefs=frozenset({"p0"}))
    picks = picks.turn(2, every)
    assert picks == Picks(turns=frozenset({2, 3}))
    assert picks.turn(2, every).turn(3, every) == Picks()
    assert Picks().brief(every[0]).brief(every[0]) == Picks()
    assert Picks().brief(every[1]) == Picks()  # the live tail is not chosen as a whole


@pytest.mark.parametrize(
    ("used", "severity"),
    [(69, "ok"), (69.4, "ok"), (69.6, "warn"), (70, "warn"), (89.4, "warn"), (89.6, "critical"), (90, "critical")],
)
def test_58_what_is_written_as_70_or_90_percent_counts_as_that(used: float, severity: str) -> None:
    gauge = Gauge(tokens=int(used * 10), limit=1_000)
    assert gauge.severity == severity
    shown = line(StatusFacts(model="m", folder=Path("/w"), gauge=gauge), 100).plain
    assert f"{round(used)} %" in shown


def test_58_shares_and_sizes_are_bounded_and_short() -> None:
    gauge = Gauge(tokens=50_000, limit=1_000)
    assert "999 %" in line(StatusFacts(model="m", folder=Path("/w"), gauge=gauge), 100).plain
    assert "cached 100 %" in line(replace_share(2.0), 100).plain
    assert "cached 86 %" in line(replace_share(0.86), 100).plain
    assert "cached" not in line(replace_share(0.0), 100).plain
    assert (figures.short(18_400), figures.short(1_000_000)) == ("18k", "1.0M")
    assert Gauge(tokens=0, limit=0).severity == "ok"


def replace_share(share: float) -> StatusFacts:
    return replace(StatusFacts(model="m", folder=Path("/w"), gauge=Gauge(tokens=1, limit=1_000)), cached_share=share)
