"""WebSockets of an API, answered by requests over HTTP through the gateway itself (an edge): they are found, managed and counted like any other."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from tenure.apis import endpoint_of
from tenure.apis.api import Socket
from tenure.apis.sse import EventSplitter
from tenure.errors import InputError
from tenure.gateway.headers import TURN

_BETA: Final = "responses_websockets"  # in `openai-beta`, by which a client says that it speaks so
_DENIAL: Final = "websocket.http.response"  # asgi.readthedocs.io/en/latest/extensions.html
_OWN: Final = ("connection", "upgrade", "content-length", "content-type", "accept")


class Bridge:
    """An application whose WebSockets become requests. One that is of no API is refused with 426, as where there is no bridge."""

    def __init__(self, app: ASGIApp, body_bytes: int) -> None:
        self._app, self._body_bytes = app, body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request or connection."""
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        found = endpoint_of(scope["path"])
        socket = found[0].socket() if found is not None else None
        if socket is None:
            await receive()
            await _refuse(scope, send)
            return
        client = WebSocket(scope, receive, send)
        await client.accept()
        with suppress(WebSocketDisconnect, OSError, RuntimeError):  # the client is gone
            while True:
                text = await client.receive_text()
                await self._answer(scope, client, socket, text)

    async def _answer(self, scope: Scope, client: WebSocket, socket: Socket, text: str) -> None:
        if len(text) > self._body_bytes:
            await client.send_text(socket.error(413, {"message": f"at most {self._body_bytes:,} bytes"}))
            return
        try:
            body, events = socket.request(text)
        except InputError as error:
            events, body = (socket.error(400, {"type": "invalid_request_error", "message": str(error)}),), b""
        for event in events:
            await client.send_text(event)
        if body:
            await _asked(self._app, scope, body, client, socket)


async def _asked(app: ASGIApp, scope: Scope, body: bytes, client: WebSocket, socket: Socket) -> None:
    """One request: its events go to the client as they come; of one that is refused, its status and error."""
    pieces, refused, answer = EventSplitter(), bytearray(), dict[str, Any](status=0, headers=[])
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await asyncio.Event().wait()  # nothing more comes; a client that is gone is noticed when something is sent to it
        raise AssertionError

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            answer.update(status=message["status"], headers=message["headers"])
        elif answer["status"] != 200:
            refused.extend(message.get("body", b""))
        else:
            for event in pieces.take(message.get("body", b"")):
                if isinstance(event.data, dict):
                    socket.take(event.data)
                    await client.send_text(msgspec.json.encode(event.data).decode())

    await app(_scope(scope, len(body), socket.headers), receive, send)
    if answer["status"] != 200:
        error = socket.error(answer["status"], _error(bytes(refused)))
        await client.send_text(_with_headers(error, Headers(raw=answer["headers"])))


def _scope(scope: Scope, size: int, more: Mapping[str, str]) -> Scope:
    """The request's scope: the connection's path and headers, but for what is a WebSocket's, and those of its message."""
    gone = {*_OWN, TURN, *map(str.lower, more)}
    kept = [
        (name, value)
        for name, value in scope["headers"]
        if not name.startswith(b"sec-websocket-") and name.decode("latin-1") not in gone and _BETA.encode() not in value
    ]
    own = [(b"content-type", b"application/json"), (b"accept", b"text/event-stream"), (b"content-length", str(size).encode())]
    plain = {key: value for key, value in scope.items() if key not in ("subprotocols", "extensions")}
    return {
        **plain,
        "type": "http",
        "method": "POST",
        "scheme": "https" if scope.get("scheme") == "wss" else "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "headers": [*kept, *own, *((name.lower().encode(), value.encode()) for name, value in more.items())],
    }


def _error(body: bytes) -> Any:
    """What a refusal's body says."""
    try:
        fields = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError):
        return {"message": body[:2_000].decode("utf-8", "replace")}
    return fields.get("error", fields)


def _with_headers(event: str, headers: Headers) -> str:
    """The event of a refusal with the headers that came with it, such as when to try again."""
    fields = msgspec.json.decode(event, type=dict[str, Any])
    return msgspec.json.encode({**fields, "headers": dict(headers)}).decode()


async def _refuse(scope: Scope, send: Send) -> None:
    if _DENIAL in scope.get("extensions", {}):
        await send({"type": f"{_DENIAL}.start", "status": 426, "headers": [(b"connection", b"close")]})
        await send({"type": f"{_DENIAL}.body", "body": b""})
    else:
        await send({"type": "websocket.close", "code": 1008})
