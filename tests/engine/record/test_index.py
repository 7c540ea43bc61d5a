import pytest
from hypothesis import given, settings

from tenure.engine.record.entry import Draft, Origin, Role
from tenure.engine.record.index import NONE, Index
from tenure.engine.record.tools import Kinds, ToolKind, cue_of, declared_kinds
from tenure.testing.builders import call, human, indexed, placed, reminder, reply, result, results, returned, system, thinking
from tenure.testing.transcripts import transcripts


def test_entries_must_come_in_order() -> None:
    with pytest.raises(ValueError, match="entry 1 cannot follow 0 entries"):
        Index().grow(placed(human("a"), human("b"))[1])


def test_human_texts_in_a_row_are_one_turn_until_the_model_speaks() -> None:
    index = indexed(human("a"), human("b"), reply("c"), human("d"), reply("e"))
    assert [(turn.number, turn.start) for turn in index.turns] == [(1, (0, 0)), (2, (3, 0))]
    assert [facts.turn for facts in index.entries] == [1, 1, 1, 2, 2]


def test_words_of_the_host_are_no_turn() -> None:
    index = indexed(human("a"), reply("b"), Draft(role=Role.USER, blocks=(reminder("mind"),)), reply("c"))
    assert len(index.turns) == 1
    assert index.block((2, 0)).origin is Origin.HARNESS


def test_human_words_beside_a_result_are_a_turn() -> None:
    index = indexed(human("a"), reply(call("read")), human(returned("x"), "stop"))
    assert [turn.start for turn in index.turns] == [(0, 0), (2, 1)]


def test_calls_are_numbered_by_tool_and_paired_with_their_results() -> None:
    index = indexed(
        human("go"),
        reply(call("read", "a"), call("Read", "b"), call("grep", "c")),
        results(returned("C", "c"), returned("A", "a", error=True)),
        result("B", "b"),
    )
    assert [(span.object, span.result, span.error) for span in index.spans] == [
        ("read:1", (2, 1), True),
        ("read:2", (3, 0), False),
        ("grep:1", (2, 0), False),
    ]
    assert index.waiting == 0


def test_two_calls_of_one_id_in_one_message_are_answered_in_order() -> None:
    index = indexed(human("go"), reply(call("read"), call("grep")), results(returned("first"), returned("second")))
    assert [span.result for span in index.spans] == [(2, 0), (2, 1)]


def test_an_id_used_again_after_an_interrupted_call_means_the_new_call() -> None:
    index = indexed(human("go"), reply(call("read")), human("no"), reply(call("grep")), result("found"), result("late"))
    assert [(span.tool, span.result, index.is_late(span)) for span in index.spans] == [
        ("read", (5, 0), True),
        ("grep", (4, 0), False),
    ]


def test_a_result_that_answers_nothing_belongs_to_no_span() -> None:
    index = indexed(human("go"), result("what?", "nobody"), reply(call("read")), result("x"), result("again"))
    assert [index.block((entry, 0)).span for entry in (1, 3, 4)] == [NONE, 0, NONE]


def test_something_may_be_inserted_only_where_no_call_of_the_newest_reply_waits() -> None:
    index = indexed(
        human("go"), reply(call("read", "a"), call("read", "b")), result("x", "a"), human("wait"), reply("so"), human("ok")
    )
    assert [facts.at_rest for facts in index.entries] == [True, True, False, False, True, True]


def test_a_reply_logged_in_pieces_is_one_reply() -> None:
    index = indexed(human("go"), reply("a"), reply(call("read")), result("x"), reply("b"))
    assert [facts.reply for facts in index.entries] == [0, 1, 1, 1, 4]


def test_a_loop_lasts_until_a_reply_without_calls() -> None:
    loops: list[tuple[int, bool]] = []
    index = Index()
    for entry in placed(
        human("go"), reply(call("read")), human(returned("x"), "hurry"), reply("done"), human("more"), reply(call("ls"))
    ):
        index.grow(entry)
        loops.append((index._loop, index.in_loop))
    assert loops == [(0, False), (1, True), (1, True), (1, False), (1, False), (5, True)]


