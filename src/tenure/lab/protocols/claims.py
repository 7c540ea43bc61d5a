"""Which published claims hold on the swept sessions: each a function from rows to a verdict with its figures.

"The paper" is the CWL paper, "the post" its authors' announcement. A verdict is of the sessions and prices at hand: they ran GPT-5.4 live, we
replay recordings, so what a model would have done otherwise under a tighter budget is not in the bill (the misses say how often it would).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import log
from typing import Final, Literal

import msgspec
from msgspec import Struct

from tenure.lab.protocols.runs import WINDOW
from tenure.lab.query import Events

Protocol = Literal["isolated", "accumulating"]
Verdict = Literal["holds", "partly", "does not hold", "cannot be tested"]
Unit = Literal["share", "times", "usd", "tokens", "count"]

LOW, TAU, HIGH, ABOVE = 50_000, 80_000, 120_000, 160_000
PROTOCOLS: Final[tuple[Protocol, ...]] = ("accumulating", "isolated")
SAVED: Final = (0.2, 0.7)  # CWL paper, sections 5 and 6.3
NEAR_TIMES: Final = 2.5  # "up to 3 times" (section 6.4) holds from here on
JUMP: Final = 2.0  # a sharp increase: as a share of the ceiling's growth, cost grows so many times faster above than below
SLIGHT: Final = 1.1  # below that it grows alike
CHEAPER: Final = 0.23  # section 6.5
ALIKE: Final = 0.1  # a difference that is "little to no difference"


class PartRow(Struct, frozen=True, kw_only=True):
    """A session or a conversation of a row."""

    name: str
    calls: int
    record_tokens: int
    peak_view_tokens: int
    usd: float
    missed: int
    calls_missing: int


class SweepRow(Struct, frozen=True, kw_only=True):
    """One policy at one ceiling under one protocol, all parts added up; `policy` is `none` without eviction, `compaction` for summaries."""

    protocol: Protocol
    policy: str
    variant: str = ""  # of a compaction: what its summaries say
    ceiling: int | None  # provider tokens; None: no limit
    usd: float
    usd_again: float  # had what was lost been read or run again
    calls_missing: int
    parts: tuple[PartRow, ...]


class Figure(Struct, frozen=True):
    """A number that a verdict rests on."""

    name: str
    value: float
    unit: Unit


class Tested(Struct, frozen=True, tag="claim", tag_field="type"):
    """A published claim, and what the rows say of it for one policy under one protocol."""

    claim: str  # its key
    says: str  # in our words
    origin: str  # paper or post, and section
    protocol: Protocol
    policy: str
    verdict: Verdict
    because: str
    figures: tuple[Figure, ...] = ()


class Rows(Struct, frozen=True, kw_only=True):
    """What a claim is tested on: one policy's rows by ceiling, those of compactions, and the isolated sessions without eviction."""

    policy: Mapping[int | None, SweepRow]
    compactions: Sequence[SweepRow]
    isolated: SweepRow | None


Finding = tuple[Verdict, str, tuple[Figure, ...]]


class Claim(Struct, frozen=True):
    """A claim and how it is tested."""

    key: str
    says: str
    origin: str
    protocols: tuple[Protocol, ...]
    test: Callable[[Rows], Finding]


_SWEPT: Final = """
    select protocol, policy, variant, ceiling, total_usd(measured.bill) as usd, total_usd(measured.bill) + measured.bill.fetched_again.usd as usd_again,
        measured.misses.calls as calls_missing, list_transform(parts, lambda p: {
            'name': p.name, 'calls': p.m.calls, 'record_tokens': p.m.record_tokens, 'peak_view_tokens': p.m.peak_view_tokens, 'usd': total_usd(p.m.bill),
            'missed': missed(p.m), 'calls_missing': p.m.misses.calls
        }) as parts
    from swept order by first"""


def rows_of(events: Events) -> tuple[SweepRow, ...]:
    """The rows of events that have the views of the evidence."""
    return msgspec.convert(events.ask(_SWEPT).dicts, tuple[SweepRow, ...])


def by_ceiling(rows: Iterable[SweepRow], protocol: Protocol, policy: str) -> dict[int | None, SweepRow]:
    """The rows of one policy; where nothing is evicted there is only the one without a ceiling."""
    return {row.ceiling: row for row in rows if row.protocol == protocol and row.policy in (policy, "none")}


