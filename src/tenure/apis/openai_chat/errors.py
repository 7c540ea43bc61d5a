"""What errors of Chat Completions say, at OpenAI and at the many servers that speak it: https://platform.openai.com/docs/guides/error-codes."""

from typing import Final

from tenure.apis.speech import Errors
from tenure.errors import Failure

ERRORS: Final = Errors(
    codes={
        "context_length_exceeded": Failure.TOO_LONG,
        "string_above_max_length": Failure.TOO_LONG,
        "exceed_context_size_error": Failure.TOO_LONG,  # llama.cpp
        "content_filter": Failure.REFUSED,
        "content_policy_violation": Failure.REFUSED,
        "image_content_policy_violation": Failure.REFUSED,
        "insufficient_quota": Failure.NOT_ACCEPTED,  # comes as 429, and waiting does not help
        "rate_limit_exceeded": Failure.RATE_LIMITED,
        "server_error": Failure.UNAVAILABLE,
        "server_is_overloaded": Failure.UNAVAILABLE,
        "slow_down": Failure.UNAVAILABLE,
    },
    # The first sentence that is found counts: fuller ones stand before shorter ones. Whose they are, and where they were seen:
    overflows=(
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
        # OpenAI and Groq, one request above what is allowed in a minute: waiting does not help. console.groq.com/docs/rate-limits
        r"request too large… tokens per min… Limit:? <allowed>, Requested:? <prompt>",
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
    ),
    too_long=(
        "context length",  # OpenAI, vLLM, Mistral, LM Studio
        "prompt too long",  # Ollama
        "context size",  # llama.cpp
        "too many tokens",  # Cohere
        "maximum prompt length",  # xAI
    ),
)
