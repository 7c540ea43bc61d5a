"""What holds for Google's models, at any API."""

from typing import Final

from msgspec.structs import replace

from tenure.engine.view.rules import Rules, RulesRow

_GEMINI: Final = Rules(
    provider="google", dialect="openai-chat", thinking="open_loop", alternation=True, first_user=True, media="gemini"
)
# At Google's own API neighbours of one role are taken; requests join them all the same, since calls and responses have to be neighbours.
_OWN: Final = replace(_GEMINI, dialect="gemini", alternation=False)
# Up to 2.5 a signature is a help and not asked for: ai.google.dev/gemini-api/docs/thought-signatures ("Model behavior")
_UNASKED: Final = replace(_OWN, thinking="none")

ROWS: Final = (
    # Every function call of the current turn carries its thought signature: ai.google.dev/gemini-api/docs/thought-signatures.
    # User and model alternate: ai.google.dev/api/generate-content. Shortest implicit prefix: ai.google.dev/gemini-api/docs/caching
    RulesRow(model=r"gemini-[12].*pro", dialect="gemini", rules=replace(_UNASKED, cache_min_tokens=4096)),
    RulesRow(model=r"gemini-[12]|gemma|learnlm", dialect="gemini", rules=_UNASKED),
    RulesRow(model=r"pro", dialect="gemini", rules=replace(_OWN, cache_min_tokens=4096)),
    RulesRow(dialect="gemini", rules=_OWN),
    RulesRow(model=r"gemini.*pro", rules=replace(_GEMINI, cache_min_tokens=4096)),
    RulesRow(model=r"gemini", rules=_GEMINI),
)
