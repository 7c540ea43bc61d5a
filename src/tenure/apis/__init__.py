from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tenure.apis.anthropic import Anthropic
from tenure.apis.dialect import Dialect
from tenure.apis.openai_chat import OpenAIChat
from tenure.apis.openai_responses import OpenAIResponses

DIALECTS: Final[Mapping[str, Dialect]] = MappingProxyType(
    {dialect.name: dialect for dialect in (OpenAIChat(), OpenAIResponses(), Anthropic())}
)

__all__ = ["DIALECTS"]
