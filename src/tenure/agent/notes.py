"""What stands at the tail of a request, for it alone, so that no prefix breaks for it (an edge: git is asked).

Git's status is asked at the start of a turn, and again once a call may have changed the folder; between, what it said still holds.
"""

import asyncio

from tenure.agent.admission.git import git_note
from tenure.agent.admission.git_program import Repository
from tenure.agent.admission.reminders import open_episode, reminders, tail_note
from tenure.agent.recorder import Recorder


class Notes:
    """Makes the notes of a session's requests. Mutable: it knows what git said, and what was written into the past."""

    def __init__(self, recorder: Recorder, repository: Repository | None, *, alone: bool, bound: bool) -> None:
        """`bound`: signed reasoning holds only behind what it was thought behind (`prefix_bound`), so notes become a part of the past."""
        self._recorder, self._repository, self._alone, self._bound = recorder, repository, alone, bound
        self._git = self._written = ""

    async def ask_git(self) -> None:
        """Ask what state the folder is in. Never raises; bounded by git's own time limit."""
        if self._repository is not None:
            self._git = git_note(await asyncio.to_thread(self._repository.status))

    def now(self) -> str:
        """What the next request says at its tail. Where that must be a part of the past it is written there, once while it is the same."""
        text = self._text()
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
        return tail_note(self._git, said)
