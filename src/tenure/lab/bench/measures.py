"""What is measured of a session, or of a stretch of it: annotation, dependencies, repeated exploration. Pure.

- What annotation costs, and how well it is done: delimiters, episodes of the wrong type (CWL paper, sections 5 and 7).
- Dependencies that an act did not declare: it uses what an exploration found, and does not name it (section 5): "If it omits a dependency, a needed
  exploratory episode may be evicted while the action episode that relied on it remains." What is used is read from the record: an exact string in the
  arguments of the act's calls that, until then, only results of that `expl` had shown.
- Repeated exploration: the same read or search again, of what was read before and has not changed since (sections 6.4 and 6.5).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from tenure.agent.admission.prompt import EPISODES
from tenure.apis.json_text import dump
from tenure.engine.meter.ledger import Spent
from tenure.engine.meter.tokens import Tokenizer
from tenure.engine.policies.cwl import Cwl
from tenure.engine.policies.offer import delimiter_offer
from tenure.engine.record.entry import At, Block, Origin, Text, ToolResult
from tenure.engine.record.episodes import Episode, EpisodeType
from tenure.engine.record.index import NONE, Index
from tenure.engine.record.tools import is_delimiter
from tenure.engine.view.edit import Commit, Drop, Replace, Restore
from tenure.lab.audit.files import lines_shown
from tenure.lab.bench.calls import Called, Calls, Read, calls_of, replies, says_anything
from tenure.lab.harm.names import KIND_OF, RARE, Anchor, Kind, names_of

NAMED: Final = 5  # strings that a finding shows
NAMES: Final = 2  # symbols that make a use, where no place or id does
SHARE: Final = 0.5  # of a read's lines: of fewer that were read before, it is a read of something else
KEPT: Final = 256  # reads of one file that are watched at a time, the newest
_FREE: Final = -2  # a home that needs no naming: human words, results outside any declared expl

Reads: TypeAlias = dict[str, list[tuple[Called, range]]]  # of each file: the calls with the lines that they gave
Searches: TypeAlias = dict[tuple[str, str], Called]  # the newest call of a tool with these arguments


class Overhead(Struct, frozen=True, kw_only=True):
    """What annotating took. o200k tokens, money as reported."""

    delimiters: int = 0  # calls of `delimiter`
    refused: int = 0  # of them
    tokens: int = 0  # of those calls and their results, once
    replies: int = 0  # of the model that did nothing else: each is a call of the model made for annotation alone
    replies_tokens: int = 0  # prompts and replies of those, in provider tokens, where reported
    replies_usd: float = 0.0
    standing_tokens: int = 0  # of the tool's declaration and the words on its use, where they go with every request

    @property
    def accepted(self) -> int:
        """Delimiters that began or ended something."""
        return self.delimiters - self.refused


class WrongType(Struct, frozen=True, kw_only=True):
    """An episode of the wrong type: an `expl` that wrote, or an `act` that changed nothing."""

    episode: str
    type: EpisodeType
    why: str


class EpisodeTypes(Struct, frozen=True, kw_only=True):
    """The types of the episodes that the agent declared in a stretch."""

    expl: int = 0
    act: int = 0
    open: int = 0  # that were not ended
    mistyped: tuple[WrongType, ...] = ()

    @property
    def declared(self) -> int:
        """All of them."""
        return self.expl + self.act


class MissingDependency(Struct, frozen=True, kw_only=True):
    """An act that used what it did not name: the expl, and strings that only it had shown."""

    act: str
    expl: str
    anchors: tuple[str, ...]


class Dependencies(Struct, frozen=True, kw_only=True):
    """What acts declared, and what they left out. `used` counts pairs of act and expl of which a string was used, named or not."""

    declared: int = 0
    used: int = 0
    missing: tuple[MissingDependency, ...] = ()


class Repetition(Struct, frozen=True, kw_only=True):
    """A call that gave what an earlier one had given. o200k tokens of its result."""

    object: str
    earlier: str
    about: str  # a path, pattern or command
    tokens: int
    across: bool  # the earlier one was made in an earlier human turn: for another task, where each task is a turn
    gone: bool  # what the earlier one gave was not in the view any more, or not whole


class Exploration(Struct, frozen=True, kw_only=True):
    """The calls of a stretch that only looked, and those of them that were repeated."""

    looks: int = 0
    tokens: int = 0  # o200k, of their results
    again: tuple[Repetition, ...] = ()

    @property
    def again_tokens(self) -> int:
        """o200k tokens that were read for a second time."""
        return sum(each.tokens for each in self.again)


class Measures(Struct, frozen=True, kw_only=True):
    """What was measured of the entries from `first` up to `last`."""

    first: int
    last: int
    replies: int  # of the model
    calls: int  # of tools, bookkeeping apart
    recalls: int
    overhead: Overhead
    typing: EpisodeTypes
    dependencies: Dependencies
    explored: Exploration


def measure(
    index: Index,
    read: Read,
    count: Tokenizer,
    *,
    commits: Sequence[Commit] = (),
    spent: Mapping[int, Spent] | None = None,
    first: int = 0,
    last: int | None = None,
) -> Measures:
    """Measure a stretch. `commits` and `spent` (by the entry of the reply) are of the same record. O(the record up to its end)."""
    stop = len(index) if last is None else min(last, len(index))
    whole = calls_of(index, read, 0, stop)
    inside = calls_of(index, read, first, stop)
    return Measures(
        first=first,
        last=stop,
        replies=sum(first <= step.entry < stop for step in index.steps),
        calls=len(inside.made),
        recalls=len(inside.recalls),
        overhead=overhead(index, read, inside, spent or {}, count, first, stop),
        typing=episode_types(index, inside, first, stop),
        dependencies=dependencies(index, read, whole.made, first, stop),
        explored=exploration(whole.made, commits, first),
    )


def overhead(
    index: Index, read: Read, calls: Calls, spent: Mapping[int, Spent], count: Tokenizer, first: int = 0, last: int | None = None
) -> Overhead:
    """What annotating took between two entries. `spent` has what was reported, by the entry of the reply."""
    alone = [
        spent.get(entry)
        for entry, spans in replies(index, first, last)
        if spans and all(is_delimiter(span.tool) for span in spans) and not says_anything(read(entry))
    ]
    reported = [each for each in alone if each is not None]
    return Overhead(
        delimiters=len(calls.delimiters),
        refused=sum((answer := index.answers.get(call.span.call)) is not None and answer.error for call in calls.delimiters),
        tokens=sum(call.tokens for call in calls.delimiters),
        replies=len(alone),
        replies_tokens=sum(each.usage.prompt + each.usage.output for each in reported),
        replies_usd=sum((each.usd or 0.0 for each in reported), 0.0),
        standing_tokens=_standing(index, read, calls, count),
    )


def episode_types(index: Index, calls: Calls, first: int = 0, last: int | None = None) -> EpisodeTypes:
    """The declared episodes that began between two entries, and those of the wrong type.

    An `expl` is wrong when a call in it plainly changed a file. An `act` is wrong when it has ended and every call in it only looked; what a command
    may have done that its words do not tell counts for the act.
    """
    stop = len(index) if last is None else last
    declared = [episode for episode in index.episodes if episode.declared and first <= episode.start[0] < stop]
    inside: dict[int, list[Called]] = {episode.ordinal: [] for episode in declared}
    for call in calls.made:
        if call.span.episode in inside:
            inside[call.span.episode].append(call)
    found = [wrong for episode in declared if (wrong := _mistyped(episode, inside[episode.ordinal])) is not None]
    return EpisodeTypes(
        expl=sum(episode.type is EpisodeType.EXPL for episode in declared),
        act=sum(episode.type is EpisodeType.ACT for episode in declared),
        open=sum(not episode.closed for episode in declared),
        mistyped=tuple(found),
    )


def _mistyped(episode: Episode, calls: Iterable[Called]) -> WrongType | None:
    if episode.type is EpisodeType.EXPL:
        wrote = next((call for call in calls if call.changed == "yes"), None)
        why = f"{wrote.span.object} changed {wrote.deed.changes[0]}" if wrote is not None else ""
    else:
        looked = list(calls)
        changed = not episode.closed or any(call.changed != "no" for call in looked)
        why = "" if changed else f"none of its {len(looked)} calls changed anything" if looked else "it made no calls"
    return WrongType(episode=episode.name, type=episode.type, why=why) if why else None


def _standing(index: Index, read: Read, calls: Calls, count: Tokenizer) -> int:
    """Tokens that go with every request so that the agent can annotate, as `cwl` declares the tool; 0 where it was not told how."""
    told = any(EPISODES in block.text for entry in sorted(index.system)[:1] for block in read(entry).blocks)
    if not told and not calls.delimiters:
        return 0
    offer = delimiter_offer(Cwl())
    assert offer is not None
    return count(dump(offer._asdict())) + (count(EPISODES) if told else 0)


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
    used = {  # beyond chance: a place or an id, or several names; one name alone can be anybody's word
        pair: anchors
        for pair, anchors in pairs.items()
        if len(anchors) >= NAMES or any(KIND_OF[anchor.form] is Kind.LOCATOR for anchor in anchors)
    }
    acts = [each for each in index.episodes if each.declared and each.type is EpisodeType.ACT and first <= each.start[0] < stop]
    return Dependencies(
        declared=sum(len(act.dependencies) for act in acts),
        used=len(used),
        missing=tuple(
            MissingDependency(
                act=index.episodes[act].name,
                expl=index.episodes[expl].name,
                anchors=tuple(dict.fromkeys(anchor.text for anchor in anchors))[:NAMED],
            )
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


def exploration(made: Iterable[Called], commits: Iterable[Commit] = (), first: int = 0) -> Exploration:
    """What was looked at from entry `first` on, and again. `made` begins with the record: what was read before `first` was read before."""
    gone, clipped = _hidden(commits)
    reads: Reads = {}
    calls: Searches = {}
    looks = tokens = 0
    found: list[Repetition] = []
    for call in made:
        for path in call.deed.changes:
            reads.pop(path, None)
        if call.changed != "no" or not call.answered or call.span.error:
            continue
        shown = lines_shown(call.text, call.deed.shows)
        earlier = _earlier(call, shown, reads, calls)
        if call.span.call[0] >= first:
            looks, tokens = looks + 1, tokens + call.result_tokens
            if earlier is not None:
                found.append(_repetition(call, earlier, gone))
        if call.span.result not in clipped:  # what was never shown whole may be asked for
            if call.deed.shows is None:
                calls[call.span.tool, call.arguments] = call
            else:
                kept = reads.setdefault(call.deed.path, [])
                kept.append((call, shown))
                del kept[:-KEPT]
    return Exploration(looks=looks, tokens=tokens, again=tuple(found))


def _earlier(call: Called, shown: range, reads: Reads, calls: Searches) -> Called | None:
    """The call that gave this before, the newest of several."""
    if call.deed.shows is not None:
        for old, lines in reversed(reads.get(call.deed.path, [])):
            if min(lines.stop, shown.stop) - max(lines.start, shown.start) >= SHARE * len(shown):
                return old
        return None
    old = calls.get((call.span.tool, call.arguments))
    return old if old is not None and old.digest == call.digest else None


def _repetition(call: Called, earlier: Called, gone: Mapping[At, int]) -> Repetition:
    since = gone.get(earlier.span.result) if earlier.span.result is not None else None
    return Repetition(
        object=call.span.object,
        earlier=earlier.span.object,
        about=call.deed.path or call.span.cue,
        tokens=call.result_tokens,
        across=earlier.turn != call.turn,
        gone=since is not None and since <= call.span.call[0],
    )


def _hidden(commits: Iterable[Commit]) -> tuple[dict[At, int], set[At]]:
    """Blocks that are not shown whole any more, each with the length of the record when that came about, and those that never were."""
    gone: dict[At, int] = {}
    clipped: set[At] = set()
    for commit in commits:
        for edit in commit.edits:
            if isinstance(edit, Drop | Replace):
                gone.setdefault((edit.entry, edit.block), commit.entries)
                if commit.moment == "admission":
                    clipped.add((edit.entry, edit.block))
            elif isinstance(edit, Restore):
                gone.pop((edit.entry, edit.block), None)
    return gone, clipped
