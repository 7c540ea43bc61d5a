"""A question as the body of a provider's request. Pure, and byte-stable: what a cache has read is sent as it was.

https://platform.openai.com/docs/api-reference/chat/create https://platform.claude.com/docs/en/api/messages
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from tenure.dialects.anthropic import Anthropic
from tenure.dialects.dialect import Dialect, Head, Piece
from tenure.dialects.json_text import (
    Json,
    dump,
    elements,
    encoded,
    load,
    members,
    number_of,
    source,
    value_of,
    with_members,
)
from tenure.dialects.openai_chat import OpenAIChat
from tenure.errors import InputError
from tenure.models.question import Question
from tenure.record.entry import NEUTRAL, Draft, Origin, Role, Text
from tenure.rules.tables import rules_for
from tenure.view.request import alternating

Limit = Literal["max_completion_tokens", "max_tokens"]
Fields = Mapping[str, Any]

SCHEMA_IN_WORDS: Final = (
    "Answer with one JSON value and nothing else: no words around it, no code fence. This JSON schema describes it:\n"
)


def chat_body(question: Question, model: str, *, limit: Limit = "max_completion_tokens", structured: bool = True) -> bytes:
    """The body of `POST /chat/completions`. `limit` is the key by which the provider knows the output limit; a prefix's own counts.

    With `structured` a schema is given as a setting, without it in words. Raises InputError.
    """
    settings: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
    if question.prefix:
        known = _fields(question.prefix)
        own = next((key for key in ("max_completion_tokens", "max_tokens") if key in known), limit)
        return _continued(question, model, OpenAIChat(), known, settings | {own: question.max_output})
    if question.schema is not None and structured:
        form = {"name": "answer", "schema": question.schema, "strict": is_strict(question.schema)}
        settings["response_format"] = {"type": "json_schema", "json_schema": form}
    return _body(question, model, OpenAIChat(), settings | {limit: question.max_output}, in_words=not structured)


def messages_body(question: Question, model: str, *, structured: bool = True) -> bytes:
    """The body of `POST /v1/messages`. Thinking that a prefix asks for comes on top of the output limit, as the API wants it.

    With `structured` a schema is given as a setting, without it in words. Raises InputError.
    """
    settings: dict[str, Any] = {"max_tokens": question.max_output, "stream": True}
    if question.prefix:
        known = _fields(question.prefix)
        thinking = known.get("thinking")
        if isinstance(thinking, dict):
            settings["max_tokens"] += number_of(thinking, "budget_tokens")
        return _continued(question, model, Anthropic(), known, settings)
    if question.schema is not None and structured:
        settings["output_config"] = {"format": {"type": "json_schema", "schema": question.schema}}
    return _body(question, model, Anthropic(), settings, in_words=not structured)


def in_words(question: Question) -> str:
    """The question as one text, for whatever takes no more than that."""
    texts = [question.system, *(block.text for draft in _drafts(question, in_words=True) for block in draft.blocks)]
    return "\n\n".join(text for text in texts if text)


def is_strict(schema: Mapping[str, Any]) -> bool:
    """Whether OpenAI would take the schema as a strict one: objects are closed, and all their properties required.

    https://platform.openai.com/docs/guides/structured-outputs
    """
    waiting = [load(dump(schema))]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            if not _is_closed(value):
                return False
            waiting += value.values()
    return True


def _is_closed(schema: Mapping[str, Json]) -> bool:
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict):
        return schema.get("type") != "object"
    names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    return schema.get("additionalProperties") is False and not set(properties) - set(names)


def _body(question: Question, model: str, dialect: Dialect, settings: Fields, *, in_words: bool) -> bytes:
    prompt = (Draft(role=Role.SYSTEM, blocks=(Text(text=question.system, origin=Origin.HARNESS),)),) if question.system else ()
    messages = _messages(_drafts(question, in_words=in_words), model, dialect)
    return dialect.join(Head(system=prompt, fields={"model": model, **settings}), messages)


def _continued(question: Question, model: str, dialect: Dialect, known: Mapping[str, Json], settings: Fields) -> bytes:
    if known.get("model", model) != model:
        raise InputError("prefix", f"model {known['model']!r}", f"{model!r}: a cache belongs to one model")
    tail = _messages(_drafts(question, in_words=True), model, dialect)
    text = _with_messages(source(question.prefix, "prefix"), [source(message, "message") for message in tail])
    named = {} if "model" in known else {"model": model}
    return encoded(with_members(text, {key: dump(value) for key, value in {**named, **settings}.items()}))


def _with_messages(prefix: str, tail: Sequence[str]) -> str:
    """The request with more messages directly behind its last; not one byte before them changes."""
    held = next((item for item in reversed(members(prefix, "prefix")) if item.key == "messages"), None)
    spoken = elements(held.text, "prefix, messages") if held else []
    if held is None or not spoken:
        raise InputError("prefix", "no messages", "a request that was rendered for this provider")
    at = held.end - len(held.text) + spoken[-1].end
    return prefix[:at] + "".join(f",{message}" for message in tail) + prefix[at:]


def _messages(drafts: Sequence[Draft], model: str, dialect: Dialect) -> tuple[bytes, ...]:
    shown = [_piece(draft) for draft in drafts]
    if rules_for("", model, dialect.name).alternation:
        shown = alternating(shown)
    messages = dialect.render(shown)
    if not messages:
        raise InputError("question", "messages without a word", "something to ask")
    return messages


def _drafts(question: Question, *, in_words: bool) -> list[Draft]:
    asked = [_draft(message) if isinstance(message, str) else message for message in question.messages]
    return asked + ([_draft(SCHEMA_IN_WORDS + dump(question.schema))] if in_words and question.schema is not None else [])


def _draft(text: str) -> Draft:
    return Draft(role=Role.USER, blocks=(Text(text=text, origin=Origin.HARNESS),))


def _piece(draft: Draft) -> Piece:
    if draft.dialect == NEUTRAL:
        return Piece(role=draft.role, blocks=draft.blocks)
    kept = tuple(range(len(draft.blocks)))
    return Piece(role=draft.role, blocks=draft.blocks, dialect=draft.dialect, payload=draft.payload, kept=kept)


def _fields(prefix: bytes) -> dict[str, Json]:
    """A request's settings; its messages are not decoded."""
    items = members(source(prefix, "prefix"), "prefix")
    settings = ("model", "thinking", "max_tokens", "max_completion_tokens")
    return {key: load(value) for key in settings if (value := value_of(items, key)) is not None}
