"""The figures in a provider's words about a request that is too long. Pure.

A number counts only where a known sentence puts it: an error may also hold a port, a price, an id, a date, or a part of the request itself.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from tenure.errors import Overflow

_NUMBER: Final = r"\d{1,3}(?:[,_]\d{3})+|\d{1,9}"


def _sentence(text: str) -> re.Pattern[str]:
    """A pattern in which `<allowed>`, `<prompt>` and `<reply>` stand for numbers, and `…` for a few words."""
    named = re.sub(r"<(\w+)>", lambda name: rf"(?P<{name[1]}>{_NUMBER})(?!\d|[.,_]\d)", text)
    return re.compile(named.replace("…", r"[^{}]{0,160}?"), re.IGNORECASE)


# The first sentence that is found counts: fuller ones stand before shorter ones. Whose they are, and where they were seen:
SENTENCES: Final = tuple(
    map(
        _sentence,
        (
            # Anthropic, platform.claude.com/docs/en/build-with-claude/context-windows; also at Bedrock, Vertex and behind LiteLLM
            r"prompt is too long: <prompt> tokens > <allowed> maximum",
            r"`?max_tokens`? exceed context limit: <prompt> \+ <reply> > <allowed>",
            # OpenAI and Azure, Chat Completions: community.openai.com, "This model's maximum context length is"; vLLM before 0.10; DeepSeek; SGLang.
            # OpenRouter says "This endpoint's" and "about": github.com/cline/cline, issues; its text and tool inputs are added up
            r"maximum context length (?:is|of) <allowed> tokens[.,] (?:However,? )?you requested (?:about |a total of )?[\d,]+ tokens:? \(?<prompt>"
            r"(?: in the messages| of text input| in your prompt| tokens from the input messages)"
            r"(?:, <tools> (?:in the functions|of tool input))?(?:[,;] and | and |[,;] )<reply> (?:tokens )?(?:in|for) the (?:completion|output)",
            r"maximum context length (?:is|of) <allowed> tokens[.,] (?:However,? )?you requested (?:about |a total of )?<prompt> tokens",
            r"maximum context length is <allowed> tokens\. However, your (?:messages|prompt|request|input) (?:resulted in|has|contains) <prompt> (?:input )?tokens",
            # vLLM, vllm/entrypoints/openai/serving_engine.py
            r"is too large: <reply>\. This model's maximum context length is <allowed> tokens and your request has <prompt> input tokens",
            r"prompt \(length <prompt>\) is longer than the maximum model length of <allowed>",
            # OpenAI, models of 2025 (272000 of 400000 for the prompt): community.openai.com, "exceed the configured limit"
            r"input tokens exceed the configured limit of <allowed> tokens(?:\. Your messages resulted in <prompt> tokens)?",
            # OpenAI and Groq, one request above what is allowed in a minute: waiting does not help. console.groq.com/docs/rate-limits
            r"request too large… tokens per min… Limit:? <allowed>, Requested:? <prompt>",
            # Gemini, ai.google.dev/gemini-api/docs/troubleshooting
            r"input token count \(<prompt>\) exceeds the maximum number of tokens allowed \(<allowed>\)",
            r"input token count exceeds the maximum number of tokens allowed \(?<allowed>\)?",
            # Mistral, code 3051
            r"prompt contains <prompt> tokens…, too large for model with <allowed> maximum context length",
            # xAI
            r"maximum prompt length is <allowed> but the request contains <prompt> tokens",
            # llama.cpp, tools/server/server-context.cpp
            r"request \(<prompt> tokens\) exceeds the available context size \(<allowed> tokens\)",
            r"exceeds the available context size \(<allowed> tokens\)",
            # LM Studio, github.com/lmstudio-ai/lmstudio-bug-tracker issues 546 and 2256
            r"keep the first <prompt> tokens when(?: the)? context(?: the)? overflows\. However, the model is loaded with(?: a)? context length of only <allowed> tokens",
            r"n_keep: <prompt>\s*>=? n_ctx: <allowed>",
            # Together and SGLang
            r"input \(<prompt> tokens\) is longer than the model's context length \(<allowed> tokens\)",
            r"requested token count \(<prompt>\) is greater than the context length \(<allowed>\)",
            # Text Generation Inference, router/src/validation.rs
            r"`inputs` tokens \+ `max_new_tokens` must be <= <allowed>\. Given: <prompt> `inputs` tokens and <reply> `max_new_tokens`",
            r"`inputs` must have less than <allowed> tokens\. Given: <prompt>",
            # GitHub Copilot; Kimi; Cerebras; Cohere; DashScope (Qwen); Fireworks
            r"prompt token count of <prompt> exceeds the limit of <allowed>",
            r"exceeded model token limit: <allowed>(?: \(requested: <prompt>\))?",
            r"current length is <prompt> while limit is <allowed>",
            r"tokens in the prompt cannot exceed <allowed> - received <prompt>",
            r"range of input length should be \[\d+, <allowed>\]",
            r"prompt is too long: <prompt>, model maximum context length: <allowed>",
            # what many servers say, and nothing else
            r"maximum context length (?:is|of) <allowed> tokens",
        ),
    )
)

# llama.cpp gives the figures beside the words too: tools/server/server-task.cpp, `n_prompt_tokens` and `n_ctx`.
_FIELDS: Final = ("n_ctx", "n_prompt_tokens")


def overflow_in(words: str, told: Mapping[str, Any]) -> Overflow | None:
    """The figures of a refusal: from the fields of its error object, else from a known sentence; None where there are none, or it is none."""
    allowed, prompt = (told.get(name) for name in _FIELDS)
    if type(allowed) is int and allowed > 0:
        return Overflow(allowed=allowed, prompt=prompt if type(prompt) is int and prompt > 0 else 0)
    for sentence in SENTENCES:
        if found := sentence.search(words):
            figures = {name: _number(text) for name, text in found.groupdict().items() if text}
            return Overflow(
                allowed=figures["allowed"],
                prompt=figures.get("prompt", 0) + figures.get("tools", 0),
                reply=figures.get("reply", 0),
            )
    return None


def _number(text: str) -> int:
    return int(text.replace(",", "").replace("_", ""))
