import io
import json
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tenure.engine.record.entry import Draft
from tenure.errors import InputError
from tenure.logs.detect import read
from tenure.logs.places import archives
from tenure.logs.places.files import open_session
from tenure.logs.reader import Event, Skipped

FIXTURE = Path(__file__).parents[1] / "fixtures" / "inspect.json"
LOG: dict[str, Any] = json.loads(FIXTURE.read_bytes())
HEADER = json.dumps({key: value for key, value in LOG.items() if key not in ("samples", "reductions")})


def zipped(entries: Iterable[tuple[str, str]], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", method) as archive:
        for name, text in entries:
            archive.writestr(name, text)
    return held.getvalue()


def name_of(sample: dict[str, Any]) -> str:
    return f"samples/{sample['id']}_epoch_{sample['epoch']}.json"


def whole(header: str = "header.json") -> list[tuple[str, str]]:
    samples = [(name_of(sample), json.dumps(sample)) for sample in LOG["samples"]]
    return [("_journal/start.json", HEADER), *samples, ("summaries.json", "[]"), ("reductions.json", "[]"), (header, HEADER)]


def opened(path: Path, data: bytes) -> list[Event]:
    path.write_bytes(data)
    return list(read(open_session(path), str(path))[1])


def in_order(events: Iterable[Event]) -> list[tuple[object, ...]]:
    return [event.blocks for event in events if isinstance(event, Draft)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.eval"


def expected() -> list[tuple[object, ...]]:
    samples = sorted(LOG["samples"], key=lambda sample: (sample["epoch"], sample["id"]))
    return in_order(read([json.dumps(LOG | {"samples": samples}).encode()])[1])


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_a_zipped_log_reads_like_its_json_in_inspects_order(path: Path, method: int) -> None:
    assert in_order(opened(path, zipped(whole(), method))) == expected()


def test_a_log_under_way_has_only_its_start(path: Path) -> None:
    assert in_order(opened(path, zipped(whole("other.json")))) == expected()
    assert opened(path, zipped([("_journal/start.json", HEADER)]))[0] == Skipped(
        line=1, bytes=0, reason="log without samples: it was written before the first one, or without them"
    )


def test_numbers_as_ids_are_sorted_as_numbers(path: Path) -> None:
    samples = [
        LOG["samples"][3] | {"id": id_, "events": [], "messages": [{"role": "user", "content": str(id_)}]} for id_ in (10, 9)
    ]
    found = opened(path, zipped([("header.json", HEADER), *((name_of(sample), json.dumps(sample)) for sample in samples)]))
    assert [draft.blocks[0].text for draft in found if isinstance(draft, Draft)] == ["9", "10"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_of_a_sample_that_was_run_again_the_last_counts(path: Path) -> None:
    old = (name_of(LOG["samples"][0]), json.dumps(LOG["samples"][0] | {"messages": [], "events": []}))
    assert in_order(opened(path, zipped([old, *whole()]))) == expected()


def test_a_sample_in_parts_is_put_together(path: Path) -> None:
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "attachment://1"},
        {"role": "user", "content": "on"},
    ]
    shell = {"id": 1, "epoch": 1, "input": "go", "target": "", "message_refs": [[0, 1], [2, 3], [1, 2], [7, 9]]}
    event = {
        "event": "model",
        "input": [],
        "input_refs": [[0, 1]],
        "output": {"choices": [{"message": messages[1]}]},
        "model": "m",
    }
    folder = "samples/1_epoch_1/"
    parts = {
        "sample.json": shell,
        "messages/10.json": messages[2:],
        "messages/0.json": messages[:2],
        "events/0.json": [event],
        "events/stats.json": {},
        "attachments/0.json": ["no", "gone"],
        "calls/0.json": [{"role": "user"}],
        "skeleton.json": {},
    }
    entries = [("header.json", HEADER), *((folder + name, json.dumps(part)) for name, part in parts.items())]
    found = [event for event in opened(path, zipped(entries)) if isinstance(event, Draft)]
    assert [(draft.blocks[0].text, draft.model) for draft in found] == [("go", ""), ("on", ""), ("gone", "m")]


def test_another_zip_is_refused(path: Path) -> None:
    with pytest.raises(InputError, match=r"log\.eval: found a zip archive that is no Inspect log, expected an Inspect log"):
        opened(path, zipped([("readme.txt", "hello")]))


def test_a_damaged_sample_costs_that_sample_and_is_said(path: Path) -> None:
    data = bytearray(zipped(whole(), zipfile.ZIP_STORED))
    at = data.index(b"Prune the roses.")
    data[at : at + 5] = b"Plant"
    found = opened(path, bytes(data))
    assert len(in_order(found)) == len(expected()) - 4
    assert isinstance(found[-1], Skipped)
    assert "damaged archive (samples/herbs_epoch_2.json" in found[-1].reason


@pytest.mark.parametrize("keep", [10, 100, 3000, -30])
def test_a_cut_archive_is_refused(path: Path, keep: int) -> None:
    with pytest.raises(InputError, match="a damaged archive"):
        opened(path, zipped(whole())[:keep])


def test_a_damaged_or_encrypted_header_is_refused(path: Path) -> None:
    with pytest.raises(InputError, match=r"damaged archive \(header\.json: no JSON object\)"):
        opened(path, zipped([("header.json", "[1]")]))
    data = bytearray(zipped([("header.json", HEADER)], zipfile.ZIP_STORED))
    data[data.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(InputError, match="encrypted"):
        opened(path, bytes(data))


def test_what_unpacks_to_far_more_than_a_log_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "ALWAYS", 2**16)
    monkeypatch.setattr(archives, "MOST_TIMES", 100)
    bomb = json.dumps({"id": "z", "epoch": 1, "messages": [], "input": " " * 2**23})
    found = opened(path, zipped([*whole(), ("samples/z_epoch_1.json", bomb)]))
    assert in_order(found) == expected()
    assert "unpacks to more" in str(found[-1])


def test_a_part_named_again_and_again_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "ALWAYS", 2**20)
    monkeypatch.setattr(archives, "MOST_TIMES", 0)
    shell = {"id": 1, "epoch": 1, "message_refs": [[0, 10**12]] * 10_000}
    entries = {"sample.json": shell, "messages/0.json": [{"role": "user", "content": "x" * 1000}] * 100}
    named = [("samples/1_epoch_1/" + name, json.dumps(part)) for name, part in entries.items()]
    assert "unpacks to more" in str(opened(path, zipped([("header.json", HEADER), *named]))[-1])


