"""The APIs that are spoken, a line for each. Everything that is known of one stands in its folder, behind `tenure.apis.api.Api`."""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final, Literal

from tenure.apis.anthropic import Anthropic
from tenure.apis.api import Api, Endpoint
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


def endpoint_of(path: str, query: str = "") -> tuple[Api, Endpoint] | None:
    """The API that a POST to a path is of, and what it asks for; None where it is of none, or cannot be managed."""
    found = ((api, api.endpoint(path, query)) for api in APIS.values())
    return next(((api, endpoint) for api, endpoint in found if endpoint is not None), None)


def api_of(path: str, headers: Collection[str]) -> Api:
    """The API that a client speaks, by the path of its request and the names of its headers in lower case; else the common one."""
    named = endpoint_of(path)
    if named is not None:
        return named[0]
    return next((api for api in APIS.values() if api.header and api.header in headers), APIS[COMMON])


__all__ = ["APIS", "COMMON", "USUAL", "DialectName", "api_of", "endpoint_of"]
