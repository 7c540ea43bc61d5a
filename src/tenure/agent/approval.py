"""What a person must agree to before it happens: tables, and the mode and grants of a session.

A tool says what a call would do (`Approval`, or None when it changes nothing); the mode and what the person said before in this session
say whether it runs, asks or is refused. When unsure a tool says more rather than less.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct, structs
from msgspec.structs import replace

from tenure.agent.tools.sandbox import CommandReach
from tenure.engine.record.episodes import Episode, EpisodeType


class CallEffect(StrEnum):
    """What a call would do, least first."""

    EDIT = "edit"  # a file in the workspace
    COMMAND = "command"  # a program that may change the workspace or speak to the network
    SERVER = "server"  # a tool of an MCP server, which may do anything
    REMOTE = "remote"  # something elsewhere that others have or see
    OUTSIDE = "outside"  # a change outside the workspace, or a look at what holds keys
    DESTROY = "destroy"  # what cannot be undone


class Mode(StrEnum):
    """How much a person wants to be asked."""

    ASK = "ask"
    EDITS = "edits"
    ALL = "all"
    READ_ONLY = "read-only"
    PLAN = "plan"  # as read-only, and the agent is to end with a plan


class CallVerdict(StrEnum):
    """What is to happen with a call."""

    RUN = "run"
    ASK = "ask"
    REFUSE = "refuse"


class ApprovalAnswer(StrEnum):
    """What a person says when asked."""

    ONCE = "once"
    EXACT = "exact"  # and the same again in this session
    BROAD = "broad"  # and the likes of it in this session
    OUTSIDE = "outside"  # this once, and it may change files outside the workspace
    NO = "no"


LOOKING: Final = frozenset({Mode.READ_ONLY, Mode.PLAN})  # in which what may not run unasked is refused rather than asked for
UNASKED: Final[Mapping[Mode, frozenset[CallEffect]]] = {
    **dict.fromkeys(LOOKING, frozenset[CallEffect]()),
    Mode.ASK: frozenset(),
    Mode.EDITS: frozenset({CallEffect.EDIT}),
    Mode.ALL: frozenset({CallEffect.EDIT, CallEffect.COMMAND, CallEffect.SERVER}),
}


class Approval(Struct, frozen=True, kw_only=True):
    """What a call would change, and why a person must agree. `exact` and `broad` are what may be remembered; empty: asked every time."""

    tool: str
    act: CallEffect
    summary: str  # one line: `git push origin main`, `write src/a.py`
    reason: str  # a clause: "it may change files", "src/link leads out of the workspace"
    detail: str = ""  # more lines to look at: the whole command, a diff
    exact: str = ""
    broad: tuple[str, ...] = ()  # all of which must have been granted: `npm test`, `git commit`
    walled: bool = False  # once allowed, it can change files in the workspace only, unless the answer is `OUTSIDE`
    run_by: tuple[str, ...] = ()  # programs that run what is changed, when they are called: of a Makefile, `make`


class Grants(Struct, frozen=True, kw_only=True):
    """What a person has agreed to for the rest of a session."""

    granted: frozenset[str] = frozenset()

    def cover(self, approval: Approval) -> bool:
        """Whether the person has agreed to this call, or to its likes."""
        return bool(approval.exact in self.granted or (approval.broad and self.granted.issuperset(approval.broad)))

    def run(self, approval: Approval) -> bool:
        """Whether the person has agreed to the likes of a command that would run what this changes."""
        programs = {words.partition(" ")[0] for words in self.granted}
        return not programs.isdisjoint(approval.run_by)

    def after(self, approval: Approval, answer: ApprovalAnswer) -> "Grants":
        """The grants once a person has answered."""
        match answer:
            case ApprovalAnswer.EXACT:
                new = {approval.exact} - {""}
            case ApprovalAnswer.BROAD:
                new = set(approval.broad) or {approval.exact} - {""}
            case ApprovalAnswer.ONCE | ApprovalAnswer.OUTSIDE | ApprovalAnswer.NO:
                return self
        return structs.replace(self, granted=self.granted | new)


def verdict(approval: Approval | None, mode: Mode, grants: Grants) -> CallVerdict:
    """Whether a call runs, asks or is refused."""
    if approval is None:
        return CallVerdict.RUN
    act = CallEffect.COMMAND if approval.act is CallEffect.EDIT and grants.run(approval) else approval.act
    if act in UNASKED[mode]:
        return CallVerdict.RUN
    if mode in LOOKING:
        return CallVerdict.REFUSE
    return CallVerdict.RUN if grants.cover(approval) else CallVerdict.ASK


def refused(approval: Approval) -> str:
    """What the model reads when the mode forbids a call."""
    return f"Not done: {approval.summary}: {approval.reason}, and this session is read-only. Look without changing, or say what you would do."


def declined(approval: Approval, words: str = "") -> str:
    """What the model reads when a person said no, perhaps with a word why."""
    why = f" They say: {words.strip()}" if words.strip() else " Do not try it another way; go on without it, or ask."
    return f"Not done: {approval.summary}: the user declined.{why}"


_EXPLORING: Final = "edit while {} is open"


class Permissions:
    """The mode and the grants of a session; sub-agents share those of the first. Mutable."""

    def __init__(self, mode: Mode, *, outside: bool = False) -> None:
        """`outside`: every command that is allowed may change files outside the workspace."""
        self.mode, self._outside = mode, outside
        self.grants = Grants()

    def verdict(self, approval: Approval | None, episode: Episode | None, *, alone: bool) -> tuple[CallVerdict, Approval | None]:
        """What is to happen with a call, and what to ask about it. `episode` is the one that is open."""
        said = verdict(approval, self.mode, self.grants)
        if approval is None or approval.act is not CallEffect.EDIT or said is CallVerdict.REFUSE or episode is None:
            return said, approval
        if episode.type is not EpisodeType.EXPL:
            return said, approval
        asked = replace(
            approval,
            reason=f"{approval.reason}, and the open episode {episode.name!r} only explores",
            exact="",
            broad=(_EXPLORING.format(episode.name),),
        )
        if said is CallVerdict.RUN and (alone or self.grants.cover(asked)):
            return CallVerdict.RUN, approval
        return CallVerdict.ASK, asked

    def reach(self, approval: Approval | None, answer: ApprovalAnswer | None = None) -> CommandReach:
        """How far an allowed call may act: outside the workspace only if that was the question or the answer, or is the mode."""
        if approval is None:
            return CommandReach.LOOK
        free = self._outside or self.mode is Mode.ALL or approval.act is CallEffect.OUTSIDE or answer is ApprovalAnswer.OUTSIDE
        return CommandReach.ANYWHERE if free else CommandReach.WORKSPACE

    def trusts(self, approval: Approval) -> bool:
        """Whether a call runs unasked only because it can be undone: a command in the mode that allows all, which nobody agreed to."""
        return self.mode is Mode.ALL and approval.act is CallEffect.COMMAND and not self.grants.cover(approval)

    def answered(self, approval: Approval, answer: ApprovalAnswer) -> None:
        """Remember what the person said."""
        self.grants = self.grants.after(approval, answer)
