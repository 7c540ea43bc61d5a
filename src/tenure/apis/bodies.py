"""A client's request as bytes: split without reading what it holds, and put together again with other messages.

Nothing is decoded but what is asked for, so a body of a megabyte costs a millisecond or two. Members keep their order and their spelling.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from tenure.apis.json_text import dump, elements, encoded, load, members, source
from tenure.errors import InputError

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items = msgspec.json.Decoder(list[msgspec.Raw])


class ClientBody(Struct, frozen=True, kw_only=True):
    """The body of a client's request, apart from its messages and with them."""

    raw: bytes  # as it came
    key: str  # of the member that holds the messages
    members: Mapping[str, bytes]  # all others, in order, as they are spelled; of a repeated one the last
    messages: tuple[bytes, ...]

    def value(self, key: str) -> Any:
        """The value of a member; None where there is none."""
        held = self.members.get(key)
        return None if held is None else load(held.decode("utf-8", "surrogatepass"), key)

    def values(self) -> dict[str, Any]:
        """The values of all members but the messages."""
        return {key: self.value(key) for key in self.members}

    def spelled(self, keys: Iterable[str]) -> bytes:
        """These members as they are spelled: the same bytes mean the same values."""
        return b"\0".join(self.members.get(key, b"") for key in keys)

    def with_messages(self, messages: Sequence[bytes], changed: Mapping[str, Any]) -> bytes:
        """The body with other messages, and other values for some of its members, which may be new. The messages come last."""
        held = dict(self.members)
        for key, value in changed.items():
            held[key] = encoded(dump(value))
        parts = [encoded(dump(key)) + b":" + value for key, value in held.items()]
        return b"{" + b",".join([*parts, encoded(dump(self.key)) + b":[" + b",".join(messages) + b"]"]) + b"}"


def read_body(raw: bytes, key: str) -> ClientBody:
    """A request's body, whose messages stand under `key`; a text in their place is one message of a user. Raises InputError."""
    try:
        fields = {name: bytes(value) for name, value in _fields.decode(raw).items()}
        given = fields.pop(key, b"[]")
        messages = tuple(map(bytes, _items.decode(given))) if given[:1] == b"[" else _only(given, key)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        fields = {item.key: encoded(item.text) for item in members(source(raw, "request"), "request")}
        given = fields.pop(key, b"[]")
        texts = elements(source(given, key), key) if given[:1] == b"[" else None
        messages = _only(given, key) if texts is None else tuple(encoded(item.text) for item in texts)
    return ClientBody(raw=raw, key=key, members=fields, messages=messages)


def _only(given: bytes, key: str) -> tuple[bytes, ...]:
    if given[:1] != b'"':
        raise InputError(key, given[:40].decode("utf-8", "replace"), "a list of messages, or a text")
    return (b'{"role":"user","content":' + given + b"}",)
