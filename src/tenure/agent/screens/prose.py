"""A model's words on the screen: Markdown as people read it, code in its colours; and diffs.

What a text says is shown in full, also where it is no good Markdown; only the signs of headings, emphasis, fences and tables go. Nothing is obeyed: an
address is shown behind its words, HTML as it is written.
"""

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual.content import Content

from tenure.agent.screens import clean

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_RULE: Final = "─" * 40
_LONGEST: Final = 20_000  # characters of a block of code that is coloured
_DEEPEST: Final = 20  # levels of lists and quotes that are indented
_BULLETS: Final = "•◦▪"


def prose(text: str) -> Content:
    """Markdown, laid out for a terminal; a text that breaks off is shown as far as it goes."""
    text = clean.text(text)
    tokens = _parser().parse(text)
    shown = Content("\n").join(_MarkdownLines(tokens, text.split("\n")).lines())
    is_whole = _letters(shown.plain) + sum(_letters(token.info) for token in tokens) >= _letters(text)
    return shown if is_whole else Content(text.strip("\n"))


@cache
def _parser() -> "MarkdownIt":
    """Loaded with the first reply: nobody waits for it before one can type."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"maxNesting": _DEEPEST}).enable(["table", "strikethrough"]).disable(["reference", "entity"])


class _MarkdownLines:
    """Lays out the tokens of one text, a line at a time. Mutable: it knows in which lists and quotes it is."""

    def __init__(self, tokens: "Sequence[Token]", source: Sequence[str]) -> None:
        self._tokens, self._source = tokens, source
        self._margins: list[str] = []  # of the lists and quotes that are open, outermost first
        self._bullet = ""  # of the item that begins with the next line
        self._numbers: list[int | None] = []  # of the lists that are open: the next item's; None for bullets

    def lines(self) -> Iterator[Content]:
        """All lines. Blocks are parted by an empty line where their author parted them."""
        end = place = 0
        margins: list[str] = []  # of the block before
        while place < len(self._tokens):
            token, size = self._tokens[place], 1
            if token.type in _LEAVES and token.map:
                if token.map[0] > end and place:
                    both = takewhile(lambda pair: pair[0] == pair[1], zip(margins, self._margins, strict=False))
                    yield Content.styled("".join(margin for margin, _ in both).rstrip(), "$quiet")
                end, margins = token.map[1], list(self._margins)
            match token.type:
                case "heading_open":
                    level, inline, size = int(token.tag[1]), self._tokens[place + 1], 3
                    yield self._line(_inline(inline).stylize("bold $text-primary" if level < 3 else "bold"))
                case "inline":
                    yield from map(self._line, _inline(token).split("\n", allow_blank=True))
                case "fence" | "code_block":
                    yield from map(self._line, _code(token.content, token.info.strip().split(" ")[0]))
                case "html_block":
                    yield from (self._line(Content(line)) for line in token.content.rstrip("\n").split("\n"))
                case "hr":
                    yield self._line(Content.styled(_RULE, "$quiet"))
                case "table_open":
                    size = next(n for n in range(place, len(self._tokens)) if self._tokens[n].type == "table_close") - place + 1
                    start, stop = token.map or (0, 0)
                    yield from map(self._line, _table(self._tokens[place : place + size], self._source[start:stop]))
                case _:
                    self._enter(token)
            place += size

    def _enter(self, token: "Token") -> None:
        match token.type:
            case "bullet_list_open":
                self._numbers.append(None)
            case "ordered_list_open":
                self._numbers.append(int(token.attrs.get("start", 1)))
            case "bullet_list_close" | "ordered_list_close":
                self._numbers.pop()
            case "list_item_open":
                number = self._numbers[-1]
                depth = len(self._numbers)
                self._bullet = f"{_BULLETS[(depth - 1) % len(_BULLETS)]} " if number is None else f"{number}. "
                self._numbers[-1] = None if number is None else number + 1
                self._margins.append(" " * len(self._bullet))
            case "list_item_close":
                self._margins.pop()
                self._bullet = ""
            case "blockquote_open":
                self._margins.append("▌ ")
            case "blockquote_close":
                self._margins.pop()
            case _:
                pass

    def _line(self, line: Content) -> Content:
        if not self._margins:
            return line
        if not self._bullet:
            return Content.assemble(("".join(self._margins), "$quiet"), line)
        bullet, self._bullet = self._bullet, ""
        return Content.assemble(("".join(self._margins[:-1]), "$quiet"), (bullet, "$text-accent"), line)


_LEAVES: Final = frozenset("paragraph_open heading_open fence code_block html_block hr table_open".split())
_MARKS: Final = {"strong": "bold", "em": "italic", "s": "strike"}


def _inline(token: "Token") -> Content:
    """Words of a line with their emphasis. Signs that may be a part of a name or a sum, as in `__init__` and 2*3*4, stay."""
    parts: list[tuple[str, str]] = []
    styles: list[str] = []
    ends: list[tuple[str, str]] = []  # what stands behind each emphasis or link that is open, and its style
    for child in token.children or ():
        kind, _, way = child.type.rpartition("_")
        match way:
            case "open":
                is_sign = "_" in child.markup or bool(parts and parts[-1][0][-1:].isalnum() and kind == "em")
                parts += [(child.markup, "")] if is_sign else []
                address = str(child.attrs.get("href", ""))
                styles.append("" if is_sign else "underline" if address else _MARKS.get(kind, ""))
                ends.append((child.markup, "") if is_sign else (address, "$quiet"))
            case "close":
                end, style = ends.pop()
                styles.pop()
                is_shown = not end or not style or end in (parts[-1][0], f"mailto:{parts[-1][0]}")
                parts += [(end, style)] if end and not style else [] if is_shown else [(f" ({end})", style)]
            case _:
                parts.append(_word(child, " ".join(filter(None, styles))))
    return Content.assemble(*parts)


def _word(token: "Token", style: str) -> tuple[str, str]:
    match token.type:
        case "code_inline":
            return token.content, "$text-accent"
        case "softbreak" | "hardbreak":
            return "\n", ""
        case "image":
            return f"[image: {token.content}] ({token.attrs.get('src', '')})", "$quiet"
        case _:
            return token.content, style


def _table(tokens: "Sequence[Token]", source: Sequence[str]) -> Iterator[Content]:
    """A table with its columns under each other; as it is written where a row has more cells than the head."""
    rows: list[list[Content]] = []
    for before, token in pairwise(tokens):
        if token.type == "tr_open":
            rows.append([])
        elif before.type in ("th_open", "td_open") and token.type == "inline":
            rows[-1].append(_inline(token))
    if sum(_letters(cell.plain) for row in rows for cell in row) < sum(map(_letters, source)):
        yield from map(Content, source)
        return
    widths = [max(cell.cell_length for cell in column) for column in zip(*rows, strict=False)]
    for n, row in enumerate(rows):
        cells = [cell.pad_right(max(0, width - cell.cell_length)) for cell, width in zip(row, widths, strict=False)]
        line = Content("  ").join(cells).rstrip()
        yield line.stylize("bold") if n == 0 else line
        if n == 0:
            yield Content.styled("  ".join("─" * width for width in widths), "$quiet")


def _letters(text: str) -> int:
    return sum(map(str.isalnum, text))


def _code(text: str, language: str) -> list[Content]:
    """The lines of a block of code behind a margin, coloured where its language is known."""
    text = text.rstrip("\n")
    block = _highlighted(text, language.lower()) if language and len(text) <= _LONGEST else None
    return [
        Content.assemble(("  ", ""), line)
        for line in (block or Content.styled(text, "$text-accent")).split("\n", allow_blank=True)
    ]


@lru_cache(maxsize=64)
def _highlighted(text: str, language: str) -> Content | None:
    """Code in its colours; None where nobody knows the language, or colouring changes the text."""
    from pygments.util import ClassNotFound
    from textual.highlight import highlight

    if language == "diff":
        return change(text)
    try:
        block = highlight(text, language=language, theme=_theme())
    except (ClassNotFound, ValueError):
        return None
    return block if block.plain == text else None


@cache
def _theme() -> Any:
    """A few calm colours; what is not named is in the colour of the text."""
    from pygments.token import Token as Kind
    from textual.highlight import HighlightTheme

    class Calm(HighlightTheme):
        """Comments recede; keywords, strings, numbers and names that are defined stand out."""

        STYLES: ClassVar[Any] = {
            Kind.Comment: "$quiet italic",
            Kind.Keyword: "$text-primary",
            Kind.Keyword.Constant: "$text-warning",
            Kind.Literal.Number: "$text-warning",
            Kind.Literal.String: "$text-success",
            Kind.Name.Class: "bold",
            Kind.Name.Decorator: "$text-accent",
            Kind.Name.Function: "$text-accent",
            Kind.Name.Builtin: "$text-accent",
            Kind.Name.Tag: "$text-primary",
            Kind.Name.Attribute: "$text-accent",
            Kind.Operator.Word: "$text-primary",
        }

    return Calm


def change(text: str) -> Content:
    """A unified diff, a line of each kind in its colour."""
    return Content.assemble(*[(line + "\n", _tone(line)) for line in clean.text(text).split("\n")]).rstrip()


def hunks(lines: Sequence[str], margin: str = "  ") -> Content:
    """Changed lines without heads, each kind in its colour, behind a margin."""
    tones = {"+": "$text-success", "-": "$text-error", "⋯": "$quiet"}
    return Content("\n").join([Content.styled(margin + clean.text(line), tones.get(line[:1], "")) for line in lines])


def _tone(line: str) -> str:
    if line.startswith(("+++", "---", "@@")):
        return "$quiet"
    return "$text-success" if line.startswith("+") else "$text-error" if line.startswith("-") else ""


def is_diff(text: str) -> bool:
    """Whether a text looks like a unified diff."""
    return text.startswith("--- ") and "\n@@ " in text
