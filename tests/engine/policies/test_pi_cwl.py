import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.decision import Propose, Unmet
from tenure.engine.lifecycle.fit import Rehearsal
from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.policies.cwl import PiCwl
from tenure.engine.record.entry import Block, Draft, Media, Opaque, Origin, Role, Text, Thinking, ToolCall, ToolResult
from tenure.engine.record.index import NONE
from tenure.engine.view.laws import protection, structural
from tenure.engine.view.project import Row
from tenure.engine.view.rules import Rules
from tenure.logs.pi import Pi
from tenure.logs.pi_weights import javascript_number, stringified, weigh_like_pi
from tenure.testing.pi_filter import Filtered, Message, estimate, filter_messages, threshold_of

# Histories made at random, and what is left of them by a transcription of context-filter.ts and estimateTokens, run under node 20.
VECTORS = json.loads((Path(__file__).parent / "fixtures" / "pi_cwl_vectors.json").read_text("ascii"))


# Tiny builders of pi's messages.


def user(text: str = "do it") -> Message:
    return {"role": "user", "content": text}


def says(*parts: Message) -> Message:
    return {"role": "assistant", "content": list(parts)}


def text(words: str) -> Message:
    return {"type": "text", "text": words}


def thought(words: str) -> Message:
    return {"type": "thinking", "thinking": words}


def call(tool: str, call_id: str, **arguments: object) -> Message:
    return {"type": "toolCall", "id": call_id, "name": tool, "arguments": arguments}


def result(tool: str, call_id: str, tokens: int = 10, **more: object) -> Message:
    return {"role": "toolResult", "toolCallId": call_id, "toolName": tool, "content": [text("x" * 4 * tokens)], **more}


def event(action: str, name: str, type_: str, *dependencies: str) -> dict[str, Any]:
    return {"chunkEvent": {"action": action, "chunk": {"name": name, "type": type_, "dependencies": list(dependencies)}}}


def marked(action: str, name: str, type_: str = "expl", *dependencies: str) -> list[Message]:
    """A delimiter's call and its result, as the tool makes them."""
    arguments: dict[str, object] = {"action": action}
    if action == "start":
        arguments |= {"name": name, "type": type_} | ({"dependencies": list(dependencies)} if dependencies else {})
    elif type_ == "expl":
        arguments["description"] = f"about {name}"
    call_id = f"{action}-{name}"
    return [
        says(call("delimiter", call_id, **arguments)),
        result("delimiter", call_id, tokens=2, details=event(action, name, type_, *dependencies)),
    ]


def used(tool: str, call_id: str, *before: Message, tokens: int = 100) -> list[Message]:
    return [says(*before, call(tool, call_id)), result(tool, call_id, tokens)]


def episode(name: str, *dependencies: str, of: Sequence[Message] = ()) -> list[Message]:
    """A closed one: an act when it has dependencies. Without content of its own it reads a file."""
    type_ = "act" if dependencies else "expl"
    return [*marked("start", name, type_, *dependencies), *(of or used("read", f"read-{name}")), *marked("end", name, type_)]


def total(messages: Sequence[Message]) -> int:
    return sum(map(estimate, messages))


# The published filter.


@pytest.mark.parametrize("number", range(len(VECTORS)))
def test_a_history_is_filtered_exactly_as_the_original_filters_it(number: int) -> None:
    vector = VECTORS[number]
    messages = vector["messages"]
    found = filter_messages(messages, vector["threshold"])
    assert [found.tokens_before, found.tokens_after] == vector["tokens"]
    assert list(found.messages) == [kept(messages, place) for place in vector["kept"]]
    assert [as_recorded(found)] == [vector["evicted"]]


def kept(messages: list[dict[str, Any]], place: int | list[Any]) -> dict[str, Any]:
    if isinstance(place, int):
        return messages[place]
    at, parts = place
    return {**messages[at], "content": [messages[at]["content"][part] for part in parts]}


def as_recorded(found: Filtered) -> list[list[Any]]:
    return [
        [
            episode.name,
            str(episode.type),
            episode.whole,
            [
                [
                    step.name,
                    step.tokens_before,
                    step.tokens_after,
                    step.messages,
                    step.calls,
                    step.results,
                    step.thinking,
                    list(step.paths),
                    dict(step.tools),
                ]
                for step in episode.steps
            ],
        ]
        for episode in found.evicted
    ]


def test_at_the_threshold_nothing_happens() -> None:
    messages = [user(), *episode("look")]
    assert filter_messages(messages, total(messages)).messages == tuple(messages)
    assert filter_messages(messages, total(messages) - 1).names == ("look",)


