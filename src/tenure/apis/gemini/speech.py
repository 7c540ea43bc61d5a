"""How a model is spoken with over the Gemini API, and how a question is put: https://ai.google.dev/api/generate-content."""

from collections.abc import Mapping
from typing import Final

from tenure.apis.batch import Batch
from tenure.apis.gemini.errors import ERRORS
from tenure.apis.gemini.stream import GeminiStream
from tenure.apis.json_text import load
from tenure.apis.prefix import Opening, QuestionSettings
from tenure.apis.speech import Speech


def is_request(opening: Opening) -> bool:
    """Whether a request that begins like this can be one of the Gemini API."""
    return "contents" in opening.fields


def settings(wanted: QuestionSettings) -> Mapping[str, object]:
    """The settings of a question. The output limit counts what the model thinks; a prefix's other settings stay, its thinking among them."""
    held = load((wanted.prefix or {}).get("generationConfig", "null"), "prefix")
    values = {**(held if isinstance(held, dict) else {}), "maxOutputTokens": wanted.max_output}
    if wanted.schema is not None:
        values |= {"responseMimeType": "application/json", "responseJsonSchema": dict(wanted.schema)}
    return {"generationConfig": values}


SPEECH: Final = Speech(
    sdk="google.genai",
    path="{model}",  # as the SDK takes it
    stream=GeminiStream,
    is_request=is_request,
    settings=settings,
    answer_settings=(
        "generationConfig.responseMimeType",
        "generationConfig.responseSchema",
        "generationConfig.responseJsonSchema",
        "generationConfig.responseModalities",
        "generationConfig.stopSequences",
        "generationConfig.candidateCount",
    ),
    choices=("toolConfig",),
    errors=ERRORS,
    batch=Batch(key="key", body="request", without=("model",), reply=("response",), stop=("candidates", 0, "finishReason")),
)
