"""What is run, as values that travel: each job names its sessions by what they hold, and its policies by name."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tenure.lab.evidence.corpus import Corpus, Member
from tenure.lab.evidence.origins import ALL, SUBJECT
from tenure.lab.protocols.compaction import EARLY, LATE, Compacting
from tenure.lab.protocols.sweep import CEILINGS
from tenure.lab.protocols.tasks import Task

PRUNES: Final = (0.3, 0.45, 0.6)  # of the tokens of a view; issue 5's goals are at 45 %
PRUNE: Final = 0.45
BESIDE: Final = (SUBJECT,)  # what takes, beside every other policy, just what that one took
CEILING: Final = 80_000  # under which every policy is run: where the cost fell and accuracy did not (CWL paper, section 5)
# Under all ceilings are run: ours, the paper's algorithm, and the baseline that most frameworks resemble. The others would double the time.
SWEPT: Final = ("cwl", "tiered", "provenance", "cwl-paper", "sliding-window")
TARGETED: Final = ("cwl", "tiered", "provenance")  # with a target and no ceiling, where the gate decides
TARGETS: Final = (40_000, 80_000)
COMPACTIONS: Final = tuple(replace(when, says=says) for when in (LATE, EARLY) for says in ("nothing", "brief", "names"))


class OfSession(Struct, frozen=True, kw_only=True, tag=True):
    """One thing to be done with one session."""

    what: str  # a key of `work.OF_SESSION`
    folder: str
    member: Member

    @property
    def name(self) -> str:
        """As errors call it."""
        return f"{self.what}: {self.member.name}"

    @property
    def identity(self) -> str:
        """All but where the corpus lies."""
        return _identity(self)


class Layout(Struct, frozen=True, kw_only=True, tag=True):
    """All sessions laid out as the tasks of long conversations."""

    folder: str
    members: tuple[Member, ...]

    @property
    def name(self) -> str:
        """As errors call it."""
        return "layout of all sessions"

    @property
    def identity(self) -> str:
        """All but where the corpus lies."""
        return _identity(self)


class Together(Struct, frozen=True, kw_only=True, tag=True):
    """One conversation under one policy and ceiling, or compacted."""

    folder: str
    members: tuple[Member, ...]  # of the conversation
    tasks: tuple[Task, ...]  # likewise, their sources as members are named
    policy: str  # "none": nothing leaves
    ceiling: int | None = None
    compacting: Compacting | None = None  # instead of a policy

    @property
    def name(self) -> str:
        """As errors call it."""
        how = f"compaction at {self.compacting.trigger}, {self.compacting.says}" if self.compacting else self.policy
        return f"conversation {self.tasks[0].conversation}: {how} under {self.ceiling}"

    @property
    def identity(self) -> str:
        """All but where the corpus lies."""
        return _identity(self)


Job = OfSession | Layout | Together


def of_sessions(corpus: Corpus, whats: Sequence[str]) -> list[Job]:
    """Each of these things with each session."""
    return [OfSession(what=what, folder=corpus.folder, member=member) for what in whats for member in corpus.members]


def layout(corpus: Corpus) -> Layout:
    """The layout of all its sessions."""
    return Layout(folder=corpus.folder, members=corpus.members)


def together(corpus: Corpus, tasks: Sequence[Task]) -> list[Job]:
    """Every conversation under every policy and compaction, longest first: what takes longest should not start last."""
    members = {member.name: member for member in corpus.members}
    conversations: dict[int, list[Task]] = {}
    for task in tasks:
        conversations.setdefault(task.conversation, []).append(task)
    longest = sorted(conversations.values(), key=lambda found: (-sum(task.tokens for task in found), found[0].conversation))
    return [
        Together(
            folder=corpus.folder,
            members=tuple(members[task.source] for task in found),
            tasks=tuple(found),
            policy=policy,
            ceiling=ceiling,
            compacting=compacting,
        )
        for found in longest
        for policy, ceiling, compacting in _ways()
    ]


def _ways() -> Iterator[tuple[str, int | None, Compacting | None]]:
    yield "none", None, None
    yield from (("compaction", compacting.trigger, compacting) for compacting in COMPACTIONS)
    yield from ((policy, ceiling, None) for policy in ALL for ceiling in ceilings_of(policy))


def ceilings_of(policy: str) -> tuple[int, ...]:
    """Under which a policy is run."""
    return tuple(each for each in CEILINGS if each is not None) if policy in SWEPT else (CEILING,)


def _identity(job: Job) -> str:
    return msgspec.json.encode(replace(job, folder="")).decode()