def test_the_oldest_episode_goes_first_whatever_its_type() -> None:
    """The paper would take the act; expl `b` waits for it here as there."""
    messages = [user(), *episode("a"), *episode("b"), *episode("c", "b")]
    assert filter_messages(messages, total(messages) - 1).names == ("a",)
    assert filter_messages(messages, 0).names == ("a", "c", "b")


def test_levels_go_one_by_one_and_stop_when_it_fits() -> None:
    content = [
        says(thought("t" * 400), call("grep", "1"), call("bash", "2"), call("read", "3", path="a.py"), call("edit", "4")),
        *(result(tool, str(n), 100) for n, tool in enumerate(("grep", "bash", "read", "edit"), 1)),
    ]
    messages = [user(), *episode("look", of=content)]
    for levels in range(1, 5):
        found = filter_messages(messages, total(messages) - 100 * levels)
        assert [step.name for step in found.evicted[0].steps] == ["thinking", "search_tools", "bash_tools", "read_tools"][:levels]
        assert not found.evicted[0].whole
    assert found.evicted[0].steps[-1].paths == ("a.py",)
    assert [part["name"] for part in found.messages[3]["content"]] == ["edit"]
    assert messages[3]["content"] == content[0]["content"]  # the input is as it was


def test_an_act_has_no_level_for_thinking() -> None:
    messages = [*episode("a"), *episode("b", "a", of=used("edit", "1", thought("t" * 40))), user()]
    found = filter_messages(messages, 0)
    assert [[step.name for step in evicted.steps] for evicted in found.evicted] == [
        ["entire_chunk"],
        ["read_tools", "entire_chunk"],
    ]


def test_what_lies_in_no_episode_is_permanent() -> None:
    messages = [user(), *used("read", "1"), *episode("a"), *used("grep", "2", thought("t")), *marked("start", "open")]
    found = filter_messages(messages, 0)
    assert found.names == ("a",)
    assert found.positions == (0, 1, 2, 3, 9, 10, 11, 12)  # 3 is the message that started it: bug B3


def test_a_users_message_stays_and_the_humans_own_command_goes() -> None:
    command = {"role": "bashExecution", "command": "make", "output": "ok"}
    prompt = {"role": "custom", "content": "go on"}
    found = filter_messages(episode("a", of=[user("and this"), command, prompt]), 0)
    assert found.messages[1:] == (user("and this"),)
    assert not found.evicted[0].whole


def test_a_call_beside_the_start_loses_its_result() -> None:
    """Bug B1: the message that starts an episode is outside it, all results of that message are inside."""
    start, answer = marked("start", "a")
    messages = [says(*start["content"], call("read", "1")), answer, result("read", "1"), *marked("end", "a")]
    assert filter_messages(messages, 0).messages == (messages[0],)


def test_a_result_beside_the_end_loses_its_call() -> None:
    """Bug B2: the message that ends an episode is inside it, a result after the end's is not. Reads are spared it."""
    end, answer = marked("end", "a")
    messages = [*marked("start", "a"), says(*end["content"], call("edit", "1")), answer, result("edit", "1")]
    assert filter_messages(messages, 0).messages == (messages[0], messages[-1])


def test_an_expl_comes_back_when_a_later_act_names_it() -> None:
    history = [user(), *episode("a"), *episode("b")]
    limit = total(history) - 100
    assert filter_messages(history, limit).names == ("a",)
    assert filter_messages([*history, *marked("start", "c", "act", "a")], limit).names == ("b",)


def test_a_call_id_that_is_used_again_takes_results_elsewhere_along() -> None:
    messages = [user(), *used("read", "0"), *episode("a", of=used("read", "0"))]
    found = filter_messages(messages, total(messages) - 1)
    assert found.evicted[0].steps[0].results == 2
    assert messages[2] not in found.messages


def test_a_message_without_content_goes_at_the_first_level_of_tools() -> None:
    messages = [user(), *episode("a", of=[says(), *used("edit", "1")])]
    found = filter_messages(messages, total(messages) - 1)
    assert found.evicted[0].steps[0].name == "search_tools"
    assert found.evicted[0].steps[0].messages == 1


def test_a_name_that_is_used_again_goes_once() -> None:
    messages = [*episode("a"), *episode("a")]
    assert filter_messages(messages, 0).names == ("a",)


def test_an_episode_that_names_itself_never_goes() -> None:
    assert filter_messages(episode("a", "a"), 0).names == ()


