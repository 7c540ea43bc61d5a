"""A tool of an MCP server as one of the agent's own."""

import asyncio
import re
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from msgspec import Struct

from tenure.agent.approval import Approval, CallEffect
from tenure.agent.tools.arguments import frozen
from tenure.agent.tools.files import image_type
from tenure.agent.tools.servers.server import McpServer
from tenure.agent.tools.terminal_text import plain
from tenure.agent.tools.tool import End, Here, ToolOutcome, wait_for
from tenure.agent.workspace import Workspace
from tenure.apis.json_text import Json, dump, load
from tenure.apis.media import MediaSource
from tenure.engine.record.tools import DECLARATION, Kinds, ToolKind
from tenure.engine.record.visible import visible
from tenure.errors import InputError

if TYPE_CHECKING:
    from mcp.types import CallToolResult
    from mcp.types import Tool as Offered

# Characters: https://platform.claude.com/docs/en/api/messages, https://platform.openai.com/docs/api-reference
LONGEST_NAME: Final = 64
LONGEST_DESCRIPTION: Final = 2_000
MOST: Final = 100  # tools of all servers: OpenAI takes 128 in a request, and there are our own
LONGEST_TOGETHER: Final = 160_000  # characters of all their descriptions and schemas: about 40,000 tokens, in every request

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]+")


class ServerTool:
    """One tool of one server."""

    def __init__(self, server: McpServer, offered: "Offered", takes: "ToolSchema", name: str) -> None:
        self.name = name
        words = _shortened_words(offered.description or offered.title or offered.name)
        self.description = visible("\n".join(filter(None, (words, takes.words)))).strip()
        self.schema: Mapping[str, Any] = frozen(takes.schema)
        self._own_names = takes.own
        self.kind = _kind(offered)
        hints = offered.annotations
        self._reads = server.config.trusted and hints is not None and hints.read_only_hint is True
        self._server, self._own = server, offered.name

    @property
    def weight(self) -> int:
        """Characters that it takes up in every request."""
        return len(self.name) + len(self.description) + len(dump(self.schema))

    def needs(self, arguments: str, workspace: Workspace) -> Approval | None:  # noqa: ARG002 - a server knows no workspace
        """Agreement, unless the server is trusted and says that the tool only reads."""
        if self._reads or _arguments(arguments) is None:
            return None
        shown = visible(arguments.strip())
        return Approval(
            tool=self.name,
            act=CallEffect.SERVER,
            summary=f"{self.name} {shown[:80]}{'…' * (len(shown) > 80)}".strip(),
            reason=f"the MCP server {self._server.config.name} may change anything",
            detail=shown[:8_000],
            exact=f"{self.name} {arguments}",
            broad=(self.name,),
        )

    async def run(self, arguments: str, here: Here) -> ToolOutcome:
        """What the server answers."""
        given = _arguments(arguments)
        if given is None:
            fields = ", ".join(cast(Mapping[str, object], self.schema.get("properties", {})))
            expected = f"one JSON object{f' with {fields}' if fields else ''}"
            return ToolOutcome(text=f"{self.name}: arguments: found {arguments[:80]!r}, expected {expected}", error=True)
        named = {self._own_names.get(name, name): value for name, value in given.items()}
        call = asyncio.ensure_future(self._server.call(self._own, named))
        try:
            end = await wait_for(call, here, here.limits.server_call_s)
            if end is End.DONE:
                return _outcome(call.result(), here)
        except InputError as error:
            return here.outcome(plain(f"{self.name}: {error}"), error=True)
        finally:
            if not call.done():
                call.cancel()
                await asyncio.wait({call}, timeout=1)
        why = "it was stopped by the user" if end is End.CANCELLED else f"no answer within {here.limits.server_call_s:g} s"
        return ToolOutcome(text=f"{self.name}: {why}", error=True)


Offer = tuple["Offered", "ToolSchema"]


