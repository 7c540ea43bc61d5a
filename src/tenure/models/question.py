"""What a model is asked, and what it answers. Pure values: the same question is the same bytes, to any provider."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from tenure.engine.record.entry import Draft, Usage
from tenure.errors import InputError


class Question(Struct, frozen=True, kw_only=True):
    """One call of a model, complete in itself.

    `messages` are drafts of any dialect, or strings: words of the harness, in a user's message. `max_output` is in provider tokens, and
    what the model thinks counts.

    `prefix` is the JSON of a request as it was rendered for the same model, ending where the model is to speak. The messages are put
    behind its own, and everything that the model reads of it - tools, system prompt, messages - is sent byte for byte as it stands
    there, so that the provider's cache holds. It brings its own system prompt, and `schema` is then asked for in words: a schema
    given as a setting becomes a part of the prompt's beginning, at OpenAI and at Anthropic, and no cache would match.

    `schema` is a JSON schema; the answer's text is then JSON, which is checked. That it satisfies the schema is for the reader to check.
    """

    messages: tuple[Draft | str, ...]
    system: str = ""
    max_output: int = 4096
    prefix: bytes = b""
    schema: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if not self.messages:
            raise InputError("question", "no messages", "at least one")
        if self.max_output < 1:
            raise InputError("question", f"max_output {self.max_output}", "a number of tokens above 0")
        if self.prefix and self.system:
            raise InputError("question", "a system prompt beside a prefix", "only one: a prefix has its own")


class Answer(Struct, frozen=True, kw_only=True):
    """A whole answer: the model came to its end by itself."""

    text: str
    model: str = ""  # as the provider names it
    stop: str = ""  # why it ended, in the provider's word: "stop", "end_turn", …
    usage: Usage | None = None  # None: not reported
    cost_usd: float | None = None  # None: usage or price is not known
