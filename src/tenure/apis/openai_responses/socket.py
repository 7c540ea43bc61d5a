"""The Responses API's WebSocket as requests over HTTP: what a client leaves out since the server has it stands in each of them again.

developers.openai.com/api/docs/guides/websocket-mode: a message `response.create` has the fields of a request, and may go on from the newest response of
its connection by `previous_response_id`; with `generate: false` it only tells the server what will come. Events are those of a stream.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from msgspec.structs import replace

from tenure.apis.bodies import read_body
from tenure.apis.json_text import dump, encoded
from tenure.errors import InputError

KEY: Final = "input"
_HEADER: Final = re.compile(r"x-[\x20-\x7e]*")  # what a client tells of one message where HTTP has a header for it
_CREATE: Final = "response.create"
_OWN: Final = ("type", "previous_response_id", "generate", "background", "stream_options")  # of a message; none of them is HTTP's


class ResponsesSocket:
    """One connection. Mutable: it knows the history behind its newest response."""

    def __init__(self) -> None:
        self._held: tuple[str, tuple[bytes, ...]] = (
            "",
            (),
        )  # the newest response's id, and its history: items as they were spelled
        self._history: tuple[bytes, ...] = ()  # of the request that is being answered
        self._output: list[bytes] = []
        self._warm = 0
        self.headers: dict[str, str] = {}

    def request(self, text: str) -> tuple[bytes, tuple[str, ...]]:
        """The body of a request for a client's message, or nothing and the events that answer it. Raises InputError for what is no message."""
        body = read_body(text.encode("utf-8", "surrogatepass"), KEY)
        if body.value("type") != _CREATE:
            raise InputError("message", f"the type {str(body.value('type'))[:40]!r}", _CREATE)
        metadata = body.value("client_metadata")
        held = cast(dict[str, Any], metadata) if isinstance(metadata, dict) else {}
        self.headers = {name: value for name, value in held.items() if isinstance(value, str) and _HEADER.fullmatch(name + value)}
        before = body.value("previous_response_id")
        history: tuple[bytes, ...] = ()
        if before:
            if before != self._held[0]:
                words = f"the response {str(before)[:80]!r} is not the newest of this connection"
                return b"", (self.error(400, {"code": "previous_response_not_found", "message": words}),)
            history = self._held[1]
        self._history, self._output = (*history, *body.messages), []
        if body.value("generate") is False:
            self._warm += 1
            id_ = f"resp_warm_{self._warm}"
            response: dict[str, Any] = {"id": id_, "object": "response", "output": [], "status": "completed"}
            self._held = id_, self._history
            events = ("response.created", "response.completed")
            return b"", tuple(dump({"type": each, "response": response}) for each in events)
        plain = replace(body, members={name: value for name, value in body.members.items() if name not in _OWN})
        return plain.with_messages(self._history, {"stream": True}), ()

    def take(self, event: Mapping[str, Any]) -> None:
        """An event of the response."""
        match event:
            case {"type": "response.output_item.done", "item": item}:
                self._output.append(encoded(dump(item)))
            case {"type": "response.completed" | "response.incomplete", "response": {"id": str() as id_}}:
                self._held = id_, (*self._history, *self._output)
            case _:
                pass

    @staticmethod
    def error(status: int, error: object) -> str:
        """The event of a request that was refused."""
        return dump({"type": "error", "status": status, "error": error})
