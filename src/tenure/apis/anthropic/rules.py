"""What holds for each of Anthropic's models."""

import re
from typing import Final

from msgspec.structs import replace

from tenure.engine.view.rules import Rules, RulesRow


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
SYSTEM_MESSAGES: Final = re.compile(r"claude-opus-4[-.][89]|claude-(opus|sonnet|haiku|fable|mythos)-[5-9]")

ROWS: Final = (
    # A thinking block is valid only while system, tools and all messages before it are unchanged, from Fable 5.1 on.
    # platform.claude.com/docs/build-with-claude/preserved-thinking
    RulesRow(model=r"claude-(fable|mythos)-5-[1-9]", rules=_claude(512, thinking="prefix_bound")),
    # Shortest cacheable prefix per model: platform.claude.com/docs/en/build-with-claude/prompt-caching ("Cache limitations").
    RulesRow(model=r"claude-(opus|fable|mythos)-5", rules=_claude(512)),
    RulesRow(model=r"claude-mythos-preview|claude-opus-4[-.]7", rules=_claude(2048)),
    RulesRow(model=r"claude-(opus|haiku)-4[-.][56]", rules=_claude(4096)),
    RulesRow(model=r"claude-sonnet-[45]|claude-opus-4", rules=_claude(1024)),
    # "You must pass thinking blocks back to the API for the last assistant message": …/build-with-claude/extended-thinking, as of
    # the one model that thinks but does not interleave.
    RulesRow(model=r"claude-3[-.]7", rules=_claude(1024, thinking="last_message")),
    # These do not think. Haiku 3 and 3.5 cache from 2048 tokens on: …/build-with-claude/prompt-caching
    RulesRow(model=r"claude-3.*haiku|haiku-3", rules=_claude(2048, thinking="none")),
    RulesRow(model=r"claude-3|claude-2", rules=_claude(1024, thinking="none")),
    RulesRow(dialect="anthropic", rules=_claude(1024)),
    RulesRow(model=r"claude", rules=_claude(1024)),
)
