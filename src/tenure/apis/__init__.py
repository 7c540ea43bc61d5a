"""The APIs that are spoken, a line for each. Everything that is known of one stands in its folder, behind `tenure.apis.api.Api`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from tenure.apis.anthropic import Anthropic
from tenure.apis.api import Api
from tenure.apis.gemini import Gemini
from tenure.apis.openai_chat import OpenAIChat
from tenure.apis.openai_responses import OpenAIResponses

APIS: Final[Mapping[str, Api]] = MappingProxyType(
    {
        api.name: api
        for api in (
            OpenAIChat(),
            OpenAIResponses(),
            Anthropic(),
            Gemini(),
        )
    }
)
DialectName = Literal["openai-chat", "openai-responses", "anthropic", "gemini"]  # the keys of `APIS`, for type checkers
USUAL: Final = Anthropic.name  # of a conversation that names none
COMMON: Final = OpenAIChat.name  # what nearly every server speaks

__all__ = ["APIS", "COMMON", "USUAL", "DialectName"]