def test_an_entry_that_holds_more_than_it_says_is_damaged(path: Path) -> None:
    data = bytearray(zipped(whole()))
    entry = data.rindex(b"PK\x01\x02", 0, data.index(b"samples/lost", data.index(b"PK\x01\x02")))
    struct.pack_into("<I", data, entry + 24, 10)
    assert "samples/lost_epoch_1.json" in str(opened(path, bytes(data))[-1])


def test_zstd_is_unpacked_frame_by_frame(path: Path) -> None:
    text = json.dumps({"eval": {"run_id": "r"}, "version": 2}).encode()
    frames = b"".join(frame(text[at : at + 20]) for at in range(0, len(text), 20))
    packed = zstd_entry("header.json", text, frames)
    assert "without samples" in str(opened(path, packed)[0])


def frame(text: bytes) -> bytes:
    """A zstd frame of one raw block, which needs no compressor."""
    return b"\x28\xb5\x2f\xfd\x20" + bytes([len(text)]) + (len(text) << 3 | 1).to_bytes(3, "little") + text


def zstd_entry(name: str, text: bytes, packed: bytes) -> bytes:
    """An archive of one entry packed with zstd, which `zipfile` writes on no Python before 3.14."""
    fields = (20, 0, 93, 0, 0, zlib.crc32(text), len(packed), len(text), len(name), 0)
    local = struct.pack("<4s5H3I2H", b"PK\x03\x04", *fields) + name.encode()
    central = struct.pack("<4s6H3I5H2I", b"PK\x01\x02", 20, *fields, 0, 0, 0, 0, 0) + name.encode()
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 1, 1, len(central), len(local) + len(packed), 0)
    return local + packed + central + end


def test_a_piped_archive_is_read_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Pipe(zipped(whole())))))
    assert in_order(read(open_session("-"))[1]) == expected()
