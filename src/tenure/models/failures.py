"""Every way in which a provider or its SDK fails, as one of a few kinds. Pure: it looks at the error and touches nothing.

Both SDKs are made by the same generator, so their errors have the same names and attributes, and those are all that is asked for here.
https://platform.claude.com/docs/en/api/errors https://platform.openai.com/docs/guides/error-codes
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.apis import APIS
from tenure.errors import Failure, Overflow
from tenure.models.hosts import is_loopback

SENTENCES: Final[Mapping[Failure, str]] = {
    Failure.UNAVAILABLE: "no answer: the provider is down, overloaded or out of reach",
    Failure.RATE_LIMITED: "the provider takes no more requests for the moment",
    Failure.TOO_LONG: "the question is longer than the model can take",
    Failure.REFUSED: "the question was refused",
    Failure.CUT_SHORT: "the answer was cut short",
    Failure.CANCELLED: "cancelled before the answer was complete",
    Failure.BAD_REPLY: "the answer is of no use",
    Failure.NO_SERVER: "no server runs there: the connection is refused",
    Failure.WAITING: "the answer has not come yet",
    Failure.NOT_ACCEPTED: "the provider does not accept the request",
}

# What an error says of itself (`code` or `type` in its body) -> its kind. It is more exact than the status, and in a stream all there is. Routers pass
# on the errors of other APIs, so those of all hold everywhere.
CODES: Final[Mapping[str, Failure]] = {code: kind for each in APIS.values() for code, kind in each.speech.errors.codes.items()}

STATUSES: Final[Mapping[int, Failure]] = {
    408: Failure.UNAVAILABLE,
    409: Failure.UNAVAILABLE,
    413: Failure.TOO_LONG,
    425: Failure.UNAVAILABLE,
    429: Failure.RATE_LIMITED,
}

# A question that is too long comes as an invalid request; only the words tell.
TOO_LONG_WORDS: Final = tuple(words for each in APIS.values() for words in each.speech.errors.too_long)

_NUMBER: Final = r"\d{1,3}(?:[,_]\d{3})+|\d{1,9}"
_FIGURES: Final = ("n_ctx", "n_prompt_tokens")  # beside llama.cpp's words: tools/server/server-task.cpp


def _pattern(text: str) -> re.Pattern[str]:
    """A pattern in which `<allowed>`, `<prompt>` and `<reply>` stand for numbers, and `…` for a few words."""
    named = re.sub(r"<(\w+)>", lambda name: rf"(?P<{name[1]}>{_NUMBER})(?!\d|[.,_]\d)", text)
    return re.compile(named.replace("…", r"[^{}]{0,160}?"), re.IGNORECASE)


# Sentences with figures. A number counts only where one of them puts it: an error may also hold a port, a price, an id, a date, or a part of the request.
OVERFLOWS: Final = (
    *(_pattern(text) for each in APIS.values() for text in each.speech.errors.overflows),
    _pattern(r"maximum context length (?:is|of) <allowed> tokens"),  # what many servers say, and nothing else
)

# The name of an error's class, or of one it is derived from -> its kind before anything was heard, and after.
CLASSES: Final[tuple[tuple[str, Failure, Failure], ...]] = (
    ("JSONDecodeError", Failure.BAD_REPLY, Failure.BAD_REPLY),
    ("UnicodeDecodeError", Failure.BAD_REPLY, Failure.BAD_REPLY),
    ("APIResponseValidationError", Failure.BAD_REPLY, Failure.BAD_REPLY),
    ("UnknownApiResponseError", Failure.BAD_REPLY, Failure.BAD_REPLY),  # of the SDK of Google
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
    """A failure fields apart from the library it came from."""

    kind: Failure
    detail: str = ""  # in the provider's words, or the connection's; may hold secrets
    retry_after_s: float | None = None
    overflow: Overflow | None = None  # of a question that is too long


NO_KEY: Final = "there is no key"


def trouble(error: BaseException, *, begun: bool = False, host: str = "") -> Trouble | None:
    """What an SDK's error comes to; None for an error of nobody but ourselves. `begun` says that a part of the answer was there.

    A connection that `host` refuses does not come about by waiting where that is this machine.
    """
    names = {base.__name__ for base in type(error).__mro__}
    status, body = getattr(error, "status_code", None), getattr(error, "body", None)
    if status is None:  # the SDK of Google
        status, body = getattr(error, "code", None), body or getattr(error, "details", None)
    if isinstance(status, int) and names & {"APIStatusError", "APIError"}:
        found = refusal(status, body, begun=begun)
        wait = _retry_after(getattr(getattr(error, "response", None), "headers", None), _error_fields(body))
        return replace(found, retry_after_s=wait)
    if "APIError" in names and (fields := _error_fields(body)):
        return trouble_in(fields, begun=begun)
    if isinstance(error, TypeError) and "authentication" in str(error):  # how the SDK of Anthropic says that it has no key
        return Trouble(kind=Failure.NOT_ACCEPTED, detail=NO_KEY)
    if isinstance(error, ValueError) and "No API key" in str(error):  # and that of Google
        return Trouble(kind=Failure.NOT_ACCEPTED, detail=NO_KEY)
    for name, before, after in CLASSES:
        if name in names:
            if not begun and is_loopback(host) and _is_refused(error):
                return Trouble(kind=Failure.NO_SERVER)
            return Trouble(kind=after if begun else before, detail=_innermost(error))
    return None


def refusal(status: int, body: object, *, begun: bool = False) -> Trouble:
    """What a response with the status of an error comes to."""
    fields = _error_fields(body)
    overflow = overflow_in(_words(fields), fields)
    return Trouble(kind=_kind(status, fields, overflow, begun=begun), detail=_status_detail(status, fields), overflow=overflow)


def trouble_in(fields: Mapping[str, Any], *, begun: bool) -> Trouble:
    """What an error object in a stream's midst comes to."""
    words = _words(fields)
    overflow = overflow_in(words, fields)
    wait = _retry_after(None, fields)
    return Trouble(kind=_kind(200, fields, overflow, begun=begun), detail=words, retry_after_s=wait, overflow=overflow)


