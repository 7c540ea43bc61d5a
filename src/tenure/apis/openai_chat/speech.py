"""How a model is spoken with over Chat Completions, and how a question is put: https://platform.openai.com/docs/api-reference/chat/create."""

from collections.abc import Mapping
from typing import Any, Final

from tenure.apis.batch import Batch
from tenure.apis.json_text import Json, dump, load
from tenure.apis.openai_chat.errors import ERRORS
from tenure.apis.openai_chat.stream import ChatStream
from tenure.apis.prefix import Opening, QuestionSettings
from tenure.apis.speech import Speech

_LIMITS: Final = ("max_completion_tokens", "max_tokens")


def is_request(opening: Opening) -> bool:
    """Whether a request that begins like this can be one of Chat Completions."""
    is_claude = opening.fields.get("system", "")[:1] in ('"', "[") or any("input_schema" in tool for tool in opening.tools)
    return "messages" in opening.fields and not is_claude


def settings(wanted: QuestionSettings) -> Mapping[str, object]:
    """The settings of a question. The key of a prefix's own output limit counts; OpenAI and servers elsewhere know it by different ones."""
    limit = wanted.limit or _LIMITS[not wanted.is_at_home]
    limit = next((key for key in _LIMITS if wanted.prefix is not None and key in wanted.prefix), limit)
    form = (
        {} if wanted.schema is None else {"response_format": {"type": "json_schema", "json_schema": json_schema(wanted.schema)}}
    )
    return {"stream": True, "stream_options": {"include_usage": True}, **form, limit: wanted.max_output}


def json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """How OpenAI's APIs are told the schema of an answer."""
    return {"name": "answer", "schema": schema, "strict": is_strict(schema)}


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


SPEECH: Final = Speech(
    sdk="openai",
    path="/chat/completions",
    stream=ChatStream,
    is_request=is_request,
    settings=settings,
    answer_settings=("response_format", "stop", "n", "logit_bias", "prediction", "modalities", "audio"),
    choices=("tool_choice", "function_call"),
    errors=ERRORS,
    batch=Batch(
        key="custom_id",
        body="body",
        beside={"method": "POST", "url": "/v1/chat/completions"},
        reply=("response", "body"),
        stop=("choices", 0, "finish_reason"),
    ),
)