@pytest.mark.parametrize(
    ("asked", "threshold"),
    [
        ({}, 80_000),
        ({"percent": 50}, 100_000),
        ({"percent": 0.000_25}, 1),  # 0.5 is rounded up
        ({"tokens": 500_000}, 500_000),  # above the window, as asked
        ({"tokens": 1_234.5}, 1_235),
        ({"tokens": -1}, 0),
        ({"tokens": float("nan")}, 0),
    ],
)
def test_a_threshold_follows_from_the_limit(asked: dict[str, float], threshold: int) -> None:
    assert threshold_of(200_000, **asked) == threshold


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (user(""), 0),
        (user("12345"), 2),
        ({"role": "user", "content": [text("1234"), {"type": "image", "data": "…"}]}, 1),
        (result("read", "1", 0, content=[text("1234"), {"type": "image", "data": "…"}]), 1_201),
        ({"role": "custom", "content": [{"type": "image"}]}, 1_200),
        ({"role": "custom", "content": "12345"}, 2),
        ({"role": "bashExecution", "command": "ls", "output": "abc", "excludeFromContext": True}, 2),
        ({"role": "branchSummary", "summary": "12345678"}, 2),
        ({"role": "compactionSummary", "summary": "12345678"}, 2),
        ({"role": "somebody", "content": "12345678"}, 0),
        (says(text("12"), thought("34")), 1),
        (says({"type": "image"}), 0),
        (says(call("read", "a-long-id", path="a")), 4),  # read{"path":"a"}
        (user("日本"), 1),
        (user("😀😀😀"), 2),  # two units each
    ],
)
def test_a_message_weighs_what_pi_estimates(message: Message, tokens: int) -> None:
    assert estimate(message) == tokens


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({}, "{}"),
        ([], "[]"),
        ({"a": [1, None, True, False], "b": {}}, '{"a":[1,null,true,false],"b":{}}'),
        ("é日\x7f\u2028", '"é日\x7f\u2028"'),
        ('"\\\n\t\x01', '"\\"\\\\\\n\\t\\u0001"'),
        ("\ud83d", '"\\ud83d"'),
        ("\ud83d\ude00", '"xx"'),  # halves that meet are one character of two units
        ("😀", '"xx"'),
        (1e400, "null"),
        (10**400, "null"),
    ],
)
def test_json_is_as_long_as_javascript_writes_it(value: Any, written: str) -> None:
    assert stringified(value) == len(written)


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (-0.0, "0"),
        (1.0, "1"),
        (-2.5, "-2.5"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (2**53 + 1, "9007199254740992"),
        (2**70, "1.1805916207174113e+21"),
        (1e-6, "0.000001"),
        (1.5e-7, "1.5e-7"),
        (5e-324, "5e-324"),
        (0.1 + 0.2, "0.30000000000000004"),
    ],
)
def test_a_number_is_as_javascript_writes_it(number: float, written: str) -> None:
    assert javascript_number(number) == written


TOOLS = ("grep", "bash", "read", "edit")


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """What an agent writes that calls one tool at a time: episodes, work between them, and the user."""
    messages: list[Message] = [user()]
    names: list[str] = []
    for number in range(draw(st.integers(1, 7))):
        work: list[Message] = []
        for step in range(draw(st.integers(1, 4))):
            before = [thought("t" * 90)] if draw(st.booleans()) else []
            work += used(draw(st.sampled_from(TOOLS)), f"{number}.{step}", *before, text("so"), tokens=draw(st.integers(1, 90)))
            work += [user("more")] if draw(st.integers(0, 4)) == 0 else []
        depends = (
            draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True)) if names and draw(st.booleans()) else []
        )
        if draw(st.integers(0, 3)) == 0:
            messages += work
            continue
        if not depends:
            names.append(f"e{number}")
        messages += episode(f"e{number}", *depends, of=work)
    return [*messages, says(text("done")), user("next")]


@given(histories(), st.integers(0, 1_500))
def test_the_filter_only_ever_takes_away(messages: list[Message], threshold: int) -> None:
    found = filter_messages(messages, threshold)
    assert found.tokens_after == total(found.messages) <= found.tokens_before == total(messages)
    assert list(found.positions) == sorted(set(found.positions))
    assert [message for message in found.messages if message["role"] == "user"] == [m for m in messages if m["role"] == "user"]
    if found.tokens_before <= threshold:
        assert found == Filtered(
            messages=tuple(messages),
            positions=tuple(range(len(messages))),
            tokens_before=total(messages),
            tokens_after=total(messages),
        )
    if found.tokens_after <= threshold:
        assert filter_messages(found.messages, threshold).messages == found.messages


# The policy over our index.


