import json
import lzma
from pathlib import Path

import pytest
from session_reading import FIXTURES, chunked

from tenure.engine.record.entry import Draft
from tenure.errors import InputError
from tenure.logs.detect import READERS, detect, read
from tenure.logs.places.files import open_session
from tenure.logs.reader import Skipped

NAMES = {
    "claude_code.jsonl": "claude-code",
    "claude_code_compacted.jsonl": "claude-code",
    "opencode.json": "opencode",
    "pi_linear.jsonl": "pi",
    "pi_tree.jsonl": "pi",
    "mini_v1.traj.json": "mini-swe-agent",
    "mini_v2.traj.json": "mini-swe-agent",
    "gemini.json": "gemini-cli",
    "gemini_lines.jsonl": "gemini-cli",
}


@pytest.mark.parametrize("name", NAMES)
def test_exactly_one_reader_recognises_each_fixture(name: str) -> None:
    data = (FIXTURES / name).read_bytes()
    assert [reader.name for reader in READERS if reader.recognises(data[: 64 * 2**10])][:1] == [NAMES[name]]


@pytest.mark.parametrize(
    "data", [b"", b"\x00\x00", b"# notes", b"[1, 2]", b'{"role"', b"\xff\xfe", b'{"samples": [{"messages": [{"role": "user"}]}]}']
)
def test_what_fits_no_reader_lists_the_formats(data: bytes) -> None:
    assert detect(data) is None
    with pytest.raises(InputError, match=r"notes\.json: found .*, expected one of the formats claude-code, .*openai-messages"):
        read(chunked(data), "notes.json")


def test_the_first_line_may_be_damaged() -> None:
    for name in ("claude_code.jsonl", "pi_linear.jsonl"):
        assert read([b"{{{\n" + (FIXTURES / name).read_bytes()])[0].name == NAMES[name]


def test_a_first_line_longer_than_the_head_is_recognised() -> None:
    long = {
        "parentUuid": None,
        "isSidechain": False,
        "type": "user",
        "message": {"role": "user", "content": "x" * 10**5},
        "uuid": "a",
    }
    reader, found = read([json.dumps(long).encode()])
    assert reader.name == "claude-code"
    assert len(list(found)) == 1


def test_a_document_that_ends_too_early_gives_what_stands_before_and_says_where() -> None:
    data = (FIXTURES / "opencode.json").read_bytes()
    whole = list(read([data])[1])
    *events, last = read([data[: len(data) * 3 // 4]])[1]
    assert isinstance(last, Skipped)
    assert "is left out" in last.reason
    assert last.bytes > 0
    read_again = [event for event in events if isinstance(event, Draft)]
    assert read_again
    assert read_again == [event for event in whole if isinstance(event, Draft)][: len(read_again)]


def test_a_document_damaged_before_its_first_message_says_where() -> None:
    data = (FIXTURES / "opencode.json").read_bytes()
    with pytest.raises(InputError, match=r"line \d+, column \d+: found .*, expected OpenCode's export"):
        list(read([data[: data.index(b'"parts"')]])[1])


def test_an_archive_that_was_cut_gives_what_it_holds(tmp_path: Path) -> None:
    data = (FIXTURES / "claude_code.jsonl").read_bytes()
    packed = lzma.compress(b"".join(data.replace(b'"uuid":"', b'"uuid":"%d-' % n) for n in range(400)))
    path = tmp_path / "cut.jsonl.xz"
    path.write_bytes(packed[: len(packed) * 2 // 3])
    *events, last = read(open_session(path))[1]
    assert any(isinstance(event, Draft) for event in events)
    assert isinstance(last, Skipped)
    assert "damaged archive" in last.reason
