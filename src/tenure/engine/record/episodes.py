"""The annotation protocol: episodes that an agent declares with one tool, and the graph they form.

CWL paper, sections 4.2 and 4.3. The four calls and all refusals are here; every refusal says what to do instead. An episode starts at
the delimiter's call, not at its result, and ends with the result of the call that ended it.

What is handed to a sub-agent is an episode too (`EpisodeGraph.delegate`): the call and its result, which stand beside the episode that is open, so
that parts of the work may run at the same time. The paper leaves such sub-graphs open (section 7, "Non-linear trajectories").
"""

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from operator import attrgetter
from typing import Any, Final

import msgspec
from msgspec import Struct

from tenure.engine.record.quotation import in_quotes
from tenure.errors import DelimiterRefused


class EpisodeType(StrEnum):
    """What an episode is for: gathering or changing."""

    EXPL = "expl"
    ACT = "act"


class Episode(Struct, kw_only=True):
    """A span of the record. `declared` ones come from the agent; the others are single steps, implicit `expl` episodes."""

    ordinal: int  # position in the index's list of episodes, by start
    type: EpisodeType
    declared: bool
    name: str  # of a declared one; the step's number of an implicit one
    start: tuple[int, int]  # (entry, block) of its first block
    closed: bool = False
    end: tuple[int, int] | None = None  # (entry, block) of the call that ended it
    description: str = ""
    dependencies: tuple[int, ...] = ()  # ordinals of the expl episodes an act declared
    dependents: tuple[int, ...] = ()  # acts that declared this expl
    turn: int = 0

    @property
    def object(self) -> str:
        """Its object id."""
        return f"episode:{self.name}" if self.declared else f"step:{self.name}"


class ToolAnswer(Struct, frozen=True, kw_only=True, gc=False):
    """What a virtual tool call gets back."""

    text: str
    error: bool = False


NAME_CHARS: Final = 100
PART: Final = "part"  # the name of what is handed on without one
SUMMARY_CHARS: Final = 400  # of a sub-agent's last words that are kept as the description
_HASH: Final = re.compile(r"@[0-9a-f]{4,64}\Z")  # of a handle

# How the tool is called. What leaves, in which order, and what stays is the policy's to say (`tenure.engine.policies.offer`).
DELIMITER_USE: Final = (
    "expl: look for, read, understand. act: edit, write, run; name the expl episodes it builds on. One episode is open at a time; to "
    "go on to the next, end and start in one message. Calls: "
    '{"action":"start","name":"locate-auth","type":"expl"} · '
    '{"action":"end","description":"auth lives in src/auth.py, tokens checked in verify()"} · '
    '{"action":"start","name":"add-rotation","type":"act","dependencies":["locate-auth"]} · {"action":"end"}'
)

DELIMITER_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": ["start", "end"]},
        "name": {"type": "string", "description": "with start: a new, telling name, such as locate-auth"},
        "type": {"type": "string", "enum": ["expl", "act"], "description": "with start"},
        "dependencies": {
            "type": "array",
            "items": {"type": "string"},
            "description": "when starting an act: names of the ended expl episodes it builds on, at least one",
        },
        "description": {
            "type": "string",
            "description": "when ending an expl: what was learned, in one or two sentences with paths and names",
        },
    },
    "required": ["action"],
    "additionalProperties": False,
}


class _DelimiterCall(Struct, frozen=True, kw_only=True):
    action: str | None = None
    name: str | None = None
    type: str | None = None
    dependencies: list[str] | None = None
    description: str | None = None


