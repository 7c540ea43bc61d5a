"""What the page's script reads: series to hover over, commits, and the places of needs.

Strings are told once, in `texts`, and named by their number there; rows are arrays. Excerpts share a room for each session: lost needs come
first, then routed, then visible, and those for which no room is left are marked.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final

import msgspec
from msgspec import Struct

from tenure.engine.record.visible import visible
from tenure.lab.audit.page.detail import Detail
from tenure.lab.audit.page.layers import Stacks
from tenure.lab.audit.page.markup import Html, slug
from tenure.lab.audit.report import Audit, Gone, Harm, Removal, Run
from tenure.lab.events import Verdict

VERDICTS: Final[tuple[Verdict, ...]] = ("lost", "routed", "visible")
AROUND: Final = 360  # characters of an excerpt before what is needed, and after it
_MATCH: Final = 1_200  # characters of what is needed
_PATH: Final = 1_000  # of a longer one no command is told
_NAME: Final = 240  # characters of a string that is no excerpt
_HOLDERS: Final = 6  # the newest of those that held a need
_LEAST_GONE: Final = 1  # of one commit
_ESCAPED: Final = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


Named = tuple[str, Harm]  # a need, and its name in links


class Excerpt(Struct, frozen=True, array_like=True):
    """A text and what of it is meant, in UTF-16 units; -1: no room was left. `before` and `after` characters were cut off."""

    text: int
    start: int = 0
    length: int = 0
    before: int = 0
    after: int = 0


class NeedRow(Struct, frozen=True, array_like=True, kw_only=True):
    """A need; its strings by number."""

    name: str  # in links
    verdict: int
    kind: int
    form: int
    category: int
    rule: int
    text: int
    more: int
    call: int
    entry: int
    part: int
    tool: int
    field: int
    objects: tuple[int, ...]
    held: tuple[int, ...]  # entries, the newest last
    route: int
    commit: int
    at: int  # line of the log
    step: Excerpt
    held_at: int
    holder: Excerpt
    handle: int


class CommitRow(Struct, frozen=True, array_like=True, kw_only=True):
    """A commit; its strings by number."""

    commit: int
    before_call: int
    entries: int
    policy: int
    moment: int
    why: int
    forced: int
    before: int  # provider tokens, as all of this row
    after: int
    actions: tuple[tuple[int, int], ...]  # kind, how many
    gone: tuple[tuple[int, int, int, int], ...]  # object, kind, level, tokens
    more: int


class RunData(Struct, frozen=True, kw_only=True):
    """One policy."""

    id: str
    name: str
    every: int
    calls: tuple[int, ...]
    tokens: tuple[tuple[int, ...], ...]  # provider tokens by call and band
    commits: tuple[CommitRow, ...]
    needs: tuple[NeedRow, ...]
    more_needs: int


class SessionData(Struct, frozen=True, kw_only=True):
    """One session."""

    id: str
    path: str
    calls: int
    entries: int
    bands: tuple[tuple[str, str], ...]  # label, class
    times: tuple[tuple[int, str], ...]  # call, time, of the recorded window's calls
    texts: tuple[str, ...]
    runs: tuple[RunData, ...]


class Texts:
    """Strings, each once. Mutable."""

    def __init__(self, room: int) -> None:
        self._numbers: dict[str, int] = {}
        self._room = room

    def name(self, text: str) -> int:
        """The number of a short string, which is cut when it is not short."""
        cut = text[:_NAME]
        return self._number(visible(cut) if len(cut) == len(text) else f"{visible(cut)}… ({len(text):,} characters)")

    def excerpt(self, text: str, wanted: str) -> Excerpt:
        """What stands around `wanted` in `text`, or the start of it. O(text)."""
        found = next((part for part in _parts(wanted) if part in text), "")
        at, length = text.find(found), len(found)
        start, stop = max(0, at - AROUND), min(len(text), at + length + AROUND)
        parts = visible(text[start:at]), visible(text[at : at + length]), visible(text[at + length : stop])
        whole = "".join(parts)
        if whole not in self._numbers:
            cost = len(whole.encode()) + 5 * sum(map(whole.count, "<>&")) + sum(map(whole.count, '\n\t"\\'))
            if cost > self._room:
                return Excerpt(-1)
            self._room -= cost
        return Excerpt(self._number(whole), _units(parts[0]), _units(parts[1]), start, len(text) - stop)

    @property
    def all(self) -> tuple[str, ...]:
        """By number."""
        return tuple(self._numbers)

    def _number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))


def policy_names(runs: Sequence[Run]) -> tuple[str, ...]:
    """What each run is called in links."""
    taken: set[str] = set()
    return tuple(slug(run.policy, taken) for run in runs)


def session_data(audit: Audit, id_: str, stacks: Stacks, detail: Detail) -> SessionData:
    """What the script knows of a session."""
    runs = audit.runs
    texts = Texts(detail.room)
    needs = [tuple(named_needs(run, detail.listed)) for run in runs]
    excerpts = dict(_excerpts(needs, texts))
    names = policy_names(runs)
    return SessionData(
        id=id_,
        path=_told(audit.session.path),
        calls=stacks.calls,
        entries=audit.session.entries,
        bands=tuple((visible(band.label), band.class_) for band in stacks.bands),
        times=tuple(
            (call, visible(at[:40])) for call, at in ((point.call, point.at) for point in audit.window.series.points) if at
        ),
        runs=tuple(
            RunData(
                id=names[number],
                name=visible(run.policy[:_NAME]),
                every=run.series.every,
                calls=stacks.runs[number].calls,
                tokens=stacks.runs[number].values,
                commits=tuple(_commits(run, detail.gone, texts)),
                needs=tuple(_need(harm, name, excerpts[number, at], texts) for at, (name, harm) in enumerate(needs[number])),
                more_needs=run.harms.more + len(run.harms.listed) - len(needs[number]),
            )
            for number, run in enumerate(runs)
        ),
        texts=texts.all,  # last: all that stands above has named its strings by now
    )


def _told(path: str) -> str:
    """A path as a command can have it; a word for one that cannot be copied from a page as it is."""
    return path if len(path) <= _PATH and path.isprintable() and visible(path) == path else "SESSION"


def named_needs(run: Run, most: int) -> Iterator[Named]:
    """The worst of the listed needs in the order of the calls, with their names in links: the call, and which of it."""
    worst = sorted(enumerate(run.harms.listed), key=lambda each: (VERDICTS.index(each[1].line.verdict), each[0]))[:most]
    told = {place for place, _ in worst}
    seen: dict[int, int] = {}
    for place, harm in enumerate(run.harms.listed):
        seen[harm.line.call] = seen.get(harm.line.call, 0) + 1
        if place in told:
            yield f"{harm.line.call}.{seen[harm.line.call]}", harm


def island(sessions: Sequence[SessionData]) -> Html:
    """The data as JSON that cannot end the element it stands in."""
    return Html(msgspec.json.encode(sessions).decode().translate(_ESCAPED))


def _excerpts(needs: Sequence[Sequence[Named]], texts: Texts) -> Iterator[tuple[tuple[int, int], tuple[Excerpt, Excerpt]]]:
    """Of every need by run and place; in the order in which room is given: the runs take turns, so that none is left without."""
    for verdict in VERDICTS:
        queues = [
            [(run, at) for at, (_, harm) in enumerate(named) if harm.line.verdict == verdict] for run, named in enumerate(needs)
        ]
        for turn in zip_longest(*queues):
            for place in turn:
                if place is not None:
                    _, harm = needs[place[0]][place[1]]
                    yield place, (texts.excerpt(harm.step, harm.line.text), texts.excerpt(harm.held, harm.line.text))


def _need(harm: Harm, name: str, excerpts: tuple[Excerpt, Excerpt], texts: Texts) -> NeedRow:
    line = harm.line
    return NeedRow(
        name=name,
        verdict=texts.name(line.verdict),
        kind=texts.name(line.kind),
        form=texts.name(line.form),
        category=texts.name(line.category),
        rule=texts.name(line.rule),
        text=texts.name(line.text),
        more=line.more,
        call=line.call,
        entry=line.entry,
        part=texts.name(line.part),
        tool=texts.name(line.tool),
        field=texts.name(line.field),
        objects=tuple(texts.name(each) for each in line.objects[-_HOLDERS:]),
        held=tuple(entry for entry, _ in line.held[-_HOLDERS:]),
        route=texts.name(line.route),
        commit=line.commit,
        at=harm.at,
        step=excerpts[0],
        held_at=harm.held_at,
        holder=excerpts[1],
        handle=texts.name(harm.held_handle),
    )


def _commits(run: Run, gone: int, texts: Texts) -> Iterator[CommitRow]:
    each = max(_LEAST_GONE, gone // max(1, len(run.commits)))
    return (_commit(commit, each, texts) for commit in run.commits)


def _commit(commit: Removal, most: int, texts: Texts) -> CommitRow:
    told, rest = commit.objects[:most], commit.objects[most:]
    return CommitRow(
        commit=commit.commit,
        before_call=commit.before_call,
        entries=commit.entries,
        policy=texts.name(commit.policy),
        moment=texts.name(commit.moment),
        why=texts.name(commit.why),
        forced=int(commit.forced),
        before=round(commit.tokens_before * commit.ratio),
        after=round(commit.tokens_after * commit.ratio),
        actions=tuple((texts.name(kind), number) for kind, number in commit.actions.items()),
        gone=tuple(_gone(gone, commit.ratio, texts) for gone in told),
        more=commit.more + len(rest),
    )


def _gone(gone: Gone, ratio: float, texts: Texts) -> tuple[int, int, int, int]:
    return texts.name(gone.object), texts.name(gone.kind), texts.name(gone.level), round(gone.tokens * ratio)


def _parts(wanted: str) -> Iterator[str]:
    """What is looked for in an excerpt: all of it, or as much of its start as an excerpt may hold; nothing is at the start of every text."""
    for most in (_MATCH, 400, 120):
        if wanted and most <= max(len(wanted), _MATCH):
            yield wanted[:most]
    yield wanted[:_NAME].partition("\n")[0]


def _units(text: str) -> int:
    """How long a script takes it to be: in UTF-16 units."""
    return len(text.encode("utf-16-le")) // 2
