"""A question as the body of a provider's request. Pure, and byte-stable: what a cache has read is sent as it was.

https://platform.openai.com/docs/api-reference/chat/create https://platform.openai.com/docs/api-reference/responses/create
https://platform.claude.com/docs/en/api/messages
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from tenure.apis.anthropic import Anthropic
from tenure.apis.api import Api, Head
from tenure.apis.json_text import Json, dump, load, number_of, source
from tenure.apis.openai_chat import OpenAIChat
from tenure.apis.openai_responses import OpenAIResponses
from tenure.apis.rules import rules_for
from tenure.apis.turns import alternate
from tenure.engine.record.entry import NEUTRAL, Draft, Origin, Role, Text
from tenure.engine.view.piece import Piece
from tenure.errors import InputError
from tenure.models.prefix import Prefix, continued, read_prefix
from tenure.models.question import Question

Limit = Literal["max_completion_tokens", "max_tokens"]
Fields = Mapping[str, Any]

# "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16": github.com/earendil-works/pi issue 6265
LEAST_OUTPUT: Final = 16

# What makes the Responses API go on when nobody listens any more; a question is over when it is cancelled.
DETACHED: Final = ("background", "background_options")

SCHEMA_IN_WORDS: Final = (
    "Answer with one JSON value and nothing else: no words around it, no code fence. This JSON schema describes it:\n"
)


def chat_body(question: Question, model: str, *, limit: Limit = "max_completion_tokens", structured: bool = True) -> bytes:
    """The body of `POST /chat/completions`. `limit` is the key by which the provider knows the output limit; a prefix's own counts.

    With `structured` a schema is given as a setting, without it in words. Raises InputError.
    """
    settings: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
    if question.prefix:
        prefix = read_prefix(question.prefix, OpenAIChat.name)
        own = next((key for key in ("max_completion_tokens", "max_tokens") if key in prefix.settings), limit)
        return _continued(question, model, OpenAIChat(), prefix, settings | {own: question.max_output})
    if question.schema is not None and structured:
        settings["response_format"] = {"type": "json_schema", "json_schema": _form(question.schema)}
    return _body(question, model, OpenAIChat(), settings | {limit: question.max_output}, in_words=not structured)


def responses_body(question: Question, model: str, *, structured: bool = True, forbid_calls: bool = False) -> bytes:
    """The body of `POST /responses`. Without a prefix nothing is stored at the provider; with one, what is stored is as the prefix has it.

    With `structured` a schema is given as a setting, without it in words. `forbid_calls` says that a prefix's tools are not to be called,
    hosted ones included, which act by themselves: for a provider whose cache is read all the same. Raises InputError.
    """
    settings: dict[str, Any] = {"stream": True, "max_output_tokens": max(question.max_output, LEAST_OUTPUT)}
    if question.prefix:
        prefix = read_prefix(question.prefix, OpenAIResponses.name)
        if prefix.settings.get("conversation"):
            raise InputError(
                "prefix",
                "a conversation that the provider keeps, and would write this question into",
                "its messages in the request",
            )
        if forbid_calls and prefix.settings.get("tools"):
            settings["tool_choice"] = "none"
        return _continued(question, model, OpenAIResponses(), prefix, settings, DETACHED)
    settings["store"] = False
    if question.schema is not None and structured:
        settings["text"] = {"format": {"type": "json_schema", **_form(question.schema)}}
    return _body(question, model, OpenAIResponses(), settings, in_words=not structured)


def messages_body(question: Question, model: str, *, structured: bool = True) -> bytes:
    """The body of `POST /v1/messages`. Thinking that a prefix asks for comes on top of the output limit, as the API wants it.

    With `structured` a schema is given as a setting, without it in words. Raises InputError.
    """
    settings: dict[str, Any] = {"max_tokens": question.max_output, "stream": True}
    if question.prefix:
        prefix = read_prefix(question.prefix, Anthropic.name)
        thinking = prefix.settings.get("thinking")
        if isinstance(thinking, dict):
            settings["max_tokens"] += number_of(thinking, "budget_tokens")
        return _continued(question, model, Anthropic(), prefix, settings)
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


def _body(question: Question, model: str, dialect: Api, settings: Fields, *, in_words: bool) -> bytes:
    prompt = (Draft(role=Role.SYSTEM, blocks=(Text(text=question.system, origin=Origin.HARNESS),)),) if question.system else ()
    messages = _messages(_drafts(question, in_words=in_words), model, dialect)
    return dialect.join(Head(system=prompt, fields={"model": model, **settings}), messages)


def _continued(
    question: Question, model: str, dialect: Api, prefix: Prefix, settings: Fields, dropped: Sequence[str] = ()
) -> bytes:
    named = prefix.settings.get("model", model)
    if named != model:
        raise InputError("prefix", f"model {named!r}", f"{model!r}: a cache belongs to one model")
    tail = _messages(_drafts(question, in_words=True), model, dialect)
    own = {} if "model" in prefix.settings else {"model": model}
    return continued(prefix, [source(message, "message") for message in tail], {**own, **settings}, dropped)


def _form(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": "answer", "schema": schema, "strict": is_strict(schema)}


def _messages(drafts: Sequence[Draft], model: str, dialect: Api) -> tuple[bytes, ...]:
    messages = dialect.render([_piece(draft) for draft in drafts])
    if rules_for("", model, dialect.name).alternation:
        messages = alternate(messages)
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
