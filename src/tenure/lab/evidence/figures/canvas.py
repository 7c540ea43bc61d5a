"""What a figure is drawn on: shapes and words with a meaning each, and one style sheet for all of them.

Colours are Okabe and Ito's, which colour-blind readers can tell apart, in a light and a dark tone; a figure has a ground of its own, so it can
be read wherever it is shown. No shape says anything by its colour alone.
"""

from typing import Final, Literal
from xml.sax.saxutils import escape, quoteattr

# Words and scales; whose a policy is; what became of a need; the parts of a bill; and kinds that are only to be told apart.
Ink = Literal[
    "ink",
    "faint",
    "ours",
    "bound",
    "peer",
    "routed",
    "lost",
    "read",
    "write",
    "uncached",
    "output",
    "recall",
    "helpers",
    "a",
    "b",
    "c",
    "d",
    "e",
]
Anchor = Literal["start", "middle", "end"]

SMALL: Final = 11  # pixels
NORMAL: Final = 12
LARGE: Final = 15

DASHES: Final = ("", ' stroke-dasharray="6 3"', ' stroke-dasharray="2 3"')  # whole, dashed, dotted

# light and dark
_TONES: Final = {
    "ink": ("#1f2328", "#e6edf3"),
    "faint": ("#656d76", "#9198a1"),
    "ours": ("#0072b2", "#56b4e9"),
    "bound": ("#009e73", "#2bc79b"),
    "peer": ("#7d8590", "#8b949e"),
    "routed": ("#f0c05a", "#8f6f22"),
    "lost": ("#c34a00", "#ff8a50"),
    "read": ("#9ecbe8", "#2f6f95"),
    "write": ("#0072b2", "#56b4e9"),
    "uncached": ("#7d8590", "#8b949e"),
    "output": ("#009e73", "#2bc79b"),
    "recall": ("#e69f00", "#e6a93b"),
    "helpers": ("#cc79a7", "#dd9cc0"),
    "a": ("#0072b2", "#56b4e9"),
    "b": ("#c34a00", "#ff8a50"),
    "c": ("#007a5a", "#2bc79b"),
    "d": ("#a8558a", "#dd9cc0"),
    "e": ("#8a6d00", "#d9b93b"),
}
_GROUND: Final = ("#ffffff", "#0d1117")
_RULE: Final = ("#e4e8ec", "#262c34")
_FONT: Final = "font-family:-apple-system,BlinkMacSystemFont,'Segoe UI','Noto Sans','DejaVu Sans',Helvetica,Arial,sans-serif"


class Canvas:
    """Shapes in the order in which they are drawn. Mutable; lengths are pixels, from the top left."""

    def __init__(self) -> None:
        self._shapes: list[str] = []

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        ink: Ink = "ink",
        size: int = NORMAL,
        anchor: Anchor = "start",
        bold: bool = False,
    ) -> None:
        """Words whose line stands on `y`."""
        at = f'x="{number(x)}" y="{number(y)}"'
        style = f' text-anchor="{anchor}"' * (anchor != "start") + ' font-weight="600"' * bold
        self._shapes.append(f'<text {at} class="{ink}" font-size="{size}"{style}>{escape(words)}</text>')

    def bar(self, x: float, y: float, width: float, height: float, ink: Ink) -> None:
        """A filled rectangle; nothing where it has no width."""
        if width > 0:
            size = f'width="{number(width)}" height="{number(height)}"'
            self._shapes.append(f'<rect x="{number(x)}" y="{number(y)}" {size} class="{ink}"/>')

    def dot(self, x: float, y: float, ink: Ink, *, radius: float = 4, hollow: bool = False) -> None:
        """A point; a hollow one says less."""
        look = f'class="{ink} hollow"' if hollow else f'class="{ink}"'
        self._shapes.append(f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(radius)}" {look}/>')

    def stroke(self, points: list[tuple[float, float]], ink: Ink, *, width: float = 1.5, dash: int = 0) -> None:
        """A line through points; `dash` is one of DASHES."""
        place = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        look = f'class="line {ink}" stroke-width="{number(width)}"' + DASHES[dash]
        self._shapes.append(f'<polyline points="{place}" {look}/>')

    def rule(self, x1: float, y1: float, x2: float, y2: float) -> None:
        """A thin line of the scale."""
        ends = f'x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}"'
        self._shapes.append(f'<line {ends} class="rule"/>')

    def svg(self, width: int, height: int, title: str, told: str) -> str:
        """The whole figure; `told` says in words what is seen, for whoever does not see it."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
            f' role="img" aria-label={quoteattr(title)}>'
        )
        ground = f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="6" class="ground"/>'
        named = f"<title>{escape(title)}</title>\n<desc>{escape(told)}</desc>"
        return "\n".join((head, named, f"<style>{STYLE}</style>", ground, *self._shapes, "</svg>\n"))


def number(value: float) -> str:
    """A length, to a tenth of a pixel."""
    text = f"{value:.1f}"
    return text.removesuffix(".0") if text != "-0.0" else "0"


def width_of(words: str, size: int = NORMAL) -> float:
    """About how wide words are, rather too much than too little."""
    return sum(0.32 if sign in "ijlIt.,:;|'!() " else 0.9 if sign in "mwMW%" else 0.6 for sign in words) * size


def _rules(tone: int) -> str:
    fills = "".join(
        f".{name}{{fill:{tones[tone]}}}.line.{name},.hollow.{name}{{stroke:{tones[tone]}}}" for name, tones in _TONES.items()
    )
    ground = f".ground{{fill:{_GROUND[tone]};stroke:{_RULE[tone]}}}.rule{{stroke:{_RULE[tone]}}}.hollow{{fill:{_GROUND[tone]}}}"
    return fills + ground


STYLE: Final = (
    f"text{{{_FONT}}}{_rules(0)}.line{{fill:none}}.hollow{{stroke-width:1.5}}"
    f"@media(prefers-color-scheme:dark){{{_rules(1)}.line{{fill:none}}}}"
)
