"""What is legal per provider and model, as values."""

from typing import Final, Literal

from msgspec import Struct

LOOKBACK: Final = 20  # parts before a cache marker in which an earlier prefix is looked for; platform.claude.com/docs/en/build-with-claude/prompt-caching
Thinking = Literal["none", "last_message", "open_loop", "prefix_bound"]


class Rules(Struct, frozen=True, kw_only=True):
    """The facts about one provider and model that the laws and the meter need.

    `thinking` says which signed reasoning a request may not change:
    none: any may go. last_message: that of the newest assistant message stays whole. open_loop: that of every assistant message
    of the open tool loop (since the newest reply that made no calls) stays with its calls. prefix_bound: a signed block is valid
    only while everything before it is unchanged, so an edit drops every later one.
    """

    provider: str
    dialect: str
    thinking: Thinking = "none"
    reasoning_unit: bool = False  # a reasoning item and the items of its reply that follow it stay or leave together
    call_reasoning: bool = (
        False  # an assistant message with calls must carry its reasoning, signed or not, in every later request
    )
    alternation: bool = False  # user and assistant messages must alternate
    system_messages: bool = False  # messages of a system may stand between the others (Messages API)
    first_user: bool = False  # the first message after the system prompt must be a user's
    cache_min_tokens: int = 1024  # shortest prefix that is cached
    cache_ttl_s: int = 300
    cache_markers: int = 0  # explicit markers a request may carry; 0: caching is automatic
    media: Literal["anthropic", "openai", "gemini", "flat"] = "flat"  # how images are counted


class RulesRow(Struct, frozen=True, kw_only=True):
    """What holds where `provider`, `model` and `dialect` fit; an empty one fits all."""

    provider: str = ""
    model: str = ""  # a regular expression, searched in the model's name
    dialect: str = ""
    rules: Rules
