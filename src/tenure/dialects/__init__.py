from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tenure.dialects.anthropic import Anthropic
from tenure.dialects.dialect import Dialect
from tenure.dialects.openai_chat import OpenAIChat
from tenure.dialects.openai_responses import OpenAIResponses

DIALECTS: Final[Mapping[str, Dialect]] = MappingProxyType(
    {dialect.name: dialect for dialect in (OpenAIChat(), OpenAIResponses(), Anthropic())}
)

__all__ = ["DIALECTS"]
