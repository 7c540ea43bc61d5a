"""What holds for Google's models, at any API."""

from typing import Final

from msgspec.structs import replace

from tenure.engine.view.rules import Row, Rules

_GEMINI: Final = Rules(
    provider="google", dialect="openai-chat", thinking="open_loop", alternation=True, first_user=True, media="gemini"
)

ROWS: Final = (
    # Every function call of the current turn carries its thought signature: ai.google.dev/gemini-api/docs/thought-signatures.
    # User and model alternate: ai.google.dev/api/generate-content. Shortest implicit prefix: ai.google.dev/gemini-api/docs/caching
    Row(model=r"gemini.*pro", rules=replace(_GEMINI, cache_min_tokens=4096)),
    Row(model=r"gemini", rules=_GEMINI),
)
