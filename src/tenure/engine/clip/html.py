"""Pages in HTML, and feeds, as `curl` or a web fetch returns them: their text.

Scripts, styles, navigation and markup are dropped and counted. The text is derived, so all of it stands in a note: title, headings,
paragraphs, list items, tables and links with their URLs as Markdown writes them; code blocks stay as they are, but for their entities.

The standard library's parser reads some 2 MB/s and takes quadratic time over broken tags. So the page is parted at whole tags by one
pattern, once what holds no words is dropped; what is no whole tag is words.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from html import unescape
from itertools import islice, pairwise
from typing import Final, Literal

from msgspec import Struct

from tenure.engine.clip.shape import GAP_ABOUT, NOTE, Note, Piece, Shaped, fitted, plural, weight
from tenure.engine.record.entry import Count

LEAST: Final = 24  # tokens; a smaller room holds no page, and a page of less text is a shell for a script
HEADERS: Final = 60  # lines of HTTP headers, or of blanks and comments, that may precede a page
TEMPLATE: Final = 3  # places filled in by a template engine, from which a text is source code
MAIN: Final = 1.0  # times more words in what says that it is the main part than outside of it, from which the rest is dropped
NAVIGATED: Final = 4  # times more words in navigation than elsewhere, from which the navigation is the page
CLOSE: Final = 200_000  # characters of a page, without scripts and the like, that are read; a clip shows some 10,000
SECTION: Final = 800  # characters read after each heading beyond them
SECTIONS: Final = 120  # such headings
CELLS: Final = 64  # of a table row
LONGEST_URL: Final = 300  # characters; longer ones carry data or tracking

_OPENING: Final = re.compile(
    r"\s*(?:<!doctype\s+html\b|<html\b|<head\b[^>]*>\s*<|<body\b|<(?:rss|feed|urlset|sitemapindex|rdf:RDF)[\s>])", re.IGNORECASE
)
_BEFORE: Final = re.compile(r"(?:\s|\ufeff|<\?xml[^>]{0,200}\?>|<!--(?:(?!-->).){0,2000}-->)*+", re.DOTALL | re.IGNORECASE)
_TEMPLATED: Final = re.compile(r"\{%|\{\{|<%|<\?php|<\?=|\{#if|v-for=|\*ngIf")

# Elements that hold no words to read; nesting of the same name inside is counted only for svg, as browsers do.
_SILENT: Final = ("script", "style", "svg", "noscript", "template", "iframe", "object", "canvas", "math", "audio", "video")
_SILENT_OPEN: Final = re.compile(rf"<((?i:{'|'.join(_SILENT)})(?=[\s/>])|!--|!\[(?i:CDATA)\[|[!?])")
_CLOSE: Final = {name: re.compile(rf"</{name}[^>]{{0,64}}>", re.IGNORECASE) for name in _SILENT} | {
    "!--": re.compile("-->"), "![cdata[": re.compile("]]>"),
}  # fmt: skip
# A tag ends at the next `>` outside quotes; one that has `<` in it is none. So each attempt stops at the next `<`: linear.
_TAG: Final = re.compile(r"""<(/?)([a-zA-Z][a-zA-Z0-9:-]{0,100})((?:[^"'<>]++|"[^"<]*+"|'[^'<]*+')*+)>""")
_HUGE_REFERENCE: Final = re.compile(r"&#(?:\d{8,}|[xX][0-9a-fA-F]{7,});?")
_ATTRIBUTED: Final = frozenset({"a", "img", "nav", "div", "section", "ul", "link", "meta", "area"})
_NEEDED: Final = re.compile(
    r"""\s(href|alt|name|content|role)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""",
    re.IGNORECASE,
)
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
_MAIN_OPEN: Final = re.compile(r"""<(?:(?i:main|article)[\s>]|[a-zA-Z]{1,10}\s[^<>]{0,200}?role=["']?main|[hH]1[\s>])""")
_HEADING_OPEN: Final = re.compile(r"<[hH][1-3][\s>]")
_COUNTED: Final = {"paragraph": "p", "list item": "li", "table row": "tr", "code block": "pre", "division": "div", "link": "a"}
_VOID: Final = frozenset("br hr img input meta link area base col embed source track wbr param".split())
_HEARD: Final = {tag: tag for tag in (*_BLOCKS, "br", "img", "a", "meta", "code")} | {
    "title": "x-title"
}  # others are but their words
_NAMES: Final = {
    "title": "title", "heading": "heading", "text": "paragraph", "item": "list item", "row": "table row", "code": "code block",
}  # fmt: skip
_PLURALS: Final = {"canvas": "canvases", "math": "formulas"}


class _Block(Struct, frozen=True, gc=False):
    """A paragraph, heading, item, row or code block of the page, as it will be shown."""

    kind: str  # of `_NAMES`
    text: str
    level: int  # of a heading
    place: Literal["navigation", "main", "outside"]

    @property
    def names_the_page(self) -> bool:
        """Whether it is the title or a main heading."""
        return self.kind == "title" or (self.kind == "heading" and self.level == 1)

    @property
    def is_content(self) -> bool:
        """Whether it is more than a title or heading."""
        return self.kind not in ("title", "heading")


def fits(lines: Sequence[str]) -> bool:
    """Whether a page or a feed begins here, and no template of one. A file read with line numbers begins with a number."""
    start = _start(lines)
    if start is None:
        return False
    return sum(len(_TEMPLATED.findall(line)) for line in lines[start : start + 2_000] if "<script" not in line) < TEMPLATE


def choose(lines: Sequence[str], room: int, count: Count) -> Shaped | None:
    """The page's text in at most `room` tokens; None when it is no page, or has hardly any text."""
    start = _start(lines)
    if start is None or room < LEAST:
        return None
    page = _Page(_SURROGATE.sub("\ufffd", "\n".join(lines[start:])))
    if sum(weight(block.text) for block in page.blocks) < LEAST:
        return None
    pieces = fitted(lines, room, count, page.pieces)
    whole = pieces == page.pieces(len(page.source) * 4 + room)
    left = "" if whole else "; title, headings and the first paragraphs of each section go first"
    return Shaped(pieces=pieces, why=f"the page's text, without markup and navigation{left}") if pieces else None


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
        reader = _PageReader()
        self._unread = _read(reader, "".join(_spoken(source, self._dropped)))
        blocks = reader.blocks
        characters = Counter[str]()
        for block in blocks:
            characters[block.place] += len(block.text)
        kept = {"main", "outside"}
        if characters["navigation"] > NAVIGATED * (characters["main"] + characters["outside"]):
            kept.add("navigation")
        if characters["main"] > MAIN * characters["outside"]:
            kept.discard("outside")
        self.blocks = _distinct(block for block in blocks if block.place in kept or block.names_the_page)
        self._outside = sum(block.place == "outside" and "outside" not in kept and not block.names_the_page for block in blocks)
        self._links = 0 if "navigation" in kept else reader.navigation_links

    def pieces(self, budget: int) -> tuple[Piece, ...]:
        """The page in about so many tokens of estimated weight; empty when nothing fits."""
        blocks = self.blocks
        left = budget - weight(self._summary)
        chosen: dict[int, str] = {}
        for at in self._order:
            cost = weight(blocks[at].text) + NOTE * (blocks[at].text.count("\n") + 1)
            cost += 0 if at - 1 in chosen or at + 1 in chosen else GAP_ABOUT
            if cost <= left:
                chosen[at] = blocks[at].text
                left -= cost
            elif left < GAP_ABOUT:
                break
        first = next((at for at, block in enumerate(blocks) if block.is_content), -1)
        if first >= 0 and first not in chosen and left > LEAST:
            size = (left - GAP_ABOUT) * 5 // 2
            text = blocks[first].text
            chosen[first] = f"{text[:size]}… (the first {size:,} of {len(text):,} characters)"
        return (Note("\n".join((self._summary, *self._lines(chosen))), left_out=True),) if chosen else ()

    def _lines(self, chosen: Mapping[int, str]) -> Iterator[str]:
        """No blank lines: they would cost some ten tokens each, with what stands before each line of a note."""
        for before, at in pairwise((-1, *sorted(chosen), len(self.blocks))):
            if left_out := self.blocks[before + 1 : at]:
                kinds = Counter(_NAMES[block.kind] for block in left_out)
                characters = sum(len(block.text) for block in left_out)
                yield f"… {', '.join(plural(n, name) for name, n in kinds.items())} left out ({characters:,} characters)"
            if at in chosen:
                yield chosen[at]

    @cached_property
    def _order(self) -> list[int]:
        """Title and main headings, the first block of each section, then the page from its start."""
        blocks = self.blocks
        content = next((at for at, block in enumerate(blocks) if block.is_content), len(blocks))
        order = (
            *(at for at, block in enumerate(blocks) if block.names_the_page),
            *range(content, min(content + 3, len(blocks))),
            *(at for at, block in enumerate(blocks) if block.kind == "heading" and block.level <= 3),
            *(
                at
                for at, (before, block) in enumerate(pairwise(blocks), 1)
                if before.kind == "heading" and block.kind != "heading"
            ),
            *range(len(blocks)),
        )
        return list(order)

    @cached_property
    def _summary(self) -> str:
        parts = [plural(n, name, _PLURALS.get(name, "")) for name, n in self._dropped.items()]
        if self._outside:
            parts.append(f"{plural(self._outside, 'paragraph')} outside the main part")
        if self._links:
            parts.append(f"navigation with {plural(self._links, 'link')}")
        dropped = f"; dropped: {', '.join(parts)}" if parts else ""
        unread = f"; {self._unread}" if self._unread else ""
        return f"(text of a page of {len(self.source):,} characters{dropped}{unread})"


def _distinct(blocks: Iterable[_Block]) -> list[_Block]:
    """Without paragraphs and items that the page repeats word for word: menus for phones, cards in several sizes."""
    texts: set[str] = set()
    kept: list[_Block] = []
    for block in blocks:
        if block.kind not in ("text", "item", "title"):
            kept.append(block)
        elif block.text not in texts:
            texts.add(block.text)
            kept.append(block)
    return kept


# Reading


def _spoken(source: str, dropped: Counter[str]) -> Iterator[str]:
    """What stands between elements without words, comments and declarations; one that never ends is left out up to the next `>`."""
    at = 0
    endless: set[str] = set()  # what was searched to the end in vain; it cannot be found further on
    while (match := _SILENT_OPEN.search(source, at)) is not None:
        yield source[at : match.start()]
        kind = match[1].lower()
        closed = _CLOSE[kind].search(source, match.end()) if kind in _CLOSE and kind not in endless else None
        if closed is None:
            endless.add(kind)
            stop = source.find(">", match.end()) + 1 or len(source)
            at = match.end() if kind == "![cdata[" else stop
            continue
        at = closed.end()
        if kind == "![cdata[":  # may be markup itself, but holds no other section
            yield from _spoken(source[match.end() : closed.start()].replace("<![CDATA[", ""), dropped)
        elif kind != "!--":
            dropped[kind] += 1
    yield source[at:]


def _read(reader: "_PageReader", source: str) -> str:
    """Lets the reader read the page; of a large one its beginning, what says that it is the main part, and what follows further headings.

    What it passed over is said in words, with the counts of what these stretches hold.
    """
    if "&#" in source:
        source = _HUGE_REFERENCE.sub("\ufffd", source)
    if len(source) <= CLOSE:
        reader.feed(source)
        reader.leave()
        return ""
    main = next((match.start() for match in _MAIN_OPEN.finditer(source)), 0)
    stretches = [(0, CLOSE)] if main < CLOSE // 2 else [(0, CLOSE // 4), (main, main + CLOSE * 3 // 4)]
    headings = (match.start() for match in _HEADING_OPEN.finditer(source, stretches[-1][1] - SECTION))
    stretches += [(at, at + SECTION) for at in islice(headings, SECTIONS)]
    unread: list[str] = []
    end = 0
    for start, stop in stretches:
        begin = max(start, end)
        cut = source.find("<", max(stop, begin)) if stop < len(source) else len(source)
        stop = len(source) if cut < 0 else min(cut, stop + SECTION)
        if begin > end:
            unread.append(source[end:begin])
            reader.leave()
        reader.feed(source[begin:stop])
        end = max(stop, end)
    unread.append(source[end:])
    reader.leave()
    rest = "".join(unread).lower()
    counts = {word: rest.count(f"<{tag}>") + rest.count(f"<{tag} ") for word, tag in _COUNTED.items()}
    held = ", ".join(plural(n, word) for word, n in counts.items() if n)
    return f"{len(rest):,} characters of its source were passed over{', with ' if held else ''}{held}"


class _PageReader:
    """Blocks in the order of the page, each with where it stands."""

    def __init__(self) -> None:
        self.blocks: list[_Block] = []
        self.navigation_links = 0
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

    def feed(self, text: str) -> None:
        """More of the page, cut where no tag is cut."""
        parts = _TAG.split(text)
        self._words.append(unescape(parts[0]))
        for slash, spelled, rest, words in zip(parts[1::4], parts[2::4], parts[3::4], parts[4::4], strict=True):
            tag = _HEARD.get(spelled) or _HEARD.get(spelled.lower())
            if tag is not None:
                if slash:
                    self._close(tag)
                else:
                    self._open(tag, rest)
            if words:
                self._words.append(unescape(words))

    def leave(self) -> None:
        """What follows in the page is passed over."""
        self._end_row()
        self._end()
        self._code = self._lists = 0
        self._kind = "text"

    def _open(self, tag: str, rest: str) -> None:
        """Begin what the element is."""
        if tag == "br":
            self._words.append("\n" if self._code else " ")
        elif tag == "img":
            alt = _attributes(rest).get("alt")
            if alt and self._link is not None:
                self._words.append(alt)
        elif tag == "a":
            self._begin_link(_attributes(rest).get("href", ""))
        elif tag == "meta":
            self._describe(_attributes(rest))
        elif tag == "code":
            if not self._code:
                self._words.append("`")
        else:
            self._begin(tag, _attributes(rest).get("role", "").lower() if tag in _ATTRIBUTED and "role" in rest.lower() else "")
        if rest.endswith("/") and tag not in _ATTRIBUTED and tag not in _VOID:
            self._close(tag)

    def _close(self, tag: str) -> None:
        """End what the element is; an end without a beginning ends the paragraph."""
        if tag == "a":
            self._end_link()
        elif tag == "code":
            if not self._code:
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

    def _begin(self, tag: str, role: str) -> None:
        if self._cells is None or tag in ("tr", "table", "pre"):
            self._end()
        elif tag in ("td", "th"):
            if _spaced(self._words):
                self._end_cell()  # which an end tag would have done
            self._words = []
        self._begin_place(tag, role)
        if tag in _HEADINGS:
            self._kind, self._level = "heading", _HEADINGS[tag]
        elif tag == "x-title":
            self._kind, self._level = ("heading", 2) if self._titled else ("title", 0)
            self._titled = True
        elif tag in ("li", "dt", "dd", "option"):
            self._kind = "item"
        elif tag in ("ul", "ol"):
            self._lists += 1
        elif tag in ("pre", "tr", "table"):
            self._end_row()
            if tag == "pre":
                self._code += 1
                self._kind = "code"
            self._cells = [] if tag == "tr" else self._cells
        elif tag == "p" and self._kind != "item":
            self._kind = "text"

    def _begin_place(self, tag: str, role: str) -> None:
        """Whether navigation or the main part begins."""
        if (tag in _NAVIGATION and not (tag == "aside" and self._main)) or role in _ROLES:
            self._navigation.append(tag)
        elif self._navigation and tag == self._navigation[-1]:
            self._navigation.append(tag)  # so that its own end is not taken for that of the navigation around it
        self._main += tag in _MAIN
        if tag in _MAIN or tag == "h1":
            self._navigation.clear()  # an end tag was forgotten: what says it is the page is not navigation

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

    def _describe(self, attributes: Mapping[str, str]) -> None:
        words = _spaced(attributes.get("content", ""))
        if words and attributes.get("name", "").lower() == "description":
            self._end()
            self._add("title", words)

    def _end_cell(self) -> None:
        self._end_link()
        if self._cells is None:
            return
        if len(self._cells) < CELLS:
            self._cells.append(_spaced(self._words).replace("|", "\\|"))
        self._words = []

    def _end_row(self) -> None:
        if self._cells is None:
            return
        if _spaced(self._words):
            self._end_cell()
        cells, self._cells = self._cells, None
        self._words = []
        if any(cells):
            self._add("row", f"| {' | '.join(cells)} |" if len(cells) > 1 else cells[0])

    def _end(self) -> None:
        if self._cells is not None and not self._code:
            return
        self._end_link()
        words, self._words = self._words, []
        if self._code:
            code = "".join(words).strip("\n").rstrip()
            fence = "````" if "```" in code else "```"
            if code.strip():
                self._add("code", f"{fence}\n{code}\n{fence}")
            return
        text = _spaced(words)
        if not text:
            return
        kind = self._kind if self._kind in ("heading", "title", "item") else "text"
        indent = "  " * min(max(self._lists - 1, 0), 6)
        before = {"heading": f"{'#' * self._level} ", "title": "Title: ", "item": f"{indent}- ", "text": ""}[kind]
        self._add(kind, f"{before}{text}")
        self._kind = "text" if kind != "text" else self._kind

    def _add(self, kind: str, text: str) -> None:
        place = "navigation" if self._navigation else "main" if self._main else "outside"
        self.blocks.append(_Block(kind, text, self._level if kind == "heading" else 0, place))


def _attributes(rest: str) -> dict[str, str]:
    """Those attributes of a tag that are read."""
    return {name.lower(): unescape(one or two or bare) for name, one, two, bare in _NEEDED.findall(rest)} if rest else {}


def _spaced(words: Iterable[str]) -> str:
    return _BLANKS.sub(" ", "".join(words)).strip()
