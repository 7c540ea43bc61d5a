"""What stands inside the outermost object of JSON that may be cut off anywhere: for formats that their outermost keys do not tell apart."""

import re
from typing import Final

from tenure.logs.shape import bare

_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\Z)|[{}\[\],:]', re.DOTALL)  # a string may be cut off


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
