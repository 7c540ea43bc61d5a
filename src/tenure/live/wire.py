"""A request as the bytes that an SDK sends (an edge). Promise: nothing costs more than it saves: what was sent once goes out the same again.

Handed to an SDK as a dictionary, a history is validated and written anew at every call, which takes longer the longer it is. Here what stands in
the record is only joined. The messages come last in a body, behind them the notes of this one request, and cache markers sit before the notes: so a
request begins with the bytes of the one before it up to that one's notes, as long as nothing was committed between (markers aside).
"""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from operator import eq, is_
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from tenure.dialects.anthropic import Anthropic, render_system
from tenure.dialects.cache_markers import place_markers
from tenure.dialects.dialect import Dialect, Head, Piece
from tenure.dialects.json_text import (
    array_text,
    clean,
    dump,
    elements,
    encoded,
    load,
    members,
    object_of,
    source,
    value_of,
    with_members,
)
from tenure.live.rendering import Rendering
from tenure.live.sdk import plain
from tenure.record.entry import Draft, Role
from tenure.rules.rules import Rules

_RESULTS: Final = b'{"role":"user","content":[{"type":"tool_result"'  # how results of our own tools begin
_END: Final = b"]}"
_ESCAPED: Final = re.compile(rb"\\u[dD][89a-fA-F]")  # perhaps half of a surrogate pair


class Wire:
    """Makes the bodies of one conversation. Mutable: it knows the messages that went out last, so that their marker is placed again."""

    def __init__(self, dialect: Dialect, rules: Rules, *, ttl: str = "") -> None:
        """`ttl` is how long a marker asks the provider to keep a prefix: "" for its default, or "1h"."""
        self._dialect, self._rules, self._ttl = dialect, rules, ttl
        self._rendering = Rendering(dialect)
        self._rendered: tuple[bytes, ...] = ()  # messages that went out last,
        self._fit: list[bytes] = []  # and as any provider takes them
        self._before: tuple[bytes, ...] = ()
        self._head: tuple[bytes, bytes] = (b"", b"")  # what it was made of, and the start of a body up to its first message
        self.plain = b""  # the newest body without notes: what a planner is asked behind

    def body(self, fields: Mapping[str, Any], shown: Sequence[Piece], notes: str = "") -> bytes:
        """The body of the next request: these fields, and the messages of a view."""
        is_apart = self._dialect.name == Anthropic.name  # the prompt does not stand among the messages
        prompts = tuple(piece for piece in shown if is_apart and piece.role is Role.SYSTEM)
        rendered = self._rendering.of([piece for piece in shown if not (is_apart and piece.role is Role.SYSTEM)])
        messages = tuple(self._fitting(rendered, joins=is_apart))
        is_marked = is_apart and self._rules.cache_markers > 0
        start = self._start(fields, prompts, is_marked=is_marked)
        marked = self._marked(messages) if is_marked else messages
        self._before = messages
        self.plain = _body(start, marked)
        return _body(start, self._noted(marked, notes)) if notes else self.plain

    def _fitting(self, rendered: tuple[bytes, ...], *, joins: bool) -> list[bytes]:
        """The messages as any provider takes them, of which those that went out before are not looked at again."""
        stands = len(self._rendered)
        if len(rendered) < stands or not all(map(is_, self._rendered, rendered)):
            stands, self._fit = 0, []
        for message in rendered[stands:]:
            fit = _sendable(message)
            if joins and self._fit and _are_results(self._fit[-1], fit):
                self._fit[-1] = _joined(self._fit[-1], fit)
            else:
                self._fit.append(fit)
        self._rendered = rendered
        return self._fit

    def _start(self, fields: Mapping[str, Any], prompts: Sequence[Piece], *, is_marked: bool) -> bytes:
        """Everything before the first message."""
        system = tuple(Draft(role=each.role, blocks=each.blocks, dialect=each.dialect, payload=each.payload) for each in prompts)
        key = msgspec.json.encode([fields, [str(each) for each in system]], enc_hook=plain)
        if key != self._head[0]:
            head = Head(system=_marked_system(system, self._ttl) if is_marked else system, fields=fields)
            self._head = key, self._dialect.join(head, ()).removesuffix(_END)
        return self._head[1]

    def _marked(self, messages: tuple[bytes, ...]) -> tuple[bytes, ...]:
        """With a marker on the newest message, and on the newest of those that went out before: a lookup does not reach far back."""
        standing = sum(takewhile(bool, map(eq, self._before, messages)))
        places = {place for place in (standing - 1, len(messages) - 1) if place >= 0}
        return place_markers(messages, sorted(places), self._ttl)

    def _noted(self, messages: tuple[bytes, ...], notes: str) -> tuple[bytes, ...]:
        """With the notes as the last words of a user; where turns must alternate they join those of the last."""
        note = encoded(_note(self._dialect.name, notes))
        if self._rules.alternation and messages and _is_users(messages[-1]):
            return (*messages[:-1], _beside(messages[-1], notes))
        return (*messages, note)


def _body(start: bytes, messages: Sequence[bytes]) -> bytes:
    """A body, whose messages every dialect puts last."""
    return start + b",".join(messages) + _END


def _note(dialect: str, text: str) -> str:
    content: object = [{"type": "text", "text": text}] if dialect == Anthropic.name else text
    return dump({"role": "user", "content": content})


def _is_users(message: bytes) -> bool:
    return object_of(load(source(message, "message")), "message").get("role") == "user"


def _beside(message: bytes, notes: str) -> bytes:
    text = source(message, "message")
    content = value_of(members(text), "content") or '""'
    if content.startswith("["):
        parts = [item.text for item in elements(content)]
        return encoded(with_members(text, {"content": array_text([*parts, dump({"type": "text", "text": notes})])}))
    return encoded(with_members(text, {"content": dump(f"{load(content)}\n\n{notes}")}))


def _marked_system(prompts: tuple[Draft, ...], ttl: str) -> tuple[Draft, ...]:
    """The prompts as one, whose last part carries a marker."""
    if not prompts:
        return ()
    text = render_system(prompts)
    parts = [item.text for item in elements(text if text.startswith("[") else array_text([f'{{"type":"text","text":{text}}}']))]
    if not parts:
        return ()
    marker = dump({"type": "ephemeral", "ttl": ttl} if ttl else {"type": "ephemeral"})
    last = with_members(parts[-1], {"cache_control": marker})
    return (replace(prompts[0], dialect=Anthropic.name, payload=encoded(array_text([*parts[:-1], last]))),)


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
