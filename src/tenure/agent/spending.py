"""What a session has used of what it may use, sub-agents included."""

from collections.abc import Callable
from functools import partial, reduce

from msgspec import Struct

from tenure.agent.events import Reason
from tenure.agent.settings import Allowance
from tenure.engine.meter.ledger import Account, add
from tenure.engine.record.entry import Usage


class SessionSpend(Struct, frozen=True, kw_only=True):
    """Tokens as reported, or as estimated where a provider reports none; money as far as prices are known."""

    usage: Usage = Usage()
    usd: float = 0.0
    unpriced: int = 0  # calls whose money is not known, and not in the sum

    @property
    def tokens(self) -> int:
        """Tokens processed: of all prompts, cached or not, and of all replies."""
        return self.usage.prompt + self.usage.output

    def plus(self, other: "SessionSpend") -> "SessionSpend":
        """Both together."""
        return SessionSpend(usage=add(self.usage, other.usage), usd=self.usd + other.usd, unpriced=self.unpriced + other.unpriced)

    def since(self, before: "SessionSpend") -> "SessionSpend":
        """What came since."""
        was = before.usage
        now = self.usage
        return SessionSpend(
            usage=Usage(
                uncached=now.uncached - was.uncached,
                cache_write=now.cache_write - was.cache_write,
                cache_read=now.cache_read - was.cache_read,
                output=now.output - was.output,
            ),
            usd=self.usd - before.usd,
            unpriced=self.unpriced - before.unpriced,
        )


class Spending:
    """Counts, from when the session was opened. Mutable."""

    def __init__(self, booked: Callable[[], Account]) -> None:
        """`booked` gives the session's own calls in all its life."""
        self._booked, self._before = booked, booked()
        self._usage = Usage()
        self._done = SessionSpend()  # of sub-agents
        self._children: list[Spending] = []
        self._above: Callable[[], tuple[Reason, str] | None] = lambda: None

    @property
    def spent(self) -> SessionSpend:
        """All so far."""
        now, before = self._booked(), self._before
        own = SessionSpend(usage=self._usage, usd=now.usd - before.usd, unpriced=now.unpriced - before.unpriced)
        return own.plus(self.delegated)

    @property
    def delegated(self) -> SessionSpend:
        """What sub-agents used, those at work included."""
        return reduce(SessionSpend.plus, [child.spent for child in self._children], self._done)

    def called(self, usage: Usage | None, *, estimated: int) -> None:
        """A call of the model was answered; `estimated` is what its prompt weighed for us, where nothing is reported."""
        self._usage = add(self._usage, usage or Usage(uncached=estimated))

    def share(self, child: "Spending", allowance: Allowance) -> None:
        """Count what a sub-agent uses from now on, which ends when all together have used `allowance`."""
        self._children.append(child)
        child._above = partial(self.over, allowance, 0)

    def release(self, child: "Spending") -> None:
        """A sub-agent is done."""
        self._children.remove(child)
        self._done = self._done.plus(child.spent)

    def left(self, allowance: Allowance) -> Allowance:
        """What may still be used of an allowance; of a limit that is reached the least there is."""
        spent = self.spent
        return Allowance(
            usd=max(1e-9, allowance.usd - spent.usd) if allowance.usd else 0.0,
            tokens=max(1, allowance.tokens - spent.tokens) if allowance.tokens else 0,
        )

    def over(self, allowance: Allowance, steps: int) -> tuple[Reason, str] | None:
        """The limit that is reached, and in words; None when there is room for another call."""
        spent = self.spent
        if allowance.steps and steps >= allowance.steps:
            return "step limit", f"{steps:,} calls of the model, as many as were allowed"
        if allowance.usd and spent.usd >= allowance.usd:
            return "money limit", f"${spent.usd:,.4f} of ${allowance.usd:,.4f}"
        if allowance.tokens and spent.tokens >= allowance.tokens:
            return "token limit", f"{spent.tokens:,} tokens of {allowance.tokens:,}"
        return self._above()
