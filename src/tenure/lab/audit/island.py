"""What the page's script reads: series to hover over, commits, and the places of needs, as JSON.

Strings are told once, in `texts`, and named by their number there; rows are arrays, whose fields page.js names (`needOf`, `commitOf`). Excerpts
share a room for each session: lost needs come first, then routed, then visible, and those for which no room is left are marked.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, Final

import msgspec
from markupsafe import Markup
from msgspec import Struct

from tenure.engine.record.visible import visible
from tenure.lab.audit.drawing import Stacks
from tenure.lab.audit.report import Audit, CommitSummary, Harm, PolicyRun
from tenure.lab.events import Verdict

VERDICTS: Final[tuple[Verdict, ...]] = ("lost", "routed", "visible")
AROUND: Final = 360  # characters of an excerpt before what is needed, and after it
FEW: Final = 12  # sessions that are told in full
_PAGE_ROOM: Final = 6_000_000  # bytes of the excerpts of all sessions
_SESSION_ROOM: Final = 320_000
_MATCH: Final = 1_200  # characters of what is needed
_PATH: Final = 1_000  # of a longer one no command is told
_NAME: Final = 240  # characters of a string that is no excerpt
_HOLDERS: Final = 6  # the newest of those that held a need
_ESCAPED: Final = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}

Named = tuple[str, Harm]  # a need, and its name in links


class Detail(Struct, frozen=True, kw_only=True):
    """What one session may take, so that its part of a page stays below 2 MB whatever a report holds."""

    room: int  # bytes of excerpts
    points: int  # of a drawing
    rows: int  # of a table
    listed: int  # needs of a run, in the script's data
    gone: int  # objects of a run's commits together, likewise
    commits: int  # of a run, in a table
    needs: int  # of a run, in a table, where there is no script


def detail_for(sessions: int, runs: int) -> Detail:
    """The detail of each of so many sessions with so many runs each: of a few nearly all that a report has, and less of each of many."""
    share, runs = min(1.0, FEW / max(1, sessions)), max(1, runs)
    return Detail(
        room=min(_SESSION_ROOM, _PAGE_ROOM // max(1, sessions)),
        points=max(100, int(400 * share)),
        rows=max(15, int(120 * share)),
        listed=max(20, min(400, int(1_600 * share) // runs)),
        gone=max(100, min(1_600, int(8_000 * share) // runs)),
        commits=max(10, min(100, int(280 * share) // runs)),
        needs=max(5, min(25, int(160 * share) // runs)),
    )


class ExcerptRow(Struct, frozen=True, array_like=True):
    """A text and what of it is meant, in UTF-16 units; -1: no room was left. `before` and `after` characters were cut off."""

    text: int
    start: int = 0
    length: int = 0
    before: int = 0
    after: int = 0


class Texts:
    """Strings, each once. Mutable."""

    def __init__(self, room: int) -> None:
        self._numbers: dict[str, int] = {}
        self._room = room

    def name(self, text: str) -> int:
        """The number of a short string, which is cut when it is not short."""
        cut = text[:_NAME]
        return self._number(visible(cut) if len(cut) == len(text) else f"{visible(cut)}… ({len(text):,} characters)")

    def excerpt(self, text: str, wanted: str) -> ExcerptRow:
        """What stands around `wanted` in `text`, or the start of it. O(text)."""
        found = next((part for part in _parts(wanted) if part in text), "")
        at, length = text.find(found), len(found)
        start, stop = max(0, at - AROUND), min(len(text), at + length + AROUND)
        parts = visible(text[start:at]), visible(text[at : at + length]), visible(text[at + length : stop])
        whole = "".join(parts)
        if whole not in self._numbers:
            cost = len(whole.encode()) + 5 * sum(map(whole.count, "<>&")) + sum(map(whole.count, '\n\t"\\'))
            if cost > self._room:
                return ExcerptRow(-1)
            self._room -= cost
        units = [len(part.encode("utf-16-le")) // 2 for part in parts]
        return ExcerptRow(self._number(whole), units[0], units[1], start, len(text) - stop)

    @property
    def all(self) -> tuple[str, ...]:
        """By number."""
        return tuple(self._numbers)

    def _number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))


def session_data(audit: Audit, id_: str, names: Sequence[str], stacks: Stacks, detail: Detail) -> dict[str, Any]:
    """What the script knows of a session; `names` are those of its policies in links."""
    texts = Texts(detail.room)
    needs = [tuple(named_needs(run, detail.listed)) for run in audit.runs]
    excerpts = dict(_excerpts(needs, texts))
    path = audit.session.path
    runs = [
        {
            "id": names[number],
            "name": visible(run.policy[:_NAME]),
            "every": run.series.every,
            "calls": stacks.runs[number].calls,
            "tokens": stacks.runs[number].values,
            "commits": [_commit(commit, max(1, detail.gone // len(run.commits)), texts) for commit in run.commits],
            "needs": [_need(harm, name, excerpts[number, at], texts) for at, (name, harm) in enumerate(needs[number])],
            "more_needs": run.harms.more + len(run.harms.listed) - len(needs[number]),
        }
        for number, run in enumerate(audit.runs)
    ]
    path = audit.session.path
    return {
        "id": id_,
        # As a command can have it; a word for one that cannot be copied from a page as it is.
        "path": path if len(path) <= _PATH and path.isprintable() and visible(path) == path else "SESSION",
        "calls": stacks.calls,
        "entries": audit.session.entries,
        "bands": [(visible(band.label), band.class_) for band in stacks.bands],
        "times": [(point.call, visible(point.at[:40])) for point in audit.window.series.points if point.at],
        "texts": texts.all,  # all runs have named their strings by now
        "runs": runs,
    }


def named_needs(run: PolicyRun, most: int) -> Iterator[Named]:
    """The worst of the listed needs in the order of the calls, with their names in links: the call, and which of it."""
    worst = sorted(enumerate(run.harms.listed), key=lambda each: (VERDICTS.index(each[1].line.verdict), each[0]))[:most]
    places = {place for place, _ in worst}
    seen: dict[int, int] = {}
    for place, harm in enumerate(run.harms.listed):
        seen[harm.line.call] = seen.get(harm.line.call, 0) + 1
        if place in places:
            yield f"{harm.line.call}.{seen[harm.line.call]}", harm


def island(sessions: Sequence[dict[str, Any]]) -> Markup:
    """The data as JSON that cannot end the element it stands in."""
    return Markup(msgspec.json.encode(sessions).decode().translate(_ESCAPED))  # noqa: S704 - no sign of markup is left


def _excerpts(needs: Sequence[Sequence[Named]], texts: Texts) -> Iterator[tuple[tuple[int, int], tuple[ExcerptRow, ExcerptRow]]]:
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


def _need(harm: Harm, name: str, excerpts: tuple[ExcerptRow, ExcerptRow], texts: Texts) -> tuple[object, ...]:
    need, number = harm.line, texts.name
    what = (number(each) for each in (need.verdict, need.kind, need.form, need.category, need.rule, need.text))
    where = (number(each) for each in (need.part, need.tool, need.field))
    objects = (number(each) for each in need.objects[-_HOLDERS:])
    held = [entry for entry, _ in need.held[-_HOLDERS:]]
    row = (name, *what, need.more, need.call, need.entry, *where, tuple(objects), held, number(need.route), need.commit, harm.at)
    return (*row, excerpts[0], harm.held_at, excerpts[1], number(harm.held_handle))


def _commit(commit: CommitSummary, most: int, texts: Texts) -> tuple[object, ...]:
    """Sizes are provider tokens."""
    number = texts.name
    why = (number(each) for each in (commit.policy, commit.moment, commit.why))
    before, after = round(commit.tokens_before * commit.ratio), round(commit.tokens_after * commit.ratio)
    row = (commit.commit, commit.before_call, commit.entries, *why, int(commit.forced), before, after)
    actions = [(number(kind), count) for kind, count in commit.actions.items()]
    gone = [
        (number(each.object), number(each.kind), number(each.level), round(each.tokens * commit.ratio))
        for each in commit.objects[:most]
    ]
    return (*row, actions, gone, commit.more + len(commit.objects[most:]))


def _parts(wanted: str) -> Iterator[str]:
    """What is looked for in an excerpt: all of it, or as much of its start as an excerpt may hold; nothing is at the start of every text."""
    for most in (_MATCH, 400, 120):
        if wanted and most <= max(len(wanted), _MATCH):
            yield wanted[:most]
    yield wanted[:_NAME].partition("\n")[0]
