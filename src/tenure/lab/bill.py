"""What a replay costs in all: its calls, the models that helped, and the recalls that its needs ask for.

The calls are billed in the replay's own lines; nothing is simulated twice. A recording cannot recall, so what it needed of what had left is
billed here as if it had: an extra call each, and what it brings back, carried until it leaves again. docs/bill.md has every assumption.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from tenure.context.answers import CALL, LEAST
from tenure.engine.lifecycle.gate import RECALL_OUTPUT
from tenure.engine.record.query import CAP
from tenure.engine.view.edit import Drop
from tenure.engine.view.guard import RECALL_CALLS, RECALL_SHARE
from tenure.lab.events import (
    At,
    Bill,
    BudgetLine,
    CallLine,
    CommitLine,
    EditTarget,
    EntryLine,
    HarmLine,
    Line,
    Part,
    PlanLine,
    PricesLine,
    RecallLine,
    ReplayLine,
    SummaryLine,
)
from tenure.lab.harm.watch import Watch

Watched = Line | HarmLine | EditTarget | RecallLine

_NO_PRICES: Final = PricesLine(uncached=0.0, write=0.0, read=0.0, output=0.0, ttl_s=0, min_cache=0)


# The parts of a bill that a call has, each with its price. Provider tokens are counted by them: whole numbers, so that the order of adding does not matter.
_PRICES: Final = {"uncached": "uncached", "cache_write": "write", "cache_read": "read", "output": "output"}


def _part(tokens: Counter[str], prices: PricesLine) -> Part:
    """Tokens by what is paid for them, together."""
    return Part(tokens=tokens.total(), usd=sum(tokens[kind] * getattr(prices, price) for kind, price in _PRICES.items()))


class _Brought(Struct):
    """Something that was brought back and is in the window, after all that the window held at the time."""

    tokens: int  # o200k, with the call that brought it
    call: int  # the first that saw it
    entries: int  # record length then
    before: int  # o200k tokens of the request that stand before it


class _Fetches:
    """Extra calls that bring objects back, and how long these stay. Mutable."""

    def __init__(self) -> None:
        self.count = 0
        self.tokens: Counter[str] = Counter()
        self._here: dict[str, _Brought] = {}  # by object, oldest first
        self._weight = 0  # of these together, in o200k tokens

    def fetch(self, object_: str, tokens: int, call: CallLine, prices: PricesLine) -> bool:
        """Bring `tokens` o200k tokens of an object back before `call`; False when it is in the window already.

        The extra call sends the whole request that `call` sends, which `call` then finds in the cache: the price of what is new in it is paid
        once, and is in `call`'s own bill.
        """
        if object_ in self._here:
            return False
        self.count += 1
        held = self._sent(call)
        cached = held >= prices.min_cache
        self.tokens["cache_read" if cached else "uncached"] += held
        self.tokens["output"] += RECALL_OUTPUT
        brought = _Brought(tokens=tokens + RECALL_OUTPUT, call=call.call, entries=call.entries, before=call.view_tokens)
        self.tokens["cache_write" if cached else "uncached"] += round(brought.tokens * call.ratio)
        self._here[object_] = brought
        self._weight += brought.tokens
        return True

    def called(self, call: CallLine, prices: PricesLine) -> None:
        """A call that carries what was brought back before it: read where the call reads that far, else sent anew."""
        if not self._here:
            return
        anew = "cache_write" if self._sent(call) >= prices.min_cache else "uncached"
        for brought in self._here.values():
            stands = call.cache_read > 0 and call.shared_prefix_tokens >= brought.before
            self.tokens["cache_read" if stands else anew] += round(brought.tokens * call.ratio)
            brought.before = brought.before if stands else call.view_tokens

    def committed(self, commit: CommitLine, limit: int) -> None:
        """A batch left before the next call, and what was brought back earlier leaves with it. `limit`: of the budget, in o200k tokens.

        As live, what fewer than RECALL_CALLS calls have seen stays, the newest, while together it weighs at most RECALL_SHARE of the limit. A
        compaction of the recorded agent takes all that stood before what it dropped last.
        """
        if commit.moment == "admission" or not self._here:
            return
        if commit.moment == "recorded":
            last = max((edit.entry for edit in commit.edits if isinstance(edit, Drop)), default=-1)
            self._stay({object_: brought for object_, brought in self._here.items() if brought.entries > last})
            return
        stays: dict[str, _Brought] = {}
        room = int(limit * RECALL_SHARE)
        for object_, brought in reversed(self._here.items()):
            room -= brought.tokens
            if room < 0 or commit.before_call - brought.call >= RECALL_CALLS:
                break
            stays[object_] = brought
        self._stay(dict(reversed(stays.items())))

    def _stay(self, stays: dict[str, _Brought]) -> None:
        self._here = stays
        self._weight = sum(brought.tokens for brought in stays.values())

    def _sent(self, call: CallLine) -> int:
        """Provider tokens of a call's prompt, with what it carries."""
        return call.uncached + call.cache_write + call.cache_read + round(self._weight * call.ratio)