def drafts(messages: Sequence[Message]) -> Iterator[Draft]:
    """As the reader of pi's session files makes them."""
    lines = [{"type": "session", "version": 1, "cwd": "/"}, *({"type": "message", "message": message} for message in messages)]
    for read in Pi().read(json.dumps(line).encode() + b"\n" for line in lines):
        assert isinstance(read, Draft)
        yield read


def session(messages: Sequence[Message], ceiling: int = 10_000) -> Session:
    setup = Setup(budget=Budget(ceiling=ceiling), rules=Rules(provider="anthropic", dialect="anthropic"), policy=PiCwl())
    made = Session(setup, weigh=weigh_like_pi, count=len)
    for draft in drafts(messages):
        made.append(draft)
    return made


def rehearse(messages: Sequence[Message], target: int) -> Rehearsal:
    return session(messages).rehearse(PiCwl(), target)


STEPS = {
    "reasoning": "thinking",
    "search": "search_tools",
    "commands": "bash_tools",
    "reads": "read_tools",
    "episode": "entire_chunk",
}


@given(histories())
def test_the_policy_takes_the_same_steps_in_the_same_order(messages: list[Message]) -> None:
    published = filter_messages(messages, 0)
    ours = [(act.object, STEPS[act.level]) for act in rehearse(messages, 0).actions]
    assert ours == [(f"episode:{evicted.name}", step.name) for evicted in published.evicted for step in evicted.steps]


@given(histories())
def test_a_whole_pass_leaves_what_the_filter_leaves_but_for_the_starting_calls(messages: list[Message]) -> None:
    made = session(messages)
    made.view.apply(made.rehearse(PiCwl(), 0).edits)
    left = [line.entry for line in made.freeze().lines if isinstance(line, Row)]
    found = filter_messages(messages, 0)
    starts = {f"start-{name}" for name in found.names}
    assert left == [
        at
        for at in found.positions
        if not (messages[at]["role"] == "assistant" and any(part.get("id") in starts for part in messages[at]["content"]))
    ]


@given(histories(), st.integers(0, 1_500))
def test_every_view_of_the_policy_keeps_the_laws(messages: list[Message], target: int) -> None:
    made = session(messages)
    before, situation = made.freeze(), made.situation()
    made.view.apply(made.rehearse(PiCwl(), target).edits)
    after = made.freeze()
    assert list(structural(after, made.index, made.setup.rules)) == []
    assert list(protection(before, after, made.index, situation.guard)) == []
    assert after.tokens <= before.tokens


def test_calls_beside_a_delimiter_stay_pairs() -> None:
    """Bugs B1 and B2 do not happen: the episode is its blocks, by position."""
    start, started = marked("start", "a")
    end, ended = marked("end", "a")
    messages = [
        user(),
        says(call("read", "0"), *start["content"], call("read", "1")),
        *(result("read", "0"), started, result("read", "1")),
        says(*end["content"], call("read", "2")),
        *(ended, result("read", "2")),
        says(text("done")),
    ]
    made = session(messages)
    made.view.apply(made.rehearse(PiCwl(), 0).edits)
    assert [line.entry for line in made.freeze().lines if isinstance(line, Row)] == [0, 1, 2, 5, 7, 8]
    assert list(structural(made.freeze(), made.index, made.setup.rules)) == []


def test_nothing_stands_for_what_left() -> None:
    made = session([user(), *episode("a"), says(text("done"))])
    made.view.apply(made.rehearse(PiCwl(), 0).edits)
    assert made.view.inserts == ()


def test_what_a_human_ran_stays() -> None:
    command = {"role": "bashExecution", "command": "make", "output": "ok", "exitCode": 0}
    made = session([user(), *episode("a", of=[command, *used("read", "1")]), says(text("done"))])
    made.view.apply(made.rehearse(PiCwl(), 0).edits)
    assert [line.entry for line in made.freeze().lines if isinstance(line, Row)] == [0, 3, 8]


def test_in_a_session_an_expl_comes_back_when_a_later_act_names_it() -> None:
    history = [user(), *episode("a"), *episode("b"), says(text("so far"))]
    made = session(history, ceiling=total(history) - 50)
    first = made.decide()
    assert isinstance(first, Propose)
    made.commit(first.commit)
    assert shown(made, "a") < everything(made, "a")
    assert shown(made, "b") == everything(made, "b")
    for draft in drafts([*marked("start", "c", "act", "a"), *used("edit", "1", tokens=60)]):
        made.append(draft)
    second = made.decide()
    assert isinstance(second, Propose)
    assert [act.kind for act in second.commit.actions][:2] == ["restore", "strip"]
    made.commit(second.commit)
    assert shown(made, "a") == everything(made, "a")
    assert shown(made, "b") < everything(made, "b")


