import pytest

from tenure.apis import APIS
from tenure.apis.rules import RULES, rules_for


@pytest.mark.parametrize(
    ("model", "cache_min", "thinking"),
    [
        ("claude-fable-5-2", 512, "prefix_bound"),
        ("claude-mythos-5-1-20260901", 512, "prefix_bound"),
        ("claude-fable-5", 512, "open_loop"),
        ("claude-opus-5", 512, "open_loop"),
        ("claude-opus-4-8", 1024, "open_loop"),
        ("claude-opus-4-7", 2048, "open_loop"),
        ("claude-opus-4-5-20251101", 4096, "open_loop"),
        ("claude-haiku-4-5", 4096, "open_loop"),
        ("claude-sonnet-4-5-20250929", 1024, "open_loop"),
        ("claude-opus-4-1-20250805", 1024, "open_loop"),
        ("claude-opus-4-20250514", 1024, "open_loop"),
        ("claude-3-7-sonnet-20250219", 1024, "last_message"),
        ("claude-3-5-haiku-20241022", 2048, "none"),
        ("a-model-of-tomorrow", 1024, "open_loop"),
    ],
)
def test_claude_models_differ_in_what_they_cache_and_check(model: str, cache_min: int, thinking: str) -> None:
    rules = rules_for("anthropic", model, "anthropic")
    assert (rules.cache_min_tokens, rules.thinking, rules.cache_markers) == (cache_min, thinking, 4)


def test_reasoning_is_a_unit_in_responses_only() -> None:
    assert rules_for("openai", "gpt-5", "openai-responses").reasoning_unit
    assert not rules_for("openai", "gpt-5", "openai-chat").reasoning_unit


def test_gemini_alternates() -> None:
    assert rules_for("openrouter", "google/gemini-3-pro", "openai-chat").alternation


def test_deepseek_keeps_the_reasoning_of_calls() -> None:
    assert rules_for("deepseek", "deepseek-v4-pro", "openai-chat").call_reasoning


@pytest.mark.parametrize("dialect", sorted(APIS))
def test_rules_are_named_as_asked(dialect: str) -> None:
    rules = rules_for("someone", "some-model", dialect)
    assert (rules.provider, rules.dialect) == ("someone", dialect)


def test_every_thinking_rule_is_in_the_table() -> None:
    assert {row.rules.thinking for row in RULES} == {"none", "last_message", "open_loop", "prefix_bound"}
