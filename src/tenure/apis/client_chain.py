"""What a client's history is known by, so that it is found again: a hash chain over its blocks in canonical form.

A client sends its whole history with each request, and spells it anew: cache markers move, arguments change their order, reasoning and its ids are left
out, a text becomes a list of parts, fields are added. None of that counts. What counts of a message is who speaks, its words, its calls by id, name and
arguments, and its results by the call they answer. A text that is appended to the last message is a block behind the others, so the chain of what was
there before still begins the new one.
"""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Sequence, Set
from hashlib import sha256
from typing import Any, Final, assert_never, cast

import msgspec
from msgspec import Struct

from tenure.apis.api import Api
from tenure.apis.json_text import load
from tenure.engine.record.entry import Block, Draft, Media, Opaque, Role, Text, Thinking, ToolCall, ToolResult
from tenure.errors import InputError

MOST: Final = 400  # histories: about 100 KB each at 500 messages
_UNSTEADY: Final = frozenset({"id", "status", "cache_control"})  # members of a part of unknown kind that clients leave out or add

Keys = tuple[tuple[int, bytes], ...]  # for each block of a message that counts: the blocks taken in with it, and its key


class Link(Struct, frozen=True, gc=False):
    """A place in a client's history: all up to the `blocks`-th block of its `message`-th message, known by `id`."""

    id: str
    message: int
    blocks: int  # of that message that are taken in, thinking and blanks included
    whole: bool  # the message ends here


def keys_of(draft: Draft) -> Keys:
    """For each block that counts: how many blocks of the draft are taken in with it, and its key."""
    found = [(n, form) for n, block in enumerate(draft.blocks, 1) if (form := _canonical(block)) is not None]
    if not found and draft.role is not Role.ASSISTANT:  # a message that only carries settings; an empty reply says nothing
        found = [(len(draft.blocks), ("blank",))]
    role = str(draft.role)
    return tuple((n, sha256(msgspec.json.encode([role, *form])).digest()) for n, form in found)


def start_of(api: Api, tenant: str) -> str:
    """What the chains of a tenant's histories of an API begin with."""
    return sha256(f"tenure client\0{api.name}\0{tenant}".encode()).hexdigest()


def chain(start: str, messages: Iterable[Keys], first: int = 0) -> list[Link]:
    """The links of messages behind `start`, one for each block that counts, in order. `first` is the number of the first message."""
    head = bytes.fromhex(start)
    links: list[Link] = []
    for number, keys in enumerate(messages, first):
        for place, (blocks, key) in enumerate(keys, 1):
            head = sha256(head + key).digest()
            links.append(Link(head.hex(), number, blocks, place == len(keys)))
    return links


_NONE: Final = (list[bytes](), list[Link]())


class KnownChains:
    """The chains of histories that came before: messages that begin a history again are known by their bytes, and not read again.

    Mutable; of too many the longest unused are let go. Nothing is kept of a message but hashes, and its length in blocks.
    """

    def __init__(self, most: int = MOST) -> None:
        self._known: OrderedDict[tuple[str, ...], tuple[list[bytes], list[Link]]] = OrderedDict()
        self._most = most

    def links(self, api: Api, start: str, messages: Sequence[bytes]) -> list[Link]:
        """The links of a history behind `start`. Raises InputError for what is no message of the API."""
        hashes = [sha256(message).digest() for message in messages]
        key = start, *(each.hex() for each in hashes[:2])
        before, known = self._known.get(key, _NONE)
        same = next((n for n, (a, b) in enumerate(zip(hashes, before, strict=False)) if a != b), min(len(hashes), len(before)))
        at = bisect_left(known, same, key=lambda link: link.message)
        keys = (_keys(api, message) for message in messages[same:])
        links = [*known[:at], *chain(known[at - 1].id if at else start, keys, same)]
        self._known[key] = hashes, links
        self._known.move_to_end(key)
        if len(self._known) > self._most:
            self._known.popitem(last=False)
        return links


def _keys(api: Api, message: bytes) -> Keys:
    return tuple(pair for draft in api.parse([api.unmarked(message)]) for pair in keys_of(draft))


def _canonical(block: Block) -> Sequence[Any] | None:
    """What counts of a block; None of one that does not."""
    match block:
        case Text(text=text):
            words = " ".join(text.split())
            return ("text", words) if words else None
        case Thinking():
            return None
        case ToolCall(call_id=call_id, name=name, arguments=arguments):
            return "call", call_id, name, _in_order(arguments, frozenset())
        case ToolResult(call_id=call_id, text=text, media=media):
            return "result", call_id, " ".join(text.split()), [item.sha256 for item in media]
        case Media(sha256=digest):
            return "media", digest
        case Opaque(type=kind, text=text):
            return "other", kind, _in_order(text, _UNSTEADY)
        case _:
            assert_never(block)


def _in_order(text: str, unsteady: Set[str]) -> Any:
    """The value of a JSON text with its keys in order, without nulls and `unsteady` members; a text that is no JSON as it is."""
    try:
        return _sorted(load(text), unsteady)
    except InputError:
        return text


def _sorted(value: Any, unsteady: Set[str]) -> Any:
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        kept = sorted(key for key, held in fields.items() if held is not None and key not in unsteady)
        return [[key, _sorted(fields[key], unsteady)] for key in kept]
    return [_sorted(each, unsteady) for each in cast(list[Any], value)] if isinstance(value, list) else value
