"""When a model is asked without anybody's word.

When history is handed off follows the account of the agent efferent: by real usage only, at a share of the window or at a number of tokens.
"""

from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.lifecycle.budget import Budget, GateRule, parse_tokens

TRIGGER_SHARE: Final = 0.3  # of the window (Self-GC paper, Table 6: compression threshold)
PERCENT: Final = 85.0  # of the window; before the wall, while there is room for the handoff itself
GROWN: Final = 0.1  # of the limit: what must have come before a model is asked again
_MOST_FAILURES: Final = 6  # in a row that count: each doubles what must have come
Role = Literal["planner", "summariser", "digest"]


class OfWindow(Struct, frozen=True, kw_only=True, gc=False):
    """A threshold as a share of the window, in percent. 0 is off."""

    percent: float = PERCENT


class Absolute(Struct, frozen=True, kw_only=True, gc=False):
    """A threshold in provider tokens, whatever the window: quality falls before a large window is full. 0 is off."""

    tokens: int


Threshold = OfWindow | Absolute


def threshold_of(text: str | int) -> Threshold:
    """A threshold as people write it: `85%` of the window, or `120k` tokens; 0 is off. Raises InputError for anything else."""
    plain = str(text).strip()
    if plain in ("0", "0%"):
        return Absolute(tokens=0)
    if plain.endswith("%"):
        return OfWindow(percent=parse_tokens("handoff", plain, of=100_000) / 1_000)
    return Absolute(tokens=parse_tokens("handoff", plain, of=None))


def is_reached(threshold: Threshold, prompt: int, window: int) -> bool:
    """Whether a prompt of so many provider tokens calls for a handoff; `window` is 0 when unknown. 0 tokens are no report."""
    if isinstance(threshold, Absolute):
        return 0 < threshold.tokens <= prompt
    return threshold.percent > 0 and window > 0 and prompt > 0 and prompt * 100 >= threshold.percent * window


def planning_limit(budget: Budget, gate: GateRule) -> int:
    """The limit of which a planner's trigger is a share: the paper means the window, we what the view is held to."""
    return budget.window if gate is GateRule.SELFGC_PAPER else budget.limit


class Automatic(Struct, frozen=True, kw_only=True):
    """What was reported and asked so far. All tokens are the provider's."""

    threshold: Threshold = OfWindow()
    prompt: int = 0  # of the newest call, as reported since the conversation was opened
    is_new: bool = False  # whether that is news since history was last handed off, or that was tried
    tried_at: int | None = None  # tokens of the record then
    planned_at: int | None = None  # tokens of the record when a planner was last asked
    failures: tuple[tuple[Role, int], ...] = ()  # in a row, of those that failed last
    passed: int = 0  # results that were not digested since the digest last failed

    def after_report(self, prompt: int) -> "Automatic":
        """After a call whose prompt was of that size; 0 is no report."""
        return replace(self, prompt=prompt, is_new=True) if prompt > 0 else self

    def handoff_is_due(self, window: int, record: int, *, queued: bool = False) -> bool:
        """Whether history is to be handed off now: on new usage, not in a burst of messages, and when enough has come for a brief to be worth its price."""
        grown = self.tried_at is None or record - self.tried_at >= GROWN * window * self._patience("summariser")
        return grown and self.is_new and not queued and is_reached(self.threshold, self.prompt, window)

    def after_handoff(self, record: int) -> "Automatic":
        """After a handoff, or one that came to nothing: the next waits for news."""
        return replace(self, is_new=False, tried_at=record)

    def plan_is_due(self, tokens: int, limit: int, record: int) -> bool:
        """Whether a planner is to be asked now, for a view of `tokens`: at 30 % of the limit, and when enough has come since the last time."""
        if limit <= 0 or tokens < TRIGGER_SHARE * limit:
            return False
        return self.planned_at is None or record - self.planned_at >= GROWN * limit * self._patience("planner")

    def after_plan(self, record: int) -> "Automatic":
        """After a planner was asked."""
        return replace(self, planned_at=record)

    def digest_is_due(self) -> tuple["Automatic", bool]:
        """Whether a model is asked for the next digest: from the second failure in a row on only for every 2nd, 4th, 8th, … result."""
        if self.passed + 1 < self._patience("digest") // 2:
            return replace(self, passed=self.passed + 1), False
        return replace(self, passed=0), True

    def after_answer(self, role: Role, *, failed: bool) -> "Automatic":
        """After a model was asked: one that failed, or said nothing of use, is asked ever more rarely until it does."""
        others = tuple(each for each in self.failures if each[0] != role)
        count = min(dict(self.failures).get(role, 0) + 1, _MOST_FAILURES)
        return replace(self, failures=(*others, (role, count)) if failed else others)

    def _patience(self, role: Role) -> int:
        return 1 << dict(self.failures).get(role, 0)