def test_what_came_back_goes_again_once_its_act_has_gone() -> None:
    history = [user(), *episode("a"), *episode("b"), says(text("so far"))]
    made = session(history, ceiling=total(history) - 50)
    first = made.decide()
    assert isinstance(first, Propose)
    made.commit(first.commit)
    for draft in drafts([*episode("c", "a"), says(text("done"))]):
        made.append(draft)
    everything_gone = made.rehearse(PiCwl(), 0)
    made.view.apply(everything_gone.edits)
    assert [act.object for act in everything_gone.actions if act.level == "episode"] == ["episode:b", "episode:c", "episode:a"]
    assert not any(shown(made, name) for name in "abc")


def test_without_episodes_a_limit_cannot_be_met() -> None:
    history = [user(), *used("read", "1"), *used("read", "2"), says(text("done"))]
    assert isinstance(session(history, ceiling=50).decide(), Unmet)


def shown(made: Session, name: str) -> int:
    return sum(1 for at in blocks_of(made, name) if made.view.shows(*at))


def everything(made: Session, name: str) -> int:
    return len(blocks_of(made, name))


def blocks_of(made: Session, name: str) -> list[tuple[int, int]]:
    found = made.index.graph.named(name)
    ordinal = found.ordinal if found else NONE
    return [
        (entry, block)
        for entry, facts in enumerate(made.index.entries)
        for block, fact in enumerate(facts.blocks)
        if fact.episode == ordinal
    ]


# Weights.


def ours(message: Message) -> tuple[Block, ...]:
    return next(iter(drafts([message]))).blocks


@pytest.mark.parametrize(
    "message",
    [
        user("12345"),
        {"role": "user", "content": [text("Ran `this` by me"), {"type": "image", "data": "AA==", "mimeType": "image/png"}]},
        says(thought("é" * 7), text("😀"), call("read", "1", path="日本", n=1.0, m=1e21), call("bash", "2", command='a\t"b"')),
        result("read", "1", 3, content=[text("12345"), {"type": "image", "data": "AA==", "mimeType": "image/png"}]),
        {"role": "bashExecution", "command": "ls `x`", "output": "a\nb", "exitCode": 0},
        {"role": "bashExecution", "command": "ls", "output": "", "exitCode": 2},
        {
            "role": "bashExecution",
            "command": "ls",
            "output": "12",
            "cancelled": True,
            "truncated": True,
            "fullOutputPath": "/t/o",
        },
        {"role": "custom", "content": [text("12345"), {"type": "image", "data": "AA==", "mimeType": "image/png"}]},
        {"role": "compactionSummary", "summary": "12345"},
        {"role": "branchSummary", "summary": "12345"},
    ],
)
def test_the_blocks_of_a_message_add_up_to_its_estimate(message: Message) -> None:
    assert sum(weigh_like_pi(ours(message))) == estimate(message)


def test_the_first_block_takes_the_rounding() -> None:
    blocks = (Thinking(text="12345"), Text(text="123456", origin=Origin.MODEL), Text(text="123", origin=Origin.MODEL))
    assert weigh_like_pi(blocks) == (3, 1, 0)


def test_what_pi_does_not_count_weighs_nothing() -> None:
    picture = Media(media_type="image/png", sha256="0" * 64)
    assert weigh_like_pi((picture, Opaque(type="server_tool", text="12345678"))) == (0, 0)
    assert weigh_like_pi(()) == ()


def test_arguments_that_are_no_json_weigh_as_they_are() -> None:
    assert weigh_like_pi((ToolCall(call_id="1", name="read", arguments='{"pa'),)) == (2,)


@given(st.lists(st.text().map(lambda words: Text(text=words, origin=Origin.MODEL)), min_size=1))
def test_weights_add_up_and_are_never_negative(blocks: list[Text]) -> None:
    weights = weigh_like_pi(blocks)
    assert min(weights) >= 0
    assert sum(weights) == estimate(says(*(text(block.text) for block in blocks)))


def test_a_result_of_several_texts_weighs_their_joins_too() -> None:
    """What our blocks no longer tell apart."""
    message = result("read", "1", content=[text("1234"), text("5678")])
    assert estimate(message) == 2
    assert weigh_like_pi(ours(message)) == (3,)
    assert ours(message) == (ToolResult(call_id="1", text="1234\n5678"),)
    assert next(iter(drafts([message]))).role is Role.TOOL
