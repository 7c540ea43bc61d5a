"""How a model is spoken with over the Messages API, and how a question is put: https://platform.claude.com/docs/en/api/messages."""

from collections.abc import Mapping
from typing import Final

from tenure.apis.anthropic.errors import ERRORS
from tenure.apis.anthropic.stream import AnthropicStream
from tenure.apis.batch import Batch
from tenure.apis.json_text import load, number_of
from tenure.apis.prefix import Opening, QuestionSettings
from tenure.apis.speech import Speech


def is_request(opening: Opening) -> bool:
    """Whether a request that begins like this can be one of the Messages API."""
    if opening.fields.get("system", "")[:1] in ('"', "[") or any("input_schema" in tool for tool in opening.tools):
        return "messages" in opening.fields
    is_chat = opening.first("messages").get("role") in ("system", "developer") or any(
        "function" in tool for tool in opening.tools
    )
    return "messages" in opening.fields and not is_chat


def settings(wanted: QuestionSettings) -> Mapping[str, object]:
    """The settings of a question. Thinking that a prefix asks for comes on top of the output limit, as the API wants it."""
    thinking = load((wanted.prefix or {}).get("thinking", "null"), "prefix")
    budget = number_of(thinking, "budget_tokens") if isinstance(thinking, dict) else 0
    values = {"max_tokens": wanted.max_output + budget, "stream": True}
    return (
        values
        if wanted.schema is None
        else values | {"output_config": {"format": {"type": "json_schema", "schema": wanted.schema}}}
    )


SPEECH: Final = Speech(
    sdk="anthropic",
    path="/v1/messages",
    stream=AnthropicStream,
    is_request=is_request,
    settings=settings,
    answer_settings=("output_format", "output_config.format", "stop_sequences"),
    choices=("tool_choice",),
    errors=ERRORS,
    batch=Batch(key="custom_id", body="params", under="requests", reply=("result", "message"), stop=("stop_reason",)),
)
