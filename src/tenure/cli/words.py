"""How figures are said on the command line: one way for each, on every screen."""

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from tenure.engine.meter.figures import ASSUMED as ASSUMED
from tenure.engine.meter.figures import assumption as assumption
from tenure.engine.meter.figures import first_line as first_line
from tenure.engine.meter.figures import money as money
from tenure.engine.meter.figures import plain as plain
from tenure.engine.meter.figures import share as share
from tenure.engine.meter.figures import short as short
from tenure.engine.meter.figures import spent as spent
from tenure.engine.meter.figures import tokens as tokens
from tenure.engine.meter.gauge import Gauge
from tenure.engine.record.visible import visible
from tenure.lab.events import Head
from tenure.lab.kinds import LABELS

STYLES = {"ok": "green", "warn": "yellow", "critical": "red"}
_BARS = "▁▂▃▄▅▆▇█"


def percent(part: float) -> str:
    """A small share as a percentage with one digit."""
    return f"{part * 100:.1f} %"


def change(now: float, before: float) -> str:
    """How much more or less `now` is."""
    if not before:
        return "±0 %"
    percent = round((now / before - 1) * 100)
    return f"{'+' if percent > 0 else '−' if percent < 0 else '±'}{abs(percent)} %"


def kinds(counts: Mapping[str, int], most: int = 5) -> str:
    """Tokens by kind, the largest first."""
    parts = [f"{LABELS.get(kind, kind)} {short(count)}" for kind, count in list(counts.items())[:most]]
    rest = sum(list(counts.values())[most:])
    return ", ".join([*parts, *([f"other {short(rest)}"] if rest else [])]) or "nothing"


def head(found: Head) -> str:
    """What stands before every view, and how that is known; empty where nothing was asked for."""
    if found.origin == "unknown":
        return "not known, taken as 0: the log reports no prompts and leaves out system prompt and tools (--head-tokens)"
    if found.origin == "given":
        return f"{tokens(found.tokens)} tokens of system prompt and tools, as given" if found.tokens else ""
    said = f"{tokens(found.provider_tokens)} tokens in what the log leaves out"
    return f"{said}, by {found.reports} of its reports (--head-tokens for another)"


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


class _Screen(Console):
    """A console that writes no control character but its own styling, whatever is printed."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What is printed, in pieces: whatever text a piece holds, and however it came there."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


def screen(*, stderr: bool = False, quiet: bool = False, wrap: bool = True) -> Console:
    """Where commands print. Nothing that a session holds is taken for markup: it is other people's text."""
    return _Screen(stderr=stderr, quiet=quiet, soft_wrap=not wrap, highlight=False, markup=False, emoji=False)
