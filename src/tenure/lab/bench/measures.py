"""What is measured of a session, or of a stretch of it: annotation, dependencies, repeated exploration. Pure.

- What annotation costs, and how well it is done: delimiters, episodes of the wrong type (CWL paper, sections 5 and 7).
- Dependencies that an act did not declare: it uses what an exploration found, and does not name it (section 5): "If it omits a dependency, a needed
  exploratory episode may be evicted while the action episode that relied on it remains." What is used is read from the record: an exact string in the
  arguments of the act's calls that, until then, only results of that `expl` had shown.
- Repeated exploration: the same read or search again, of what was read before and has not changed since (sections 6.4 and 6.5).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, cast

import msgspec
from msgspec import Struct

from tenure.agent.admission.prompt import EPISODES
from tenure.agent.tools.shell.judge import judge
from tenure.agent.workspace import Workspace
from tenure.apis.json_text import dump
from tenure.engine.meter.ledger import Spent
from tenure.engine.meter.tokens import Tokenizer
from tenure.engine.policies.cwl import Cwl
from tenure.engine.policies.offer import delimiter_offer
from tenure.engine.record.entry import At, Block, Origin, Read, Role, Text, ToolCall, ToolResult
from tenure.engine.record.episodes import Episode, EpisodeType
from tenure.engine.record.index import NONE, Index, Span
from tenure.engine.record.tools import ToolKind, is_delimiter, is_notes, is_recall
from tenure.engine.view.edit import Commit, Drop, Replace, Restore
from tenure.lab.audit.files import FileAccess, access_of, lines_shown
from tenure.lab.harm.names import KIND_OF, RARE, Anchor, Kind, names_of

NAMED: Final = 5  # strings that a finding shows
NAMES: Final = 2  # symbols that make a use, where no place or id does
SHARE: Final = 0.5  # of a read's lines: of fewer that were read before, it is a read of something else
KEPT: Final = 256  # reads of one file that are watched at a time, the newest
_FREE: Final = -2  # a home that needs no naming: human words, results outside any declared expl
_COMMANDS: Final = ("command", "cmd")

# Whether a call changed anything outside the conversation; "perhaps" of a command whose words do not tell.
Changed = Literal["yes", "perhaps", "no"]


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


class JudgedCall(Struct, frozen=True, kw_only=True):
    """One call with its result: what it was about, and whether it changed anything."""

    span: Span
    arguments: str
    result: ToolResult | None
    deed: FileAccess
    changed: Changed
    result_tokens: int
    turn: int  # the human turn that it was made in

    @property
    def text(self) -> str:
        """What it gave back; empty while there is nothing."""
        return self.result.text if self.result is not None else ""

    @property
    def digest(self) -> bytes:
        """Of what it gave back."""
        return sha256(self.text.encode("utf-8", "surrogatepass")).digest()


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
    made = list(_made(index, read, stop))
    inside = [call for call in made if call.span.call[0] >= first]
    spans = list(index.spans_in(first, stop))
    declared = [episode for episode in index.episodes if episode.declared and first <= episode.start[0] < stop]
    return Measures(
        first=first,
        last=stop,
        replies=sum(first <= step.entry < stop for step in index.steps),
        calls=len(inside),
        recalls=sum(is_recall(span.tool) for span in spans),
        overhead=_overhead(index, read, [span for span in spans if is_delimiter(span.tool)], spent or {}, count, first, stop),
        typing=_episode_types(declared, inside),
        dependencies=_dependencies(index, read, made, declared, stop),
        explored=_exploration(made, commits, first),
    )


def _made(index: Index, read: Read, stop: int) -> Iterator[JudgedCall]:
    """The calls in the entries up to `stop`, in order, all but delimiters, recalls and notes. O(what they and their results hold)."""
    workspace = Workspace(Path("/"), home=Path("/"))  # where is of no matter: it is only asked whether

    @cache
    def only_looks(command: str) -> bool:
        return judge(command, workspace, disk=False) is None

    for span in index.spans_in(0, stop):
        if is_delimiter(span.tool) or is_recall(span.tool) or is_notes(span.tool):
            continue
        call = read(span.call[0]).blocks[span.call[1]]
        arguments = call.arguments if isinstance(call, ToolCall) else ""
        result = read(span.result[0]).blocks[span.result[1]] if span.result is not None else None
        deed = access_of(span.tool, arguments)
        yield JudgedCall(
            span=span,
            arguments=arguments,
            result=result if isinstance(result, ToolResult) else None,
            deed=deed,
            changed=_changed(span.kind, arguments, deed, only_looks) if not span.error else "no",
            result_tokens=index.block(span.result).tokens if span.result is not None else 0,
            turn=index.block(span.call).turn,
        )


def _changed(kind: ToolKind, arguments: str, deed: FileAccess, only_looks: Callable[[str], bool]) -> Changed:
    if deed.changes:
        return "yes"
    if deed.shows is not None or kind is ToolKind.BULK:
        return "no"
    if kind is ToolKind.DURABLE:
        return "perhaps"
    command = _command(arguments)
    if command is None:
        return "perhaps" if arguments.strip() else "no"
    return "no" if only_looks(command) else "perhaps"


def _command(arguments: str) -> str | None:
    try:
        fields = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
    given = cast(dict[str, Any], fields) if isinstance(fields, dict) else {}
    return next((given[key] for key in _COMMANDS if isinstance(given.get(key), str)), None)


def _overhead(
    index: Index, read: Read, marks: Sequence[Span], spent: Mapping[int, Spent], count: Tokenizer, first: int, stop: int
) -> Overhead:
    """What the delimiters of a stretch took. `spent` has what was reported, by the entry of the reply."""
    alone: list[Spent | None] = []
    for entry in range(first, stop):
        if index.entries[entry].role is Role.ASSISTANT:
            spans = list(index.spans_in(entry, entry + 1))
            if spans and all(is_delimiter(span.tool) for span in spans):
                says_something = any(isinstance(block, Text) and block.text.strip() for block in read(entry).blocks)
                alone += [] if says_something else [spent.get(entry)]
    reported = [each for each in alone if each is not None]
    ends = [at for span in marks for at in (span.call, span.result) if at is not None]
    return Overhead(
        delimiters=len(marks),
        refused=sum((answer := index.answers.get(span.call)) is not None and answer.error for span in marks),
        tokens=sum(index.block(at).tokens for at in ends),
        replies=len(alone),
        replies_tokens=sum(each.usage.prompt + each.usage.output for each in reported),
        replies_usd=sum((each.usd or 0.0 for each in reported), 0.0),
        standing_tokens=_standing(index, read, count, marked=bool(marks)),
    )


def _standing(index: Index, read: Read, count: Tokenizer, *, marked: bool) -> int:
    """Tokens that go with every request so that the agent can annotate, as `cwl` declares the tool; 0 where it was not told how."""
    instructed = any(EPISODES in block.text for entry in sorted(index.system)[:1] for block in read(entry).blocks)
    if not instructed and not marked:
        return 0
    offer = delimiter_offer(Cwl())
    assert offer is not None
    return count(dump(offer._asdict())) + (count(EPISODES) if instructed else 0)


def _episode_types(declared: Sequence[Episode], made: Iterable[JudgedCall]) -> EpisodeTypes:
    """The episodes that began in a stretch, and those of the wrong type.

    An `expl` is wrong when a call in it plainly changed a file. An `act` is wrong when it has ended and every call in it only looked; what a command
    may have done that its words do not tell counts for the act.
    """
    inside: dict[int, list[JudgedCall]] = {episode.ordinal: [] for episode in declared}
    for call in made:
        if call.span.episode in inside:
            inside[call.span.episode].append(call)
    reasons = [(episode, _why_mistyped(episode, inside[episode.ordinal])) for episode in declared]
    return EpisodeTypes(
        expl=sum(episode.type is EpisodeType.EXPL for episode in declared),
        act=sum(episode.type is EpisodeType.ACT for episode in declared),
        open=sum(not episode.closed for episode in declared),
        mistyped=tuple(WrongType(episode=episode.name, type=episode.type, why=why) for episode, why in reasons if why),
    )


def _why_mistyped(episode: Episode, calls: Sequence[JudgedCall]) -> str:
    if episode.type is EpisodeType.EXPL:
        return next((f"{call.span.object} changed {call.deed.changes[0]}" for call in calls if call.changed == "yes"), "")
    if not episode.closed or any(call.changed != "no" for call in calls):
        return ""
    return f"none of its {len(calls)} calls changed anything" if calls else "it made no calls"


def _dependencies(index: Index, read: Read, made: Iterable[JudgedCall], declared: Iterable[Episode], stop: int) -> Dependencies:
    """The dependencies of the acts that began in a stretch. Strings are looked for in the whole record before them."""
    acts = {episode.ordinal: episode for episode in declared if episode.type is EpisodeType.ACT}
    by_call = {call.span.call: (call, acts[call.span.episode]) for call in made if call.span.episode in acts}
    homes = _NameHomes(index)
    pairs: dict[tuple[int, int], dict[Anchor, None]] = {}  # act and expl -> what was used of it
    for entry in range(stop):
        for number, block in enumerate(read(entry).blocks):
            at = (entry, number)
            if at in by_call:
                call, act = by_call[at]
                places = names_of("path", call.deed.path) if call.deed.path else ()
                for anchor in (*names_of("", call.arguments), *places):
                    if (home := homes.home_of(anchor, act)) is not None:
                        pairs.setdefault((act.ordinal, home), {})[anchor] = None
            homes.take(at, block)
    used = {  # beyond chance: a place or an id, or several names; one name alone can be anybody's word
        pair: anchors
        for pair, anchors in pairs.items()
        if len(anchors) >= NAMES or any(KIND_OF[anchor.form] is Kind.LOCATOR for anchor in anchors)
    }
    return Dependencies(
        declared=sum(len(act.dependencies) for act in acts.values()),
        used=len(used),
        missing=tuple(
            MissingDependency(
                act=acts[act].name,
                expl=index.episodes[expl].name,
                anchors=tuple(dict.fromkeys(anchor.text for anchor in anchors))[:NAMED],
            )
            for (act, expl), anchors in used.items()
            if expl not in acts[act].dependencies
        ),
    )


class _NameHomes:
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


def _exploration(made: Iterable[JudgedCall], commits: Iterable[Commit], first: int) -> Exploration:
    """What was looked at from entry `first` on, and again. `made` begins with the record: what was read before `first` was read before."""
    gone, clipped = _hidden(commits)
    reads: dict[str, list[tuple[JudgedCall, range]]] = {}  # of each file: the calls with the lines that they gave
    searches: dict[tuple[str, str], JudgedCall] = {}  # the newest call of a tool with these arguments
    looks = tokens = 0
    again: list[Repetition] = []
    for call in made:
        for path in call.deed.changes:
            reads.pop(path, None)
        if call.changed != "no" or call.span.result is None or call.span.error:
            continue
        shown = lines_shown(call.text, call.deed.shows)
        before = reads.setdefault(call.deed.path, []) if call.deed.shows is not None else []
        search = (call.span.tool, call.arguments)
        earlier = next(
            (
                old
                for old, lines in reversed(before)
                if min(lines.stop, shown.stop) - max(lines.start, shown.start) >= SHARE * len(shown)
            ),
            None,
        )
        if call.deed.shows is None and search in searches and searches[search].digest == call.digest:
            earlier = searches[search]
        if call.span.call[0] >= first:
            looks, tokens = looks + 1, tokens + call.result_tokens
            again += [_repetition(call, earlier, gone)] if earlier is not None else []
        if call.span.result in clipped:  # what was never shown whole may be asked for
            continue
        if call.deed.shows is None:
            searches[search] = call
        else:
            before.append((call, shown))
            del before[:-KEPT]
    return Exploration(looks=looks, tokens=tokens, again=tuple(again))


def _repetition(call: JudgedCall, earlier: JudgedCall, gone: Mapping[At, int]) -> Repetition:
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