def read_tools(server: McpServer) -> Sequence[Offer]:
    """The tools that a server offers, by name, with what they take: as many as there is room for at most."""
    offers: list[Offer] = []
    for offered in sorted(server.tools, key=lambda offered: offered.name):
        if len(offers) == MOST:
            break
        try:
            offers.append((offered, tool_schema(offered.input_schema)))
        except Exception as error:  # a stranger's schema can be anything: it costs this tool, and no other
            server.left_out[offered.name] = f"its schema cannot be read ({type(error).__name__}: {error})"[:160]
    return offers


def tools_of(server: McpServer, offers: Iterable[Offer], taken_names: Iterable[str] = ()) -> Iterator[ServerTool]:
    """The tools of a server's offers; names are made legal, and apart from those that are taken."""
    used = set(taken_names)
    for offered, takes in offers:
        name = tool_name(server.config.name, offered.name)
        if name in used:
            name = _shortened(name, f"{server.config.name}\0{offered.name}")
        if name not in used:
            used.add(name)
            yield ServerTool(server, offered, takes, name)


def fitting(offers: Sequence[Sequence[ServerTool]], beside: Sequence[ServerTool] = ()) -> tuple[tuple[ServerTool, ...], ...]:
    """As many tools of each server as there is room for together; a server that has few keeps all before one that has many gets more.

    `beside` are those that there are already.
    """
    room, weight = MOST - len(beside), LONGEST_TOGETHER - sum(tool.weight for tool in beside)
    kept: list[list[ServerTool]] = [[] for _ in offers]
    full: set[int] = set()
    for turn in range(max(map(len, offers), default=0)):
        for place, offer in enumerate(offers):
            if turn >= len(offer) or place in full:
                continue
            if not room or offer[turn].weight > weight:
                full.add(place)  # the first that does not fit is the end: what is offered is a beginning of its list
                continue
            room, weight = room - 1, weight - offer[turn].weight
            kept[place].append(offer[turn])
    return tuple(map(tuple, kept))


def tool_name(server: str, tool: str) -> str:
    """`server__tool` as every provider takes it."""
    safe = f"{_UNSAFE.sub('_', server).strip('_') or 'server'}__{_UNSAFE.sub('_', tool) or 'tool'}"
    return safe if len(safe) <= LONGEST_NAME else _shortened(safe, safe)


def _shortened(name: str, told_by: str) -> str:
    mark = sha256(told_by.encode("utf-8", "replace")).hexdigest()[:6]
    return f"{name[: LONGEST_NAME - 7]}_{mark}"


def _shortened_words(text: str) -> str:
    """A description as long as one may be; of a longer one its beginning, and how much is left out."""
    if len(text) <= LONGEST_DESCRIPTION:
        return text
    end = max(text.rfind("\n", LONGEST_DESCRIPTION - 200, LONGEST_DESCRIPTION), 0) or LONGEST_DESCRIPTION
    return f"{text[:end]}\n[left out: the other {len(text) - end:,} of {len(text):,} characters of this description]"


def _kind(offered: "Offered") -> ToolKind:
    declared = offered.input_schema.get(DECLARATION)
    return ToolKind(declared) if declared in tuple(ToolKind) else Kinds().of(offered.name)


def _arguments(text: str) -> dict[str, Json] | None:
    try:
        value = load(text.strip() or "{}")
    except InputError:
        return None
    return value if isinstance(value, dict) else None


