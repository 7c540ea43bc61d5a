"""What holds for models at Chat Completions, and wherever nothing else is known."""

from typing import Final

from tenure.engine.view.rules import Rules, RulesRow

OPENAI: Final = Rules(provider="openai", dialect="openai-chat", cache_min_tokens=1024, cache_ttl_s=300, media="openai")

ROWS: Final = (
    # "reasoning_content must be passed back" with every message that calls tools: api-docs.deepseek.com/guides/thinking_mode;
    # cached in units of 64 tokens, for hours: api-docs.deepseek.com/guides/kv_cache
    RulesRow(
        model=r"deepseek",
        dialect="openai-chat",
        rules=Rules(provider="deepseek", dialect="openai-chat", call_reasoning=True, cache_min_tokens=64, cache_ttl_s=3600),
    ),
    RulesRow(provider="openai", rules=OPENAI),
    RulesRow(model=r"\bgpt-|\bo[1-9]\b", rules=OPENAI),
    # Anything compatible: nothing is known, so nothing is assumed but what the format itself demands.
    RulesRow(rules=Rules(provider="", dialect="openai-chat")),
)
