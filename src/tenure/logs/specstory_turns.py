"""The turns of a SpecStory file: where one ends and the next begins, though what they quote may look like either.

SpecStory escapes nothing, and before it sized its fences by their content it wrote three backticks around anything. So a header or a
closing tag is one only where its surroundings are those that SpecStory writes, and where its time can be: what a session quotes was
written before it began, or has stood in this file already.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import datetime
from typing import Final, Literal

from msgspec import Struct

from tenure.logs.transcript import utc

Kind = Literal["text", "thinking", "tool", "plain tool"]

SLACK_S: Final = 120  # some versions write times in whole minutes
LEAP_S: Final = 7 * 24 * 3600  # inside a fence, a header that is later than this is an example
LOOKAHEAD: Final = 64  # closing tags that are tried for one tool

_SHORTEST: Final = 3  # backticks of a fence

_MARK: Final = re.compile(
    r"""^[ \t]*+(?=[_<T\#\-`])(?:
      (?P<fence> `{3,}(?=[^`\n]*$) )
    | (?<![ \t])(?:
        (?P<header> _\*\*(?:User|Agent|Assistant)?(?:\ -\ sidechain)?(?:\ \([^\n]*\))?\*\*_ (?=[ \t]*$) )
      | (?P<close> (?:</details>)?</tool-use> (?=[ \t]*$) )
      | (?P<tool> <tool-use[ ]data-tool-type="[^"\n]*"[ ]data-tool-name="[^\n]*"> )
      | (?P<plain> Tool[ ]use:[ ]\*\*[^*\n]+\*\* )
      | (?P<thinking> <think><details><summary> )
      | (?P<rule> --- (?=[ \t]*$) )
      | (?P<title> \#{1,2}[ ][^\n]*\((?:\d{4}-\d\d-\d\d|\d{1,2}/\d{1,2}/\d{4})[^()\n]*\) (?=[ \t]*$) )
    ))""",
    re.MULTILINE | re.VERBOSE,
)
_BLOCKS: Final[dict[str, Kind]] = {"tool": "tool", "thinking": "thinking", "plain": "plain tool"}
_HEADER: Final = re.compile(r"_\*\*(User|Agent|Assistant)?( - sidechain)?(?: \(([^\n]*)\))?\*\*_")
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)[ T_](\d\d[:-]\d\d(?:[:-]\d\d)?)((?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)$")
_MODEL: Final = re.compile(r"(?:model:? )?(.*?)(?:, mode:? .*)?")
_NEXT: Final = re.compile(r"\s*(?:---[ \t]*\n\s*)?(_\*\*[^\n]*\*\*_)[ \t]*$", re.MULTILINE)
_ASKED: Final = re.compile(r"\s*(?:<!--[^\n]*-->\s*)*_\*\*User")
_BEGUN: Final = re.compile(r"^<!--[^\n]{0,99}? Session [^\n]{0,99}\(([^()\n]{0,99})\) *-->", re.MULTILINE)
_ID: Final = re.compile(r"\s*<!-- message-id: [^\n]* -->")
_BLANK: Final = re.compile(r"[ \t]*(?:\Z|\n[ \t]*(?:\Z|\n)|\n<!-- message-id)")
_THOUGHT: Final = re.compile(r"</details></think>[ \t]*$", re.MULTILINE)


class TurnPart(Struct, frozen=True, gc=False):
    """A stretch of a turn, as it stands in the file."""

    kind: Kind
    text: str
    line: int


class SpecStoryTurn(Struct, frozen=True, kw_only=True):
    """What stands under one header."""

    line: int
    size: int  # characters, header included
    user: bool
    sidechain: bool
    model: str
    at: str
    opens_chat: bool  # a title of its own stands above it: the file holds several chats
    parts: tuple[TurnPart, ...]


class _Heading(Struct, frozen=True, kw_only=True, gc=False):
    user: bool
    sidechain: bool
    extension: bool
    model: str
    at: str
    seconds: float | None


def turns(text: str) -> Iterator[SpecStoryTurn]:
    """The turns of the file in order; what stands above the first is no part of any."""
    return _Scan(text).turns()


def preamble(text: str) -> str:
    """What stands above the first turn."""
    first = next((mark for mark in _MARK.finditer(text) if mark["header"] is not None), None)
    return text if first is None else text[: first.start()]


class _Scan:
    """One pass over the lines that can mean anything. Mutable: it remembers which headers and times it has met."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._marks = list(_MARK.finditer(text))
        self._starts = [mark.start() for mark in self._marks]
        self._headings: dict[str, _Heading] = {}
        self._met: set[str] = set()
        self._begun = self._begin()
        self._closes = [n for n, mark in enumerate(self._marks) if mark["close"] is not None and not self._is_quoted(mark.end())]
        self._closing = frozenset(self._closes)
        self._ends: dict[int, list[int]] = {}
        for n, mark in enumerate(self._marks):
            if mark["fence"] is not None and not _info(text, mark):
                self._ends.setdefault(len(mark["fence"]), []).append(n)
        self._thoughts = [(found.start(), found.end()) for found in _THOUGHT.finditer(text) if self._ends_thought(found)]
        self._headers = [
            mark.start() for mark in self._marks if mark["header"] is not None and not self._above(mark.start()).strip()
        ]
        self._counted, self._line = 0, 1

    def turns(self) -> Iterator[SpecStoryTurn]:
        turn: _SpecStoryOpen | None = None
        fence = skip = 0
        title = -1
        for n, mark in enumerate(self._marks):
            if mark.start() < skip:
                continue
            if mark["header"] is not None:
                if self._begins(n, turn and turn.heading, fence):
                    if turn is not None:
                        yield self._turn(turn, mark.start() if title < 0 else title)
                    turn, fence = _SpecStoryOpen(mark, self._heading(mark[0]), opens_chat=title >= 0), 0
                    self._met.add(mark[0])
                title = -1
            elif mark["fence"] is not None:
                fence = _fenced(fence, mark)
            elif mark["title"] is not None:
                title = mark.start() if not fence and self._opens_chat(n) else -1
            elif turn is not None and not turn.heading.user and (turn.plain < 0 or turn.heading.extension):
                end = self._block_until(n, turn.heading, fence)
                if end >= 0:
                    kind = _BLOCKS.get(mark.lastgroup or "")
                    turn.add(kind, mark.start(), end)
                    fence, skip = 0 if kind == "tool" else fence, end
        if turn is not None:
            yield self._turn(turn, len(self._text))

    def _block_until(self, n: int, heading: _Heading, fence: int) -> int:
        """Where the block that mark `n` opens ends; -1 when it opens none."""
        mark = self._marks[n]
        after_blank = not self._above(mark.start()).strip()
        match mark.lastgroup:
            case "tool" if after_blank or not fence:
                return self._tool_until(n, heading, LOOKAHEAD if not fence else 1)
            case "thinking" if not fence:
                return self._thought_until(n)
            case "plain" if not fence and (after_blank or heading.extension):
                return mark.start()
            case "rule" if not fence and after_blank and heading.extension and self._blank_after(mark.end()):
                return mark.end()
            case _:
                return -1

    def _turn(self, turn: "_SpecStoryOpen", end: int) -> SpecStoryTurn:
        line = self._line_at(turn.header.start())
        id_ = _ID.match(self._text, turn.header.end())
        at = turn.header.end() if id_ is None else id_.end()
        parts = list[TurnPart]()
        for kind, start, stop in (*turn.blocks(end), (None, end, end)):
            if at < start:
                parts.append(TurnPart("text", self._text[at:start], self._line_at(at)))
            if kind is not None:
                parts.append(TurnPart(kind, self._text[start:stop], self._line_at(start)))
            at = stop
        return SpecStoryTurn(
            line=line,
            size=end - turn.header.start(),
            user=turn.heading.user,
            sidechain=turn.heading.sidechain,
            model=turn.heading.model,
            at=turn.heading.at,
            opens_chat=turn.opens_chat,
            parts=tuple(parts),
        )

    def _line_at(self, position: int) -> int:
        self._line += self._text.count("\n", self._counted, position)
        self._counted = position
        return self._line

    def _begin(self) -> float | None:
        """When the session began, as the file says it; None when its own first turn contradicts that."""
        first = next((mark for mark in self._marks if mark["header"] is not None), None)
        said = _BEGUN.search(self._text, 0, first.start()) if first is not None else None
        begun = _seconds(_moment(said[1])[0]) if said is not None else None
        if first is None or begun is None:
            return None
        opened = self._heading(first[0]).seconds
        return begun if opened is None or opened >= begun - SLACK_S else None

    def _heading(self, header: str) -> _Heading:
        known = self._headings.get(header)
        if known is not None:
            return known
        matched = _HEADER.fullmatch(header)
        assert matched is not None
        who, side, details = matched[1] or "", matched[2], (matched[3] or "").strip()
        at, rest = _moment(details)
        model = _MODEL.fullmatch(rest)
        heading = _Heading(
            user=who == "User",
            sidechain=side is not None,
            extension=who in ("", "Assistant") or rest.startswith(("model ", "mode ", "model:", "mode:")),
            model="" if model is None or rest.startswith("mode ") else model[1],
            at=at,
            seconds=_seconds(at),
        )
        self._headings[header] = heading
        return heading

    def _begins(self, n: int, before: _Heading | None, fence: int) -> bool:
        """Whether the header at mark `n` begins a turn, and is not quoted by the one before it."""
        mark = self._marks[n]
        if self._above(mark.start()).strip() or not self._blank_after(mark.end()):
            return False
        if before is None:
            return True
        heading = self._heading(mark[0])
        if self._too_early(heading, mark[0], before):
            return False
        if not fence:
            return True
        if heading.seconds is not None and before.seconds is not None:
            if heading.seconds < before.seconds:
                return False
            if heading.seconds <= before.seconds + LEAP_S:
                return True  # no fence was meant to reach over it
        after = next((mark for mark in self._marks[n + 1 : n + 1 + LOOKAHEAD] if mark["fence"] is not None), None)
        return after is None or bool(_info(self._text, after)) or len(after["fence"]) < fence

    def _too_early(self, heading: _Heading, header: str, before: _Heading) -> bool:
        if heading.seconds is None:
            return False
        if self._begun is not None and heading.seconds < self._begun - SLACK_S:
            return True
        return before.seconds is not None and heading.seconds < before.seconds - SLACK_S and header in self._met

    def _is_quoted(self, end: int) -> bool:
        """Whether a closing tag that ends there is followed by a turn from before this session."""
        following = _NEXT.match(self._text, end)
        if following is None or self._begun is None or _HEADER.fullmatch(following[1]) is None:
            return False
        seconds = self._heading(following[1]).seconds
        return seconds is not None and seconds < self._begun - SLACK_S

    def _tool_until(self, n: int, heading: _Heading, lookahead: int) -> int:
        """Where the tool block at mark `n` ends: its own closing tag, not one that its output quotes. -1 for an example in a fence."""
        first = bisect_left(self._closes, n)
        if first == len(self._closes):
            return self._next_header(n) if lookahead > 1 else -1
        wanted = "</details></tool-use>" if self._text.startswith("<details>", self._marks[n].end()) else "</tool-use>"
        fence, at, tried = 0, n + 1, 0
        while at < len(self._marks) and tried < lookahead:
            mark = self._marks[at]
            if mark["fence"] is not None:
                at = at if fence else self._long_fence_until(at)
                fence = _fenced(fence, self._marks[at]) if self._marks[at] is mark else fence
            elif at in self._closing:
                tried += 1
                if mark[0].endswith(wanted) and self._closes_tool(mark, fence, heading, tagged=wanted != "</tool-use>"):
                    return mark.end()
            at += 1
        return self._marks[self._closes[first]].end() if lookahead > 1 else -1

    def _long_fence_until(self, n: int) -> int:
        """The mark that ends the fence at mark `n`, where its length says that nothing in it can; else `n` itself."""
        length = len(self._marks[n]["fence"])
        ends = self._ends.get(length, ()) if length > _SHORTEST else ()
        found = bisect_right(ends, n)
        return ends[found] if found < len(ends) else n

    def _closes_tool(self, mark: re.Match[str], fence: int, heading: _Heading, *, tagged: bool) -> bool:
        text = self._text
        if tagged and not self._blank_after(mark.end()):
            return False
        if fence:
            above = self._above(mark.start()).strip()
            if set(above) != {"`"} or len(above) < fence:
                return False
        following = _NEXT.match(text, mark.end())
        if following is None or _HEADER.fullmatch(following[1]) is None:
            return True
        return not self._too_early(self._heading(following[1]), following[1], heading)

    def _thought_until(self, n: int) -> int:
        found = bisect_left(self._thoughts, (self._starts[n], 0))
        return self._thoughts[found][1] if found < len(self._thoughts) else self._next_header(n)

    def _ends_thought(self, found: re.Match[str]) -> bool:
        """A tag on a line of its own ends a thought only before a blank one; else the thought quotes it."""
        own_line = found.start() == 0 or self._text[found.start() - 1] == "\n"
        return not own_line or self._blank_after(found.end())

    def _next_header(self, n: int) -> int:
        after = bisect_right(self._headers, self._starts[n])
        return self._headers[after] if after < len(self._headers) else len(self._text)

    def _opens_chat(self, n: int) -> bool:
        """Whether the title at mark `n` stands between a rule and a user's turn."""
        ruled = n > 0 and self._marks[n - 1]["rule"] is not None
        between = self._text[self._marks[n - 1].end() : self._marks[n].start()] if ruled else "-"
        return not between.strip() and _ASKED.match(self._text, self._marks[n].end()) is not None

    def _above(self, start: int) -> str:
        """The line above the one that starts there; empty for none."""
        return self._text[self._text.rfind("\n", 0, max(0, start - 1)) + 1 : max(0, start - 1)]

    def _blank_after(self, end: int) -> bool:
        return _BLANK.match(self._text, end) is not None


