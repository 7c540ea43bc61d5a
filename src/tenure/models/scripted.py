"""A model that plays a script: for demos, tests and trying things out without a key. Edge.

    {"model": "scripted", "dialect": "openai-chat", "pace_s": 0.02, "replies": [
        {"text": "I look.", "thinking": "where?", "calls": [{"name": "grep", "arguments": {"pattern": "verify"}}]},
        {"status": 529},
        {"reply": {"text": "Found."}, "how": "cut", "after": 2}]}

or one such reply a line, or the same in YAML. It speaks a provider's real events through the same assemblies as the SDKs, and bills a strict prefix cache, so that what a
session shows with it is what it would show with a model that said the same.
"""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tenure.apis import APIS
from tenure.apis.json_text import Json, dump, load, object_of
from tenure.apis.reply import Delta, ReplyStream, WholeReply
from tenure.apis.rules import rules_for
from tenure.engine.meter.figures import first_line
from tenure.errors import Failure, InputError, ModelError
from tenure.extras import NotInstalled
from tenure.logs.places.files import read_file
from tenure.models.failures import Trouble, refusal, sentence, trouble_in
from tenure.testing.prefix import PrefixCache
from tenure.testing.script import Broken, Fault, Playing, Reply, Script, Turn, events, output_text, wire, wire_error

LARGEST: Final = 64 * 2**20  # bytes of a script
MOST_VALUES: Final = 1_000_000  # of a YAML script, where each alias stands for all that it names
CHUNK: Final = 24  # characters that come at once, where there is a pace

T = TypeVar("T", bound=Struct)


def read_script(path: Path) -> Script:
    """The script in a file: YAML by its name (`*.yaml`, `*.yml`), else JSON. Raises InputError for what is none."""
    where = str(path)
    try:
        text = read_file(path, LARGEST).decode()
    except UnicodeError as error:
        raise InputError(where, f"cannot be read ({error})") from error
    return script_of(_yaml(text, where), where) if path.suffix in (".yaml", ".yml") else parse_script(text, where)


def read_yaml(path: Path) -> dict[str, Any]:
    """The object in a YAML file. Raises InputError for what is none."""
    return object_of(_yaml(path.read_text("utf-8"), str(path)), str(path))