def tested(rows: Iterable[SweepRow]) -> Iterator[Tested]:
    """Every claim for every policy of the rows, under each protocol that it can be tested under."""
    every = tuple(rows)
    compactions = tuple(row for row in every if row.policy == "compaction")
    alone = next((row for row in every if row.protocol == "isolated" and row.policy == "none"), None)
    for protocol in PROTOCOLS:
        names = dict.fromkeys(
            row.policy for row in every if row.protocol == protocol and row.policy not in ("none", "compaction")
        )
        for name in names:
            found = Rows(policy=by_ceiling(every, protocol, name), compactions=compactions, isolated=alone)
            for claim in CLAIMS:
                if protocol in claim.protocols:
                    verdict, because, figures = claim.test(found)
                    about = (claim.key, claim.says, claim.origin, protocol, name)
                    yield Tested(*about, verdict, because, figures)


def _cheaper_than(uncapped: int | None) -> Callable[[Rows], Finding]:
    def test(rows: Rows) -> Finding:
        capped, free = rows.policy.get(TAU), rows.policy.get(uncapped)
        if capped is None or free is None:
            return _missing(TAU, uncapped)
        saved = 1 - _times(capped, free)
        each = sorted(1 - now.usd / then.usd for now, then in _touched(capped, free))
        low, high = SAVED
        inside = sum(low <= share <= high for share in each)
        figures = (
            Figure("saved in all", saved, "share"),
            Figure("saved, had what was lost been fetched again", 1 - _times_again(capped, free), "share"),
            Figure("saved, least of a part", each[0] if each else 0.0, "share"),
            Figure("saved, most of a part", each[-1] if each else 0.0, "share"),
            Figure("parts that the ceiling touched", len(each), "count"),
            Figure("of these saved 20 to 70 %", inside, "count"),
        )
        if saved <= 0:
            return "does not hold", "the capped sessions cost more", figures
        if low <= saved <= high:
            return "holds", "the saving in all lies in the range", figures
        if saved > high:
            return "holds", "more is saved than the claim says", figures
        return "partly", "something is saved, less than the claim says", figures

    return test


def _three_times(rows: Rows) -> Finding:
    low, high = rows.policy.get(LOW), rows.policy.get(HIGH)
    if low is None or high is None:
        return _missing(LOW, HIGH)
    higher = [row for ceiling in (HIGH, ABOVE, WINDOW) if (row := rows.policy.get(ceiling)) is not None]
    ratios = {row.ceiling: _times(row, low) for row in higher}
    best = max(ratios.values())
    text = ", ".join(f"{ratio:.1f} times less than at {_k(ceiling)}" for ceiling, ratio in ratios.items())
    each = [then.usd / now.usd for now, then in _touched(low, higher[-1])]
    figures = (
        *(Figure(f"cost at {_k(ceiling)} over cost at 50k", ratio, "times") for ceiling, ratio in ratios.items()),
        Figure("the last, had what was lost been fetched again", _times_again(higher[-1], low), "times"),
        Figure("the most of a part", max(each, default=1.0), "times"),
        Figure("calls that miss something, at 50k over 120k", _over(low, high), "times"),
    )
    if best >= NEAR_TIMES:
        return "holds", text, figures
    return ("partly" if best >= 1.0 + ALIKE else "does not hold"), text, figures


def _jump(rows: Rows) -> Finding:
    found = [rows.policy.get(ceiling) for ceiling in (TAU, HIGH, ABOVE)]
    below, middle, above = found
    if below is None or middle is None or above is None:
        return _missing(TAU, HIGH, ABOVE)
    before, after = _growth(below, middle), _growth(middle, above)
    widest = rows.policy.get(WINDOW)
    beyond = (Figure("cost growth per growth of the ceiling, 160k to 267k", _growth(above, widest), "times"),) if widest else ()
    figures = (
        Figure("cost growth per growth of the ceiling, 80k to 120k", before, "times"),
        Figure("cost growth per growth of the ceiling, 120k to 160k", after, "times"),
        *beyond,
    )
    if after <= 0:
        return "does not hold", "above 120k the cost does not grow", figures
    if before <= 0 or after >= JUMP * before:
        return "holds", "the cost grows much faster above 120k than below", figures
    if after > SLIGHT * before:
        return "partly", "the cost grows somewhat faster above 120k than below, no jump", figures
    return "does not hold", "the cost grows above 120k as it does below", figures


