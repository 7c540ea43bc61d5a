"""Whether a call may run, by what the person decided.

Pure but for what it remembers of a session. To the rules of `approval` comes one of episodes: writing while the open episode only explores is asked
about rather than forbidden (CWL paper, section 4.2), since the person may know better; where nobody is there it runs, as the mode allows it.
"""

from typing import Final

from msgspec.structs import replace

from tenure.agent.approval import Act, Answer, Approval, Grants, Mode, Verdict, verdict
from tenure.agent.tools.sandbox import Reach
from tenure.engine.record.episodes import Episode, EpisodeType

_EXPLORING: Final = "edit while {} is open"


class Permissions:
    """The mode and the grants of a session; sub-agents share those of the first. Mutable."""

    def __init__(self, mode: Mode, *, outside: bool = False) -> None:
        """`outside`: every command that is allowed may change files outside the workspace."""
        self.mode, self._outside = mode, outside
        self.grants = Grants()

    def verdict(self, approval: Approval | None, episode: Episode | None, *, alone: bool) -> tuple[Verdict, Approval | None]:
        """What is to happen with a call, and what to ask about it. `episode` is the one that is open."""
        said = verdict(approval, self.mode, self.grants)
        if approval is None or approval.act is not Act.EDIT or said is Verdict.REFUSE or not _explores(episode):
            return said, approval
        assert episode is not None
        asked = replace(
            approval,
            reason=f"{approval.reason}, and the open episode {episode.name!r} only explores",
            exact="",
            broad=(_EXPLORING.format(episode.name),),
        )
        if said is Verdict.RUN and (alone or self.grants.cover(asked)):
            return Verdict.RUN, approval
        return Verdict.ASK, asked

    def reach(self, approval: Approval | None, answer: Answer | None = None) -> Reach:
        """How far an allowed call may act: outside the workspace only if that was the question or the answer, or is the mode."""
        if approval is None:
            return Reach.LOOK
        free = self._outside or self.mode is Mode.ALL or approval.act is Act.OUTSIDE or answer is Answer.OUTSIDE
        return Reach.ANYWHERE if free else Reach.WORKSPACE

    def trusts(self, approval: Approval) -> bool:
        """Whether a call runs unasked only because it can be undone: a command in the mode that allows all, which nobody agreed to."""
        return self.mode is Mode.ALL and approval.act is Act.COMMAND and not self.grants.cover(approval)

    def answered(self, approval: Approval, answer: Answer) -> None:
        """Remember what the person said."""
        self.grants = self.grants.after(approval, answer)


def _explores(episode: Episode | None) -> bool:
    return episode is not None and episode.type is EpisodeType.EXPL
