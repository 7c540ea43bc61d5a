"""What the adapters of frameworks share: a framework's messages as one of our APIs' JSON and back, through the code that the gateway runs (an edge).

A framework's hook hands over a whole history of its own objects. They are written as JSON, the conversation is found by it, and what goes out is read back:
a message that was not changed is the very object that came in. A failure of ours leaves the framework with its own messages, and is logged.
"""

import json
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from logging import getLogger
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from tenure.apis.api import Api
from tenure.apis.bodies import read_body
from tenure.apis.json_text import dump, encoded, load
from tenure.apis.reply import fields_of
from tenure.context.client_context import ClientContext
from tenure.context.exchange import Exchange, Management
from tenure.context.histories import Histories
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.record.recall import RECALL_SCHEMA
from tenure.errors import InputError, TenureError
from tenure.store.records import Records

LOG: Final = getLogger("tenure.adapters")
RECALL_TOOL: Final = "tenure_recall"  # where a framework offers it itself, as a tool of its own
RECALL_TEXT: Final = (
    "Bring back what left this conversation or was shortened in it, exactly as it was. By handle, where you see one (read:12@3fa9, user:3); lines gives a "
    "part. Or search everything there ever was by words, path or pattern: hits come with handles. Where this conversation says recall, this tool is meant."
)
MOST: Final = 1_000  # runs whose newest turn is remembered
M = TypeVar("M")


class Codec(Protocol[M]):
    """How one framework's messages are written and read."""

    def encode(self, message: M, /) -> dict[str, Any]:
        """A message as the API's JSON; the same for the same message, ever."""
        ...

    def decode(self, fields: Mapping[str, Any], original: M | None, /) -> M:
        """A message of that JSON: a changed version of `original`, or a new one."""
        ...


class JsonCodec:
    """For frameworks whose messages are the API's own."""

    def encode(self, message: dict[str, Any], /) -> dict[str, Any]:
        """As it is."""
        return message

    def decode(self, fields: Mapping[str, Any], original: dict[str, Any] | None, /) -> dict[str, Any]:
        """As it is."""
        return dict(fields)


@dataclass(frozen=True)
class MessagePart:
    """Neighbouring parts of a framework's message which are one message of the API's, where each result of a tool stands alone."""

    content: Sequence[Any]
    owner: Any = None  # the framework's message; None: put in by us
    is_reply: bool = False  # a message of the model's: `content` is that message and no more


def joined(
    parts: Iterable[MessagePart], contents: Callable[[Any], Sequence[Any]], build: Callable[[Any, list[Any]], M]
) -> list[M]:
    """The framework's messages of these parts: neighbours in `build(owner, contents)`, or the owner itself where all of its contents are there.

    What we put in (`owner` is None then) stands in the message beside it; neighbours whose owners differ keep apart.
    """
    out: list[M] = []
    held: list[MessagePart] = []

    def flush() -> None:
        if not held:
            return
        owner = next((each.owner for each in reversed(held) if each.owner is not None), None)
        own = [content for each in held for content in each.content]
        whole: Sequence[Any] = () if owner is None else contents(owner)
        same = len(own) == len(whole) and all(a is b for a, b in zip(own, whole, strict=True))
        out.append(owner if same and owner is not None else build(owner, own))
        held.clear()

    for each in parts:
        if each.is_reply:
            flush()
            out.append(each.content[0])
            continue
        if held and each.owner is not None and held[-1].owner is not None and held[-1].owner is not each.owner:
            flush()
        held.append(each)
    flush()
    return out