def _outcome(result: "CallToolResult", here: Here) -> ToolOutcome:
    texts: list[str] = []
    media: list[MediaSource] = []
    room = here.limits.image_bytes  # for all of them together
    for block in result.content:
        match block.type:
            case "text":
                texts.append(block.text)
            case "image" if (size := len(block.data) * 3 // 4) <= room and (kind := _image_type(block.data)):
                room -= size
                media.append(MediaSource(media_type=kind, data=block.data))
            case "image" | "audio":
                texts.append(f"[{block.mime_type or block.type}, {len(block.data) * 3 // 4:,} bytes, which cannot be shown]")
            case "resource_link":
                texts.append(f"[resource {block.name}: {block.uri}]")
            case "resource":
                texts.append(getattr(block.resource, "text", "") or f"[resource {block.resource.uri}, which is no text]")
    if result.structured_content is not None and not _says(texts, result.structured_content):
        texts.append(msgspec.json.encode(result.structured_content).decode())
    text = plain("\n".join(texts))
    return here.outcome(text or ("" if media else "[no content]"), error=result.is_error, media=tuple(media))


def _image_type(data: str) -> str:
    """The media type of an image; empty for what no provider takes for one, since a request that holds it would be refused each time."""
    try:
        return image_type(b64decode(data, validate=True)[:16])
    except ValueError:
        return ""


def _says(texts: Sequence[str], structured: Mapping[str, Json]) -> bool:
    """Whether the texts are what is given as data too, which is usual: as JSON, or, of one value `result`, as itself or item by item."""
    values: list[Json] = [dict(structured)]
    if set(structured) == {"result"}:
        values.append(structured["result"])
    read = [_read(text) for text in texts]
    return any(value in (read, *read, *texts, list(texts)) for value in values)


def _read(text: str) -> Json:
    """The value that a text is as JSON; otherwise the text."""
    try:
        return load(text)
    except InputError:
        return text


LONGEST: Final = 30_000  # characters of a schema's JSON
MOST_PARTS: Final = 1_000  # objects and lists in it: each takes a checker up to a millisecond
TOLD: Final = 1_500  # of a schema that is told in words instead

_KEY: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_UNSAFE_KEY: Final = re.compile(r"[^a-zA-Z0-9_.-]+")
_LONGEST_KEY: Final = 57
_NOT_AT_THE_TOP: Final = frozenset({"$schema", "$id", "oneOf", "anyOf", "allOf", "not", "enum", "const", "if", "then", "else"})


class ToolSchema(Struct, frozen=True, kw_only=True):
    """What a tool takes. `own` are the server's names of those fields that go by another; `words` goes into the description."""

    schema: Mapping[str, Any]
    own: Mapping[str, str] = {}
    words: str = ""


def tool_schema(given: Mapping[str, Any]) -> ToolSchema:
    """A server's schema as it can be offered; in words where it cannot."""
    text = _text(given)
    if (
        given.get("type") != "object"
        or len(text) > LONGEST
        or text.count("{") + text.count("[") > MOST_PARTS
        or not _is_sound(given)
    ):
        return ToolSchema(schema={"type": "object", "properties": {}}, words=_in_words(text))
    properties = cast(Mapping[str, Any], given.get("properties") or {})
    names = _names(properties)
    schema = {key: value for key, value in given.items() if key not in _NOT_AT_THE_TOP}
    schema["properties"] = {names.get(key, key): value for key, value in properties.items()}
    if "required" in given:
        schema["required"] = [names.get(key, key) for key in cast(list[str], given["required"])]
    words = _in_words(text) if given.keys() & (_NOT_AT_THE_TOP - {"$schema", "$id"}) else ""
    return ToolSchema(schema=schema, own={new: key for key, new in names.items()}, words=words)


def _names(properties: Mapping[str, Any]) -> dict[str, str]:
    """Other names for the fields whose own no provider takes."""
    names: dict[str, str] = {}
    used = {key for key in properties if _KEY.fullmatch(key)}
    for key in properties:
        if key not in used:
            name = _UNSAFE_KEY.sub("_", key)[:_LONGEST_KEY] or "_"
            names[key] = name if name not in used else f"{name}_{sha256(key.encode('utf-8', 'replace')).hexdigest()[:6]}"
            used.add(names[key])
    return names


def _text(given: Mapping[str, Any]) -> str:
    try:
        return dump(given)
    except (RecursionError, ValueError, TypeError):
        return ""


def _in_words(text: str) -> str:
    return f"Its arguments as JSON Schema: {text[:TOLD]}{'…' * (len(text) > TOLD)}" if text else ""


def _is_sound(given: Mapping[str, Any]) -> bool:
    """Whether it is JSON Schema; the protocol's SDK brings who knows."""
    try:
        import_module("jsonschema").Draft202012Validator.check_schema(given)
    except ImportError:  # then it is the provider's to say
        return True
    except Exception:  # a schema of a stranger's: besides SchemaError it can hold loops, patterns and references that the checker itself stumbles over
        return False
    return True