class _SpecStoryOpen:
    def __init__(self, header: re.Match[str], heading: _Heading, *, opens_chat: bool) -> None:
        self.header, self.heading, self.opens_chat = header, heading, opens_chat
        self.plain = -1  # where a call without a tag began, which ends with the next block or the turn
        self._blocks: list[tuple[Kind | None, int, int]] = []

    def add(self, kind: Kind | None, start: int, end: int) -> None:
        """Note a block; `kind` is None for a rule."""
        self._end_plain(start)
        if kind == "plain tool":
            self.plain = start
        else:
            self._blocks.append((kind, start, end))

    def blocks(self, end: int) -> list[tuple[Kind | None, int, int]]:
        self._end_plain(end)
        return self._blocks

    def _end_plain(self, end: int) -> None:
        if self.plain >= 0:
            self._blocks.append(("plain tool", self.plain, end))
        self.plain = -1


def _fenced(fence: int, mark: re.Match[str]) -> int:
    """The length of the fence that is open after `mark`, 0 for none."""
    length = len(mark["fence"])
    if not fence:
        return length
    return 0 if length >= fence and not _info(mark.string, mark) else fence


def _info(text: str, mark: re.Match[str]) -> str:
    end = text.find("\n", mark.end())
    return text[mark.end() : end if end >= 0 else len(text)].strip()


def _moment(details: str) -> tuple[str, str]:
    """The time at the end of `details`, and what stands before it."""
    found = _TIME.search(details)
    if found is None:
        return "", details
    return utc(f"{found[1]} {found[2].replace('-', ':')}{found[3]}"), details[: found.start()].strip()


def _seconds(at: str) -> float | None:
    return datetime.fromisoformat(at).timestamp() if at else None
