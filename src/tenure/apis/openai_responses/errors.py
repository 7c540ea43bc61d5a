"""What errors of the Responses API say: https://platform.openai.com/docs/guides/error-codes. Those that it shares are with Chat Completions."""

from typing import Final

from tenure.apis.speech import Errors
from tenure.errors import Failure

ERRORS: Final = Errors(
    codes={
        "invalid_prompt": Failure.REFUSED,  # how a policy of OpenAI's is said to be violated
        "bio_policy": Failure.REFUSED,
        "cyber_policy": Failure.REFUSED,
        "misalignment_policy_violation": Failure.REFUSED,
        "data_residency_mismatch": Failure.NOT_ACCEPTED,
    },
    overflows=(
        # OpenAI, models of 2025 (272000 of 400000 for the prompt): community.openai.com, "exceed the configured limit"
        r"input tokens exceed the configured limit of <allowed> tokens(?:\. Your messages resulted in <prompt> tokens)?",
    ),
    too_long=("context window",),
)
