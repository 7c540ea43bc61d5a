"""What errors of the Gemini API say.

https://ai.google.dev/gemini-api/docs/troubleshooting https://cloud.google.com/apis/design/errors#error_info
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from tenure.apis.reply import fields_in
from tenure.apis.speech import Errors
from tenure.errors import Failure

_DELAY: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s")


def retry_after_s(error: Mapping[str, Any]) -> float | None:
    """The delay that a `RetryInfo` among an error's details asks for."""
    for each in fields_in(error.get("details")):
        if str(each.get("@type", "")).endswith("google.rpc.RetryInfo"):
            delay = _DELAY.fullmatch(str(each.get("retryDelay", "")))
            return float(delay[1]) if delay else None
    return None


ERRORS: Final = Errors(
    codes={
        "INVALID_ARGUMENT": Failure.NOT_ACCEPTED,
        "FAILED_PRECONDITION": Failure.NOT_ACCEPTED,  # a country, or billing
        "UNAUTHENTICATED": Failure.NOT_ACCEPTED,
        "PERMISSION_DENIED": Failure.NOT_ACCEPTED,
        "NOT_FOUND": Failure.NOT_ACCEPTED,
        "RESOURCE_EXHAUSTED": Failure.RATE_LIMITED,
        "CANCELLED": Failure.UNAVAILABLE,
        "INTERNAL": Failure.UNAVAILABLE,
        "UNAVAILABLE": Failure.UNAVAILABLE,
        "DEADLINE_EXCEEDED": Failure.UNAVAILABLE,
    },
    overflows=(
        r"input token count \(<prompt>\) exceeds the maximum number of tokens allowed \(<allowed>\)",
        r"input token count exceeds the maximum number of tokens allowed \(?<allowed>\)?",
    ),
    too_long=("input token count",),
    retry_after_s=retry_after_s,
)
