"""Episodes and dependencies of work that nobody marked, inferred from its calls as they come.

A person's next words, a commit, and the change from looking for to changing (or to looking elsewhere) are where a piece of work begins. An act
depends on the expl episodes that last read what it changes, or else on the newest of its turn. Only the facts of calls are looked at (tool, cue,
turn), so growing it is O(new calls); `bench/inferred.py` says how near it comes to what agents mark themselves.
"""

import re
from enum import Enum
from typing import Final, Protocol

from msgspec import Struct

from tenure.engine.record.entry import At
from tenure.engine.record.episodes import Episode, EpisodeType
from tenure.engine.record.objects import tool_name
from tenure.engine.record.tools import ACTS, Act

NO_WORK: Final = -1
AWAY: Final = 2  # steps in a row that look at what an act has nothing to do with: then it is over


class CallAim(Enum):
    """What a call is for, as far as its name and its cue tell."""

    GATHER = "gather"
    CHANGE = "change"
    FINISH = "finish"  # of a piece of work
    OTHER = "other"


_AIMS: Final = {
    **dict.fromkeys((Act.READ, Act.SEARCH, Act.LIST, Act.LOOK_UP, Act.FETCH, Act.SEARCH_WEB, Act.AGENT), CallAim.GATHER),
    **dict.fromkeys((Act.CREATE, Act.WRITE, Act.EDIT, Act.PATCH, Act.EDITOR, Act.DELETE), CallAim.CHANGE),
}
_BEFORE: Final = re.compile(r"(?:\s*(?:cd|export|source|\.)\s[^&;]{0,200}(?:&&|;))*\s*(?:sudo\s+|\w{1,40}=\S{0,200}\s+)*")
_GATHERS: Final = re.compile(
    r"(?:cat|ls|grep|rg|find|fd|head|tail|nl|wc|tree|less|file|stat|jq|sed -n|awk|pwd|which|git (?:log|show|diff|status|blame|grep|branch|ls-files)|gh .{0,40}view)\b"
)
_CHANGES: Final = re.compile(
    r"(?:sed -i|perl -p?i|patch|git (?:apply|mv|rm|checkout|revert|stash)|mv|cp|rm|mkdir|touch|tee)\b|cat\s*(?:<<|>)"
)
_FINISHES: Final = re.compile(r"git (?:commit|push|merge|tag)\b|gh pr create\b")
_FILE: Final = re.compile(r"(?<![\w.-])[\w-][\w.-]{0,119}\.[A-Za-z]\w{0,5}\b")


class CallFacts(Protocol):
    """What of a call is looked at; a span has it."""

    @property
    def tool(self) -> str:
        """Its tool."""
        ...

    @property
    def cue(self) -> str:
        """What it is about."""
        ...

    @property
    def call(self) -> At:
        """Where it stands."""
        ...


class _OpenWork(Struct):
    """The episode that goes on: what it worked on, and the steps that seem to belong to it no more."""

    episode: Episode
    files: set[str]
    away: list[tuple[int, At]]  # steps, each with the place of its first call
    finished: bool = False


class InferredGraph:
    """Episodes of steps that are in no declared one. Mutable, grown with the record; the newest episode is open, all others are closed."""

    def __init__(self) -> None:
        self.episodes: list[Episode] = []  # by start; ordinals are positions in it
        self._by_step: dict[int, int] = {}
        self._readers: dict[str, int] = {}  # of a file: the newest expl that read it
        self._open: _OpenWork | None = None

    def of_step(self, step: int) -> int:
        """The episode that a step belongs to: of one without calls, that of the last with some; NO_WORK before the first."""
        return self._by_step.get(step, NO_WORK)

    def add_step(self, step: int) -> None:
        """A reply begins: until it calls something it goes on with what was done before."""
        if self._open is not None:
            self._by_step[step] = self._open.episode.ordinal

    def add_call(self, span: CallFacts, step: int, turn: int) -> None:
        """Take in a call that lies in no declared episode. O(its cue)."""
        aim, files = aim_of(span.tool, span.cue), set(_FILE.findall(span.cue))
        work = self._open
        is_new = work is None or work.episode.turn != turn or (work.finished and aim is not CallAim.FINISH)
        if work is None or is_new:
            type_ = EpisodeType.ACT if aim in (CallAim.CHANGE, CallAim.FINISH) else EpisodeType.EXPL
            work = self._start(type_, span.call, step, turn)
        elif work.episode.type is EpisodeType.EXPL and aim is CallAim.CHANGE:
            work = self._start(EpisodeType.ACT, span.call, step, turn)
        elif work.episode.type is EpisodeType.ACT and aim is CallAim.GATHER and not files & work.files:
            if not work.away or work.away[-1][0] != step:
                work.away.append((step, span.call))
            if len(work.away) >= AWAY:
                away = work.away
                work = self._start(EpisodeType.EXPL, away[0][1], away[0][0], turn)
                self._by_step.update((each, work.episode.ordinal) for each, _ in away)
        elif aim is CallAim.CHANGE:
            work.away = []
        work.finished |= aim is CallAim.FINISH
        self._note(work, aim, files)
        self._by_step[step] = work.episode.ordinal

    def _start(self, type_: EpisodeType, at: At, step: int, turn: int) -> _OpenWork:
        if self._open is not None:
            self._open.episode.closed, self._open.episode.end = True, at
        episode = Episode(ordinal=len(self.episodes), type=type_, declared=False, name=str(step), start=at, turn=turn)
        self.episodes.append(episode)
        self._open = _OpenWork(episode, set(), [])
        return self._open

    def _note(self, work: _OpenWork, aim: CallAim, files: set[str]) -> None:
        """What the call adds to the work: files, and for an act what it builds on."""
        episode = work.episode
        if episode.type is EpisodeType.EXPL:
            self._readers.update(dict.fromkeys(files, episode.ordinal))
        elif aim is CallAim.CHANGE:
            bases = {self._readers[file] for file in files if file in self._readers}
            if not bases and not episode.dependencies:
                bases = {each.ordinal for each in self.episodes[-2:-1] if each.type is EpisodeType.EXPL}
            for ordinal in sorted(bases.difference(episode.dependencies)):
                episode.dependencies += (ordinal,)
                self.episodes[ordinal].dependents += (episode.ordinal,)
        work.files |= files


def aim_of(tool: str, cue: str) -> CallAim:
    """What a call is for. A command counts by its first program behind changes of folder."""
    act = ACTS.get(tool_name(tool))
    if act is not Act.RUN:
        return _AIMS.get(act, CallAim.OTHER) if act else CallAim.OTHER
    before = _BEFORE.match(cue)
    start = before.end() if before else 0
    if _FINISHES.search(cue, start):
        return CallAim.FINISH
    if _CHANGES.match(cue, start):
        return CallAim.CHANGE
    return CallAim.GATHER if _GATHERS.match(cue, start) else CallAim.OTHER