def test_weights_add_up_to_the_record() -> None:
    index = indexed(system("be kind"), human("go on now"), reply("ok", call("read")))
    assert index.tokens == sum(sum(index.weights(entry)) for entry in range(3))


@given(drafts=transcripts(longest=16))
@settings(max_examples=60, deadline=None)
def test_results_are_paired_as_the_chain_pairs_them(drafts: tuple[Draft, ...]) -> None:
    entries = placed(*drafts)
    index = Index()
    for entry in entries:
        answers = list(index.answers_in((entry,)))
        index.grow(entry)
        for each in answers:
            assert index.spans[index.block(each.result).span].call == each.call


@given(drafts=transcripts(longest=16))
@settings(max_examples=60, deadline=None)
def test_handles_are_known_before_a_whole_history_is_taken_in(drafts: tuple[Draft, ...]) -> None:
    entries = placed(*drafts)
    answers = {each.result: (each.handle, each.tool) for each in Index().answers_in(entries)}
    index = Index()
    for entry in entries:
        index.grow(entry)
    spans = [span for span in index.spans if span.result is not None]
    assert answers == {span.result: (index.handle(span.object, span.call[0]), span.tool) for span in spans}


@given(drafts=transcripts(longest=16))
@settings(max_examples=60, deadline=None)
def test_every_object_resolves_to_its_own_blocks(drafts: tuple[Draft, ...]) -> None:
    index = indexed(*drafts)
    for episode in index.episodes:
        own = {
            (n, b)
            for n, entry in enumerate(index.entries)
            for b, facts in enumerate(entry.blocks)
            if facts.episode == episode.ordinal
        }
        assert {at[0] for at in own} <= set(index.entries_of(episode))
        assert episode.declared or index.implicit(episode.name) == [episode]
    for span in index.spans:
        tool, _, number = span.object.rpartition(":")
        assert index.span(tool, int(number)) is span


def test_a_tools_kind_is_known_by_name_also_behind_a_servers_prefix() -> None:
    kinds = Kinds({"Deploy": ToolKind.DURABLE})
    assert [kinds.of(tool) for tool in ("Grep", "mcp__files__grep", "read", "Edit", "deploy", "mcp__x__unheard")] == [
        ToolKind.BULK, ToolKind.BULK, ToolKind.INTERMEDIATE, ToolKind.DURABLE, ToolKind.DURABLE, ToolKind.INTERMEDIATE,
    ]  # fmt: skip


def test_a_tool_may_declare_its_kind_in_either_providers_shape() -> None:
    tools = [
        {"name": "scan", "x-tenure-kind": "bulk"},
        {"type": "function", "function": {"name": "deploy", "x-tenure-kind": "durable"}},
        {"name": "other"},
    ]
    assert declared_kinds(tools) == {"scan": ToolKind.BULK, "deploy": ToolKind.DURABLE}


@pytest.mark.parametrize(
    ("arguments", "cue"),
    [
        ('{"path":"a.py","limit":3}', "a.py"),
        ('{"command":["git","status"]}', "git status"),
        ('{"pattern":"x\\n  y"}', "x y"),
        ('{"n":1}', ""),
        ("[1]", "[1]"),
        ("not json", "not json"),
        ('{"path":"' + "a" * 100 + '"}', "a" * 71 + "…"),
        ('{"path":"/' + "a" * 100 + '/parser.go"}', "…" + "a" * 61 + "/parser.go"),
        ('{"command":"cat /' + "a" * 100 + '"}', "cat /" + "a" * 66 + "…"),
        ("", ""),
    ],
)
def test_a_calls_cue_is_its_path_pattern_or_command(arguments: str, cue: str) -> None:
    assert cue_of(arguments) == cue


def test_a_reply_of_reasoning_alone_does_not_end_the_tool_loop() -> None:
    asked = call("read", "a", path="x")
    index = indexed(
        human("go"), reply(thinking("first", signed=True), asked), result("x", "a"), reply(thinking("cut short", signed=True))
    )
    assert index.in_loop
    assert index.spoken == 1
    assert not indexed(human("go"), reply("done")).in_loop
