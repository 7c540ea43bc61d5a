"""The line below: model, folder, gauge, limit, cache, money, episode.

The gauge is of what the model can take; where something is evicted before, the limit stands beside it. How bad it is, `meter.gauge` alone says; here it
only gets its colour and its words. Where there is no room the least needed goes first.
"""

from pathlib import Path
from typing import Final

from msgspec import Struct
from textual.content import Content

from tenure.agent.screens import clean
from tenure.agent.screens.themes import TONES
from tenure.engine.meter import figures
from tenure.engine.meter.gauge import Gauge

BAR: Final = 10  # cells of the gauge
MOST: Final = 999.0  # percent that are written
_GAP: Final = "  "
_BUSY: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class StatusFacts(Struct, frozen=True, kw_only=True):
    """What the line says. Money in USD; `cached_share` of the newest prompt, 0 to 1."""

    model: str
    folder: Path
    gauge: Gauge
    evicts: bool = True  # there is a policy, and it could keep the limit so far
    mode: str = "ask"
    cached_share: float = 0.0
    usd: float = 0.0
    unpriced: int = 0
    episode: str = ""  # such as "expl locate-auth"
    plan: int = 0  # actions of a planner's plan that waits for its time
    tick: int = -1  # of a turn that runs; -1: none does


def line(facts: StatusFacts, width: int) -> Content:
    """The line in at most `width` cells."""
    parts = _parts(facts)
    while len(parts) > 1 and sum(part.cell_length for _, part in parts) + len(_GAP) * (len(parts) - 1) > width:
        parts.remove(min(parts, key=lambda part: part[0]))
    return Content(_GAP).join([part for _, part in parts])


def opening(model: str, folder: Path) -> Content:
    """The line before a session is open."""
    return Content.assemble(
        "·  ", (_model(model) if model else "no model yet", "bold"), (f"  {clean.line(folder.name, 24)}", "$quiet")
    )


def nudge(gauge: Gauge, *, evicts: bool, can_hand_off: bool = True) -> Content | None:
    """What a person should do now; None when all is well, or when room will be made without anybody's doing."""
    gauge = gauge.of_window
    if evicts or gauge.severity != "critical":
        return None
    way = "/handoff lets the model brief what came before" if can_hand_off else "what holds it is in /why"
    return Content.styled(f"The window is {gauge.percent:.0f} % full: {way}.", TONES["critical"])


def _parts(facts: StatusFacts) -> list[tuple[int, Content]]:
    """The pieces of the line, each with how much it is needed: the smallest goes first."""
    gauge = facts.gauge.of_window
    tone = TONES[gauge.severity]
    full = min(BAR, round(BAR * min(gauge.percent, 100.0) / 100))
    used = f"{'~' if gauge.estimated else ''}{figures.short(gauge.tokens)}/{figures.short(gauge.limit)}"
    parts = [
        (90, Content.styled(_BUSY[facts.tick % len(_BUSY)] if facts.tick >= 0 else "·", "$text-accent")),
        (60, Content.styled(_model(facts.model), "bold")),
        (10, Content.styled(clean.line(facts.folder.name or str(facts.folder), 24), "$quiet")),
        (30, Content.styled(facts.mode, "$text-warning" if facts.mode == "all" else "$quiet")),
        (25, Content.assemble(("█" * full, tone), ("░" * (BAR - full), "$quiet"))),
        (100, Content.styled(f"{used} {min(gauge.percent, MOST):.0f} %", tone)),
        *(
            [(40, Content.styled(f"cached {figures.share(min(1.0, facts.cached_share))}", "$quiet"))]
            if facts.cached_share
            else []
        ),
        (70, Content(figures.spent_briefly(facts.usd, facts.unpriced))),
    ]
    if facts.evicts and facts.gauge.limit < gauge.limit:
        parts.insert(6, (28, Content.styled(f"evicts at {figures.short(facts.gauge.limit)}", "$quiet")))
    if facts.plan:
        parts.append((45, Content.styled(f"a plan waits: {facts.plan}", "$text-accent")))
    if facts.episode:
        parts.append((50, Content.styled(clean.line(facts.episode, 36), "$text-accent")))
    return parts


def _model(spec: str) -> str:
    """A model as people speak of it; a script by its file, not by where that lies."""
    kind, _, name = spec.partition(":")
    return clean.line(f"{kind}:{Path(name).name}" if kind == "scripted" else name or spec, 28)
