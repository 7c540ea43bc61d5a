"""What a recall asks for, as a value."""

import re
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from tenure.engine.record.objects import Handle, parse_handle
from tenure.engine.record.tools import is_recall
from tenure.errors import InputError

if TYPE_CHECKING:
    from tenure.engine.record.index import Index, Span

CAP: Final = 10_000  # o200k tokens of one answer, unless said otherwise
HANDLES: Final = 50  # in one question
LONGEST: Final = 1_000  # characters of words, a pattern or a path

_APART: Final = re.compile(
    r"(?<![\s,;])[\s,;]++(?=[\w.\-]+:\S)"
)  # between two handles; an episode's name may hold spaces and commas


class Query(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to recall: handles, perhaps with lines, or a search by path, words or pattern; a handle or path beside words narrows them."""

    handle: str | tuple[str, ...] = ""  # one or several, apart by spaces or commas
    path: str = ""
    words: str = ""
    pattern: str = ""
    lines: str = ""

    @property
    def handles(self) -> tuple[str, ...]:
        """The handles, each once. Raises InputError when there are too many."""
        texts = (self.handle,) if isinstance(self.handle, str) else self.handle
        found = tuple(dict.fromkeys(part.strip() for text in texts for part in _APART.split(text) if part.strip(" ,;\t\r\n")))
        if len(found) > HANDLES:
            raise InputError("handle", f"{len(found)} handles", f"at most {HANDLES} at once")
        return found

    @property
    def searches(self) -> bool:
        """Whether it looks for something, rather than bringing back what it names."""
        return bool(self.path.strip() or self.words.strip() or self.pattern)

    @property
    def named(self) -> tuple[Handle, ...]:
        """The handles of what its answer brings back; none of a search, nor of what cannot be read as a handle."""
        if self.searches:
            return ()
        try:
            return tuple(map(parse_handle, self.handles))
        except InputError:
            return ()

    @property
    def objects(self) -> tuple[str, ...]:
        """The objects that its answer brings back."""
        return tuple(handle.object for handle in self.named)

    @property
    def key(self) -> str:
        """The same for two questions that ask the same."""
        parts = (self.objects or self.handle, self.path.strip(), self.words.lower().split(), self.pattern, self.lines.split())
        return msgspec.json.encode(parts).decode()


def query_of(arguments: str) -> Query | None:
    """The question that a call's arguments put; None when they put none. Never raises."""
    try:
        query = msgspec.json.decode(arguments, type=Query)
        return query if query.handles or query.searches else None
    except (msgspec.DecodeError, InputError, RecursionError, UnicodeError):
        return None


class RecallFacts(Struct, frozen=True, gc=False):
    """What a recall's result stands for. It is a copy: it may leave at no loss, and is named by what it is a copy of."""

    key: str  # the same for two recalls that ask the same
    sources: tuple[str, ...]  # objects; none of a search


class RecallIndex(dict[int, RecallFacts]):
    """By ordinal of the span, ascending."""

    def add_call(self, index: "Index", span: "Span", arguments: str) -> None:
        """Tie a recall to its sources; one of a recall is tied to that one's. A call of a host's own that asks otherwise is none."""
        query = query_of(arguments) if is_recall(span.tool) else None
        if query is None:
            return
        sources: dict[str, None] = {}
        for handle in query.named:
            object_ = handle.object
            named = index.span_of(object_)
            if named is not None and handle.hash and not index.is_hash(named.call[0], handle.hash):
                named, object_ = None, str(handle)  # of the conversation that this one was built from
            if object_.startswith("skill:") and (loads := index.skills.loads(object_.removeprefix("skill:"))):
                named = index.spans[loads[-1].span]
                object_ = named.object
            again = self.get(named.ordinal) if named is not None else None
            sources |= dict.fromkeys(again.sources if again is not None else (object_,))
        self[span.ordinal] = RecallFacts(query.key, tuple(sources))
