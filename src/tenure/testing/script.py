"""What a scripted model says. Pure: the same script gives the same bytes; how each provider puts it stands with its API."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from tenure.apis import APIS, COMMON
from tenure.apis.server import Call, Fault, Reply
from tenure.engine.record.entry import Usage
from tenure.engine.view.rules import Rules

__all__ = ["Broken", "Call", "Fault", "Playing", "Reply", "Script", "Turn", "events", "output_text", "wire", "wire_error"]


class Broken(Struct, frozen=True, kw_only=True):
    """A reply that goes wrong on its way, when streamed, behind its first `after` events.

    cut: the connection breaks. end: it closes as if all were said. malformed: an event comes whose data is no JSON, then the rest. error:
    an error event comes, and nothing more. stall: nothing more comes, and the connection stays open.
    """

    reply: Reply
    how: Literal["cut", "end", "malformed", "error", "stall"]
    after: int = 3


Turn = Reply | Fault | Broken


class Playing(Struct, frozen=True, kw_only=True):
    """How a scripted model plays a script; a scripted provider goes by the requests."""

    model: str = "scripted"  # as which it is billed
    dialect: str = COMMON  # whose events it speaks
    pace_s: float = 0.0  # between two pieces of a reply


class Script(Struct, frozen=True, kw_only=True):
    """What comes of each request that was valid, in order."""

    replies: tuple[Turn, ...]
    playing: Playing = Playing()


_MESSAGES: Final = {
    401: "Incorrect API key provided.",
    404: "The model does not exist or you do not have access to it.",
    429: "Rate limit reached.",
    500: "The server had an error while processing your request.",
    529: "Overloaded",
}


def wire_error(fault: Fault, dialect: str, n: int) -> dict[str, Any]:
    """The body of an error; `n` counts requests."""
    server = APIS[dialect].server()
    usual = "invalid_request_error" if fault.status < 500 else server.failure
    message = fault.message or _MESSAGES.get(fault.status, "Something went wrong.")
    return server.error(server.errors.get(fault.status, usual), message, n, code=fault.code)


def wire(reply: Reply, n: int, body: Mapping[str, Any], rules: Rules, usage: Usage) -> dict[str, Any]:
    """The whole response to the `n`-th valid request, not streamed."""
    server = APIS[rules.dialect].server()
    whole = server.reply(reply, n, body, rules, usage)
    model, used = server.names
    reported = whole.pop(used)
    return {**whole, model: str(body.get("model", "")), used: reported}


def output_text(reply: Reply) -> str:
    """Everything a reply says, for counting its tokens."""
    return "".join([reply.thinking, reply.text, *(call.name + call.arguments for call in reply.calls)])


def events(response: Mapping[str, Any], dialect: str, *, include_usage: bool = False) -> Iterator[bytes]:
    """The server-sent events of a whole response; `include_usage` is what Chat Completions asks for in `stream_options`."""
    return APIS[dialect].server().events(response, include_usage=include_usage)