def _less_than_compaction(rows: Rows) -> Finding:
    capped = rows.policy.get(TAU)
    others = [row for row in rows.compactions if row.ceiling is not None]
    if capped is None or not others:
        return "cannot be tested", "there is no row of a compaction", ()
    late = max(others, key=lambda row: row.ceiling or 0)
    saved = 1 - _times(capped, late)
    shown = {(row.ceiling, row.variant): row for row in others}
    figures = tuple(
        Figure(f"cheaper than compaction at {_k(ceiling)} ({variant})", 1 - _times(capped, row), "share")
        for (ceiling, variant), row in shown.items()
    )
    if saved >= CHEAPER - ALIKE / 2:
        return "holds", f"{saved:.0%} below compaction at {_k(late.ceiling)}", figures
    if saved > 0:
        return "partly", f"{saved:.0%} below compaction at {_k(late.ceiling)}", figures
    return "does not hold", f"{-saved:.0%} above compaction at {_k(late.ceiling)}", figures


def _as_isolated(rows: Rows) -> Finding:
    capped, alone = rows.policy.get(TAU), rows.isolated
    if capped is None or alone is None:
        return "cannot be tested", "there is no row of isolated sessions", ()
    more = _times(capped, alone) - 1
    figures = (
        Figure("one session at 80k over isolated sessions", 1 + more, "times"),
        Figure("isolated sessions", alone.usd, "usd"),
    )
    if abs(more) <= ALIKE:
        return "holds", f"{more:+.0%}", figures
    if more < 0:
        return "holds", f"{more:+.0%}: cheaper than said", figures
    return ("partly", f"{more:+.0%}", figures) if more <= 2 * ALIKE else ("does not hold", f"{more:+.0%}", figures)


CLAIMS: Final = (
    Claim(
        "20-70 % cheaper than uncapped",
        "at a ceiling of 80k a session costs 20 to 70 % less than one that may fill the model's window",
        "CWL paper, sections 5 and 6.3",
        PROTOCOLS,
        _cheaper_than(WINDOW),
    ),
    Claim(
        "20-70 % cheaper than no limit at all",
        "the same against a session that no window ends",
        "CWL paper, sections 5 and 6.3",
        PROTOCOLS,
        _cheaper_than(None),
    ),
    Claim(
        "3 times cheaper at 50k",
        "around 50k a session costs up to 3 times less than at 120k and above",
        "CWL paper, section 6.4",
        PROTOCOLS,
        _three_times,
    ),
    Claim(
        "a jump above 120k",
        "above 120k the cost increases sharply",
        "CWL paper, section 6.4",
        PROTOCOLS,
        _jump,
    ),
    Claim(
        "23 % cheaper than compaction",
        "over dependent tasks eviction at 80k costs 23 % less than the harness's own compaction",
        "CWL paper, section 6.5",
        ("accumulating",),
        _less_than_compaction,
    ),
    Claim(
        "as cheap as isolated sessions",
        "one session of all tasks at 80k costs about what the tasks cost alone",
        "CWL paper, section 6.3; the post, Capping active token count",
        ("accumulating",),
        _as_isolated,
    ),
)


def _missing(*ceilings: int | None) -> Finding:
    return "cannot be tested", "needs rows at " + ", ".join(map(_k, ceilings)), ()


def _times(one: SweepRow, other: SweepRow) -> float:
    """The cost of one as a multiple of the other's; of nothing, 1."""
    return one.usd / other.usd if other.usd else 1.0


def _times_again(one: SweepRow, other: SweepRow) -> float:
    """The same, had everything that was missed been read or run again."""
    return one.usd_again / other.usd_again if other.usd_again else 1.0


def _growth(less: SweepRow, more: SweepRow) -> float:
    """Growth of the cost over growth of the ceiling, both as logarithms: 1 where they grow alike, 0 where the cost stays."""
    return log(_times(more, less)) / log((more.ceiling or 1) / (less.ceiling or 1))


def _over(low: SweepRow, high: SweepRow) -> float:
    return low.calls_missing / max(1, high.calls_missing)


def _touched(low: SweepRow, high: SweepRow) -> Iterator[tuple[PartRow, PartRow]]:
    """The parts in which the lower of two ceilings changed anything."""
    others = {part.name: part for part in high.parts}
    pairs = ((now, others[now.name]) for now in low.parts if now.name in others)
    return ((now, then) for now, then in pairs if now != then)


def _k(ceiling: int | None) -> str:
    return "no limit" if ceiling is None else f"{ceiling // 1000}k"
