"""What all assemblies of replies have in common. Pure: events in, a reply out."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any, Final, Protocol, cast

from msgspec import Struct

from tenure.apis.json_text import clean, dump, load
from tenure.errors import Failure, InputError
from tenure.models.replies import NO_END
from tenure.models.speaker import Ended, Spoken, Whole

Fields = Mapping[str, Any]

# Words for an end that is none: the reply is incomplete, and the same request may bring a whole one.
BROKEN_OFF: Final = frozenset({"", "cancelled", "error", "insufficient_system_resource", "failed", "in_progress", "queued"})


class Assembly(Protocol):
    """Puts one reply together. Events of unknown shape are nothing to it."""

    @property
    def said(self) -> str:
        """The words so far."""
        ...

    @property
    def begun(self) -> bool:
        """Whether anything of the reply has come."""
        ...

    @property
    def error(self) -> Fields | None:
        """The error object that came in the stream's midst."""
        ...

    def take(self, event: object, /) -> Iterator[Spoken]:
        """Take the next event, decoded from its JSON, and say what is new in it."""
        ...

    def whole(self) -> Whole | None:
        """The reply; None when it broke off before its end."""
        ...


class Arguments(Struct, frozen=True, kw_only=True, gc=False):
    """The arguments of a call as a request can carry them."""

    text: str  # a JSON object
    broken: str = ""


def arguments_of(text: str) -> Arguments:
    """Arguments as a model wrote them; nothing is as good as `{}`.

    What is no JSON object is kept as a string inside one: servers that render a history read all arguments again, and one call that they cannot
    read would end the session.
    """
    if not text.strip():
        return Arguments(text="{}")
    try:
        value = load(text, "arguments")
    except InputError as error:
        return Arguments(text=dump({"arguments": clean(text)}), broken=_why(error))
    if isinstance(value, dict):
        return Arguments(text=text)
    return Arguments(text=dump({"arguments": value}), broken=f"a JSON {type(value).__name__} is no object")


def own_id(given: str, place: int, taken: Iterable[str]) -> str:
    """The id of a reply's call, of which there is none before it: results are paired by them, and a request in which one stands twice is refused.

    Some servers give all calls of a reply the same id, or none.
    """
    used = set(taken)
    if given and given not in used:
        return given
    start = given or "call"
    return next(name for n in count(place) if (name := f"{start}_{n}") not in used)


def end_of(stop: str, *, refusal: str = "") -> tuple[Ended, str] | None:
    """How a reply ended by the provider's word, and why; None when it did not."""
    if refusal:
        return "refused", refusal
    if stop in BROKEN_OFF:
        return None
    if stop == "pause_turn":
        return "paused", "the provider paused"
    found = NO_END.get(stop)
    if found is None or found[0] is Failure.BAD_REPLY:
        return "done", ""
    return ("refused", found[1]) if found[0] is Failure.REFUSED else ("length", found[1])


def array_of(items: Iterable[str]) -> str:
    """The JSON array of these values."""
    return "[" + ",".join(items) + "]"


def object_from(members: Mapping[str, str]) -> str:
    """The JSON object of these values, each as JSON."""
    return "{" + ",".join(f"{dump(key)}:{value}" for key, value in members.items()) + "}"


def fields_of(value: object) -> dict[str, Any]:
    """The object that a value is; empty when it is none."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def items_of(value: object) -> list[Any]:
    """The array that a value is; empty when it is none."""
    return cast(list[Any], value) if isinstance(value, list) else []


def text_of(fields: Fields, key: str) -> str:
    """The string at `key`; empty when there is none."""
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def _why(error: InputError) -> str:
    return error.found[:160]
