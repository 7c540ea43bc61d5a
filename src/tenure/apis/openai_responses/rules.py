"""What holds for models at the Responses API."""

from typing import Final

from msgspec.structs import replace

from tenure.apis.openai_chat.rules import OPENAI
from tenure.engine.view.rules import RulesRow

ROWS: Final = (
    # "Item of type 'reasoning' was provided without its required following item", and the reverse: github.com/openai/openai-node
    # issue 1567; platform.openai.com/docs/guides/reasoning ("Keeping reasoning items in context"). Caching from 1024 tokens on, 5 to
    # 10 minutes of inactivity, no markers needed: platform.openai.com/docs/guides/prompt-caching
    RulesRow(dialect="openai-responses", rules=replace(OPENAI, dialect="openai-responses", reasoning_unit=True)),
)
