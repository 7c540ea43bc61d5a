import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.engine.record.chain import Chain, Pairing, genesis, verify
from tenure.engine.record.entry import Draft, Entry, Origin, Role, Text, ToolCall
from tenure.testing.builders import call, human, placed, reply, result, results, returned
from tenure.testing.transcripts import transcripts


def ids(*drafts: Draft) -> list[str]:
    return [entry.id for entry in placed(*drafts)]


def test_call_ids_are_no_part_of_an_entrys_id() -> None:
    first = ids(human("go"), reply(call("read", "a"), call("grep", "b")), results(returned("x", "a"), returned("y", "b")))
    other = ids(human("go"), reply(call("read", "7"), call("grep", "9")), results(returned("x", "7"), returned("y", "9")))
    assert first == other


def test_which_call_a_result_answers_is_part_of_its_entrys_id() -> None:
    calls = reply(call("read", "a"), call("read", "b"))
    straight = ids(human("go"), calls, results(returned("x", "a"), returned("y", "b")))
    crossed = ids(human("go"), calls, results(returned("x", "b"), returned("y", "a")))
    assert straight != crossed


@given(arguments=st.dictionaries(st.text(), st.one_of(st.integers(-5, 5), st.text(), st.none(), st.booleans()), max_size=5))
def test_the_order_of_keys_and_spaces_is_no_part_of_an_entrys_id(arguments: dict[str, object]) -> None:
    backwards = dict(reversed(arguments.items()))
    spelled = [json.dumps(arguments), json.dumps(backwards, separators=(",", ":")), json.dumps(backwards, indent=2)]
    drafts = [reply(ToolCall(call_id="c", name="read", arguments=text)) for text in spelled]
    assert len({entry.id for draft in drafts for entry in placed(draft)}) == 1


def test_origins_and_times_are_no_part_of_an_entrys_id() -> None:
    said = [
        Draft(role=Role.USER, blocks=(Text(text="x", origin=origin),), at=at) for origin, at in zip(Origin, "abcd", strict=True)
    ]
    assert len({placed(draft)[0].id for draft in said}) == 1


@pytest.mark.parametrize(
    "changed", [human("stop"), human("go", "now"), reply("go"), human()], ids=["words", "more blocks", "role", "no block"]
)
def test_everything_else_is_part_of_it(changed: Draft) -> None:
    assert ids(human("go")) != ids(changed)


def test_an_entrys_id_depends_on_all_before_it() -> None:
    assert ids(human("a"), human("b"))[1] != ids(human("c"), human("b"))[1]
    assert placed(human("a"), tenant="x")[0].id != placed(human("a"), tenant="y")[0].id
    assert placed(human("a"))[0].parent == genesis()


@given(drafts=transcripts(longest=8))
@settings(max_examples=40, deadline=None)
def test_what_was_placed_verifies(drafts: tuple[Draft, ...]) -> None:
    assert verify(placed(*drafts)) is None


@given(drafts=transcripts(longest=5), data=st.data())
@settings(max_examples=60, deadline=None)
def test_any_changed_byte_of_a_payload_is_found(drafts: tuple[Draft, ...], data: st.DataObject) -> None:
    entries = list(placed(*drafts))
    n = data.draw(st.integers(0, len(entries) - 1))
    at = data.draw(st.integers(0, len(entries[n].payload) - 1))
    payload = bytearray(entries[n].payload)
    payload[at] ^= data.draw(st.integers(1, 255))
    entries[n] = msgspec.structs.replace(entries[n], payload=bytes(payload))
    assert verify(entries) == f"the payload of entry {n} does not match its hash {entries[n].sha256[:12]}"


def without(entries: tuple[Entry, ...], n: int) -> list[Entry]:
    return [entry for entry in entries if entry.n != n]


def test_a_changed_missing_or_exchanged_entry_is_found() -> None:
    entries = placed(human("a"), reply("b"), human("c"))
    forged = msgspec.structs.replace(entries[1], blocks=(Text(text="B", origin=Origin.MODEL),))
    assert "the content of entry 1 gives the id" in str(verify([entries[0], forged, entries[2]]))
    assert verify(without(entries, 1)) == "entry 2 stands where entry 1 should"
    moved = msgspec.structs.replace(entries[2], n=1)
    assert "entry 1 has the parent" in str(verify([entries[0], moved]))
    assert "has the parent" in str(verify(entries, tenant="another"))


def test_a_result_answers_the_newest_message_that_made_a_call_of_its_id() -> None:
    pairing = Pairing()
    interrupted = pairing.call("call_0", 1)
    first, second = pairing.call("call_0", 2), pairing.call("call_0", 2)
    assert [pairing.result("call_0") for _ in range(4)] == [first, second, interrupted, None]


def test_a_reused_id_after_an_interrupted_call_means_the_new_call() -> None:
    interrupted = (human("go"), reply(call("read")), human("stop, look there"))
    index_ids = ids(*interrupted, reply(call("grep")), result("found"))
    other = ids(*interrupted, reply(call("grep", "fresh")), result("found", "fresh"))
    assert index_ids == other


def test_a_chain_that_looks_ahead_leaves_the_chain_as_it_is() -> None:
    chain = Chain()
    chain.place(reply(call("read"), call("read")), (1, 1))
    ahead = chain.ahead()
    placed = [ahead.place(result(text), (1,)) for text in "xyz"]
    assert [chain.ahead().place(result("x"), (1,)) for _ in range(2)] == [placed[0]] * 2
    for entry in placed:
        chain.take(entry)
    again = Chain()
    again.place(reply(call("read"), call("read")), (1, 1))
    assert [again.follow(entry) for entry in placed] == [None] * 3
    assert chain.place(reply(call("read")), (1,)) == again.place(reply(call("read")), (1,))
    with pytest.raises(ValueError, match="cannot follow"):
        chain.take(placed[0])
