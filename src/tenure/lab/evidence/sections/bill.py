"""How far the simulated bill is from what providers reported for the same calls."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from tenure.engine.meter.figures import ASSUMED
from tenure.lab.events import Amounts, Caching, Compared, relative
from tenure.lab.evidence.figures.rows import Dots, Panel, Row, rows
from tenure.lab.evidence.page import Drawn, Section, Table, count, percent, several, usd
from tenure.lab.validation import CAUSES, together

NAME: Final = "bill"
CACHING: Final = {
    Caching.WRITES: "reports reads and writes of the cache",
    Caching.READS: "reports reads of the cache",
    Caching.NONE: "reports no cache",
}
SHOWS: Final = (
    "What it shows: every session whose log reports usage is replayed as its agent sent it, and each call's tokens by what the cache did with them "
    "stand beside those that the provider reported, at the same prices, answers apart. The error is signed: positive means that "
    "more was simulated than reported. What it does not show: prompts that no log holds. System prompt and tools are sized once from "
    "the first reports, and what agents take out of their prompts unseen is not foreseen."
)
_FAR: Final = 0.6  # errors beyond stand at the figure's edge


def section(found: Sequence[Compared], tools: Mapping[str, str]) -> Section:
    """The section; `tools` names the agent of each session."""
    all_ = together("all", found)
    by_tool: dict[str, list[Compared]] = {}
    for each in found:
        by_tool.setdefault(tools.get(each.name, "unknown"), []).append(each)
    lead = (
        f"{several(all_.sessions, 'session')} with usage reported for {several(all_.calls, 'call')}: {_usd(all_, all_.reported)} by the reports, "
        f"{_usd(all_, all_.simulated)} simulated, {_signed(all_.error)}."
    )
    if all_.assumed:
        lead += f" {ASSUMED}: in {several(all_.assumed, 'session')} a mid-size model's price stands in for one that nobody lists."
    parts: tuple[Drawn | Table, ...] = ()
    if found:
        parts = (_figure(by_tool, lead), _table(by_tool, all_), _caching(found), _causes(all_))
    return Section(
        name=NAME, title="The bill, beside what providers reported", lead=lead, shows=SHOWS, parts=parts, rows=_written(found)
    )


def _usd(found: Compared, amounts: Amounts) -> str:
    return usd(amounts.usd, assumed=found.assumed > 0)


def _signed(error: float) -> str:
    text = f"{error * 100:+.1f} %"
    return "±0.0 %" if text in ("+0.0 %", "-0.0 %") else text.replace("-", "\u2212")


def _figure(by_tool: Mapping[str, Sequence[Compared]], lead: str) -> Drawn:
    lines = [
        Row(
            name=f"{tool} ({len(found)})",
            whose="peer",
            cells=(Dots(tuple(sorted(each.error for each in found)), together(tool, found).error),),
        )
        for tool, found in sorted(by_tool.items())
    ]
    panel = Panel(title="simulated against reported", say=_percent, low=-_FAR, top=_FAR, mark=0.0)
    shows = "Error of the simulated bill, by agent"
    note = f"{lead} Hollow: single sessions, at the edge when beyond it; filled: all sessions of an agent together."
    return Drawn("bill", shows, rows(shows, note, (panel,), lines))


def _percent(value: float) -> str:
    return f"{value * 100:+.0f} %".replace("-", "\u2212") if round(value, 6) else "0 %"


_HEAD: Final = (
    "sessions",
    "calls",
    "reported",
    "simulated",
    "error",
    "cache alone",
    "told nothing",
    "prompt tokens",
    "cache reads",
    "new tokens",
    "off per call",
)
_NOTE: Final = (
    "*cache alone*: the error of the cache's rules on the prompts as they were reported, so without errors of size. *told nothing*: the error of a plain replay, "
    "without the head and with sizes learned as it goes. *prompt tokens*, *cache reads*, "
    "*new tokens*: error of each sum. *off per call*: errors of single calls without their signs, as a share of the reported bill."
)


def _row(found: Compared) -> tuple[str, ...]:
    reported, simulated = found.reported, found.simulated
    return (
        count(found.sessions),
        count(found.calls),
        _usd(found, reported),
        _usd(found, simulated),
        _signed(found.error),
        _signed(relative(found.by_cache.usd, reported.usd)),
        _signed(relative(found.plain.usd, reported.usd)),
        _signed(relative(simulated.prompt, reported.prompt)),
        _signed(relative(simulated.cache_read, reported.cache_read)),
        _signed(relative(simulated.new, reported.new)),
        percent(found.off.usd / reported.usd if reported.usd else 0.0, 1),
    )


def _table(by_tool: Mapping[str, Sequence[Compared]], all_: Compared) -> Table:
    rows_ = [(tool, *_row(together(tool, found))) for tool, found in sorted(by_tool.items())]
    return Table(title="By agent", head=(":agent", *_HEAD), rows=(*rows_, ("all", *_row(all_))), note=_NOTE)


def _caching(found: Sequence[Compared]) -> Table:
    return Table(
        title="By what is reported of the cache",
        head=(":provider", *_HEAD),
        rows=tuple(
            (words, *_row(together(words, mine)))
            for kind, words in CACHING.items()
            if (mine := [each for each in found if each.caching == kind])
        ),
    )


def _causes(all_: Compared) -> Table:
    return Table(
        title="Where the error comes from",
        head=(":cause", "calls", "USD, simulated less reported", "of the reported bill", ":what it is"),
        rows=tuple(
            (
                cause,
                count(all_.times.get(cause, 0)),
                f"{all_.causes.get(cause, 0.0):+,.2f}".replace("-", "\u2212"),
                _signed(all_.causes.get(cause, 0.0) / all_.reported.usd if all_.reported.usd else 0.0),
                words,
            )
            for cause, words in CAUSES.items()
            if all_.causes.get(cause, 0.0)
        ),
        note="Together they are the whole error.",
    )


def _written(found: Sequence[Compared]) -> bytes:
    """One JSON line for each session."""
    encode = msgspec.json.Encoder().encode
    return b"".join(encode(each) + b"\n" for each in found)
