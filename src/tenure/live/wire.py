"""A request, as the bytes that an SDK sends or as the keyword arguments of its call (an edge).

Handed to an SDK as a dictionary, a history is validated and written anew at every call, which takes longer the longer it is. As bytes, what stands
in the record is only joined. The messages come last in a body, behind them the notes of this one request, and cache markers sit before the notes: so
a request begins with the bytes of the one before it up to that one's notes, as long as nothing was committed between (markers aside).
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from operator import is_
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from tenure.apis.anthropic import Anthropic
from tenure.apis.cache_markers import life_of, mark_head, markers_of, place_markers, strip_markers
from tenure.apis.dialect import Dialect, Head
from tenure.apis.json_text import (
    clean,
    dump,
    encoded,
    load,
    source,
)
from tenure.apis.turns import alternate, join, role_of
from tenure.engine.view.piece import Piece
from tenure.engine.view.rules import Rules
from tenure.errors import InputError
from tenure.live.prompts import Prompts, legal, with_prompts
from tenure.live.rendering import Rendering
from tenure.live.sdk import decoded, is_json, plain

_RESULTS: Final = b'{"role":"user","content":[{"type":"tool_result"'  # how results of our own tools begin
_OPTIONS: Final = ("extra_body", "extra_headers", "extra_query", "timeout")  # of the SDK's call, and no fields of a body
_END: Final = b"]}"
_ESCAPED: Final = re.compile(rb"\\u[dD][89a-fA-F]")  # perhaps half of a surrogate pair


class Request(Struct, frozen=True, kw_only=True):
    """A request to be sent."""

    dialect: Dialect
    head: Mapping[str, Any]  # every field but the messages
    messages: tuple[bytes, ...]  # without the notes
    notes: bytes = b""  # the last message of the user's role: this request's own
    joined: bool = False  # `notes` is the last message with the notes in it, and stands in its place
    behind: int = 0  # messages that stand behind the notes: a system's, which goes before the model's only

    @property
    def sent(self) -> tuple[bytes, ...]:
        """All messages."""
        if not self.notes:
            return self.messages
        at = len(self.messages) - self.behind
        return (*self.messages[: at - self.joined], self.notes, *self.messages[at:])

    def arguments(self) -> dict[str, Any]:
        """The keyword arguments of the SDK's call; fields that are no JSON are as they were given."""
        key = "input" if self.dialect.name == "openai-responses" else "messages"
        return {**self.head, key: [decoded(message) for message in self.sent]}

    def plain(self) -> bytes:
        """The body as the SDK writes it, without its notes and without fields that are no JSON: what a planner is asked behind."""
        more: Any = self.head.get("extra_body")
        head = {**self.head, **(cast(Mapping[str, Any], more) if isinstance(more, Mapping) else {})}
        head = {key: value for key, value in head.items() if key not in _OPTIONS and is_json(value)}
        return self.dialect.join(Head(fields=head), self.messages)


