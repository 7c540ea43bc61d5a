"""What commands print with: the console, tables, and one way to write each figure."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from tenure.engine.meter import figures
from tenure.engine.meter.figures import ASSUMED, assumption, first_line, money, plain, several, share, short, spent, tokens
from tenure.engine.meter.gauge import Gauge
from tenure.engine.record.visible import visible
from tenure.lab.events import HeadTokens
from tenure.lab.kinds import LABELS

__all__ = ("ASSUMED", "assumption", "first_line", "money", "plain", "several", "share", "short", "spent", "tokens")

STYLES = {"ok": "green", "warn": "yellow", "critical": "red"}
_BARS = "▁▂▃▄▅▆▇█"


def percent(part: float) -> str:
    """A share as a percentage with one digit."""
    return figures.percent(part, 1)


def change(now: float, before: float) -> str:
    """How much more or less `now` is."""
    return figures.change(now, before) if before else "±0 %"


def s(count: int) -> str:
    """The ending of a word that is counted."""
    return "" if count == 1 else "s"


def names(paths: Sequence[str]) -> str:
    """The first three of several files by their names."""
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return ", ".join(Path(path).name for path in paths[:3]) + more


def kinds(counts: Mapping[str, int], most: int = 5) -> str:
    """Tokens by kind, the largest first."""
    parts = [f"{LABELS.get(kind, kind)} {short(count)}" for kind, count in list(counts.items())[:most]]
    rest = sum(list(counts.values())[most:])
    return ", ".join([*parts, *([f"other {short(rest)}"] if rest else [])]) or "nothing"


def head(found: HeadTokens) -> str:
    """What stands before every view, and how that is known; empty where nothing was asked for."""
    if found.origin == "unknown":
        return "not known, taken as 0: the log reports no prompts and leaves out system prompt and tools (--head-tokens)"
    if found.origin == "given":
        return f"{tokens(found.tokens)} tokens of system prompt and tools, as given" if found.tokens else ""
    text = f"{tokens(found.provider_tokens)} tokens in what the log leaves out"
    return f"{text}, by {found.reports} of its reports (--head-tokens for another)"


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


def table(*columns: str, gap: int | None = None, expand: bool = False) -> Table:
    """A table without lines. A name that begins with `>` is of a column of figures, set to the right and never broken."""
    made = Table(box=None, pad_edge=False, header_style="dim", expand=expand, padding=(0, 1) if gap is None else (0, gap, 0, 0))
    for name in columns:
        is_figure = name.startswith(">")
        made.add_column(name.removeprefix(">"), justify="right" if is_figure else "left", no_wrap=is_figure, overflow="fold")
    return made


def facts(rows: Iterable[tuple[str, RenderableType]], *, fold: bool = False) -> Table:
    """Labels with what is said of each beside them."""
    made = Table.grid(padding=(0, 2))
    made.add_column(style="dim", no_wrap=True)
    made.add_column(overflow="fold" if fold else "ellipsis")
    for label, text in rows:
        made.add_row(label, text)
    return made


class _VisibleConsole(Console):
    """A console that writes no control character but its own styling, whatever is printed."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of what is printed."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


def screen(*, stderr: bool = False, quiet: bool = False, wrap: bool = True) -> Console:
    """Where commands print. Nothing that a session holds is taken for markup: it is other people's text."""
    return _VisibleConsole(stderr=stderr, quiet=quiet, soft_wrap=not wrap, highlight=False, markup=False, emoji=False)


def complain(text: str, style: str = "red") -> None:
    """Print a line of an error or a warning."""
    screen(stderr=True, wrap=False).print(plain(text), style=style)
