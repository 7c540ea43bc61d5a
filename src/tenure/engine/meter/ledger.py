"""What every call of a conversation cost, and what eviction saved.

The bill is what providers reported, by role and model. What was saved is a comparison of two simulations, net of the cache breaks that commits
caused, of planning, and of what was fetched again: what was sent, and what would have been sent had nothing ever been evicted or clipped. Both
go through the same strict prefix cache (`meter.cache`) at the same list prices. So without a commit both are the same to the last digit, and what
a provider's cache really did stands only in the bill. A call that was made for nothing but a recall, once something had left, is not among those
of the whole record. Where the whole record would not have fitted into the window there is nothing to compare with: that call's costs count on
neither side.

Growing it by a call takes O(1); money is summed in whole numbers, so that no order changes a sum.
"""

from math import isfinite
from typing import Final, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.meter.cache import CachedCall, SimulatedCache, seconds_of
from tenure.engine.meter.price import DEFAULT, Prices
from tenure.engine.meter.ratio import Ratio
from tenure.engine.record.entry import Usage

CallRole = Literal["agent", "planner", "summariser", "digest", "judge", "title"]
ROLES: Final[tuple[CallRole, ...]] = get_args(CallRole)
PICO: Final = 10**12  # money is summed in whole millionths of a millionth of a dollar: no order of adding changes a sum
_APART: Final = frozenset({"agent", "title", "all"})  # whose calls are not made for eviction's sake


class Spent(Struct, frozen=True, kw_only=True, gc=False):
    """One call of a model, as far as it was reported."""

    role: CallRole = "agent"
    model: str = ""
    usage: Usage = Usage()
    usd: float | None = None  # None: usage or price is not known
    at: str = ""  # ISO 8601; empty when nobody said


class Account(Struct, frozen=True, kw_only=True):
    """The calls of one model in one role; or all of them."""

    role: CallRole | Literal["all"]
    model: str = ""
    calls: int = 0
    unpriced: int = 0  # calls whose money is not known, and not in the sum
    usage: Usage = Usage()
    pico_usd: int = 0

    @property
    def usd(self) -> float:
        """What they cost, apart from the unpriced ones."""
        return self.pico_usd / PICO

    @property
    def helps(self) -> bool:
        """Whether the calls were made so that something may leave: eviction has to pay for them."""
        return self.role not in _APART

    def plus(self, spent: Spent) -> "Account":
        """The account after one more call."""
        usd = pico(spent.usd or 0.0)
        return self.together(Account(role="all", calls=1, unpriced=spent.usd is None, usage=spent.usage, pico_usd=usd))

    def together(self, other: "Account") -> "Account":
        """Both accounts in one, under this one's name."""
        return replace(
            self,
            calls=self.calls + other.calls,
            unpriced=self.unpriced + other.unpriced,
            usage=add(self.usage, other.usage),
            pico_usd=self.pico_usd + other.pico_usd,
        )

    def since(self, then: "Account") -> "Account":
        """What the account gained since it was `then`."""
        gained = {name: getattr(self.usage, name) - getattr(then.usage, name) for name in Usage.__struct_fields__}
        return replace(
            self,
            calls=self.calls - then.calls,
            unpriced=self.unpriced - then.unpriced,
            usage=Usage(**gained),
            pico_usd=self.pico_usd - then.pico_usd,
        )


class Refetched(Struct, frozen=True, kw_only=True):
    """What fetching things again took. All of it is in the agent's account already."""

    answers: int = 0
    tokens: int = 0  # o200k, brought back by the answers
    calls: Account = Account(role="agent")  # of the agent, made for recalls and nothing else
    answer_pico_usd: int = 0  # for writing the answers into the cache once

    @property
    def usd(self) -> float:
        """For the calls as reported, and for writing the answers once at list price; reading them later is not counted."""
        return (self.calls.pico_usd + self.answer_pico_usd) / PICO


class Savings(Struct, frozen=True, kw_only=True, gc=False):
    """What eviction saved, in USD and prompt tokens, over the calls that the whole record would have fitted into."""

    without_usd: float  # had nothing ever been evicted or clipped
    with_usd: float  # as it was sent: cache breaks, residues and recalls are in it
    breaks_usd: float  # of that: tokens written again because a commit had broken the cache
    helpers_usd: float  # planners, summarisers, digests and judges
    net_usd: float  # without - with - helpers; negative: eviction cost more than it saved
    tokens: int  # fewer in prompts; negative: more
    calls: int  # of the agent
    beyond: int  # of them: not compared, since the whole record would not have fitted into the window
    peak: int  # provider tokens of the largest prompt with the whole record
    window: int  # provider tokens; 0: not known
    is_priced: bool  # False: a model has no list price, and a mid-size model's stands in for it