def parse_script(text: str, where: str = "script") -> Script:
    """The script that a JSON text is: one object with `replies`, or one reply a line. Raises InputError naming the reply that is none."""
    try:
        value = load(text, where)
    except InputError:
        value = [load(line, f"{where}:{n}") for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    return script_of(value, where)


def script_of(value: Json, where: str = "script") -> Script:
    """The script that a decoded value is: an object with `replies`, a list of replies, or one reply. Raises InputError naming the reply that is none."""
    settings = value if isinstance(value, dict) and "replies" in value else {}
    replies = value if isinstance(value, list) else settings.get("replies", [value])
    if not isinstance(replies, list):
        raise InputError(where, "no list of replies", '{"replies": […]}, or one reply a line')
    playing = _read(Playing, settings, where)
    if playing.dialect not in APIS:
        raise InputError(where, f"dialect {playing.dialect!r}", " or ".join(APIS))
    return Script(replies=tuple(_turn(each, f"{where}: reply {n}") for n, each in enumerate(replies, 1)), playing=playing)


def _yaml(text: str, where: str) -> Json:
    try:
        import yaml
    except ImportError as error:
        raise NotInstalled("yaml") from error
    try:
        value = yaml.safe_load(text)
        unfolded = _size(value, {})
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(where, f"no YAML ({first_line(str(error), 200)})") from error
    if unfolded > MOST_VALUES:
        raise InputError(
            where, f"aliases (`*name`) that unfold to more than {MOST_VALUES:,} values", "a script that is written out"
        )
    return value


def _size(value: Json, known: dict[int, float]) -> float:
    """How many values a value holds, each alias counted as often as it stands there; infinite for one that holds itself."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        known[id(value)] = inf  # until it is known
        known[id(value)] = 1 + sum(_size(each, known) for each in (value.values() if isinstance(value, dict) else value))
    return known[id(value)]


def _turn(value: Any, where: str) -> Turn:
    fields = object_of(value, where)
    if "status" in fields:
        return _read(Fault, fields, where)
    if "reply" in fields:
        inner = _turn(fields["reply"], where)
        if not isinstance(inner, Reply):
            raise InputError(where, "a fault in a broken reply", "a reply with text, thinking or calls")
        return Broken(reply=inner, how=_read(_How, fields, where).how, after=_read(_How, fields, where).after)
    calls = fields.get("calls")
    if isinstance(calls, list):
        fields = {**fields, "calls": [_call(each, where) for each in calls]}
    return _read(Reply, fields, where)


class _How(Struct, frozen=True, kw_only=True):
    how: Literal["cut", "end", "malformed", "error", "stall"] = "cut"
    after: int = 3


def _call(value: Any, where: str) -> Any:
    """A call's arguments may stand there as an object."""
    fields = object_of(value, where)
    given = fields.get("arguments")
    return fields if given is None or isinstance(given, str) else {**fields, "arguments": dump(given)}


def _read(kind: type[T], value: Any, where: str) -> T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InputError(where, str(error).replace("`", "")) from error


class ScriptedSpeaker:
    """Plays the replies of a script in turn. Mutable: it knows how far it is."""

    def __init__(
        self,
        script: Script,
        *,
        done: int = 0,
        tokens: Callable[[str], int] | None = None,
        now: Callable[[], float] = time.monotonic,
        wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`done` replies were recorded by an earlier process: it goes on behind them. `now` ages the cache, in seconds."""
        self.name, self.dialect = script.playing.model, script.playing.dialect
        self._script, self._now, self._wait = script, now, wait
        self._next = _behind(script.replies, done)
        self._count = tokens
        self._cache: PrefixCache | None = None
        self._rules = rules_for("", self.name, self.dialect)

    async def speak(self, body: bytes) -> AsyncGenerator[Delta | WholeReply, None]:
        """The next reply of the script. Raises ModelError where it has a fault, and when it is over."""
        n, turn = self._next, self.turn(body)
        self._next += 1
        if isinstance(turn, Fault):
            found = refusal(turn.status, turn.raw or wire_error(turn, self.dialect, n))
            raise self._failed(replace(found, retry_after_s=turn.retry_after_s))
        request = dict(object_of(load(body.decode("utf-8", "surrogatepass"), "request"), "request"))
        reply = turn.reply if isinstance(turn, Broken) else turn
        usage = self._billing().usage(request, self._rules, self._now(), self._tokens(output_text(reply)))
        response = wire(reply, n, request, self._rules, usage)
        assembly: ReplyStream = APIS[self.dialect].reply()
        for place, event in enumerate(_decoded(events(response, self.dialect, include_usage=True))):
            if isinstance(turn, Broken) and place == turn.after:
                await self._break(turn, assembly)
            for delta in assembly.take(event):
                async for piece in self._paced(delta):
                    yield piece
        whole = assembly.whole()
        assert whole is not None, "a scripted reply has an end"
        yield whole

    def turn(self, body: bytes) -> Turn:  # noqa: ARG002 - for models that go by what a request shows
        """What comes of a request: the next reply of the script, whatever it asks."""
        if self._next >= len(self._script.replies):
            raise self._failed(Trouble(kind=Failure.NOT_ACCEPTED, detail=f"the script has no more than {self._next} replies"))
        return self._script.replies[self._next]

    async def warm(self) -> None:
        """Nothing to load."""

    async def close(self) -> None:
        """Nothing to close."""

    def _billing(self) -> PrefixCache:
        if self._cache is None:
            self._cache = PrefixCache(lru_cache(maxsize=8192)(self._tokens))
        return self._cache

    def _tokens(self, text: str) -> int:
        if self._count is None:
            from tenure.engine.meter.tokens import o200k

            self._count = o200k()
        return self._count(text)

    async def _paced(self, delta: Delta) -> AsyncGenerator[Delta, None]:
        pace_s, text = self._script.playing.pace_s, delta.text
        if pace_s <= 0 or not text:
            yield delta
            return
        for start in range(0, len(text), CHUNK):
            await self._wait(pace_s)
            yield replace(delta, text=text[start : start + CHUNK])

    async def _break(self, turn: Broken, assembly: ReplyStream) -> None:
        match turn.how:
            case "stall":
                await asyncio.Event().wait()  # until whoever listens has had enough
            case "error":
                error = wire_error(Fault(status=529), self.dialect, 0)["error"]
                raise self._failed(trouble_in(error, begun=assembly.begun), assembly)
            case "malformed":
                raise self._failed(Trouble(kind=Failure.BAD_REPLY, detail="an event is no JSON"), assembly)
            case "cut" | "end":
                kind = Failure.CUT_SHORT if assembly.begun else Failure.UNAVAILABLE
                raise self._failed(Trouble(kind=kind, detail="the stream broke off"), assembly)

    def _failed(self, failure: Trouble, assembly: ReplyStream | None = None) -> ModelError:
        return ModelError(
            failure.kind,
            sentence(self.name, failure),
            said=assembly.text if assembly is not None else "",
            retry_after_s=failure.retry_after_s,
            overflow=failure.overflow,
        )


def _behind(replies: tuple[Turn, ...], done: int) -> int:
    """The place behind the first `done` replies that came to an end, and the troubles before them."""
    if not done:
        return 0
    for place, turn in enumerate(replies):
        done -= isinstance(turn, Reply)
        if not done:
            return place + 1
    return len(replies)


_DATA: Final = re.compile(rb"^data: (.*)$", re.MULTILINE)


def _decoded(stream: Iterator[bytes]) -> Iterator[object]:
    """The data of server-sent events."""
    for event in stream:
        found = _DATA.search(event)
        if found is not None and found[1] != b"[DONE]":
            yield load(found[1].decode("utf-8", "surrogatepass"))
