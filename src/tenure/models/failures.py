"""Every way in which a provider or its SDK fails, as one of a few kinds. Pure: it looks at the error and touches nothing.

Both SDKs are made by the same generator, so their errors have the same names and attributes, and those are all that is asked for here.
https://platform.claude.com/docs/en/api/errors https://platform.openai.com/docs/guides/error-codes
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from tenure.errors import Failure, Overflow
from tenure.models.hosts import is_loopback
from tenure.models.limits import overflow_in

SENTENCES: Final[Mapping[Failure, str]] = {
    Failure.UNAVAILABLE: "no answer: the provider is down, overloaded or out of reach",
    Failure.RATE_LIMITED: "the provider takes no more requests for the moment",
    Failure.TOO_LONG: "the question is longer than the model can take",
    Failure.REFUSED: "the question was refused",
    Failure.CUT_SHORT: "the answer was cut short",
    Failure.CANCELLED: "cancelled before the answer was complete",
    Failure.BAD_REPLY: "the answer is of no use",
    Failure.NO_SERVER: "no server runs there: the connection is refused",
    Failure.NOT_ACCEPTED: "the provider does not accept the request",
}

# What an error says of itself (`code` or `type` in its body) -> its kind. It is more exact than the status, and in a stream all there is.
CODES: Final[Mapping[str, Failure]] = {
    "context_length_exceeded": Failure.TOO_LONG,
    "string_above_max_length": Failure.TOO_LONG,
    "request_too_large": Failure.TOO_LONG,
    "exceed_context_size_error": Failure.TOO_LONG,  # llama.cpp
    "content_filter": Failure.REFUSED,
    "content_policy_violation": Failure.REFUSED,
    "image_content_policy_violation": Failure.REFUSED,
    "invalid_prompt": Failure.REFUSED,  # how a policy of OpenAI's is said to be violated, in the Responses API
    "bio_policy": Failure.REFUSED,
    "cyber_policy": Failure.REFUSED,
    "misalignment_policy_violation": Failure.REFUSED,
    "insufficient_quota": Failure.NOT_ACCEPTED,  # comes as 429, and waiting does not help
    "billing_error": Failure.NOT_ACCEPTED,
    "authentication_error": Failure.NOT_ACCEPTED,
    "permission_error": Failure.NOT_ACCEPTED,
    "not_found_error": Failure.NOT_ACCEPTED,
    "data_residency_mismatch": Failure.NOT_ACCEPTED,
    "rate_limit_error": Failure.RATE_LIMITED,
    "rate_limit_exceeded": Failure.RATE_LIMITED,
    "overloaded_error": Failure.UNAVAILABLE,
    "timeout_error": Failure.UNAVAILABLE,
    "api_error": Failure.UNAVAILABLE,
    "server_error": Failure.UNAVAILABLE,
    "server_is_overloaded": Failure.UNAVAILABLE,
    "slow_down": Failure.UNAVAILABLE,
}

STATUSES: Final[Mapping[int, Failure]] = {
    408: Failure.UNAVAILABLE,
    409: Failure.UNAVAILABLE,
    413: Failure.TOO_LONG,
    425: Failure.UNAVAILABLE,
    429: Failure.RATE_LIMITED,
}

# A question that is too long comes as an invalid request; only the words tell. These do so without the figures that `tenure.models.limits` knows.
TOO_LONG_WORDS: Final = (
    "context length",  # OpenAI, vLLM, Mistral, LM Studio
    "prompt is too long",  # Anthropic
    "prompt too long",  # Ollama
    "exceed context limit",  # Anthropic, with the reply
    "input token count",  # Gemini
    "context window",  # OpenAI Responses
    "context size",  # llama.cpp
    "too many tokens",  # Cohere
    "input is too long",  # Bedrock
    "maximum prompt length",  # xAI
)

# The name of an error's class, or of one it is derived from -> its kind before anything was heard, and after.
CLASSES: Final[tuple[tuple[str, Failure, Failure], ...]] = (
    ("JSONDecodeError", Failure.BAD_REPLY, Failure.BAD_REPLY),
    ("UnicodeDecodeError", Failure.BAD_REPLY, Failure.BAD_REPLY),
    ("APIResponseValidationError", Failure.BAD_REPLY, Failure.BAD_REPLY),
    ("APIConnectionError", Failure.UNAVAILABLE, Failure.CUT_SHORT),
    ("RequestError", Failure.UNAVAILABLE, Failure.CUT_SHORT),  # of the HTTP client: the connection broke
    ("OSError", Failure.UNAVAILABLE, Failure.CUT_SHORT),
    ("APIError", Failure.UNAVAILABLE, Failure.CUT_SHORT),  # sent in the midst of a stream
    ("OpenAIError", Failure.NOT_ACCEPTED, Failure.NOT_ACCEPTED),  # credentials that cannot be found or read
    ("AnthropicError", Failure.NOT_ACCEPTED, Failure.NOT_ACCEPTED),
)

_KEY_LIKE: Final = re.compile(r"\b(?:sk|pk|rk|gsk|xai|key)[-_][\w*.\-]{4,}|\bAIza[\w\-]{10,}|\b[Bb]earer\s+[^\s\"',]+")
_SPACE: Final = re.compile(r"\s+")
_LONGEST_DETAIL: Final = 300  # characters
_SHORTEST_SECRET: Final = 6  # characters; a shorter one is a stand-in such as "-", and to be found in any text


class Trouble(Struct, frozen=True, kw_only=True):
    """A failure told apart from the library it came from."""

    kind: Failure
    detail: str = ""  # in the provider's words, or the connection's; may hold secrets
    retry_after_s: float | None = None
    overflow: Overflow | None = None  # of a question that is too long


NO_KEY: Final = "there is no key"


def trouble(error: BaseException, *, begun: bool = False, host: str = "") -> Trouble | None:
    """What an SDK's error comes to; None for an error of nobody but ourselves. `begun` says that a part of the answer was there.

    A connection that `host` refuses does not come about by waiting where that is this machine.
    """
    status = getattr(error, "status_code", None)
    names = {base.__name__ for base in type(error).__mro__}
    if isinstance(status, int) and "APIStatusError" in names:
        told = _told(getattr(error, "body", None))
        overflow = overflow_in(_words(told), told)
        return Trouble(
            kind=_kind(status, told, overflow, begun=begun),
            detail=_status_detail(status, told),
            retry_after_s=_retry_after(getattr(getattr(error, "response", None), "headers", None)),
            overflow=overflow,
        )
    if "APIError" in names and (told := _told(getattr(error, "body", None))):
        return told_trouble(told, begun=begun)
    if isinstance(error, TypeError) and "authentication" in str(error):  # how the SDK of Anthropic says that it has no key
        return Trouble(kind=Failure.NOT_ACCEPTED, detail=NO_KEY)
    for name, before, after in CLASSES:
        if name in names:
            if not begun and is_loopback(host) and _is_refused(error):
                return Trouble(kind=Failure.NO_SERVER)
            return Trouble(kind=after if begun else before, detail=_innermost(error))
    return None


def told_trouble(told: Mapping[str, Any], *, begun: bool) -> Trouble:
    """What an error object in a stream's midst comes to."""
    words = _words(told)
    overflow = overflow_in(words, told)
    return Trouble(kind=_kind(200, told, overflow, begun=begun), detail=words, overflow=overflow)


