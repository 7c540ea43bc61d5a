"""The shape of JSON that may be cut off anywhere: what a format is recognised by."""

import json
import re
from functools import lru_cache
from typing import Final

_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\Z)|[{}\[\],:]', re.DOTALL)  # a string may be cut off

_AROUND: Final = b"\xef\xbb\xbf\x00 \t\r\n"


@lru_cache(maxsize=128)  # all readers ask the same of the head of a file
def keys(head: bytes) -> tuple[str, ...]:
    """The keys of the outermost object, as far as `head` goes, in order; none when it is no object."""
    found: list[str] = []
    depth, is_key = 0, False
    for match in _TOKEN.finditer(head):
        token = match[0]
        if token in (b"{", b"["):
            depth += 1
            is_key = depth == 1 and token == b"{"
            if depth == 1 and not is_key:
                return ()
        elif token in (b"}", b"]"):
            depth -= 1
            if depth <= 0:
                return tuple(found)
        elif depth == 1 and token == b",":
            is_key = True
        elif depth == 1 and token == b":":
            is_key = False
        elif depth == 1 and is_key:
            found.append(_text(token))
        elif depth == 0:
            return ()
    return tuple(found)


def bare(text: bytes) -> bytes:
    """`text` without a byte order mark, padding and white space around it."""
    return text.strip(_AROUND)


def opening(head: bytes) -> str:
    """The first character that means anything, empty when there is none."""
    return head.lstrip(_AROUND)[:1].decode("latin-1")


def _text(token: bytes) -> str:
    try:
        return str(json.loads(token))
    except ValueError:
        return token[1:-1].decode("utf-8", "replace")


@lru_cache(maxsize=32)
def member(head: bytes, name: str) -> bytes:
    """What follows the key `name` of the outermost object, as far as `head` goes; empty when there is no such key."""
    depth, last, wanted = 0, b"", f'"{name}"'.encode()
    for match in _TOKEN.finditer(head):
        token = match[0]
        if token in (b"{", b"["):
            depth += 1
        elif token in (b"}", b"]"):
            depth -= 1
        elif depth == 1 and token == b":" and last == wanted:
            return bare(head[match.end() :])
        last = token
        if depth <= 0:
            return b""
    return b""


def first(array: bytes) -> bytes:
    """An array from its first element on."""
    return bare(bare(array).removeprefix(b"["))
