"""Requests as they were sent, and how to go on behind them with a question. Pure, and byte-stable: what a provider's cache has read is kept as it was.

A request shows by itself which API it was made for, and a model of another API refuses it: sent all the same, it would be paid for and misread.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from tenure.apis.json_text import Json, Slice, array_text, dump, elements, encoded, load, members, source, with_members
from tenure.errors import InputError


class Opening(NamedTuple):
    """How a request begins: its fields as they are spelled, its tools, and the first of its messages."""

    fields: Mapping[str, str]
    tools: Sequence[Mapping[str, Json]]

    def first(self, key: str) -> Mapping[str, Json]:
        """The first of the messages at `key`."""
        found = elements(self.fields[key], f"prefix, {key}")[:1] if key in self.fields else []
        message = load(found[0].text, "prefix") if found else None
        return message if isinstance(message, dict) else {}


class QuestionSettings(Struct, frozen=True, kw_only=True):
    """What a question wants of a request's settings."""

    max_output: int  # provider tokens
    schema: Mapping[str, Any] | None = None  # of the answer, where it is asked for by a setting
    prefix: Mapping[str, str] | None = (
        None  # the fields, as they are spelled, of the request that it stands behind; None: a request of its own
    )
    limit: str = ""  # the key of the output limit, where a server is known to want another than is usual
    is_at_home: bool = True  # the request goes to the provider whose API it is, not to one that is compatible


def opening(raw: bytes) -> Opening:
    """How a request begins. Raises InputError when it is none."""
    fields = {item.key: item.text for item in members(source(raw, "prefix"), "prefix")}
    tools = load(fields["tools"], "prefix") if "tools" in fields else None
    return Opening(fields, [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else [])


def allow(apis: Sequence[str], spoken: Sequence[str]) -> None:
    """Raise InputError unless a request of one of `apis` can go to a model that speaks only `spoken`."""
    if not apis:
        raise _empty()
    if not set(apis) & set(spoken):
        raise InputError("prefix", f"a request in {' or '.join(apis)}", f"one in {' or '.join(spoken)}, which this model speaks")


def continued(raw: bytes, key: str, tail: Iterable[str], settings: Mapping[str, object]) -> bytes:
    """The request with more messages directly behind the last of those at `key`, and with these settings; None takes one out.

    Not one byte that the model reads before the new messages changes. Raises InputError when there are none before.
    """
    text = source(raw, "prefix")
    held = next(item for item in reversed(members(text, "prefix")) if item.key == key)
    values = {name: None if value is None else dump(value) for name, value in settings.items()}
    return encoded(with_members(_with_messages(text, held, tail), values))


def _with_messages(text: str, held: Slice, tail: Iterable[str]) -> str:
    start = held.end - len(held.text)
    if held.text.startswith('"') and held.key == "input":  # a string is one user message, and the model reads the same
        opened = array_text([f'{{"role":"user","content":{held.text}}}', *tail])
        return text[:start] + opened + text[held.end :]
    before = elements(held.text, f"prefix, {held.key}")
    if not before:
        raise _empty()
    at = start + before[-1].end
    return text[:at] + "".join(f",{message}" for message in tail) + text[at:]


def without(raw: bytes, paths: Iterable[str], choices: Iterable[str] = ()) -> bytes:
    """The request without the settings at `paths` ("stop", "text.format"), and without those of `choices` that leave the model no answer in words.

    What else stands in it stays byte for byte. Raises InputError when it is no request.
    """
    text = source(raw, "prefix")
    fields = {item.key: item.text for item in members(text, "prefix")}
    changed: dict[str, str | None] = {}
    for key, _, inner in (path.partition(".") for path in paths):
        if key in fields and not inner:
            changed[key] = None
        elif key in fields and isinstance(held := load(fields[key], "prefix"), dict) and inner in held:
            fields[key] = with_members(fields[key], {inner: None})
            changed[key] = fields[key] if len(held) > 1 else None
    changed |= dict.fromkeys(key for key in choices if key in fields and _forces(load(fields[key], "prefix")))
    return encoded(with_members(text, changed)) if changed else raw


def _forces(choice: Json) -> bool:
    """Whether a choice of tools leaves the model no answer in words."""
    if not isinstance(choice, dict):
        return choice in ("required", "any")
    if choice.get("type") == "allowed_tools":  # in Chat Completions inside a member of that name
        inner = choice.get("allowed_tools")
        return (inner if isinstance(inner, dict) else choice).get("mode") == "required"
    return choice.get("type") not in ("auto", "none")


def _empty() -> InputError:
    return InputError("prefix", "no messages", "a request that was rendered for this provider")