def sentence(who: str, found: Trouble, secrets: Iterable[str] = ()) -> str:
    """One sentence about a failure, for people, without secrets."""
    detail = redacted(_SPACE.sub(" ", found.detail).strip(), secrets)
    if len(detail) > _LONGEST_DETAIL:
        detail = detail[:_LONGEST_DETAIL] + "…"
    return f"{who}: {SENTENCES[found.kind]}" + (f" ({detail})" if detail else "")


def redacted(text: str, secrets: Iterable[str]) -> str:
    """The text without these secrets, and without anything that looks like a key."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "[key]")
    return _KEY_LIKE.sub("[key]", text)


def _kind(status: int, told: Mapping[str, Any], overflow: Overflow | None, *, begun: bool) -> Failure:
    words = _words(told).lower()
    named = next((CODES[name] for name in (told.get("code"), told.get("type")) if isinstance(name, str) and name in CODES), None)
    if (
        overflow is not None
    ):  # whatever the status: what is more than a minute's allowance comes as a rate limit, and no wait would help
        return Failure.TOO_LONG
    if named is not Failure.RATE_LIMITED and status in (200, 400, 413, 422) and any(phrase in words for phrase in TOO_LONG_WORDS):
        return Failure.TOO_LONG
    if named is not None:
        return named
    if status < 400:
        return Failure.CUT_SHORT if begun else Failure.UNAVAILABLE
    return STATUSES.get(status) or (Failure.UNAVAILABLE if status >= 500 else Failure.NOT_ACCEPTED)


def _told(body: object) -> dict[str, Any]:
    """The error object in a body: it stands alone, or under `error`."""
    if not isinstance(body, dict):
        return {"message": body} if isinstance(body, str) else {}
    fields: dict[str, Any] = body  # pyright: ignore[reportUnknownVariableType] - what JSON decodes to
    return _told(fields["error"]) if fields.get("error") else fields


def _status_detail(status: int, told: Mapping[str, Any]) -> str:
    if status in (401, 403):  # providers repeat the key here, in part or whole
        return f"HTTP {status}: the key is missing, wrong, or not allowed to do this"
    words = _words(told)
    return f"HTTP {status}: {words}" if words else f"HTTP {status}"


def _words(told: Mapping[str, Any]) -> str:
    """What a person would read; a router such as OpenRouter puts the provider's own words under `metadata.raw`."""
    message: object = told.get("message") or told.get("detail") or told.get("type") or ""
    said = message if isinstance(message, str) else json.dumps(message, default=str)
    metadata: object = told.get("metadata")
    raw: object = metadata.get("raw") if isinstance(metadata, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - what JSON decodes to
    return f"{said}: {raw}" if isinstance(raw, str) and raw else said


def _innermost(error: BaseException) -> str:
    """What the first cause says: an SDK's own words for a connection that failed are two, "Connection error"."""
    seen = {id(error)}
    while (cause := error.__cause__ or error.__context__) and id(cause) not in seen:
        seen.add(id(cause))
        error = cause
    return str(error) or type(error).__name__


def _is_refused(error: BaseException) -> bool:
    """Whether a connection was refused, at every address of the host."""
    if isinstance(error, BaseExceptionGroup):
        inner: tuple[BaseException, ...] = error.exceptions  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        return all(_is_refused(each) for each in inner)
    if isinstance(error, ConnectionRefusedError):
        return True
    cause = error.__cause__ or error.__context__
    return cause is not None and cause is not error and _is_refused(cause)


def _retry_after(headers: Any) -> float | None:
    if headers is None:
        return None
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = str(headers.get(name) or "")
        if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", value):
            return float(value) * unit_s
    return None  # a date is not understood: there is no clock here
