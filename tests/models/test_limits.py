"""What providers say of a request that is too long, as they say it. The sentences stand in `tenure.apis`, with the errors of an API."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.errors import Failure, Overflow
from tenure.models.failures import OVERFLOWS, overflow_in, sentence, trouble, trouble_in

# who, the words, and their figures: what is allowed, what came, what was asked for the reply
TOLD = [
    ("Anthropic", "prompt is too long: 210000 tokens > 200000 maximum", (200_000, 210_000, 0)),
    (
        "Anthropic",
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again",
        (200_000, 188_240, 21_333),
    ),
    (
        "Anthropic behind LiteLLM",
        'litellm.BadRequestError: AnthropicException - {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum"},"request_id":"req_011CWurfp73Wj89b2cghZKFM"}',
        (200_000, 213_462, 0),
    ),
    (
        "OpenAI Chat Completions",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130123 tokens. Please reduce the length of the messages.",
        (128_000, 130_123, 0),
    ),
    (
        "OpenAI Chat Completions, with the reply",
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8000 in the messages, 1000 in the completion). Please reduce the length of the messages or completion.",
        (8_192, 8_000, 1_000),
    ),
    (
        "OpenAI Chat Completions, with functions",
        "This model's maximum context length is 16385 tokens. However, you requested 17010 tokens (15000 in the messages, 1010 in the functions, and 1000 in the completion).",
        (16_385, 16_010, 1_000),
    ),
    (
        "OpenAI Completions",
        "This model's maximum context length is 8191 tokens, however you requested 10346 tokens (10341 in your prompt; 5 for the completion). Please reduce your prompt; or completion length.",
        (8_191, 10_341, 5),
    ),
    (
        "OpenAI Responses, configured",
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 318569 tokens. Please reduce the length of the messages.",
        (272_000, 318_569, 0),
    ),
    (
        "OpenAI, per minute",
        "Request too large for gpt-4.1 in organization org-a1b2c3d4 on tokens per min (TPM): Limit 30000, Requested 342389. The input or output tokens must be reduced in order to run successfully.",
        (30_000, 342_389, 0),
    ),
    (
        "Groq",
        "Request too large for model `llama-3.3-70b-versatile` in organization `org_01hw8f0aa0ekmrn70ffm2zkdv1` service tier `on_demand` on tokens per minute (TPM): Limit 12000, Requested 14137, please reduce your message size and try again. Visit https://console.groq.com/docs/rate-limits for more information.",
        (12_000, 14_137, 0),
    ),
    (
        "Gemini",
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048576).",
        (1_048_576, 1_196_265, 0),
    ),
    ("Gemini, older", "The input token count exceeds the maximum number of tokens allowed 1048576.", (1_048_576, 0, 0)),
    (
        "OpenRouter",
        'This endpoint\'s maximum context length is 200000 tokens. However, you requested about 213530 tokens (201,338 of text input, 4,000 of tool input, 8,192 in the output). Please reduce the length of either one, or use the "middle-out" transform to compress your prompt automatically.',
        (200_000, 205_338, 8_192),
    ),
    (
        "OpenRouter without tools",
        "This endpoint's maximum context length is 131072 tokens. However, you requested about 132463 tokens (1463 of text input, 131000 in the output). Please reduce the length of either one.",
        (131_072, 1_463, 131_000),
    ),
    (
        "vLLM, input",
        "This model's maximum context length is 8192 tokens. However, your request has 9001 input tokens. Please reduce the length of the input messages.",
        (8_192, 9_001, 0),
    ),
    (
        "vLLM, reply",
        "'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum context length is 4096 tokens and your request has 2104 input tokens (2000 > 4096 - 2104).",
        (4_096, 2_104, 2_000),
    ),
    (
        "vLLM, prompt",
        "The decoder prompt (length 41234) is longer than the maximum model length of 32768. Make sure that `max_model_len` is no smaller than the number of text tokens.",
        (32_768, 41_234, 0),
    ),
    ("llama.cpp", "request (9412 tokens) exceeds the available context size (8192 tokens), try increasing it", (8_192, 9_412, 0)),
    (
        "llama.cpp, older",
        "the request exceeds the available context size (4096 tokens). try increasing the context size",
        (4_096, 0, 0),
    ),
    (
        "LM Studio",
        "Trying to keep the first 14538 tokens when context the overflows. However, the model is loaded with context length of only 2048 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input. Error Data: n/a, Additional Data: n/a",
        (2_048, 14_538, 0),
    ),
    (
        "LM Studio, MLX",
        "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 10125>= n_ctx: 8192). Try to load the model with a larger context length, or provide a shorter input.",
        (8_192, 10_125, 0),
    ),
    (
        "Mistral",
        "Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        (32_768, 65_673, 0),
    ),
    ("xAI", "This model's maximum prompt length is 131072 but the request contains 537812 tokens.", (131_072, 537_812, 0)),
    ("Together", "The input (516368 tokens) is longer than the model's context length (262144 tokens).", (262_144, 516_368, 0)),
    (
        "SGLang",
        "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of 9000 tokens: 8000 tokens from the input messages and 1000 tokens for the completion.",
        (8_192, 8_000, 1_000),
    ),
    (
        "Text Generation Inference",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4001 `inputs` tokens and 1024 `max_new_tokens`",
        (4_096, 4_001, 1_024),
    ),
    (
        "Text Generation Inference, input",
        "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000",
        (4_095, 5_000, 0),
    ),
    (
        "a compatible server",
        "This model's maximum context length is 8192 tokens. However, you requested 9001 tokens.",
        (8_192, 9_001, 0),
    ),
    ("LM Studio, count", "Requested token count (5000) is greater than the context length (4096).", (4_096, 5_000, 0)),
    ("GitHub Copilot", "prompt token count of 202345 exceeds the limit of 128000", (128_000, 202_345, 0)),
    ("Kimi", "Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)", (262_144, 291_351, 0)),
    ("Kimi, short", "Your request exceeded model token limit: 131072", (131_072, 0, 0)),
    (
        "Cerebras",
        "Please reduce the length of the messages or completion. Current length is 9001 while limit is 8192",
        (8_192, 9_001, 0),
    ),
    (
        "Cohere",
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000. Try using a shorter prompt or a smaller max_tokens value.",
        (4_081, 5_000, 0),
    ),
    ("DashScope", "Range of input length should be [1, 129024]", (129_024, 0, 0)),
    ("Fireworks", "The prompt is too long: 140000, model maximum context length: 131072", (131_072, 140_000, 0)),
    ("Azure", "This model's maximum context length is 4,096 tokens. Please reduce the length of the messages.", (4_096, 0, 0)),
]

# Of a request that is too long, without a figure of how much may come.
UNTOLD = [
    ("OpenAI Responses", "Your input exceeds the context window of this model. Please adjust your input and try again."),
    ("Bedrock", "The model returned the following errors: Input is too long for requested model."),
    ("Ollama, by how much", "prompt too long; exceeded max context length by 1213 tokens"),
    ("Groq", "Please reduce the length of the messages or completion: context length exceeded"),
    ("MiniMax, an error's number", "invalid params, context window exceeds limit (2013)"),
    ("a port", "the request exceeds the available context size; see http://127.0.0.1:8765/props"),
    ("a price", "context window exceeded: a larger plan costs $20000 a year, 1500 USD a month"),
    ("an id and a date", "prompt is too long (request 1234567890, 2026-11-22T18:11:39Z, build 20251104)"),
    ("an address", "context length: see https://example.org/errors/4096?limit=2048#n=8192"),
    ("the agent's own words", 'context window exceeded: {"messages":[{"content":"the limit is 1500 tokens, 900 maximum"}]}'),
    ("an output limit", "context length: max_tokens 100000 > 64000, the maximum of output tokens"),
    ("bytes", "Request exceeds the maximum size: context window, 33554432 bytes > 31457280 bytes"),
]


@pytest.mark.parametrize(("words", "figures"), [pytest.param(words, figures, id=who) for who, words, figures in TOLD])
def test_the_figures_of_a_refusal_are_read_as_its_provider_says_them(words: str, figures: tuple[int, int, int]) -> None:
    assert overflow_in(words, {}) == Overflow(*figures)
    assert overflow_in(words.upper(), {}) == Overflow(*figures)
    assert overflow_in(f"HTTP 400 at 127.0.0.1:8765, request 99999: {words}", {}) == Overflow(*figures)


def test_every_known_sentence_is_said_by_somebody() -> None:
    used = {next(pattern for pattern in OVERFLOWS if pattern.search(words)) for _, words, _ in TOLD}
    assert [each.pattern for each in OVERFLOWS if each not in used] == []


@pytest.mark.parametrize("words", [pytest.param(words, id=who) for who, words in UNTOLD])
def test_a_number_elsewhere_in_an_error_is_no_window(words: str) -> None:
    found = trouble_in({"message": words}, begun=False)
    assert found.kind is Failure.TOO_LONG
    assert found.overflow is None


@pytest.mark.parametrize("words", [pytest.param(words, id=who) for who, words, _ in TOLD])
@pytest.mark.parametrize("status", [400, 413, 429, 500])
def test_what_names_a_limit_is_too_long_whatever_its_status_and_code(status: int, words: str) -> None:
    found = trouble(refusal(status, {"error": {"message": words, "type": "tokens", "code": "rate_limit_exceeded"}}))
    assert found
    assert found.kind is Failure.TOO_LONG
    assert found.overflow == overflow_in(words, {})


def test_a_rate_limit_is_none_of_a_window() -> None:
    reached = (
        "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 28000, Requested 5000. Please try again in 6s."
    )
    for status, words in ((429, reached), (200, "Too many tokens for this minute: 65605/16000")):
        found = trouble(refusal(status, {"error": {"message": words, "code": "rate_limit_exceeded"}}))
        assert found
        assert (found.kind, found.overflow) == (Failure.RATE_LIMITED, None)


def test_figures_beside_the_words_are_read() -> None:
    body = {
        "error": {
            "code": 400,
            "message": "too long",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 13_392,
            "n_ctx": 8_192,
        }
    }
    found = trouble(refusal(400, body))
    assert found
    assert (found.kind, found.overflow) == (Failure.TOO_LONG, Overflow(8_192, 13_392))


def test_a_routers_error_is_read_to_the_providers_own_words() -> None:
    raw = (
        '{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}'
    )
    found = trouble(refusal(400, {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw}}}))
    assert found
    assert (found.kind, found.overflow) == (Failure.TOO_LONG, Overflow(200_000, 210_000))
    assert "210000 tokens" in sentence("m at h", found)


@given(st.text(string.ascii_letters + string.digits + " .:,-/()[]<>=$", max_size=200))
def test_words_that_no_provider_says_hold_no_window(words: str) -> None:
    assert overflow_in(words, {}) is None


class APIStatusError(Exception):
    """A provider's refusal as the SDKs raise it; failures are told apart by this name."""

    status_code: int
    body: object


def refusal(status: int, body: object) -> APIStatusError:
    error = APIStatusError("refused")
    error.status_code, error.body = status, body
    return error
