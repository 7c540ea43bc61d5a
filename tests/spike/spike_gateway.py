"""The gateway's idea in as little code as it takes: chain ids of what the client saw, mapped to record entries plus splices."""

import json
from collections.abc import Sequence
from typing import Any

import httpx
from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tenure.apis import APIS
from tenure.apis.anthropic.markers import strip_markers
from tenure.apis.api import Api
from tenure.engine.record.chain import Chain
from tenure.engine.record.entry import Draft, Entry, Role, Thinking, ToolCall, ToolResult
from tenure.engine.view.piece import Piece
from tenure.testing.provider import FakeProvider
from tenure.testing.script import events

VIRTUAL = ("delimiter",)
PATHS = {"anthropic": "/v1/messages", "openai-chat": "/v1/chat/completions", "openai-responses": "/v1/responses"}


def placed(record: Sequence[Entry], drafts: Sequence[Draft]) -> tuple[Entry, ...]:
    """`record` with `drafts` appended."""
    chain = Chain()
    assert not any(chain.follow(entry) for entry in record)
    return (*record, *(chain.place(draft, (0,) * len(draft.blocks)) for draft in drafts))


def pieces(record: Sequence[Entry]) -> list[Piece]:
    """A record shown as it is."""
    return [Piece(role=entry.role, blocks=entry.blocks, dialect=entry.dialect, payload=entry.payload) for entry in record]


def client_chain(drafts: Sequence[Draft]) -> tuple[Entry, ...]:
    """What a client is known by: without thinking, since clients may leave it out, and some do."""
    spoken = [tuple(block for block in draft.blocks if not isinstance(block, Thinking)) for draft in drafts]
    return placed((), [replace(draft, blocks=blocks) for draft, blocks in zip(drafts, spoken, strict=True)])


def common_prefix(ids: Sequence[str], known: Sequence[str]) -> int:
    """How many entries two chains share."""
    return next((n for n, (a, b) in enumerate(zip(ids, known, strict=False)) if a != b), min(len(ids), len(known)))


def answers(reply: Draft) -> list[Draft]:
    """The results of a reply's virtual calls, which only the gateway gives."""
    calls = [block for block in reply.blocks if isinstance(block, ToolCall) and block.name in VIRTUAL]
    return [Draft(role=Role.TOOL, blocks=(ToolResult(call_id=call.call_id, text="ok"),)) for call in calls]


def hidden(reply: dict[str, Any], dialect: str) -> dict[str, Any]:
    """A response without its virtual calls."""
    match dialect:
        case "anthropic":
            return reply | {"content": [part for part in reply["content"] if part.get("name") not in VIRTUAL]}
        case "openai-responses":
            return reply | {"output": [item for item in reply["output"] if item.get("name") not in VIRTUAL]}
        case _:
            choice = reply["choices"][0]
            message = dict(choice["message"])
            message["tool_calls"] = [call for call in message.get("tool_calls", []) if call["function"]["name"] not in VIRTUAL]
            if not message["tool_calls"]:
                del message["tool_calls"]
            return reply | {"choices": [choice | {"message": message}]}


class SpikeGateway:
    """Stateless but for `behind`: the record that stands behind each chain id a client may come with."""

    def __init__(self, provider: FakeProvider) -> None:
        self.app = Starlette(routes=[Route(path, self._serve, methods=["POST"]) for path in PATHS.values()])
        self.behind: dict[str, tuple[Entry, ...]] = {}
        self._upstream = httpx.ASGITransport(app=provider.app)

    def _record(self, client: Sequence[Entry], drafts: Sequence[Draft]) -> tuple[Entry, ...]:
        known = [n for n, entry in enumerate(client) if entry.id in self.behind]
        start = known[-1] + 1 if known else 0
        return placed(self.behind[client[start - 1].id] if start else (), drafts[start:])

    async def _serve(self, request: Request) -> Response:
        name = next(name for name, path in PATHS.items() if path == request.url.path)
        dialect: Api = APIS[name]
        head, messages = dialect.split(await request.body())
        drafts = dialect.parse([strip_markers(message) for message in messages] if name == "anthropic" else messages)
        client = client_chain(drafts)
        record = self._record(client, drafts)
        self.behind[client[-1].id] = record
        fields = {key: value for key, value in head.fields.items() if key not in ("stream", "stream_options")}
        body = dialect.join(type(head)(system=head.system, fields=fields), dialect.render(pieces(record)))
        async with httpx.AsyncClient(transport=self._upstream, base_url="http://upstream") as upstream:
            response = await upstream.post(PATHS[name], content=body)
        if response.status_code != 200:
            return Response(response.content, response.status_code, media_type="application/json")
        draft = dialect.parse_reply(response.content)
        shown = hidden(json.loads(response.content), name)
        seen = client_chain([*drafts, dialect.parse_reply(shown)])
        self.behind[seen[-1].id] = placed(record, [draft, *answers(draft)])
        if head.fields.get("stream"):
            return StreamingResponse(events(shown, name), media_type="text/event-stream")
        return JSONResponse(shown)
