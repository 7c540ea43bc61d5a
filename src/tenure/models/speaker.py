"""A model that an agent talks with: a request's bytes in, the reply as it comes out, then the whole of it. Edge.

A question (`models.model`) wants one text and nothing else; here the reply is everything a model can say, calls of tools and reasoning included,
and it goes into the record as the provider spelled it.
"""

from collections.abc import AsyncGenerator
from typing import Literal, Protocol

from msgspec import Struct

from tenure.engine.record.entry import Usage

# How a reply ended. length: at its output limit, or where the window was full. paused: the provider wants to be asked to go on.
Ended = Literal["done", "length", "refused", "paused"]


class Spoken(Struct, frozen=True, kw_only=True, gc=False):
    """A piece of a reply, as it comes. Of a call's arguments `place` is the call's among the calls of the reply, from 0."""

    kind: Literal["text", "thinking", "arguments"]
    text: str
    tool: str = ""
    place: int = 0


class Made(Struct, frozen=True, kw_only=True, gc=False):
    """A call of a reply. `broken` says why its arguments are no JSON object, in which case `arguments` holds what there is of them as text."""

    call_id: str
    tool: str
    arguments: str
    broken: str = ""


class Whole(Struct, frozen=True, kw_only=True):
    """A complete reply, whatever made it end."""

    reply: bytes  # the response's JSON, as the dialect's `parse_reply` takes it
    text: str = ""
    calls: tuple[Made, ...] = ()
    ended: Ended = "done"
    stop: str = ""  # the provider's word
    why: str = ""  # of another end than "done", in a clause for people; a refusal in the model's own words
    model: str = ""
    usage: Usage | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was said and nothing called, so that there is nothing to record."""
        return not self.calls and not self.text.strip()


class Speaker(Protocol):
    """A model at the other end of a connection. Belongs to one event loop."""

    name: str  # as the provider calls it
    dialect: str

    def speak(self, body: bytes, /) -> AsyncGenerator[Spoken | Whole, None]:
        """The reply to a request: its pieces, and last of all the whole. Closing the generator closes the connection.

        Raises ModelError for everything that a provider or a connection can do wrong; its `said` is what had been heard.
        """
        ...

    async def warm(self) -> None:
        """Load and open what the first call needs, so that it need not be waited for then. Never raises."""
        ...

    async def close(self) -> None:
        """Close the connection for good."""
        ...
