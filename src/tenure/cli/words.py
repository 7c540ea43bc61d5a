"""How figures are said on the command line: one way for each, on every screen."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.text import Text

from tenure.meter.gauge import Gauge

STYLES = {"ok": "green", "warn": "yellow", "critical": "red"}
_BARS = "▁▂▃▄▅▆▇█"


def tokens(count: int) -> str:
    """A number of tokens, exact."""
    return f"{count:,}"


def short(count: int) -> str:
    """A number of tokens in a few characters: 812, 8.1k, 80k, 1.2M."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if count >= size:
            return f"{count / size:.1f}{unit}" if count < 10 * size else f"{count // size}{unit}"
    return str(count)


def money(usd: float) -> str:
    """An amount in dollars, with as many digits as it needs to say something."""
    return f"${usd:,.2f}" if usd >= 1 else f"${usd:.3f}"


def share(part: float) -> str:
    """A share from 0 to 1 as a percentage."""
    return f"{part * 100:.0f} %"


def percent(part: float) -> str:
    """A small share as a percentage with one digit."""
    return f"{part * 100:.1f} %"


def change(now: float, before: float) -> str:
    """How much more or less `now` is."""
    if not before:
        return "±0 %"
    percent = round((now / before - 1) * 100)
    return f"{'+' if percent > 0 else '−' if percent < 0 else '±'}{abs(percent)} %"


# What REPLAY's summary calls by kind, in the words of people.
_KINDS = {
    "results of intermediate tools": "reads and command output",
    "results of bulk tools": "search output",
    "results of durable tools": "results of edits",
    "calls of intermediate tools": "calls of reads and commands",
    "calls of bulk tools": "searches",
    "calls of durable tools": "edits and writes",
    "calls of delimiter tools": "episode marks",
    "results of delimiter tools": "answers to episode marks",
}


def kinds(counts: Mapping[str, int], most: int = 5) -> str:
    """Tokens by kind, the largest first."""
    parts = [f"{_KINDS.get(kind, kind)} {short(count)}" for kind, count in list(counts.items())[:most]]
    rest = sum(list(counts.values())[most:])
    return ", ".join([*parts, *([f"other {short(rest)}"] if rest else [])]) or "nothing"


def gauge_bar(used: int, limit: int, width: int = 24) -> Text:
    """A gauge in the colour of its severity."""
    gauge = Gauge(tokens=used, limit=limit)
    full = min(width, round(width * gauge.percent / 100))
    return Text.assemble(("█" * full, STYLES[gauge.severity]), ("░" * (width - full), "dim"))


def sparkline(values: Sequence[int], top: int, width: int = 60) -> str:
    """Values over time in one line, each column the highest of its stretch."""
    if not values or top <= 0:
        return ""
    columns = min(width, len(values))
    stretches = [values[len(values) * c // columns : len(values) * (c + 1) // columns] for c in range(columns)]
    return "".join(_BARS[min(len(_BARS) - 1, max(stretch) * len(_BARS) // (top + 1))] for stretch in stretches)


def screen(*, stderr: bool = False, quiet: bool = False, wrap: bool = True) -> Console:
    """Where commands print. Nothing that a session holds is taken for markup: it is other people's text."""
    return Console(stderr=stderr, quiet=quiet, soft_wrap=not wrap, highlight=False, markup=False, emoji=False)


def plain(text: str) -> str:
    """Text of a session without what a terminal would obey."""
    return text if text.isprintable() else "".join(sign if sign.isprintable() else "\ufffd" for sign in text)


def first_line(text: str, width: int) -> str:
    """The first words of a text in one line."""
    line = plain(" ".join(text[: 8 * width].split()))
    return line if len(line) <= width else line[: max(1, width - 1)] + "…"
