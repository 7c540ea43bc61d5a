"""Damage of every kind that session files are found with, drawn at random from a seed: the same number is always the same mutant."""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

NASTY = (
    b"\x00",
    b"\xff\xfe",
    b"\\ud800",
    b"\\udc00\\ud800",
    b'"',
    b"\\",
    b"{",
    b"}",
    b"]",
    b"[" * 3000,
    b'{"a":' * 3000,
    b"\n",
    b"\r\n",
    b"null",
    b"1E999",
    b"-0",
    b"9" * 400,
    b"\xed\xa0\x80",
    b"NaN",
    b"\xef\xbb\xbf",
    b"```",
    b"\n---\n",
    b"#### ",
    b"> ",
    b"</details>",
    b"\xe2\x80\xae",
)

ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**63,
    10**30,
    1e308,
    "",
    "x" * 2000,
    "\ud83d",
    "\x00",
    "2026-13-45T99:99:99Z",
    "0001-01-01T00:00:00+23:59",
    [],
    {},
    [[]],
    [None],
    [{}],
    {"": {}},
    {"type": "text", "text": "odd"},
)

Mutate = Callable[[bytes, random.Random], bytes]


def mutants(source: bytes, others: list[bytes], count: int) -> Iterator[bytes]:
    """`count` damaged copies of `source`; some hold parts of `others`."""
    for number in range(count):
        rng = random.Random(number)
        data = source
        for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
            mutate = rng.choice(MUTATIONS)
            data = splice(data, rng, rng.choice(others)) if mutate is splice_in else mutate(data, rng)
        yield data


def truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randint(0, len(data))]


def behead(data: bytes, rng: random.Random) -> bytes:
    return data[rng.randint(0, min(len(data), 300)) :]


def flip(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + bytes((rng.randrange(256),)) + data[at + 1 :]


def insert(data: bytes, rng: random.Random) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + rng.choice(NASTY) + data[at:]


def erase(data: bytes, rng: random.Random) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + data[at + rng.randint(1, 200) :]


def double(data: bytes, rng: random.Random) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + data[max(0, at - rng.randint(1, 400)) :]


def shuffle_lines(data: bytes, rng: random.Random) -> bytes:
    rows = data.split(b"\n")
    rng.shuffle(rows)
    return b"\n".join(rows)


def move_line(data: bytes, rng: random.Random) -> bytes:
    rows = data.split(b"\n")
    row = rows.pop(rng.randrange(len(rows)))
    rows.insert(rng.randint(0, len(rows)), row)
    return b"\n".join(rows)


def repeat_line(data: bytes, rng: random.Random) -> bytes:
    rows = data.split(b"\n")
    at = rng.randrange(len(rows))
    return b"\n".join(rows[: at + 1] + rows[at : at + 1] * rng.choice((1, 1, 50)) + rows[at + 1 :])


def drop_line(data: bytes, rng: random.Random) -> bytes:
    rows = data.split(b"\n")
    del rows[rng.randrange(len(rows))]
    return b"\n".join(rows)


def splice_in(data: bytes, rng: random.Random) -> bytes:
    return splice(data, rng, data)


def splice(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """Another file's part in the middle of this one."""
    at, start = rng.randint(0, len(data)), rng.randint(0, len(other))
    return data[:at] + other[start : start + rng.randint(1, 2000)] + data[at:]


def alter_json(data: bytes, rng: random.Random) -> bytes:
    """Another value somewhere in the JSON: odd, taken out, or that of another field, so that ids cross and parents run in circles."""
    rows = [data] if _json(data) is not None else data.split(b"\n")
    at = rng.randrange(len(rows))
    value = _json(rows[at])
    if value is None:
        return flip(data, rng)
    spots = list(_spots(value))
    for _ in range(rng.choice((1, 1, 4))):
        if not spots:
            break
        holder, key = rng.choice(spots)
        if key not in (holder if isinstance(holder, dict) else range(len(holder))):
            continue
        if (chance := rng.random()) < 0.4:
            holder[key] = rng.choice(ODD)
        elif chance < 0.6:
            del holder[key]
        else:
            other, its = rng.choice(spots)
            if its in (other if isinstance(other, dict) else range(len(other))):
                holder[key] = json.loads(json.dumps(other[its]))
    try:
        rows[at] = json.dumps(value).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        return data
    return b"\n".join(rows)


def double_key(data: bytes, rng: random.Random) -> bytes:
    """A key written twice in one object."""
    places = [at for at in range(len(data)) if data[at : at + 2] == b'{"']
    if not places:
        return data
    at = rng.choice(places)
    end = data.find(b'"', at + 2)
    value = json.dumps(rng.choice(ODD)).encode("utf-8", "surrogatepass")
    return data[: at + 1] + data[at + 1 : end + 1] + b": " + value + b", " + data[at + 1 :]


def _json(text: bytes) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def _spots(value: Any, depth: int = 0) -> Iterator[tuple[Any, Any]]:
    if depth > 50:
        return
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _spots(value[key], depth + 1)


MUTATIONS: list[Mutate] = [
    truncate,
    behead,
    flip,
    insert,
    erase,
    double,
    shuffle_lines,
    move_line,
    repeat_line,
    drop_line,
    splice_in,
    double_key,
    *[alter_json] * 6,
]