def overflow_in(words: str, error: Mapping[str, Any]) -> Overflow | None:
    """The figures of a refusal: from the fields of its error object, else from a known sentence; None where there are none, or it is none."""
    allowed, prompt = (error.get(name) for name in _FIGURES)
    if type(allowed) is int and allowed > 0:
        return Overflow(allowed=allowed, prompt=prompt if type(prompt) is int and prompt > 0 else 0)
    found = next(filter(None, (pattern.search(words) for pattern in OVERFLOWS)), None)
    if found is None:
        return None
    figures = {name: int(re.sub("[,_]", "", text)) for name, text in found.groupdict().items() if text}
    prompted = figures.get("prompt", 0) + figures.get("tools", 0)
    return Overflow(allowed=figures["allowed"], prompt=prompted, reply=figures.get("reply", 0))


def sentence(who: str, failure: Trouble, secrets: Iterable[str] = ()) -> str:
    """One sentence about a failure, for people, without secrets."""
    detail = redacted(_SPACE.sub(" ", failure.detail).strip(), secrets)
    if len(detail) > _LONGEST_DETAIL:
        detail = detail[:_LONGEST_DETAIL] + "…"
    return f"{who}: {SENTENCES[failure.kind]}" + (f" ({detail})" if detail else "")


def redacted(text: str, secrets: Iterable[str]) -> str:
    """The text without these secrets, and without anything that looks like a key."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "[key]")
    return _KEY_LIKE.sub("[key]", text)


def _kind(status: int, fields: Mapping[str, Any], overflow: Overflow | None, *, begun: bool) -> Failure:
    words = _words(fields).lower()
    codes = (fields.get(key) for key in ("code", "type", "status"))
    named = next((CODES[name] for name in codes if isinstance(name, str) and name in CODES), None)
    if overflow is not None:  # whatever the status: more than a minute's allowance comes as a rate limit, and no wait would help
        return Failure.TOO_LONG
    if named is not Failure.RATE_LIMITED and status in (200, 400, 413, 422) and any(phrase in words for phrase in TOO_LONG_WORDS):
        return Failure.TOO_LONG
    if named is not None:
        return named
    if status < 400:
        return Failure.CUT_SHORT if begun else Failure.UNAVAILABLE
    return STATUSES.get(status) or (Failure.UNAVAILABLE if status >= 500 else Failure.NOT_ACCEPTED)


def _error_fields(body: object) -> dict[str, Any]:
    """The error object in a body: it stands alone, or under `error`."""
    if not isinstance(body, dict):
        return {"message": body} if isinstance(body, str) else {}
    fields: dict[str, Any] = body  # pyright: ignore[reportUnknownVariableType] - what JSON decodes to
    return _error_fields(fields["error"]) if fields.get("error") else fields


def _status_detail(status: int, fields: Mapping[str, Any]) -> str:
    if status in (401, 403):  # providers repeat the key here, in part or whole
        return f"HTTP {status}: the key is missing, wrong, or not allowed to do this"
    words = _words(fields)
    return f"HTTP {status}: {words}" if words else f"HTTP {status}"


def _words(fields: Mapping[str, Any]) -> str:
    """What a person would read; a router such as OpenRouter puts the provider's own words under `metadata.raw`."""
    message: object = fields.get("message") or fields.get("detail") or fields.get("type") or ""
    text = message if isinstance(message, str) else json.dumps(message, default=str)
    metadata: object = fields.get("metadata")
    raw: object = metadata.get("raw") if isinstance(metadata, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - what JSON decodes to
    return f"{text}: {raw}" if isinstance(raw, str) and raw else text


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


def _retry_after(headers: Any, fields: Mapping[str, Any]) -> float | None:
    """The wait that a header asks for, else the error itself."""
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = str(headers.get(name) or "") if headers is not None else ""
        if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", value):
            return float(value) * unit_s
    waits = (
        api.speech.errors.retry_after_s(fields) for api in APIS.values()
    )  # a date in a header is not understood: there is no clock here
    return next((wait for wait in waits if wait is not None), None)