class EpisodeGraph:
    """The declared episodes so far. Grown only by the index; edges go from act to ended expl episodes, so no cycle can form."""

    def __init__(self, episodes: list[Episode]) -> None:
        self._episodes = episodes  # shared with the index, which also adds implicit ones
        self._by_name: dict[str, int] = {}
        self._parts: dict[tuple[int, int], Episode] = {}  # handed on, by the block of their call, without a result yet
        self.open: Episode | None = None
        self.first_start: tuple[int, int] | None = None

    def named(self, name: str) -> Episode | None:
        """The declared episode of that name, be it written as a view prints it: `a`, `episode:a` or `episode:a@46cb`."""
        spellings = (name, _bare(name), _HASH.sub("", _bare(name)))
        ordinal = next((self._by_name[each] for each in spellings if each in self._by_name), None)
        return None if ordinal is None else self._episodes[ordinal]

    def apply(
        self, arguments: str, at: tuple[int, int], turn: int, handle: Callable[[Episode], str] = attrgetter("object")
    ) -> ToolAnswer:
        """Carry out one delimiter call made at block `at`, or refuse it and change nothing. `handle` prints an episode's."""
        try:
            call = _parse(arguments)
            return self._start(call, at, turn, handle) if call.action == "start" else self._end(call, at)
        except DelimiterRefused as refusal:
            return ToolAnswer(text=f"delimiter refused: {refusal}", error=True)

    def delegate(
        self, arguments: str, at: tuple[int, int], turn: int, handle: Callable[[Episode], str] = attrgetter("object")
    ) -> Episode | ToolAnswer | None:
        """The episode of a call at block `at` that hands work to a sub-agent; a refusal, which changes nothing; None where the call has no type.

        An act that is open builds on the expl parts that are handed on for it.
        """
        try:
            call = msgspec.json.decode(arguments or "{}", type=_DelimiterCall)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return None
        if call.type not in tuple(EpisodeType):
            return None
        try:
            name = self._fresh_name(call, handle) if call.name else PART if PART not in self._by_name else self._next_name(PART)
            type_ = EpisodeType(call.type)
            dependencies = self._dependencies(call, type_, name) if call.dependencies else []
        except DelimiterRefused as refusal:
            return ToolAnswer(text=f"refused: {refusal}", error=True)
        part = self._parts[at] = self._add(type_, name, at, turn, dependencies)
        if type_ is EpisodeType.EXPL and self.open is not None and self.open.type is EpisodeType.ACT:
            self.open.dependencies += (part.ordinal,)
            part.dependents += (self.open.ordinal,)
        return part

    def end_part(self, at: tuple[int, int], text: str) -> None:
        """The result of the call at block `at` has come: of an expl part its first paragraph is the description."""
        part = self._parts.pop(at, None)
        if part is None:
            return
        part.closed, part.end = True, part.start
        if part.type is EpisodeType.EXPL:
            summary = " ".join(text.strip().partition("\n\n")[0].split())
            part.description = summary if len(summary) <= SUMMARY_CHARS else f"{summary[: SUMMARY_CHARS - 1]}…"

    def _add(self, type_: EpisodeType, name: str, at: tuple[int, int], turn: int, dependencies: Sequence[Episode]) -> Episode:
        episode = Episode(
            ordinal=len(self._episodes),
            type=type_,
            declared=True,
            name=name,
            start=at,
            dependencies=tuple(dependency.ordinal for dependency in dependencies),
            turn=turn,
        )
        self._episodes.append(episode)
        self._by_name[name] = episode.ordinal
        for dependency in dependencies:
            dependency.dependents += (episode.ordinal,)
        self.first_start = self.first_start or at
        return episode

    def _start(self, call: _DelimiterCall, at: tuple[int, int], turn: int, handle: Callable[[Episode], str]) -> ToolAnswer:
        name = self._fresh_name(call, handle)
        type_ = _episode_type(call)
        if self.open is not None:
            raise DelimiterRefused(
                f"the {self.open.type} episode {self.open.name!r} is still open and episodes do not nest; "
                f"end it first ({_how_to_end(self.open.type)}), in the same message if you like, then start {name!r}"
            )
        dependencies = self._dependencies(call, type_, name)
        self.open = self._add(type_, name, at, turn, dependencies)
        after = f", building on {', '.join(d.name for d in dependencies)}" if dependencies else ""
        early = " (a description counts at the end of an expl: this one is not kept)" if (call.description or "").strip() else ""
        return ToolAnswer(text=f"started {type_} {name!r}{after}{early}")

    def _fresh_name(self, call: _DelimiterCall, handle: Callable[[Episode], str]) -> str:
        name = _bare(call.name or "")
        if not name:
            raise DelimiterRefused("start needs a name that tells what the episode is for, such as locate-auth")
        if len(name) > NAME_CHARS or not name.isprintable():
            raise DelimiterRefused(f"a name is one line of at most {NAME_CHARS} characters; yours has {len(name)}")
        if (known := self.named(name)) is None:
            return name
        other = f"choose another name, such as {self._next_name(known.name)!r}"
        if not known.description:
            raise DelimiterRefused(f"an episode {known.name!r} exists already; {other}")
        raise DelimiterRefused(
            f"an episode {known.name!r} exists already, {handle(known)}, which found: {in_quotes(known.description)}\n"
            f"To build on that, name it in the dependencies of an act; to explore anew, {other}"
        )

    def _next_name(self, name: str) -> str:
        number = 2
        while f"{name}-{number}" in self._by_name:
            number += 1
        return f"{name}-{number}"

    def _dependencies(self, call: _DelimiterCall, type_: EpisodeType, name: str) -> list[Episode]:
        names = [item.strip() for item in call.dependencies or ()]
        if type_ is EpisodeType.EXPL:
            if names:
                raise DelimiterRefused("an expl episode has no dependencies; start it without them")
            return []
        if not any(names):
            raise DelimiterRefused(f"an act must name at least one ended expl episode in dependencies; {self._choices()}")
        needed = [self._dependency(item, name) for item in names]
        return list({episode.ordinal: episode for episode in needed}.values())

    def _dependency(self, wanted: str, name: str) -> Episode:
        episode = self.named(wanted)
        if _bare(wanted) == name:
            raise DelimiterRefused(f"{name!r} cannot depend on itself; {self._choices()}")
        if episode is None:
            raise DelimiterRefused(f"there is no episode {wanted!r} to depend on; {self._choices()}")
        if episode.type is EpisodeType.ACT:
            raise DelimiterRefused(f"{wanted!r} is an act, and an act depends on expl episodes only; {self._choices()}")
        if not episode.closed:
            raise DelimiterRefused(f"the expl {wanted!r} is still open; end it with a description first")
        return episode

    def _choices(self) -> str:
        closed = [
            e.name for e in map(self._episodes.__getitem__, self._by_name.values()) if e.type is EpisodeType.EXPL and e.closed
        ]
        if not closed:
            return "no expl episode has ended yet: start and end one first"
        return "ended expl episodes: " + ", ".join(closed[-12:]) + (" (and older ones)" if len(closed) > 12 else "")

    def _end(self, call: _DelimiterCall, at: tuple[int, int]) -> ToolAnswer:
        episode = self.open
        if episode is None:
            raise DelimiterRefused('no episode is open; start one first: {"action":"start","name":"…","type":"expl"}')
        if call.name and call.name.strip() and self.named(call.name.strip()) is not episode:
            raise DelimiterRefused(f"{call.name.strip()!r} is not the open episode; {episode.name!r} is, end that one")
        description = (call.description or "").strip()
        if episode.type is EpisodeType.EXPL and not description:
            raise DelimiterRefused(
                f"ending the expl {episode.name!r} needs a description of what was learned; it is all that stays after eviction"
            )
        if episode.type is EpisodeType.ACT and description:
            raise DelimiterRefused(
                f"{episode.name!r} is an act, its effects are in the environment: end it without a description"
            )
        episode.closed, episode.end, episode.description = True, at, description
        self.open = None
        return ToolAnswer(text=f"ended {episode.type} {episode.name!r}")


def _parse(arguments: str) -> _DelimiterCall:
    try:
        call = msgspec.json.decode(arguments or "{}", type=_DelimiterCall)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise DelimiterRefused(f"the arguments cannot be read ({error}); {_FORMS}") from error
    if call.action not in ("start", "end"):
        raise DelimiterRefused(f"action is {call.action!r}; {_FORMS}")
    return call


_FORMS: Final = (
    'expected {"action":"start","name":…,"type":"expl"}, {"action":"start","name":…,"type":"act","dependencies":[…]}, '
    '{"action":"end","description":…} for an expl or {"action":"end"} for an act'
)


def _bare(name: str) -> str:
    return name.strip().removeprefix("episode:").strip()


def _episode_type(call: _DelimiterCall) -> EpisodeType:
    if call.type not in ("expl", "act"):
        raise DelimiterRefused(f'type is {call.type!r}; expected "expl" to gather information or "act" to change something')
    return EpisodeType(call.type)


def _how_to_end(type_: EpisodeType) -> str:
    return '{"action":"end","description":"…"}' if type_ is EpisodeType.EXPL else '{"action":"end"}'
