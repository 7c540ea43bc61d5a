"""Dependencies that an act did not declare: it uses what an exploration found, and does not name it (CWL paper, section 5). Pure.

"If it omits a dependency, a needed exploratory episode may be evicted while the action episode that relied on it remains." What is used is told by
the record's own anchors: an exact string in the arguments of the act's calls that, until then, only results of that `expl` had shown.
 One pass over the texts.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from tenure.engine.record.entry import Block, Origin, Text, ToolResult
from tenure.engine.record.episodes import Episode, EpisodeType
from tenure.engine.record.index import NONE, Index
from tenure.lab.bench.measures.calls import Called, Read
from tenure.lab.harm.names import KIND_OF, RARE, Anchor, Kind, names_of

NAMED: Final = 5  # strings that a finding shows
NAMES: Final = 2  # symbols that make a use, where no place or id does
_FREE: Final = -2  # a home that needs no naming: human words, results outside any declared expl


class Missing(Struct, frozen=True, kw_only=True):
    """An act that used what it did not name: the expl, and strings that only it had shown."""

    act: str
    expl: str
    anchors: tuple[str, ...]


class Dependencies(Struct, frozen=True, kw_only=True):
    """What acts declared, and what they left out. `used` counts pairs of act and expl of which a string was used, named or not."""

    declared: int = 0
    used: int = 0
    missing: tuple[Missing, ...] = ()


def dependencies(index: Index, read: Read, made: Iterable[Called], first: int = 0, last: int | None = None) -> Dependencies:
    """The dependencies of the acts that began between two entries. Strings are looked for in the whole record before them."""
    stop = len(index) if last is None else last
    by_call = {call.span.call: call for call in made}
    shown = _Shown(index)
    pairs: dict[tuple[int, int], dict[Anchor, None]] = {}  # act and expl -> what was used of it
    for entry in range(stop):
        for number, block in enumerate(read(entry).blocks):
            at = (entry, number)
            call = by_call.get(at)
            act = _act_of(index, call)
            if call is not None and act is not None and act.start[0] >= first:
                for anchor in _used(call):
                    home = shown.home_of(anchor, act)
                    if home is not None:
                        pairs.setdefault((act.ordinal, home), {})[anchor] = None
            shown.take(at, block)
    used = {pair: anchors for pair, anchors in pairs.items() if _is_telling(anchors)}
    acts = [each for each in index.episodes if each.declared and each.type is EpisodeType.ACT and first <= each.start[0] < stop]
    return Dependencies(
        declared=sum(len(act.dependencies) for act in acts),
        used=len(used),
        missing=tuple(
            _missing(index, act, expl, anchors)
            for (act, expl), anchors in used.items()
            if expl not in index.episodes[act].dependencies
        ),
    )


class _Shown:
    """Which strings stood where so far. Mutable. A string that has stood in many objects is common talk, and tells nothing."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._homes: dict[Anchor, dict[int, None]] = {}  # episodes, oldest first
        self._seen: dict[Anchor, int] = {}

    def take(self, at: tuple[int, int], block: Block) -> None:
        """A block that stands in the record now; what the model itself says or calls shows it nothing new."""
        match block:
            case ToolResult(text=text):
                home = self._home(at)
            case Text(text=text, origin=Origin.HUMAN | Origin.HARNESS):
                home = _FREE
            case _:
                return
        for anchor in names_of("", text):
            self._homes.setdefault(anchor, {})[home] = None
            self._seen[anchor] = self._seen.get(anchor, 0) + 1

    def home_of(self, anchor: Anchor, act: Episode) -> int | None:
        """The expl that alone showed a string before the act used it: one that is named, where several did. None where none needs naming."""
        homes = self._homes.get(anchor)
        if not homes or self._seen[anchor] > RARE[anchor.form] or _FREE in homes:
            return None
        return next((home for home in homes if home in act.dependencies), next(iter(homes)))

    def _home(self, at: tuple[int, int]) -> int:
        """The expl whose result it is; what an act cannot name is free."""
        ordinal = self._index.block(at).episode
        episode = self._index.episodes[ordinal] if ordinal != NONE else None
        return ordinal if episode is not None and episode.declared and episode.type is EpisodeType.EXPL else _FREE


def _act_of(index: Index, call: Called | None) -> Episode | None:
    if call is None or call.span.episode == NONE:
        return None
    episode = index.episodes[call.span.episode]
    return episode if episode.declared and episode.type is EpisodeType.ACT else None


def _used(call: Called) -> Iterator[Anchor]:
    """What a call names: places as they stand in an argument, the rest from its text."""
    yield from names_of("", call.arguments)
    if call.deed.path:
        yield from names_of("path", call.deed.path)


def _is_telling(anchors: Iterable[Anchor]) -> bool:
    """Whether a use is beyond chance: a place or an id, or several names. One name alone can be anybody's word."""
    found = list(anchors)
    return len(found) >= NAMES or any(KIND_OF[anchor.form] is Kind.LOCATOR for anchor in found)


def _missing(index: Index, act: int, expl: int, anchors: Iterable[Anchor]) -> Missing:
    named = tuple(dict.fromkeys(anchor.text for anchor in anchors))[:NAMED]
    return Missing(act=index.episodes[act].name, expl=index.episodes[expl].name, anchors=named)