class _Weights(Struct):
    """What objects weigh in the record, in o200k tokens."""

    objects: dict[str, int] = field(default_factory=dict[str, int])
    blocks: dict[At, tuple[str, int]] = field(default_factory=dict[At, tuple[str, int]])  # its source, its tokens

    def take(self, line: EntryLine) -> None:
        for number, block in enumerate(line.blocks):
            at, tokens = (line.entry, number), block.tokens or 0
            place = f"entry:{line.entry}"
            objects = block.objects or ()
            for object_ in (*objects, place, f"{place}/{number}"):
                self.objects[object_] = self.objects.get(object_, 0) + tokens
            self.blocks[at] = objects[0] if block.name and objects else f"{place}/{number}", tokens

    def source(self, at: At) -> str:
        """What would be read or run again to have a block again: its tool span, else nothing but itself."""
        return self.blocks[at][0] if at in self.blocks else f"entry:{at[0]}/{at[1]}"

    def of(self, object_: str, harm: HarmLine) -> int:
        """Of an object; of one that no block names (a skill), what of it held the need."""
        return self.objects.get(object_) or sum(self.blocks[at][1] for at in harm.held if at in self.blocks)


class Billing:
    """The bill of one replay, as its lines come. Mutable."""

    def __init__(self) -> None:
        self._prices = _NO_PRICES
        self._limit = 0  # of the budget, in provider tokens
        self._ratio = 1.0
        self._calls = 0
        self._tokens: Counter[str] = Counter()
        self._helpers_usd = 0.0
        self._weights = _Weights()
        self._call: CallLine | None = None
        self._recalls, self._again = _Fetches(), _Fetches()

    def take(self, line: Watched) -> Iterator[RecallLine]:
        """The next line of a replay or of what was watched beside it, and the recall that it makes. Amortised O(blocks, what is carried)."""
        match line:
            case ReplayLine():
                self._prices, self._limit = line.prices, limit_of(line.budget)
            case EntryLine():
                self._weights.take(line)
            case CommitLine():
                for fetches in (self._recalls, self._again):
                    fetches.committed(line, self._o200k(self._limit))
            case CallLine():
                self._called(line)
            case PlanLine():
                self._helpers_usd += line.usd
            case HarmLine():
                yield from self._missed(line)
            case _:
                return

    @property
    def bill(self) -> Bill:
        """What was billed so far."""
        prices = self._prices
        return Bill(
            calls=self._calls,
            **{kind: _part(Counter({kind: self._tokens[kind]}), prices) for kind in _PRICES},
            recalls=self._recalls.count,
            recall=_part(self._recalls.tokens, prices),
            fetched_again=_part(self._again.tokens, prices),
            helpers_usd=self._helpers_usd,
        )

    def _called(self, call: CallLine) -> None:
        self._call, self._ratio = call, call.ratio
        self._calls += 1
        self._tokens.update({kind: getattr(call, kind) for kind in _PRICES})
        for fetches in (self._recalls, self._again):
            fetches.called(call, self._prices)

    def _missed(self, harm: HarmLine) -> Iterator[RecallLine]:
        call = self._call
        if call is None or harm.verdict == "visible" or harm.part == "thinking":
            return
        if harm.verdict == "lost":
            object_ = self._weights.source(harm.held[-1])
            self._again.fetch(object_, self._room(self._weights.of(object_, harm)), call, self._prices)
            return
        object_ = harm.route.rpartition("@")[0] or harm.route
        tokens = self._room(self._weights.of(object_, harm))
        if self._recalls.fetch(object_, tokens, call, self._prices):
            yield RecallLine(call=call.call, handle=harm.route, by="handle", tokens=tokens)

    def _room(self, tokens: int) -> int:
        """What an answer of so many o200k tokens is cut to, as live: `tenure.context.answers`."""
        return min(tokens, max(LEAST, min(CAP, int(self._o200k(self._limit) * RECALL_SHARE) - CALL)))

    def _o200k(self, provider_tokens: int) -> int:
        return int(provider_tokens / self._ratio)


def limit_of(budget: BudgetLine) -> int:
    """The lowest level at which anything may be evicted, in provider tokens."""
    return min(each for each in (budget.target, budget.ceiling, budget.window) if each is not None)


def bill_of(lines: Iterable[Watched]) -> Bill:
    """The bill of a replay; without lines of harm among them, nothing is recalled."""
    billing = Billing()
    for line in lines:
        for _ in billing.take(line):
            pass
    return billing.bill


def accounted(lines: Iterable[Line], watch: Watch | None = None, billing: Billing | None = None) -> Iterator[Watched]:
    """A replay's lines, each assistant's message followed by what it missed and the recalls that this takes; the summary counts them."""
    watch, billing = watch or Watch(), billing or Billing()
    needs = {"visible": 0, "routed": 0, "lost": 0}
    for line in lines:
        for _ in billing.take(line):
            raise AssertionError(line)
        if isinstance(line, SummaryLine):
            bill = billing.bill
            line = replace(line, needs=needs, recalls=bill.recalls, recalls_usd=bill.recall.usd)
        yield line
        for found in watch.take(line):
            yield found
            if isinstance(found, HarmLine):
                needs[found.verdict] += found.part != "thinking"
                yield from billing.take(found)
