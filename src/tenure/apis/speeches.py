"""The APIs that models are spoken with over: one line each."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tenure.apis import anthropic_speech, openai_chat_speech, openai_responses_speech
from tenure.apis.speech import Speech

SPEECHES: Final[Mapping[str, Speech]] = MappingProxyType(
    {
        "openai-chat": openai_chat_speech.SPEECH,
        "openai-responses": openai_responses_speech.SPEECH,
        "anthropic": anthropic_speech.SPEECH,
    }
)