class Course(Struct, frozen=True, kw_only=True):
    """One side's requests so far; tokens and money only of those that count."""

    cache: SimulatedCache
    prompt: int = 0  # provider tokens of the newest request
    usage: Usage = Usage()
    pico_usd: int = 0

    def send(self, call: CachedCall, *, counts: bool) -> "Course":
        """The side after one more request."""
        charge, cache = self.cache.send(call)
        if not counts:
            return replace(self, cache=cache, prompt=call.prompt_tokens)
        usage, usd = add(self.usage, charge.usage), self.pico_usd + pico(charge.usd)
        return Course(cache=cache, prompt=call.prompt_tokens, usage=usage, pico_usd=usd)


class Counterfactual(Struct, frozen=True, kw_only=True):
    """Both sides, call by call in O(1). `window` in provider tokens; 0: none is known, and everything fits."""

    window: int = 0
    ratio: Ratio = Ratio()
    sent: Course = Course(cache=SimulatedCache(prices=DEFAULT))
    whole: Course = Course(cache=SimulatedCache(prices=DEFAULT))
    shown: int = 0  # of the newest request
    record: int = 0  # o200k tokens of the whole record then
    away: int = 0  # provider tokens that it had been larger by with the whole record
    standing: int = 0  # of it: what still stands unchanged at its start; -1: not even the head does
    touched: bool = False  # whether anything was ever evicted or clipped
    break_pico_usd: int = 0  # what commits cost by breaking the cache; `sent` holds it too
    calls: int = 0
    beyond: int = 0  # calls that the whole record would not have fitted into
    peak: int = 0  # of the whole record's requests
    model: str = ""
    is_priced: bool = True  # whether every model so far has a list price

    def after_commit(self, kept: int | None) -> "Counterfactual":
        """After a commit that leaves the first `kept` o200k tokens of the view as they were; None: it changed only what was never sent; -1: the head, too."""
        return replace(self, touched=True, standing=self.standing if kept is None else min(self.standing, kept))

    def after_call(self, spent: Spent, *, shown: int, whole: int, prices: Prices, model: str, fetching: bool) -> "Counterfactual":
        """After a call of the agent with `shown` and otherwise `whole` o200k tokens in its window, both without the head."""
        now = self if model == self.model else self._with_model(model, prices)
        ratio = now.ratio.learn(spent.usage.prompt, shown)
        prompt = spent.usage.prompt or ratio.provider_tokens(shown)
        is_rewritten = now.standing < now.shown
        away = (
            now._away(ratio.value, prompt, shown=shown, whole=whole)
            if is_rewritten
            else now.away + round(ratio.value * (whole - now.record - shown + now.shown))
        )
        long = max(0, prompt + away)
        fits = not now.window or long <= now.window
        unbroken = min(now.sent.prompt, prompt)
        stands = now.sent.prompt - round(ratio.value * (now.shown - now.standing)) if now.standing >= 0 else 0
        if is_rewritten and (spent.usage.cache_read or spent.usage.cache_write):
            stands = spent.usage.cache_read  # what a commit left standing, by the provider's own count
        shared = min(unbroken, max(0, stands))
        call = CachedCall(prompt_tokens=prompt, shared_prefix_tokens=shared, output=spent.usage.output, at=seconds_of(spent.at))
        sent = now.sent.send(call, counts=fits)
        kept = now.sent.send(replace(call, shared_prefix_tokens=unbroken), counts=fits)
        other = now.whole
        if not (fetching and now.touched):
            call = replace(call, prompt_tokens=long, shared_prefix_tokens=min(other.prompt, long))
            other = other.send(call, counts=fits)
        return replace(
            now,
            ratio=ratio,
            sent=sent,
            whole=other,
            shown=shown,
            record=whole,
            away=away,
            standing=shown,
            break_pico_usd=now.break_pico_usd + sent.pico_usd - kept.pico_usd,
            calls=now.calls + 1,
            beyond=now.beyond + (not fits),
            peak=max(now.peak, long),
            is_priced=now.is_priced and prices.known,
        )

    def _away(self, ratio: float, prompt: int, *, shown: int, whole: int) -> int:
        """What the whole record weighs more than is shown, after a commit: what the prompt shrank by, as reported. Within reason, since a report may be wrong."""
        counted = round(ratio * (whole - shown))
        measured = self.sent.prompt + self.away + round(ratio * (whole - self.record)) - prompt
        return min(max(measured, counted // 2), counted * 2)

    def _with_model(self, model: str, prices: Prices) -> "Counterfactual":
        """When another model goes on: nothing is cached there."""
        sent, whole = (replace(each, cache=SimulatedCache(prices=prices), prompt=0) for each in (self.sent, self.whole))
        return replace(self, model=model, sent=sent, whole=whole)


class Ledger(Struct, frozen=True, kw_only=True):
    """One conversation's account book. Accounts are sorted by role, as in `ROLES`, and model."""

    accounts: tuple[Account, ...] = ()
    recalls: Refetched = Refetched()
    compared: Counterfactual = Counterfactual()
    fetched: int = 0  # o200k tokens in the record that would not be there had nothing left: recalls and their answers
    prices: Prices = DEFAULT  # of the agent's newest call
    assumed_pico_usd: int = 0  # what helpers of unknown price would have cost at an assumed one; in no account

    @property
    def total(self) -> Account:
        """All calls of all models."""
        whole = Account(role="all")
        for account in self.accounts:
            whole = whole.together(account)
        return whole

    @property
    def savings(self) -> Savings:
        """What eviction saved, net of what it cost."""
        sent, whole = self.compared.sent, self.compared.whole
        helpers = sum(account.pico_usd for account in self.accounts if account.helps) + self.assumed_pico_usd
        return Savings(
            without_usd=whole.pico_usd / PICO,
            with_usd=sent.pico_usd / PICO,
            breaks_usd=self.compared.break_pico_usd / PICO,
            helpers_usd=helpers / PICO,
            net_usd=(whole.pico_usd - sent.pico_usd - helpers) / PICO,
            tokens=whole.usage.prompt - sent.usage.prompt,
            calls=self.compared.calls,
            beyond=self.compared.beyond,
            peak=self.compared.peak,
            window=self.compared.window,
            is_priced=self.compared.is_priced and not self.assumed_pico_usd,
        )

    def after_call(
        self, spent: Spent, *, shown: int, whole: int, prices: Prices = DEFAULT, model: str = "", fetching: bool = False
    ) -> "Ledger":
        """After a call of the agent that saw `shown` o200k tokens of a record of `whole`, both without the head.

        `fetching`: its reply asked for recalls and nothing else. `model` is whose cache it is; by default the one that was reported.
        """
        compared = self.compared.after_call(
            spent, shown=shown, whole=whole - self.fetched, prices=prices, model=model or spent.model, fetching=fetching
        )
        recalls = replace(self.recalls, calls=self.recalls.calls.plus(spent)) if fetching else self.recalls
        return replace(self._entered(spent), recalls=recalls, compared=compared, prices=prices)

    def after_helper_call(self, spent: Spent, *, assumed_usd: float = 0.0) -> "Ledger":
        """After a call of a helper model, which belongs to no entry of the record. `assumed_usd`: what it is taken to cost where nobody knows."""
        entered = self._entered(spent)
        if spent.usd is not None or spent.role in _APART:
            return entered
        return replace(entered, assumed_pico_usd=self.assumed_pico_usd + pico(assumed_usd))

    def after_commit(self, kept: int | None) -> "Ledger":
        """After a commit that leaves the first `kept` o200k tokens of the view as they were; None: it changed only what was never sent; -1: the head, too."""
        return replace(self, compared=self.compared.after_commit(kept))

    def after_fetching(self, tokens: int) -> "Ledger":
        """After a call of `recall` of so many o200k tokens, with what was said beside it for no other reason."""
        return replace(self, fetched=self.fetched + tokens) if self.compared.touched else self

    def after_answer(self, tokens: int) -> "Ledger":
        """After an answer of `recall` of so many o200k tokens. Before anything left, it fetched nothing again."""
        usd = tokens * self.compared.ratio.value * self.prices.write if self.prices.known else 0.0
        recalls = replace(
            self.recalls,
            answers=self.recalls.answers + 1,
            tokens=self.recalls.tokens + tokens,
            answer_pico_usd=self.recalls.answer_pico_usd + pico(usd),
        )
        return replace(self.after_fetching(tokens), recalls=recalls)

    def _entered(self, spent: Spent) -> "Ledger":
        book = {(account.role, account.model): account for account in self.accounts}
        key = (spent.role, spent.model)
        book[key] = book.get(key, Account(role=spent.role, model=spent.model)).plus(spent)
        ordered = sorted(book.values(), key=lambda each: (ROLES.index(each.role) if each.role != "all" else -1, each.model))
        return replace(self, accounts=tuple(ordered))


def opened(window: int = 0) -> Ledger:
    """An empty ledger of a conversation whose model takes `window` provider tokens; 0: not known."""
    return Ledger(compared=Counterfactual(window=window))


def pico(usd: float) -> int:
    """An amount as a whole number that adds up exactly; what is no amount is nothing."""
    return round(usd * PICO) if isfinite(usd) else 0


def add(one: Usage, other: Usage) -> Usage:
    """What two calls used together."""
    return Usage(
        uncached=one.uncached + other.uncached,
        cache_write=one.cache_write + other.cache_write,
        cache_read=one.cache_read + other.cache_read,
        output=one.output + other.output,
    )
