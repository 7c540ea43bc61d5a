import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from tenure.logs.json_files import lines, records
from tenure.logs.reader import Skipped
from tenure.logs.salvage import DamagedJson, cut, decode, decode_with_source, utf8
from tenure.logs.shape import keys, opening
from tenure.logs.transcript import branch, nearest, utc

ANY = msgspec.json.Decoder(str)
FIELDS = msgspec.json.Decoder(dict[str, Raw])


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (rb'"\ud83d"', "\ufffd"),
        (rb'"\ud83d\ude00"', "\U0001f600"),
        (rb'"\\ud83d"', "\\ud83d"),
        (rb'"\udc00\ud83d\ude00"', "\ufffd\U0001f600"),
        (b'"a\x00b\tc"', "a\x00b\tc"),
        (b'\xef\xbb\xbf"x"\x00\x00', "x"),
    ],
)
def test_damaged_text_is_read(raw: bytes, text: str) -> None:
    assert decode(raw, ANY) == text


def test_a_slice_beside_a_surrogate_keeps_its_bytes() -> None:
    raw = rb'{"a": "\ud83d", "b": {"c": "\udfff",  "d": 1E2}}'
    fields, source, faithful = decode_with_source(raw, FIELDS)
    assert cut(bytes(fields["b"]), source, faithful) == rb'{"c": "\udfff",  "d": 1E2}'


@pytest.mark.parametrize("raw", [b"", b"{", b'"a', b"nul", b"[" * 10**5, b"1" * 5000, b"\x00"])
def test_what_no_parser_reads_is_damaged(raw: bytes) -> None:
    with pytest.raises(DamagedJson):
        decode(raw, ANY)


@given(st.binary())
def test_utf8_is_always_valid_and_leaves_valid_text_alone(raw: bytes) -> None:
    assert utf8(raw).decode() == raw.decode("utf-8", "replace")


@given(st.lists(st.binary(max_size=9).map(lambda line: line.replace(b"\n", b"")), max_size=9), st.integers(1, 7))
def test_lines_keep_their_numbers_however_they_are_cut(rows: list[bytes], size: int) -> None:
    data = b"\n".join(rows)
    found = list(lines(data[at : at + size] for at in range(0, len(data), size)))
    assert found == [(n, utf8(row)) for n, row in enumerate(rows, 1) if row and not row.isspace()]


@pytest.mark.parametrize(
    ("time", "normal"),
    [
        ("2026-03-01T10:00:00+01:00", "2026-03-01T09:00:00Z"),
        ("2026-03-01T09:00:00.123Z", "2026-03-01T09:00:00.123Z"),
        ("2026-03-01 09:00:00", "2026-03-01T09:00:00Z"),
        (1772355600, "2026-03-01T09:00:00Z"),
        (1772355600123, "2026-03-01T09:00:00.123Z"),
        ("yesterday", ""),
        (None, ""),
        (True, ""),
        (1e300, ""),
        (-1, ""),
    ],
)
def test_times_become_utc(time: object, normal: str) -> None:
    assert utc(time) == normal


def test_the_outermost_keys_are_found_in_what_is_cut_off() -> None:
    assert keys(b'{"a": {"b": [1, "c"]}, "d": "e, \\"f\\": ", "g": [{"h') == ("a", "d", "g")
    assert keys(b'[{"a": 1}]') == keys(b'"a"') == ()
    assert opening(b"\xef\xbb\xbf\n [") == "["


@given(st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("abcdefg") | st.none()), st.sampled_from("abcdef"))
def test_branches_end_and_hold_no_id_twice(parents: dict[str, str | None], leaf: str) -> None:
    walked = branch(parents, leaf)
    assert len(set(walked)) == len(walked)
    assert not walked or walked[-1] == leaf
    nearest(dict(parents), {"a": 1}, leaf)


def test_objects_that_share_a_line_are_read_one_by_one() -> None:
    decoder = msgspec.json.Decoder(dict[str, str])
    found = list(records([b'{"a":"}{\\"x"}{"b":"2"}\n{"c":"3"}{"d":\n'], decoder))
    assert [item if isinstance(item, Skipped) else (item[0].line, item[0].size, item[1]) for item in found[:2]] == [
        (1, 13, {"a": '}{"x'}),
        (1, 9, {"b": "2"}),
    ]
    assert [isinstance(item, Skipped) for item in found] == [False, False, True]
