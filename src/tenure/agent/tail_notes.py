"""What stands at the tail of a request, for it alone, so that no prefix breaks for it (an edge: git is asked).

Git's status is asked at the start of a turn, and again once a call may have changed the folder; between, what it said still holds.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from tenure.agent.admission.git_note import git_note
from tenure.agent.admission.git_program import GitRepository
from tenure.agent.approval import Mode, Permissions
from tenure.agent.recorder import Recorder
from tenure.engine.meter.gauge import CRITICAL, WARN, Gauge, Severity, severity
from tenure.engine.record.episodes import EpisodeType
from tenure.engine.record.fitting import fits_note
from tenure.engine.record.index import Index
from tenure.engine.view.guard import ACTIVE_SHARE
from tenure.engine.view.project import Projection


class TailNotes:
    """Makes the notes of a session's requests. Mutable: it knows what git said, and what was written into the past."""

    def __init__(self, recorder: Recorder, repository: GitRepository | None, permissions: Permissions, *, alone: bool) -> None:
        self._recorder, self._repository, self._permissions, self._alone = recorder, repository, permissions, alone
        # Signed reasoning may hold only behind what it was thought behind: then notes become a part of the past.
        self._bound = recorder.context.rules.thinking == "prefix_bound"
        self._git = self._written = self._fits = ""

    async def ask_git(self) -> None:
        """Ask what state the folder is in. Never raises; bounded by git's own time limit."""
        if self._repository is not None:
            self._git = git_note(await asyncio.to_thread(self._repository.status))

    async def look_back(self, task: str) -> str:
        """Look for what left and fits a task; the next request says so. What it says, empty where nothing fits."""
        found = await asyncio.to_thread(self._recorder.context.fitting, task)
        self._fits = fits_note(found)
        return ", ".join(fit.object for fit in found)

    def now(self) -> str:
        """What the next request says at its tail. Where that must be a part of the past it is written there, once while it is the same."""
        text, self._fits = self._text(), ""
        if not self._bound:
            return text
        if text and text != self._written:
            self._recorder.host(text)
        self._written = text
        return ""

    def _text(self) -> str:
        context = self._recorder.context
        session = context.session
        gauge = context.gauge
        limit = int(gauge.limit / session.ratio)
        episode = open_episode(session.index, session.view, limit) if self._recorder.has_marks else None
        said = reminders(
            gauge,
            episode,
            marks=self._recorder.has_marks,
            evicts=session.setup.policy is not None,
            unmet=self._recorder.unmet,
            alone=self._alone,
        )
        return tail_note(self._git, [self._fits] + [each.text for each in said] + [PLAN] * (self._permissions.mode is Mode.PLAN))


OPEN_CALLS: Final = 40  # replies that one episode may take before that is critical by itself


class OpenEpisode(Struct, frozen=True, kw_only=True):
    """How far the open episode has grown."""

    name: str
    type: EpisodeType
    replies: int  # of the model, since it was started
    percent: float  # of what an open episode may keep (`guard.ACTIVE_SHARE` of the limit); may be more than 100

    @property
    def severity(self) -> Severity:
        """By its size or its length, whichever is worse."""
        return severity(max(self.percent, 100.0 * self.replies / OPEN_CALLS))


class Reminder(Struct, frozen=True, kw_only=True):
    """Something that the agent should act on."""

    severity: Severity
    text: str


def open_episode(index: Index, view: Projection, limit: int) -> OpenEpisode | None:
    """The episode that is open now; None without one. `limit` is in o200k tokens. O(its rows that are shown)."""
    episode = index.graph.open
    if episode is None:
        return None
    start = episode.start[0]
    shown = sum(row.tokens for row in view.rows_from(start))
    # The reply that starts it is none of them.
    replies = len(index.steps) - bisect_left(index.steps, start, key=lambda step: step.entry) - 1
    room = limit * ACTIVE_SHARE
    return OpenEpisode(
        name=episode.name,
        type=episode.type,
        replies=max(0, replies),
        percent=100.0 * shown / room if room > 0 else float("inf"),
    )


def reminders(
    gauge: Gauge,
    episode: OpenEpisode | None,
    *,
    marks: bool = True,
    evicts: bool = True,
    unmet: bool = False,
    alone: bool = False,
) -> tuple[Reminder, ...]:
    """What is to be said now, the most serious first; nothing while all is well, and nothing that the agent can do nothing about.

    `marks`: the agent marks episodes and the policy reads them. `evicts`: there is a policy. `unmet`: the last decision could not keep the limit,
    so that no eviction helps. `alone`: nobody is there to hand anything off to.
    """
    found: list[Reminder] = []
    if unmet or not (evicts or gauge.of_window.severity != "critical"):
        found.append(Reminder(severity="critical", text=full(marks=marks, alone=alone)))
    elif marks and evicts and (text := GAUGE.get(gauge.severity)):
        found.append(Reminder(severity=gauge.severity, text=text))
    if marks and episode is not None and (text := EPISODE.get((episode.type, episode.severity))):
        found.append(Reminder(severity=episode.severity, text=text.format(name=episode.name)))
    return tuple(sorted(found, key=lambda reminder: _ORDER[reminder.severity]))  # stable: the gauge before the episode


def tail_note(git: str, reminders: Iterable[str]) -> str:
    """All that stands behind the view in one text; empty when there is nothing to say."""
    return "\n".join(filter(None, (git, *reminders)))


PLAN: Final = (
    "[plan mode: nothing may be changed now. Look at what you need, then end with a plan: the steps in order, the files each changes, how it is "
    "checked, and what is open. The user says when it is carried out.]"
)


_ORDER: Final[Mapping[Severity, int]] = {"critical": 0, "warn": 1, "ok": 2}

GAUGE: Final[Mapping[Severity, str]] = {
    "warn": (
        f"[context: more than {WARN:g} % full. End the open episode once you have what it is for, so that it can leave when its turn comes; "
        "begin no wide exploration.]"
    ),
    "critical": (
        f"[context: more than {CRITICAL:g} % full. Finished episodes leave by themselves, an open one does not: finish the step in hand, and end "
        "the open one with all that you will need of it.]"
    ),
}


def full(*, marks: bool, alone: bool) -> str:
    """What is said when nothing more can leave."""
    end = "end the open episode, " if marks else ""
    tell = "write down where the work stands: what is done, what is next, exact paths" if alone else _HANDOFF
    return f"[context: full, and nothing more can leave. Finish the step in hand, {end}and {tell}.]"


_HANDOFF: Final = "tell the user where the work stands: /handoff goes on from a brief"

EPISODE: Final[Mapping[tuple[EpisodeType, Severity], str]] = {
    (EpisodeType.EXPL, "warn"): (
        '[episode "{name}" has been open for long. If you know enough to act, end it with what you found; if not, end it and start a '
        "narrower one.]"
    ),
    (EpisodeType.EXPL, "critical"): (
        '[episode "{name}" has grown too long: its oldest part may leave while it is open. End it now with a description of all you found, '
        "and go on in a new one.]"
    ),
    (EpisodeType.ACT, "warn"): (
        '[episode "{name}" has been open for long. End it when this change is done, and start another for the next.]'
    ),
    (EpisodeType.ACT, "critical"): (
        '[episode "{name}" has grown too long: its oldest part may leave while it is open. End it now, and go on in a new act with the same '
        "dependencies.]"
    ),
}
