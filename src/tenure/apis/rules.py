"""Which rules hold for a provider, model and API: the first row that fits, of each API's rows in this order.

Rows stand from the particular to the general, and the last one fits everything.
"""

import re
from typing import Final

from msgspec.structs import replace

from tenure.apis.anthropic.rules import ROWS as CLAUDE
from tenure.apis.anthropic.rules import SYSTEM_MESSAGES
from tenure.apis.gemini.rules import ROWS as GEMINI
from tenure.apis.openai_chat.rules import ROWS as CHAT
from tenure.apis.openai_responses.rules import ROWS as RESPONSES
from tenure.engine.view.rules import Rules, RulesRow

RULES: Final[tuple[RulesRow, ...]] = (*CLAUDE, *GEMINI, *RESPONSES, *CHAT)


def rules_for(provider: str, model: str, dialect: str) -> Rules:
    """The rules of the first row that fits, named as asked: an unknown provider keeps its name."""
    row = next(row for row in RULES if _fits(row, provider, model, dialect))
    takes = SYSTEM_MESSAGES.search(model.lower()) is not None
    return replace(
        row.rules, provider=provider or row.rules.provider, dialect=dialect or row.rules.dialect, system_messages=takes
    )


def _fits(row: RulesRow, provider: str, model: str, dialect: str) -> bool:
    return row.provider in ("", provider) and row.dialect in ("", dialect) and re.search(row.model, model.lower()) is not None
