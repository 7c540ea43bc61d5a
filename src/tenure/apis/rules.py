"""The facts about each provider and model, as one table.

The first row that fits counts; rows stand from the particular to the general, and the last ones fit everything.
"""

import re
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.view.rules import Rules


class Row(Struct, frozen=True, kw_only=True):
    """What holds where `provider`, `model` and `dialect` fit; an empty one fits all."""

    provider: str = ""
    model: str = ""  # a regular expression, searched in the model's name
    dialect: str = ""
    rules: Rules


def _claude(cache_min_tokens: int, **facts: object) -> Rules:
    # Thinking of the open tool loop goes back unchanged: platform.claude.com/docs/en/build-with-claude/extended-thinking
    # ("Preserving thinking blocks"). Four markers, five minutes: …/build-with-claude/prompt-caching. First message: …/api/messages.
    claude = Rules(
        provider="anthropic",
        dialect="anthropic",
        thinking="open_loop",
        first_user=True,
        cache_min_tokens=cache_min_tokens,
        cache_ttl_s=300,
        cache_markers=4,
        media="anthropic",
    )
    return replace(claude, **facts)


# Messages of a system between the others: platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages, from Opus 4.8 on
_SYSTEM_MESSAGES: Final = re.compile(r"claude-opus-4[-.][89]|claude-(opus|sonnet|haiku|fable|mythos)-[5-9]")

_OPENAI: Final = Rules(provider="openai", dialect="openai-chat", cache_min_tokens=1024, cache_ttl_s=300, media="openai")
_GEMINI: Final = Rules(
    provider="google", dialect="openai-chat", thinking="open_loop", alternation=True, first_user=True, media="gemini"
)

RULES: Final[tuple[Row, ...]] = (
    # A thinking block is valid only while system, tools and all messages before it are unchanged, from Fable 5.1 on.
    # platform.claude.com/docs/build-with-claude/preserved-thinking
    Row(model=r"claude-(fable|mythos)-5-[1-9]", rules=_claude(512, thinking="prefix_bound")),
    # Shortest cacheable prefix per model: platform.claude.com/docs/en/build-with-claude/prompt-caching ("Cache limitations").
    Row(model=r"claude-(opus|fable|mythos)-5", rules=_claude(512)),
    Row(model=r"claude-mythos-preview|claude-opus-4[-.]7", rules=_claude(2048)),
    Row(model=r"claude-(opus|haiku)-4[-.][56]", rules=_claude(4096)),
    Row(model=r"claude-sonnet-[45]|claude-opus-4", rules=_claude(1024)),
    # "You must pass thinking blocks back to the API for the last assistant message": …/build-with-claude/extended-thinking, as of
    # the one model that thinks but does not interleave.
    Row(model=r"claude-3[-.]7", rules=_claude(1024, thinking="last_message")),
    # These do not think. Haiku 3 and 3.5 cache from 2048 tokens on: …/build-with-claude/prompt-caching
    Row(model=r"claude-3.*haiku|haiku-3", rules=_claude(2048, thinking="none")),
    Row(model=r"claude-3|claude-2", rules=_claude(1024, thinking="none")),
    Row(dialect="anthropic", rules=_claude(1024)),
    Row(model=r"claude", rules=_claude(1024)),
    # Every function call of the current turn carries its thought signature: ai.google.dev/gemini-api/docs/thought-signatures.
    # User and model alternate: ai.google.dev/api/generate-content. Shortest implicit prefix: ai.google.dev/gemini-api/docs/caching
    Row(model=r"gemini.*pro", rules=replace(_GEMINI, cache_min_tokens=4096)),
    Row(model=r"gemini", rules=_GEMINI),
    # "reasoning_content must be passed back" with every message that calls tools: api-docs.deepseek.com/guides/thinking_mode;
    # cached in units of 64 tokens, for hours: api-docs.deepseek.com/guides/kv_cache
    Row(
        model=r"deepseek",
        dialect="openai-chat",
        rules=Rules(provider="deepseek", dialect="openai-chat", call_reasoning=True, cache_min_tokens=64, cache_ttl_s=3600),
    ),
    # "Item of type 'reasoning' was provided without its required following item", and the reverse: github.com/openai/openai-node
    # issue 1567; platform.openai.com/docs/guides/reasoning ("Keeping reasoning items in context"). Caching from 1024 tokens on, 5 to
    # 10 minutes of inactivity, no markers needed: platform.openai.com/docs/guides/prompt-caching
    Row(dialect="openai-responses", rules=replace(_OPENAI, dialect="openai-responses", reasoning_unit=True)),
    Row(provider="openai", rules=_OPENAI),
    Row(model=r"\bgpt-|\bo[1-9]\b", rules=_OPENAI),
    # Anything compatible: nothing is known, so nothing is assumed but what the format itself demands.
    Row(rules=Rules(provider="", dialect="openai-chat")),
)


def rules_for(provider: str, model: str, dialect: str) -> Rules:
    """The rules of the first row that fits, named as asked: an unknown provider keeps its name."""
    row = next(row for row in RULES if _fits(row, provider, model, dialect))
    takes = _SYSTEM_MESSAGES.search(model.lower()) is not None
    return replace(
        row.rules, provider=provider or row.rules.provider, dialect=dialect or row.rules.dialect, system_messages=takes
    )


def _fits(row: Row, provider: str, model: str, dialect: str) -> bool:
    return row.provider in ("", provider) and row.dialect in ("", dialect) and re.search(row.model, model.lower()) is not None
