"""What errors of the Messages API say: https://platform.claude.com/docs/en/api/errors."""

from typing import Final

from tenure.apis.speech import Errors
from tenure.errors import Failure

ERRORS: Final = Errors(
    codes={
        "request_too_large": Failure.TOO_LONG,
        "billing_error": Failure.NOT_ACCEPTED,
        "authentication_error": Failure.NOT_ACCEPTED,
        "permission_error": Failure.NOT_ACCEPTED,
        "not_found_error": Failure.NOT_ACCEPTED,
        "rate_limit_error": Failure.RATE_LIMITED,
        "overloaded_error": Failure.UNAVAILABLE,
        "timeout_error": Failure.UNAVAILABLE,
        "api_error": Failure.UNAVAILABLE,
    },
    overflows=(
        # Anthropic, platform.claude.com/docs/en/build-with-claude/context-windows; also at Bedrock, Vertex and behind LiteLLM
        r"prompt is too long: <prompt> tokens > <allowed> maximum",
        r"`?max_tokens`? exceed context limit: <prompt> \+ <reply> > <allowed>",
    ),
    too_long=(
        "prompt is too long",
        "exceed context limit",  # with the reply
        "input is too long",  # Bedrock
    ),
)
