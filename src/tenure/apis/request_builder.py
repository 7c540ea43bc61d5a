"""Requests, as the bytes that an SDK sends or as the keyword arguments of its call.

Handed to an SDK as a dictionary, a history is validated and written anew at every call, which takes longer the longer it is. As bytes, what stands
in the record is only joined. The messages come last in a body, behind them the notes of this one request, and cache markers sit before the notes: so
a request begins with the bytes of the one before it up to that one's notes, as long as nothing was committed between (markers aside).
"""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from tenure.apis.api import Api, Head
from tenure.apis.json_text import clean, encoded, load, source
from tenure.apis.rendering import Rendering, begins_with
from tenure.apis.sdk import decoded, is_json, plain
from tenure.engine.record.entry import Role
from tenure.engine.view.piece import Piece
from tenure.engine.view.rules import Rules
from tenure.errors import InputError

_OPTIONS: Final = ("extra_body", "extra_headers", "extra_query", "timeout")  # of the SDK's call, and no fields of a body
_END: Final = b"]}"
LARGE: Final = 2**13  # bytes of a message that is faster copied than read
_ESCAPED: Final = re.compile(rb"\\u[dD][89a-fA-F]")  # perhaps half of a surrogate pair


class Request(Struct, frozen=True, kw_only=True):
    """A request to be sent."""

    api: Api
    head: Mapping[str, Any]  # every field but the messages
    messages: Sequence[bytes]  # without the notes
    sent: Sequence[bytes]  # with them
    values: "Values"

    def arguments(self) -> dict[str, Any]:
        """The keyword arguments of the SDK's call; fields that are no JSON are as they were given."""
        return self.api.arguments(self.head, self.values.of(self.sent))

    def plain(self) -> bytes:
        """The body as the SDK writes it, without its notes and without fields that are no JSON: what a planner is asked behind."""
        more: Any = self.head.get("extra_body")
        head = {**self.head, **(cast(Mapping[str, Any], more) if isinstance(more, Mapping) else {})}
        head = {key: value for key, value in head.items() if key not in _OPTIONS and is_json(value)}
        return self.api.join(Head(fields=head), self.messages)


class Values:
    """Messages as dictionaries, new ones for each request: the caller may change them. Mutable: it keeps the large ones that were sent last.

    A message of a few texts is read faster than it is copied; of a large one the copy shares the texts.
    """

    def __init__(self) -> None:
        self._large: dict[bytes, Any] = {}

    def of(self, messages: Sequence[bytes]) -> list[Any]:
        """What the messages say, in order."""
        known = self._large
        self._large = {each: known[each] if each in known else decoded(each) for each in messages if len(each) >= LARGE}
        return [_copy(self._large[each]) if len(each) >= LARGE else decoded(each) for each in messages]


class Builder:
    """Builds the requests of one conversation. Mutable: what was made for the one before is not made again."""

    def __init__(self, api: Api, *, ttl: str = "", markers: bool = True) -> None:
        """`ttl` is how long a marker asks the provider to keep a prefix: "" for its default, or "1h". Without `markers` none is touched."""
        self._api, self._ttl, self._markers = api, ttl, markers
        self._reworded: dict[Piece, Piece] = {}
        self._shown: tuple[Piece, ...] = ()  # pieces of the request before,
        self._systems: list[int] = []  # and the places of those of a system
        self._rendering = Rendering(api)
        self._values = Values()
        self._rendered: tuple[bytes, ...] = ()  # messages that went out last,
        self._fit: list[bytes] = []  # and as any provider takes them
        self._stem: tuple[tuple[Piece, ...], int] = (), 0  # pieces in front of what was edited last, and their messages
        self._start: tuple[bytes, bytes] = (b"", b"")  # a head, and the start of its body up to its first message

    def request(self, fields: Mapping[str, Any], shown: Sequence[Piece], rules: Rules, notes: str = "", stem: int = 0) -> Request:
        """The next request: these fields, and the messages of a view, of which the newest edit left the first `stem` pieces as they were.

        Raises InputError for more cache markers than the API takes.
        """
        api = self._api
        systems = self._places_of_systems(tuple(shown))
        prompts, pieces = api.prompts(shown, rules, self._reworded, systems)
        head = api.with_prompts(fields, prompts)
        messages = tuple(self._fitting(self._rendering.of(pieces)))
        among = [shown[n] for n in systems] if len(systems) > len(prompts) else ()
        messages = api.ordered(messages, among, rules)
        if self._markers:
            stays = self._stem_of(messages, pieces[: max(0, stem - len(prompts))])
            head, messages = api.marked(head, messages, rules, self._ttl, stays)
        sent = api.noted(messages, notes, rules) if notes else messages
        return Request(api=api, head=head, messages=messages, sent=sent, values=self._values)

    def body(self, request: Request) -> bytes:
        """The bytes of a request, whose messages every API puts last. Raises InputError for a field that is no JSON."""
        key = msgspec.json.encode(request.head, enc_hook=_json)
        if key != self._start[0]:
            self._start = key, self._api.join(Head(fields=request.head), ()).removesuffix(_END)
        return self._start[1] + b",".join(request.sent) + _END

    def _stem_of(self, messages: Sequence[bytes], pieces: Sequence[Piece]) -> int:
        """How many of the messages are those that `pieces` make; looked up anew only where the pieces are others."""
        known, n = self._stem
        if len(known) != len(pieces) or not begins_with(pieces, known):
            alone = Rendering(self._api).of(pieces)
            n = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(messages, alone, strict=False)))
            self._stem = tuple(pieces), n
        return n

    def _places_of_systems(self, shown: tuple[Piece, ...]) -> Sequence[int]:
        """Where pieces of a system stand; those that were there before are not looked at again."""
        stands = len(self._shown)
        if not begins_with(shown, self._shown):
            stands, self._systems = 0, []
        self._systems += [n for n, piece in enumerate(shown[stands:], stands) if piece.role is Role.SYSTEM]
        self._shown = shown
        return self._systems

    def _fitting(self, rendered: tuple[bytes, ...]) -> list[bytes]:
        """The messages as any provider takes them, of which those that went out before are not looked at again."""
        stands = len(self._rendered)
        if not begins_with(rendered, self._rendered):
            stands, self._fit = 0, []
        for message in rendered[stands:]:
            fit = _sendable(message)
            if self._markers:
                fit = self._api.unmarked(fit)  # of a record that an older version wrote, or one that was kept without our markers
            merged = self._api.merged(self._fit[-1], fit) if self._fit else None
            if merged is not None:
                self._fit[-1] = merged
            else:
                self._fit.append(fit)
        self._rendered = rendered
        return self._fit


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(each) for key, each in cast(dict[str, Any], value).items()}
    return [_copy(each) for each in cast(list[Any], value)] if isinstance(value, list) else value


def _json(value: object) -> object:
    """For an encoder that knows no such value. Raises InputError for what is no JSON."""
    found = plain(value)
    if found is value:
        raise InputError("wire", f"a field of type {type(value).__name__}", "JSON values only; `request` passes others through")
    return found


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
