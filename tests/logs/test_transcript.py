from session_reading import drafts, rewritten, skipped

from tenure.engine.record.entry import Origin, Role, Text, ToolCall, Usage
from tenure.logs.json_files import Element
from tenure.logs.reader import Event, Skipped, SubAgent
from tenure.logs.salvage import DamagedJson
from tenure.logs.transcript import TranscriptBuilder


def words(text: str) -> tuple[Text, ...]:
    return (Text(text=text, origin=Origin.MODEL),)


def filled(count: int) -> TranscriptBuilder:
    transcript = TranscriptBuilder()
    for n in range(count):
        transcript.add(Role.USER, words(str(n)))
    list(transcript.take())
    return transcript


def lefts(transcript: TranscriptBuilder) -> list[tuple[int, tuple[int, ...]]]:
    return [(each.drop_before, each.kept) for each in rewritten(transcript.take())]


def test_what_is_said_stands_where_the_reader_stands() -> None:
    transcript = TranscriptBuilder("model-x")
    transcript.here(7, 100, 1_750_000_000)
    assert transcript.add(Role.USER, words("a")) == 0
    assert transcript.add(Role.ASSISTANT, words("b"), line=9, at="") == 1
    assert transcript.add(Role.USER, ()) == -1
    first, second = drafts(transcript.take())
    assert (first.line, first.at, first.model) == (7, "2025-06-15T15:06:40Z", "")
    assert (second.line, second.at, second.model) == (9, "", "model-x")


def test_an_open_reply_holds_back_what_follows_it_but_not_what_was_left_out() -> None:
    transcript = TranscriptBuilder()
    transcript.add(Role.USER, words("a"))
    transcript.open(Role.ASSISTANT, words("b"))
    transcript.text(Role.USER, "c")
    transcript.lost("damaged")
    assert [type(event).__name__ for event in transcript.take()] == ["Draft", "Skipped"]
    transcript.amend(ToolCall(call_id="x", name="t", arguments="{}"), usage=Usage(output=3))
    transcript.close()
    reply, harness = drafts(transcript.take())
    assert [block.text for block in reply.blocks] == ["b", "{}"]
    assert (reply.usage, harness.blocks[0].origin) == (Usage(output=3), Origin.HARNESS)


def test_drafts_that_left_do_not_leave_again() -> None:
    transcript = filled(5)
    assert transcript.drop("a", [1, 3])
    assert not transcript.drop("b", [1, 3, 99])
    assert transcript.oldest(3) == [0, 2, 4]
    transcript.clear("c", kept=(4,))
    assert transcript.drop("d", [4])
    assert lefts(transcript) == [(4, (0, 2)), (5, (4,)), (5, ())]
    assert transcript.is_empty


def test_a_restart_is_nothing_before_the_first_draft() -> None:
    transcript = TranscriptBuilder()
    transcript.restart()
    assert list(transcript.take()) == []
    transcript.text(Role.USER, "a")
    transcript.restart()
    assert lefts(transcript) == [(1, ())]


def test_equal_reasons_are_one_event_and_repeats_are_counted() -> None:
    transcript = TranscriptBuilder()
    for line in (3, 4):
        transcript.here(line, 10)
        transcript.repeats("key", "looks", "again")
        transcript.repeats("key", line)
        transcript.skip("silent")
    transcript.agent("helper", "x" * 600)
    left = list(transcript.end())
    assert [(each.line, each.bytes, each.reason) for each in skipped(left)] == [(3, 20, "silent (2 times)")]
    assert [(each.id, each.messages, len(each.task)) for each in left if isinstance(each, SubAgent)] == [("helper", 1, 500)]
    assert transcript.repeats("key", 4, "again")
    assert [each.reason for each in skipped(transcript.end())][-1] == "again"


def test_a_damaged_item_costs_itself() -> None:
    def read(element: Element, value: str) -> None:
        if value == "bad":
            raise DamagedJson("nothing")
        transcript.add(Role.USER, words(value))

    transcript = TranscriptBuilder()
    items = [(Element(n, b"", b"", 4), value) for n, value in enumerate(("a", "bad", "b"), 1)]
    found: list[Event] = list(transcript.run([*items, Skipped(line=9, bytes=0, reason="before")], read, "event"))
    assert [type(event).__name__ for event in found] == ["Draft", "Skipped", "Draft", "Skipped"]
    assert found[1] == Skipped(line=2, bytes=4, reason="damaged event: found nothing")


def test_blocks_that_are_added_one_by_one_to_a_reply_stand_in_their_order() -> None:
    transcript = TranscriptBuilder()
    transcript.open(Role.ASSISTANT, words("0"))
    for n in range(1, 900):
        transcript.amend(*words(str(n)))
        assert n % 300 or len(reply.blocks if (reply := transcript.reply) else ()) == n + 1
    transcript.close()
    assert [block.text for draft in drafts(transcript.take()) for block in draft.blocks] == [str(n) for n in range(900)]
