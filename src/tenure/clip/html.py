"""Pages in HTML, and feeds, as `curl` or a web fetch returns them: their text. Promise: nothing is lost; the page's words are its own.

Scripts, styles, navigation and markup are dropped and counted. The text is derived, so all of it stands in a note: title, headings,
paragraphs, list items, tables and links with their URLs as Markdown writes them; code blocks stay as they are, but for their entities.

The standard library's parser reads some 2 MB/s and takes quadratic time over broken tags. So one linear scan goes first: it drops what
holds no words, takes the attributes off tags that need none, and lets no tag through that is not whole.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html.parser import HTMLParser
from itertools import pairwise
from typing import Final, Literal

from msgspec import Struct

from tenure.clip.filling import fitted, plural
from tenure.clip.shape import Count, Note, Piece, Shaped, weight

LEAST: Final = 24  # tokens; a smaller room holds no page, and a page of less text is a shell for a script
HEADERS: Final = 60  # lines of HTTP headers, or of blanks and comments, that may precede a page
TEMPLATE: Final = 3  # places filled in by a template engine, from which a text is source code
MAIN: Final = 1.0  # times more words in what says that it is the main part than outside of it, from which the rest is dropped
NAVIGATED: Final = 4  # times more words in navigation than elsewhere, from which the navigation is the page
GAP: Final = 10  # tokens of the line that says what is left out
CELLS: Final = 64  # of a table row
LONGEST_URL: Final = 300  # characters; longer ones carry data or tracking

_OPENING: Final = re.compile(
    r"\s*(?:<!doctype\s+html\b|<html\b|<head\b[^>]*>\s*<|<body\b|<(?:rss|feed|urlset|sitemapindex|rdf:RDF)[\s>])", re.IGNORECASE
)
_BEFORE: Final = re.compile(r"(?:\s|\ufeff|<\?xml[^>]{0,200}\?>|<!--(?:(?!-->).){0,2000}-->)*+", re.DOTALL | re.IGNORECASE)
_TEMPLATED: Final = re.compile(r"\{%|\{\{|<%|<\?php|<\?=|\{#if|v-for=|\*ngIf")

# Elements that hold no words to read; nesting of the same name inside is counted only for svg, as browsers do.
_SILENT: Final = ("script", "style", "svg", "noscript", "template", "iframe", "object", "canvas", "math", "audio", "video")
_SILENT_OPEN: Final = re.compile(rf"<(?:({'|'.join(_SILENT)})(?=[\s/>])|(!--)|(!\[CDATA\[)|([!?]))", re.IGNORECASE)
_SILENT_CLOSE: Final = {name: re.compile(rf"</{name}[^>]{{0,64}}>", re.IGNORECASE) for name in _SILENT}
# A tag ends at the next `>` outside quotes; one that has `<` in it is none. So each attempt stops at the next `<`: linear.
_TAG: Final = re.compile(r"""<(/?)([a-zA-Z][a-zA-Z0-9:-]{0,100})((?:[^"'<>]++|"[^"<]*+"|'[^'<]*+')*+)>""")
_STRAY: Final = re.compile(r"""<(?!/?[a-zA-Z][a-zA-Z0-9:-]{0,100}(?:[^"'<>]++|"[^"<]*+"|'[^'<]*+')*+>)""")
_HUGE_REFERENCE: Final = re.compile(r"&#(?:\d{8,}|[xX][0-9a-fA-F]{7,});?")
_ATTRIBUTED: Final = frozenset({"a", "img", "nav", "div", "section", "ul", "link", "meta", "area"})
_NEEDED: Final = re.compile(
    r"""\s(?:href|alt|name|content|role)\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>]+)""",
    re.IGNORECASE,
)
_INLINE: Final = frozenset(
    "span b i em strong u s small big font abbr cite q sub sup mark time bdi bdo ins del var label wbr picture source".split()
)

_RAW: Final = frozenset("textarea xmp noembed noframes plaintext".split()) | frozenset(
    _SILENT
)  # a parser would not look for tags in them

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_BLANKS: Final = re.compile(r"[ \t\n\r\f\v\u00a0]+")
_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_BLOCKS: Final = frozenset(
    "p div section article main header footer nav aside ul ol dl dt dd li table tr pre blockquote figure figcaption form fieldset"
    " address details summary hr h1 h2 h3 h4 h5 h6 x-title body html head td th thead tbody caption option select"
    " item entry description summary content channel pubdate link url loc lastmod".split()
)
_NAVIGATION: Final = frozenset({"nav", "footer", "aside", "select", "button"})
_MAIN: Final = frozenset({"main", "article"})
_ROLES: Final = frozenset({"navigation", "contentinfo", "banner", "search", "menu", "menubar"})
_VOID: Final = frozenset("br hr img input meta link area base col embed source track wbr param".split())


_Place = Literal["navigation", "main", "outside"]


class _Block(Struct, frozen=True, gc=False):
    """A paragraph, heading, item, row or code block of the page, as it will be shown."""

    kind: str  # "title", "heading", "text", "item", "row" or "code"
    text: str
    level: int = 0  # of a heading


class Html:
    """The text of a web page."""

    @property
    def name(self) -> str:
        """As the marker prints it."""
        return "web page"

    def fits(self, lines: Sequence[str]) -> bool:
        """Whether a page or a feed begins here, and no template of one. A file read with line numbers begins with a number."""
        start = _start(lines)
        if start is None:
            return False
        return sum(len(_TEMPLATED.findall(line)) for line in lines[start : start + 2_000] if "<script" not in line) < TEMPLATE

    def shaped(self, lines: Sequence[str], room: int, count: Count) -> Shaped | None:
        """The page's text in at most `room` tokens; None when it is no page, or has hardly any text."""
        start = _start(lines)
        if start is None or room < LEAST:
            return None
        page = _Page(_SURROGATE.sub("\ufffd", "\n".join(lines[start:])))
        if sum(weight(block.text) for block in page.blocks) < LEAST:
            return None
        pieces = fitted(lines, room, count, page.pieces)
        if pieces is None:
            return None
        left = (
            ""
            if pieces == page.pieces(len(page.source) * 4 + room)
            else "; title, headings and the first paragraphs of each section go first"
        )
        return Shaped(pieces=pieces, why=f"the page's text, without markup and navigation{left}")


def _start(lines: Sequence[str]) -> int | None:
    """The line on which a page begins."""
    start = 0
    if lines and lines[0].startswith("HTTP/"):
        start = next((number + 1 for number, line in enumerate(lines[:HEADERS]) if not line.strip()), len(lines))
    head = "\n".join(line[:4_000] for line in lines[start : start + HEADERS])[:16_000]
    before = _BEFORE.match(head)
    return start if _OPENING.match(head, before.end() if before else 0) else None


class _Page:
    """The blocks of a page, and what was dropped on the way."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._dropped: Counter[str] = Counter()
        reader = _Reader()
        reader.feed("".join(_parts(source, self._dropped)))
        reader.close()
        blocks = reader.finished()
        characters = Counter[_Place]()
        for block, place in blocks:
            characters[place] += len(block.text)
        kept: set[_Place] = {"main", "outside"}
        if characters["navigation"] > NAVIGATED * (characters["main"] + characters["outside"]):
            kept.add("navigation")
        if characters["main"] > MAIN * characters["outside"]:
            kept.discard("outside")
        self.blocks = _distinct([block for block, place in blocks if place in kept or _names_the_page(block)])
        self._dropped["paragraph outside the main part"] = sum(
            place == "outside" and place not in kept and not _names_the_page(block) for block, place in blocks
        )
        self._links = 0 if "navigation" in kept else reader.navigation_links

    def pieces(self, budget: int) -> tuple[Piece, ...]:
        """The page in about so many tokens of estimated weight; empty when nothing fits."""
        left = budget - weight(self._summary())
        chosen: set[int] = set()
        for at in self._order():
            cost = weight(self.blocks[at].text) + (0 if at - 1 in chosen or at + 1 in chosen else GAP)
            if cost <= left:
                chosen.add(at)
                left -= cost
            elif left < GAP:
                break
        first = next((at for at, block in enumerate(self.blocks) if block.kind not in ("title", "heading")), -1)
        cut: dict[int, str] = {}
        if first >= 0 and first not in chosen and left > LEAST:
            size = (left - GAP) * 5 // 2
            text = self.blocks[first].text
            cut[first] = f"{text[:size]}… (the first {size:,} of {len(text):,} characters)"
        if not chosen and not cut:
            return ()
        return (Note("\n".join((*self._lines(sorted(chosen | set(cut)), cut), self._summary()))),)

    def _lines(self, chosen: Sequence[int], cut: Mapping[int, str]) -> Iterator[str]:
        blocks = self.blocks
        before = -1
        for at in chosen:
            if at > before + 1:
                yield self._gap(before + 1, at)
            elif before >= 0 and not (blocks[at].kind == blocks[before].kind and blocks[at].kind in ("item", "row")):
                yield ""
            yield cut.get(at, blocks[at].text)
            before = at
        if before + 1 < len(blocks):
            yield self._gap(before + 1, len(blocks))

    def _gap(self, first: int, stop: int) -> str:
        kinds = Counter(_NAMES[block.kind] for block in self.blocks[first:stop])
        characters = sum(len(block.text) for block in self.blocks[first:stop])
        return f"… {', '.join(plural(n, name) for name, n in kinds.items())} left out ({characters:,} characters)"

    def _order(self) -> Iterator[int]:
        """Title and main headings, the first block of each section, then the page from its start."""
        blocks = self.blocks
        yield from (at for at, block in enumerate(blocks) if _names_the_page(block))
        content = next((at for at, block in enumerate(blocks) if block.kind not in ("title", "heading")), len(blocks))
        yield from range(content, min(content + 3, len(blocks)))
        yield from (at for at, block in enumerate(blocks) if block.kind == "heading" and block.level <= 3)
        yield from (
            at for at, (before, block) in enumerate(pairwise(blocks), 1) if before.kind == "heading" and block.kind != "heading"
        )
        yield from range(len(blocks))

    def _summary(self) -> str:
        parts = [plural(n, name, _PLURALS.get(name, "")) for name, n in self._dropped.items() if n]
        if self._links:
            parts.append(f"navigation with {plural(self._links, 'link')}")
        dropped = f"; dropped: {', '.join(parts)}" if parts else ""
        return f"(text of a page of {len(self.source):,} characters{dropped})"


_NAMES: Final = {
    "title": "title",
    "heading": "heading",
    "text": "paragraph",
    "item": "list item",
    "row": "table row",
    "code": "code block",
}
_PLURALS: Final = {
    "paragraph outside the main part": "paragraphs outside the main part",
    "canvas": "canvases",
    "math": "formulas",
}


# The linear scan before the parser


def _parts(source: str, dropped: Counter[str]) -> Iterator[str]:
    """The page without what holds no words, every tag of it whole, and only the attributes that are read."""
    for text in _spoken(source, dropped):
        clean = _HUGE_REFERENCE.sub("\ufffd", text)
        yield _TAG.sub(_bare, _STRAY.sub("&lt;", clean))


def _spoken(source: str, dropped: Counter[str]) -> Iterator[str]:
    """What stands between silent elements, comments and declarations; one that never ends goes to the end of the page."""
    at = 0
    endless: set[str] = set()  # what was searched to the end in vain; it cannot be found further on
    while (match := _SILENT_OPEN.search(source, at)) is not None:
        yield source[at : match.start()]
        name = (match[1] or "").lower()
        if name:
            closed = None if name in endless else _SILENT_CLOSE[name].search(source, match.end())
            at = closed.end() if closed else _after(source, ">", match.end())
            if closed is None:
                endless.add(name)
            else:
                dropped[name] += 1
        elif match[2]:
            stop = -1 if "--" in endless else source.find("-->", match.end())
            if stop < 0:
                endless.add("--")
            at = stop + 3 if stop >= 0 else _after(source, ">", match.end())
        elif match[3]:
            stop = -1 if "]]" in endless else source.find("]]>", match.end())
            if stop < 0:
                endless.add("]]")
            at = match.end() if stop < 0 else stop + 3
            if stop >= 0:
                yield from _spoken_once(source[match.end() : stop], dropped)
        else:
            at = _after(source, ">", match.end())
    yield source[at:]


def _spoken_once(content: str, dropped: Counter[str]) -> Iterator[str]:
    """The words of a CDATA section, which may be markup itself, but holds no other section."""
    yield from _spoken(content.replace("<![CDATA[", ""), dropped)


def _after(source: str, sign: str, at: int) -> int:
    stop = source.find(sign, at)
    return stop + 1 if stop >= 0 else len(source)


def _bare(tag: re.Match[str]) -> str:
    """A tag with the attributes that are read."""
    name = tag[2].lower()
    if name in _INLINE or name in _RAW:
        return ""
    name = "x-title" if name == "title" else name  # whose end some versions of the parser look for without end
    if not tag[3] or tag[1]:
        return f"<{tag[1]}{name}>"
    if name not in _ATTRIBUTED:
        return f"<{name}/>" if tag[3].endswith("/") and name not in _VOID else f"<{name}>"
    return f"<{name}{''.join(_NEEDED.findall(tag[3]))}>"


# The parser


class _Reader(HTMLParser):
    """Blocks in the order of the page, each with where it stands."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._blocks: list[tuple[_Block, _Place]] = []
        self._words: list[str] = []
        self._cells: list[str] | None = None
        self._kind = "text"
        self._level = 0
        self._lists = 0
        self._code = 0
        self._navigation: list[str] = []
        self._main = 0
        self._titled = False  # whether the page has its title: in a feed, others follow
        self._link: tuple[str, int] | None = None  # a URL, and where among the words its text begins
        self.navigation_links = 0

    def finished(self) -> list[tuple[_Block, _Place]]:
        """All blocks."""
        self._end_row()
        self._end()
        return self._blocks

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin what the element is."""
        if tag == "br":
            self._words.append("\n" if self._code else " ")
        elif tag == "img":
            alt = dict(attrs).get("alt")
            if alt and self._link is not None:
                self._words.append(alt)
        elif tag == "a":
            self._begin_link(dict(attrs).get("href") or "")
        elif tag == "meta":
            self._described(dict(attrs))
        elif tag == "code" and not self._code:
            self._words.append("`")
        elif tag in _BLOCKS:
            self._begin(tag, dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        """End what the element is; an end without a beginning ends the paragraph."""
        if tag == "a":
            self._end_link()
        elif tag == "code" and not self._code:
            self._words.append("`")
        elif tag == "pre":
            self._end()
            self._code = max(self._code - 1, 0)
        elif tag in ("td", "th"):
            self._end_cell()
        elif tag in ("tr", "table"):
            self._end_row()
        elif tag in _BLOCKS:
            self._end()
            self._kind = "text"
            if tag in ("ul", "ol"):
                self._lists = max(self._lists - 1, 0)
        if self._navigation and self._navigation[-1] == tag:
            self._navigation.pop()
        if tag in _MAIN:
            self._main = max(self._main - 1, 0)

    def handle_data(self, data: str) -> None:
        """Words."""
        self._words.append(data)

    def _begin(self, tag: str, attributes: Mapping[str, str | None]) -> None:
        if self._cells is None or tag in ("tr", "table", "pre"):
            self._end()
        elif tag in ("td", "th"):
            if _spaced(self._words):
                self._end_cell()  # which an end tag would have done
            self._words = []
        if (tag in _NAVIGATION and not (tag == "aside" and self._main)) or (attributes.get("role") or "").lower() in _ROLES:
            self._navigation.append(tag)
        elif self._navigation and tag == self._navigation[-1]:
            self._navigation.append(tag)  # so that its own end is not taken for that of the navigation around it
        self._main += tag in _MAIN
        if tag in _MAIN or tag == "h1":
            self._navigation.clear()  # an end tag was forgotten: what says it is the page is not navigation
        if tag in _HEADINGS:
            self._kind, self._level = "heading", _HEADINGS[tag]
        elif tag == "x-title":
            self._kind, self._level = ("heading", 2) if self._titled else ("title", 0)
            self._titled = True
        elif tag in ("li", "dt", "dd", "option"):
            self._kind = "item"
        elif tag in ("ul", "ol"):
            self._lists += 1
        elif tag == "pre":
            self._end_row()
            self._code += 1
            self._kind = "code"
        elif tag == "tr":
            self._end_row()
            self._cells = []
        elif tag == "table":
            self._end_row()
        elif tag == "p" and self._kind != "item":
            self._kind = "text"

    def _begin_link(self, url: str) -> None:
        self._end_link()
        self.navigation_links += bool(self._navigation)
        if url and not url.startswith(("#", "javascript:")) and not self._code:
            self._link = url[:LONGEST_URL] + "…" * (len(url) > LONGEST_URL), len(self._words)

    def _end_link(self) -> None:
        if self._link is None:
            return
        url, start = self._link
        self._link = None
        text = _BLANKS.sub(" ", "".join(self._words[start:]))
        words = text.strip()
        if words:
            before, after = " " * text.startswith(" "), " " * text.endswith(" ")
            self._words[start:] = [f"{before}[{words}]({url}){after}" if words != url else text]

    def _described(self, attributes: Mapping[str, str | None]) -> None:
        words = _spaced(attributes.get("content") or "")
        if words and (attributes.get("name") or "").lower() == "description":
            self._end()
            self._add("title", words)

    def _end_cell(self) -> None:
        self._end_link()
        if self._cells is not None and len(self._cells) < CELLS:
            self._cells.append(_spaced(self._words).replace("|", "\\|"))
        elif self._cells is None:
            return
        self._words = []

    def _end_row(self) -> None:
        if self._cells is not None:
            if self._words and _spaced(self._words):
                self._end_cell()
            cells, self._cells = self._cells, None
            self._words = []
            if any(cells):
                self._add("row", f"| {' | '.join(cells)} |" if len(cells) > 1 else cells[0])

    def _end(self) -> None:
        if self._cells is not None and not self._code:
            return
        self._end_link()
        if self._code:
            code = "".join(self._words).strip("\n").rstrip()
            self._words = []
            if code.strip():
                fence = "````" if "```" in code else "```"
                self._add("code", f"{fence}\n{code}\n{fence}")
            return
        words = _spaced(self._words)
        self._words = []
        if not words:
            return
        match self._kind:
            case "heading":
                self._add("heading", f"{'#' * self._level} {words}")
                self._kind = "text"
            case "title":
                self._add("title", f"Title: {words}")
                self._kind = "text"
            case "item":
                self._add("item", f"{'  ' * min(max(self._lists - 1, 0), 6)}- {words}")
                self._kind = "text"
            case _:
                self._add("text", words)

    def _add(self, kind: str, text: str) -> None:
        place: _Place = "navigation" if self._navigation else "main" if self._main else "outside"
        self._blocks.append((_Block(kind, text, self._level if kind == "heading" else 0), place))


def _spaced(words: Iterable[str]) -> str:
    return _BLANKS.sub(" ", "".join(words)).strip()


def _names_the_page(block: _Block) -> bool:
    return block.kind == "title" or (block.kind == "heading" and block.level == 1)


def _distinct(blocks: Sequence[_Block]) -> list[_Block]:
    """Without paragraphs and items that the page repeats word for word: menus for phones, cards in several sizes."""
    seen: set[str] = set()
    kept: list[_Block] = []
    for block in blocks:
        if block.kind in ("text", "item", "title"):
            if block.text in seen:
                continue
            seen.add(block.text)
        kept.append(block)
    return kept
