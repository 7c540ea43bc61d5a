"""The seam between provider JSON and the record.

A dialect is a pure value: it parses messages into drafts and renders pieces of a view back. What was not edited is rendered from
its own payload, byte for byte; what was edited is the payload with only the edited parts changed, so unknown fields survive.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from tenure.engine.record.entry import Draft, Usage
from tenure.engine.view.piece import Piece

Message = bytes | Mapping[str, Any]  # one provider message: its raw JSON, or the dictionary of it


class Head(Struct, frozen=True, kw_only=True):
    """What precedes the messages in a request: never part of the record, byte-stable within a session."""

    system: tuple[Draft, ...] = ()
    fields: Mapping[str, Any] = {}  # model, tools, max_tokens, …, passed through


class Dialect(Protocol):
    """Parses and renders one provider API's messages."""

    name: str

    def parse(self, messages: Sequence[Message]) -> tuple[Draft, ...]:
        """The drafts of `messages`, in order. Adjacent items of one model reply may form one draft.

        Raises InputError naming the message's position, what was found and what is allowed.
        """
        ...

    def parse_reply(self, reply: Message) -> Draft:
        """The assistant draft of a whole API response (not a stream), with its `usage` and `model`."""
        ...

    def parse_usage(self, usage: Mapping[str, Any]) -> Usage:
        """Reported usage in our terms: cached tokens are never counted twice."""
        ...

    def render(self, pieces: Sequence[Piece]) -> tuple[bytes, ...]:
        """One JSON text per provider message or item, in order; a piece may give several, or share one with its neighbour."""
        ...

    def split(self, body: Message) -> tuple[Head, tuple[bytes, ...]]:
        """A request's head and its messages as they are spelled; the inverse of `join`."""
        ...

    def join(self, head: Head, messages: Sequence[bytes]) -> bytes:
        """The body of a request; system prompts stand where this API wants them."""
        ...

    def tool(self, name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """A function tool's declaration in this API's shape."""
        ...