def message_of(completion: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message of such a reply."""
    choices: list[Any] = list(completion.get("choices") or [])
    return fields_of(fields_of(choices[0]).get("message")) if choices else {}


def sign(kind: str, content: object) -> str:
    """What stands in the record for content that is no text: the same for the same content."""
    raw = content if isinstance(content, bytes) else repr(content).encode("utf-8", "surrogatepass")
    return f"[{kind} {sha256(raw).hexdigest()[:16]}]"


def function_call(call_id: str, name: str, arguments: Mapping[str, Any] | str) -> dict[str, Any]:
    """A call of a tool, as the common API says it."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def arguments_of(call: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of such a call, as an object."""
    return fields_of(json.loads(call["function"]["arguments"] or "{}"))


def histories(
    store: "str | Records", *, budget: Budget | None, shared: Histories | None = None, management: Management | None = None
) -> Histories:
    """The conversations that an adapter manages: those of a store, or ones that are shared with others."""
    if shared is not None:
        return shared
    if isinstance(store, str):
        from tenure.store.store import Store

        store = Store(store)
    return Histories(store, management or Management(budget=budget, gate="", inline_bytes=2**30))


class FrameworkTurn(Generic[M]):
    """One call of a model by a framework. Mutable: a reply may lead to another request, until `answer` gives one for the framework."""

    def __init__(
        self,
        conversations: Histories,
        api: Api,
        codec: Codec[M],
        messages: Sequence[M],
        *,
        model: str = "",
        tools: Sequence[Mapping[str, Any]] = (),
        head: Mapping[str, Any] | None = None,
        hint: str = "",
    ) -> None:
        """`tools` are the framework's, as the API declares them; where there are any, ours stand beside them and are answered here.

        A `head` is what else the request carries in front of its messages, and is only weighed.
        """
        self._api, self._codec, self._given = api, codec, list(messages)
        self._known: dict[bytes, deque[M]] = {}
        self._calls: dict[str, M] = {}
        self._names = {dump(tool) for tool in tools}
        self.exchange: Exchange | None = None
        try:
            spelled = [self._spelled(message) for message in messages]
            fields: dict[str, Any] = {"model": model} | ({"tools": list(tools)} if tools else {}) | dict(head or {})
            raw = dump(fields).encode()[:-1] + b"," + encoded(dump(api.body_key)) + b":[" + b",".join(spelled) + b"]}"
            self.exchange = conversations.exchange(api, raw, model=model, hint=hint, offers=bool(tools))
        except Exception:
            LOG.exception("the framework's own messages go out")

    @property
    def is_changed(self) -> bool:
        """Whether anything else than the framework's own messages and tools goes out."""
        return self.exchange is not None and self.exchange.is_changed

    @property
    def messages(self) -> list[M]:
        """What to send now."""
        exchange = self.exchange
        if exchange is None or not exchange.is_changed:
            return self._given
        waiting = {key: deque(held) for key, held in self._known.items()}
        out: list[M] = []
        for raw in read_body(exchange.body, self._api.body_key).messages:
            if held := waiting.get(raw):
                out.append(held.popleft())
                continue
            fields = dict(_fields(raw))
            original = next((self._calls[id_] for id_ in _call_ids(fields) if id_ in self._calls), None)
            out.append(self._codec.decode(fields, original))
        return out

    @property
    def tools(self) -> list[dict[str, Any]]:
        """Our tools, to be offered beside the framework's."""
        if self.exchange is None or not self.exchange.is_changed or not self._names:
            return []
        declared: list[dict[str, Any]] = read_body(self.exchange.body, self._api.body_key).value("tools") or []
        return [tool for tool in declared if dump(tool) not in self._names]

    def answer(self, reply: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """What the framework gets for a model's reply; None: call the model again, with `messages` as they are now."""
        if self.exchange is None:
            return reply
        raw = encoded(dump(dict(reply)))
        shown = self._guarded(partial(self.exchange.whole, raw))
        if shown is None:
            return None
        return reply if shown == raw else _fields(shown)

    def take(self, event: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """What the framework gets for an event of a streamed reply; the event itself where it stays as it is."""
        if self.exchange is None:
            return [event]
        raw = b"data: " + encoded(dump(dict(event))) + b"\n\n"
        return [
            event if shown == raw else _fields(shown[6:].strip())
            for shown in _events(self._guarded(partial(self.exchange.take, raw)))
        ]

    def end(self) -> list[Mapping[str, Any]] | None:
        """What the framework still gets at the end of a stream; None: call the model again, with `messages` as they are now."""
        if self.exchange is None:
            return []
        left = self.exchange.take(b"data: [DONE]\n\n")
        rest = self._guarded(self.exchange.end)
        return None if rest is None else [_fields(shown[6:].strip()) for shown in _events(left + rest)]

    def _guarded(self, step: Callable[[], bytes | None]) -> bytes | None:
        assert self.exchange is not None
        try:
            return step()
        except Exception:
            LOG.exception("a reply goes on unmanaged")
            return self.exchange.give_up()

    def hold(self, message: M) -> None:
        """Remember a reply of the model, so that the same object goes out again where it is not changed."""
        self._spelled(message)

    def close(self) -> None:
        """The call is over, whatever came of it."""
        if self.exchange is not None:
            self.exchange.close()

    @property
    def context(self) -> ClientContext | None:
        """The conversation, for `recall`; None where it is not managed."""
        return self.exchange.context if self.exchange is not None else None

    def _spelled(self, message: M) -> bytes:
        fields = self._codec.encode(message)
        raw = encoded(dump(fields))
        self._known.setdefault(raw, deque()).append(message)
        for id_ in _call_ids(fields):
            self._calls.setdefault(id_, message)
        return raw


class Turns(Generic[M]):
    """Calls of a model by frameworks with one hook before a call and one behind it, by what each says of which run it is. Mutable."""

    def __init__(self) -> None:
        self._turns: OrderedDict[str, FrameworkTurn[M]] = OrderedDict()

    def begin(self, key: str, turn: FrameworkTurn[M]) -> list[M]:
        """What to send in a turn of a run. Nobody waits for its reply, which may never come."""
        try:
            self._turns[key] = turn
            self._turns.move_to_end(key)
            while len(self._turns) > MOST:
                self._turns.popitem(last=False)
            return turn.messages
        finally:
            turn.close()

    def reply(self, key: str, reply: Callable[[], Mapping[str, Any]]) -> None:
        """Record the reply to a run's turn, and learn from what it used. A failure of ours is logged."""
        try:
            if (turn := self._turns.get(key)) is not None:
                turn.answer(reply())
        except Exception:
            LOG.exception("a reply is not recorded")

    def recall(self, key: str, arguments: Mapping[str, Any]) -> str:
        """What `recall` answers in a run."""
        turn = self._turns.get(key)
        return recall_text(turn.context if turn is not None else None, arguments)


def completion(message: Mapping[str, Any], *, id_: str, model: str, usage: Mapping[str, int]) -> dict[str, Any]:
    """A reply as Chat Completions has it. `usage`: tokens of "prompt" and "output", of the prompt "cache_read" and "cache_write"; empty where none was reported."""
    stop = "tool_calls" if message.get("tool_calls") else "stop"
    reply: dict[str, Any] = {
        "id": id_,
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": 0, "message": dict(message), "finish_reason": stop}],
    }
    if usage.get("prompt"):
        reply["usage"] = {
            "prompt_tokens": usage["prompt"],
            "completion_tokens": usage["output"],
            "total_tokens": usage["prompt"] + usage["output"],
            "prompt_tokens_details": {"cached_tokens": usage["cache_read"], "cache_write_tokens": usage["cache_write"]},
        }
    return reply


def _events(stream: bytes | None) -> list[bytes]:
    return [event + b"\n\n" for event in (stream or b"").split(b"\n\n") if event.startswith(b"data: {")]


def _call_ids(fields: Mapping[str, Any]) -> list[str]:
    """By what a changed message is known: the ids of its calls, or of the call that it answers."""
    role = fields.get("role") or fields.get("type")
    ids = [str(call.get("id")) for call in fields.get("tool_calls") or () if call.get("id")]
    ids += [str(fields[key]) for key in ("tool_call_id", "call_id") if fields.get(key)]
    return [f"{role}:{id_}" for id_ in ids]


def _fields(raw: bytes) -> Mapping[str, Any]:
    value = load(raw.decode("utf-8", "surrogatepass"), "message")
    if not isinstance(value, dict):
        raise InputError("message", repr(value)[:40], "a JSON object")
    return value


def recall_text(context: "ClientContext | None", arguments: Mapping[str, Any], cap: int = 10_000) -> str:
    """What `recall` answers as a framework's own tool; an error in words that the model can use."""
    if context is None:
        return "recall: nothing has left this conversation"
    try:
        given = msgspec.convert(
            {key: arguments[key] or "" for key in RECALL_SCHEMA["properties"] if key in arguments}, dict[str, str]
        )
        return context.recall(cap=cap, **given)
    except (TenureError, msgspec.ValidationError) as error:
        return f"recall: {error}"
