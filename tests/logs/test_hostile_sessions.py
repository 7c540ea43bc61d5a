"""What every reader promises of any file; `test_mutants` damages them."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from session_reading import FIXTURES, chunked, drafts

from tenure.engine.record.chain import Chain, verify
from tenure.engine.record.entry import Block, Draft, ToolResult
from tenure.logs.detect import READERS, read
from tenure.logs.json_files import LONGEST_LINE, lines
from tenure.logs.reader import Event, Rewritten, Skipped
from work import growth

SOURCES = {path.name: path.read_bytes() for path in sorted(FIXTURES.iterdir())}


def checked(found: list[Event]) -> None:
    count = 0
    for event in found:
        match event:
            case Draft():
                count += 1
                assert event.blocks
                assert all(valid(block) for block in event.blocks)
                if event.payload:
                    json.loads(event.payload.decode("utf-8", "surrogatepass"), strict=False)
            case Rewritten(drop_before=dropped):
                assert 0 <= dropped <= count
            case Skipped(reason=reason, bytes=size):
                assert reason
                assert size >= 0


def valid(block: Block) -> bool:
    block.text.encode()
    return not isinstance(block, ToolResult) or all(media.text.encode() is not None for media in block.media)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300))
def test_recognising_never_raises(head: bytes) -> None:
    for reader in READERS:
        assert reader.recognises(head) in (True, False)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(SOURCES)), st.integers(1, 5000))
def test_the_size_of_the_chunks_does_not_matter(name: str, size: int) -> None:
    assert list(read(chunked(SOURCES[name], size))[1]) == list(read([SOURCES[name]])[1])


@pytest.mark.parametrize("name", SOURCES)
def test_what_is_read_makes_a_chain_that_verifies(name: str) -> None:
    chain = Chain()
    placed = [chain.place(draft, (1,) * len(draft.blocks)) for draft in drafts(read([SOURCES[name]])[1])]
    assert placed
    assert verify(placed) is None


@pytest.mark.parametrize("name", [name for name in SOURCES if name.endswith(".jsonl")])
def test_every_line_twice_reads_like_every_line_once_where_lines_have_ids(name: str) -> None:
    once = drafts(read([SOURCES[name]])[1])
    twice = drafts(read([b"\n".join(line for line in SOURCES[name].split(b"\n") for _ in (1, 2))])[1])
    if name in (
        "pi_linear.jsonl",
        "openai_lines.jsonl",
        "who_and_when_lines.jsonl",
        "openhands_output.jsonl",
        "openhands_resolver.jsonl",
    ):  # no ids: what is written twice was sent twice
        assert len(twice) == 2 * len(once)
    else:
        assert [draft.blocks for draft in twice] == [draft.blocks for draft in once]


def test_windows_line_ends_and_a_byte_order_mark_do_not_matter() -> None:
    for name in SOURCES:
        plain, other = read([SOURCES[name]])[1], read([b"\xef\xbb\xbf" + SOURCES[name].replace(b"\n", b"\r\n")])[1]
        assert [draft.blocks for draft in drafts(plain)] == [draft.blocks for draft in drafts(other)]


def test_a_long_line_is_read_and_one_too_long_is_skipped_without_being_held() -> None:
    piece = b"x" * 2**20
    found = list(lines([b'{"a":"', *[piece] * 100, b'"}\n{}\n']))
    assert [item[0] for item in found if not isinstance(item, Skipped)] == [1, 2]
    too_long = list(lines(piece for _ in range(LONGEST_LINE // 2**20 + 1)))
    assert isinstance(too_long[0], Skipped)
    assert too_long[0].bytes == LONGEST_LINE + 2**20


def test_lines_with_one_parent_are_read_in_linear_steps() -> None:
    def read_rows(most: int) -> list[Event]:
        rows = [
            {"type": "progress", "uuid": f"p{n}", "parentUuid": f"p{n - 1}" if n else None, "sessionId": "s"} for n in range(most)
        ]
        says = {"role": "user", "content": "x"}
        last = f"p{most - 1}"
        rows += [{"type": "user", "uuid": f"u{n}", "parentUuid": last, "sessionId": "s", "message": says} for n in range(most)]
        return list(read([b"\n".join(msgspec.json.encode(row) for row in rows)])[1])

    assert len(drafts(read_rows(2_000))) == 1
    assert growth(lambda n: lambda: read_rows(n), 100) < 6


def test_a_deeply_nested_line_is_skipped() -> None:
    deep = b'{"type":"user","uuid":"d","sessionId":"s","message":{"content":' + b"[" * 10**5 + b"]" * 10**5 + b"}}"
    found = list(read([SOURCES["claude_code.jsonl"] + deep])[1])
    assert any("nested" in event.reason for event in found if isinstance(event, Skipped))