class Wire:
    """Makes the requests of one conversation. Mutable: what was made for the one before is not made again."""

    def __init__(self, dialect: Dialect, *, ttl: str = "", markers: bool = True) -> None:
        """`ttl` is how long a marker asks the provider to keep a prefix: "" for its default, or "1h". Without `markers` none is touched."""
        self._dialect, self._ttl, self._markers = dialect, ttl, markers
        self._prompts = Prompts()
        self._rendering = Rendering(dialect)
        self._rendered: tuple[bytes, ...] = ()  # messages that went out last,
        self._fit: list[bytes] = []  # and as any provider takes them
        self._start: tuple[bytes, bytes] = (b"", b"")  # what it was made of, and the start of a body up to its first message

    def request(self, fields: Mapping[str, Any], shown: Sequence[Piece], rules: Rules, notes: str = "") -> Request:
        """The next request: these fields, and the messages of a view. Raises InputError for more cache markers than the API takes."""
        is_apart = self._dialect.name == Anthropic.name  # the prompt does not stand among the messages
        head, has_systems = dict(fields), False
        if is_apart:
            prompts, shown, has_systems = self._prompts.split(shown, stay=rules.system_messages)
            head = with_prompts(head, prompts)
        messages = tuple(self._fitting(self._rendering.of(shown), is_apart=is_apart))
        if has_systems:
            messages = tuple(legal(messages, role_of))
        if rules.alternation:
            messages = alternate(messages)
        if is_apart and self._markers and rules.cache_markers:
            head, messages = self._marked(head, messages, rules.cache_markers)
        if not notes:
            return Request(dialect=self._dialect, head=head, messages=messages)
        note = encoded(_note(self._dialect.name, notes))
        joined = rules.alternation and bool(messages) and role_of(messages[-1]) == "user"
        note = join(messages[-1], note) if joined else note
        behind = sum(1 for _ in takewhile(lambda each: role_of(each) == "system", reversed(messages))) if has_systems else 0
        return Request(dialect=self._dialect, head=head, messages=messages, notes=note, joined=joined, behind=behind)

    def body(self, request: Request) -> bytes:
        """The bytes of a request, whose messages every dialect puts last. Raises InputError for a field that is no JSON."""
        key = msgspec.json.encode(request.head, enc_hook=_json)
        if key != self._start[0]:
            self._start = key, self._dialect.join(Head(fields=request.head), ()).removesuffix(_END)
        return self._start[1] + b",".join(request.sent) + _END

    def _fitting(self, rendered: tuple[bytes, ...], *, is_apart: bool) -> list[bytes]:
        """The messages as any provider takes them, of which those that went out before are not looked at again."""
        stands = len(self._rendered)
        if len(rendered) < stands or not all(map(is_, self._rendered, rendered)):
            stands, self._fit = 0, []
        for message in rendered[stands:]:
            fit = _sendable(message)
            if is_apart and self._markers:
                fit = strip_markers(fit)  # of a record that an older version wrote, or one that was kept without our markers
            if is_apart and self._fit and _are_results(self._fit[-1], fit):
                self._fit[-1] = _joined(self._fit[-1], fit)
            else:
                self._fit.append(fit)
        self._rendered = rendered
        return self._fit

    def _marked(self, head: dict[str, Any], messages: tuple[bytes, ...], limit: int) -> tuple[dict[str, Any], tuple[bytes, ...]]:
        """With markers on the newest message, where the request before ended, and on the head unless the caller marked it himself."""
        own = markers_of(head)
        if len(own) > limit:
            raise InputError(
                "cache markers",
                f"{len(own)} in system, tools and cache_control",
                f"at most {limit}; with Context(markers=False) all of them are yours, and none is ours",
            )
        ttl = life_of(head, self._ttl)
        places = list(_places(messages))[: limit - len(own)]
        if not own and len(places) < limit:
            head = mark_head(head, ttl)
        return head, place_markers(messages, places, ttl)


def _places(messages: Sequence[bytes]) -> Iterator[int]:
    """Where markers go: the newest message, and the one that the newest reply answered, where the request before this one ended.

    A lookup does not reach far back, so both are wanted. They depend on the messages alone: a request after a restart has the same.
    """
    last = _carrier(messages, len(messages) - 1)
    if last >= 0:
        yield last
    n = len(messages) - 1
    while n >= 0 and role_of(messages[n]) != "assistant":
        n -= 1
    while n >= 0 and role_of(messages[n]) == "assistant":
        n -= 1
    before = _carrier(messages, n)
    if 0 <= before < last:
        yield before


def _carrier(messages: Sequence[bytes], n: int) -> int:
    """The nearest message up to place `n` that carries a marker; a system's message goes out as it came in. -1 for none."""
    while n >= 0 and role_of(messages[n]) == "system":
        n -= 1
    return n


def _json(value: object) -> object:
    """For an encoder that knows no such value. Raises InputError for what is no JSON."""
    found = plain(value)
    if found is value:
        raise InputError("wire", f"a field of type {type(value).__name__}", "JSON values only; `request` passes others through")
    return found


def _note(dialect: str, text: str) -> str:
    content: object = [{"type": "text", "text": text}] if dialect == Anthropic.name else text
    return dump({"role": "user", "content": content})


def _are_results(last: bytes, message: bytes) -> bool:
    """Whether results of one reply were recorded one by one: not every server joins neighbours of a role by itself."""
    return last.startswith(_RESULTS) and message.startswith(_RESULTS) and _is_results(last) and _is_results(message)


def _joined(last: bytes, message: bytes) -> bytes:
    """Results as one message."""
    return last[: -len(_END)] + b"," + message[_RESULTS.index(b"[") + 1 :]


def _is_results(message: bytes) -> bool:
    return message.endswith(_END) and b'},{"type":"text"' not in message


def _sendable(message: bytes) -> bytes:
    """What no provider takes for JSON is made such: a lone surrogate becomes U+FFFD, every time the same."""
    if not _ESCAPED.search(message) and _is_utf8(message):
        return message
    text = json.dumps(load(source(message, "message")), ensure_ascii=False, separators=(",", ":"))
    fit = clean(text)  # escapes that make a pair are one character by now
    return message if fit == text else encoded(fit)


def _is_utf8(message: bytes) -> bool:
    try:
        message.decode()
    except UnicodeDecodeError:
        return False
    return True
