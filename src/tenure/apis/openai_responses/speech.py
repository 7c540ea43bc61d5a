"""How a model is spoken with over the Responses API, and how a question is put: https://platform.openai.com/docs/api-reference/responses/create."""

from collections.abc import Mapping
from typing import Final

from tenure.apis.batch import Batch
from tenure.apis.json_text import load
from tenure.apis.openai_chat.speech import json_schema
from tenure.apis.openai_responses.errors import ERRORS
from tenure.apis.openai_responses.stream import ResponsesStream
from tenure.apis.prefix import Opening, QuestionSettings
from tenure.apis.speech import Speech
from tenure.errors import InputError

# "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16": github.com/earendil-works/pi issue 6265
LEAST_OUTPUT: Final = 16

# What makes the API go on when nobody listens any more; a question is over when it is cancelled.
DETACHED: Final = ("background", "background_options")


def is_request(opening: Opening) -> bool:
    """Whether a request that begins like this can be one of the Responses API."""
    return "input" in opening.fields and "messages" not in opening.fields


def settings(wanted: QuestionSettings) -> Mapping[str, object]:
    """The settings of a question. Without a prefix nothing is stored at the provider; with one, what is stored is as the prefix has it.

    At home a prefix's tools are not to be called, hosted ones included, which act by themselves. OpenAI's own list of what makes a cache miss
    (`prompt_cache_diagnostics`) has tools, format and effort, and not `tool_choice`; servers elsewhere render no tools at all under "none" (SGLang:
    github.com/NousResearch/hermes-agent pull 110480). Raises InputError for a conversation that the provider keeps.
    """
    values: dict[str, object] = {"stream": True, "max_output_tokens": max(wanted.max_output, LEAST_OUTPUT)}
    if wanted.prefix is None:
        values["store"] = False
        return (
            values
            if wanted.schema is None
            else values | {"text": {"format": {"type": "json_schema", **json_schema(wanted.schema)}}}
        )
    held = {key: load(wanted.prefix[key], "prefix") for key in ("conversation", "tools") if key in wanted.prefix}
    if held.get("conversation"):
        raise InputError(
            "prefix", "a conversation that the provider keeps, and would write this question into", "its messages in the request"
        )
    choice = {"tool_choice": "none"} if wanted.is_at_home and held.get("tools") else {}
    return values | choice | dict.fromkeys(DETACHED)


SPEECH: Final = Speech(
    sdk="openai",
    path="/responses",
    stream=ResponsesStream,
    is_request=is_request,
    settings=settings,
    answer_settings=("text.format",),
    choices=("tool_choice",),
    errors=ERRORS,
    batch=Batch(
        key="custom_id",
        body="body",
        beside={"method": "POST", "url": "/v1/responses"},
        reply=("response", "body"),
        stop=("incomplete_details", "reason"),
    ),
)
