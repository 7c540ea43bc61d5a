"""What of a planner's reply is its own words, and what is quotation: code fences, quotes, examples that the prompt gave. Linear, never raises.

A plan that a reply quotes is not proposed. A fence is also how models wrap a whole answer, so what stands in fences is kept apart rather than
dropped; the reader takes it where no plan stands outside.
"""

import re
from bisect import bisect_right
from typing import Final, NamedTuple

from tenure.engine.planners.selfgc.prompt import EXAMPLES, PAIR, REPLY

_TAG: Final = r"<\s*+(?P<close>/?)\s*+gc[_\- ]?plan\b(?P<rest>[^<>]*+)>"
_EVENT: Final = re.compile(
    rf"^[ \t]*+(?P<fence>`{{3,}}|~{{3,}})(?P<info>[^\n]*+)$|^[ \t]*+>[ \t](?P<quote>[^\n]*+)$|(?P<tag>{_TAG})",
    re.MULTILINE | re.IGNORECASE,
)
_QUOTING: Final = re.compile(r"<\s*+(?P<close>/?)\s*+(?P<name>blockquote|code|pre|quote|examples?|q)\b[^<>]*+>", re.IGNORECASE)
_FENCE: Final = "\n~~~~~~~~\n"
_CODE: Final = re.compile(r"`[^`\n]*+`")
_QUOTED_ACTION: Final = re.compile(r"(?P<mark>[\"'])<(?:fold|mask|prune)\b[^\"'\n]*+(?P=mark)", re.IGNORECASE)


def _literally(text: str) -> str:
    """A pattern for a text, with any white space where it has some."""
    return r"\s+".join(map(re.escape, text.split()))


_TEMPLATE: Final = re.compile(
    "|".join(_literally(text[text.index("<gc_plan>") :]) for text in (REPLY, REPLY.replace(' reason="WHY"', ""), PAIR))
)
_EXAMPLE: Final = re.compile(
    "|".join(map(_literally, re.findall(r"<(?:fold|mask|prune)>.*?</(?:fold|mask|prune)>", EXAMPLES, re.DOTALL)))
)


class OwnWords(NamedTuple):
    """A reply without its quotations, and what stands in its fences, in order."""

    own: str
    fences: tuple[str, ...]


class _Fence(NamedTuple):
    start: int
    body: int
    mark: str
    in_plan: bool  # it stands inside a plan, and is part of it unless it holds one itself


def apart(text: str) -> OwnWords:
    """A reply's own words, and its fences. A fence inside a plan is part of it, unless it holds another."""
    text = _fenced(_TEMPLATE.sub("", text))
    closes = [tag.end() for tag in re.finditer(_TAG, text, re.IGNORECASE) if tag["close"]]
    is_wrapped = text.lstrip("\ufeff\0 \t\r\n")[:1] in ("{", "[")  # in JSON, where quotes are no quotation
    own: list[str] = []
    fences: list[str] = []
    fence: _Fence | None = None
    at, is_open, holds_plan = 0, False, False
    for event in _EVENT.finditer(text):
        if event.start() < at:
            continue
        if fence is not None:
            holds_plan |= event["fence"] is None and "plan" in event[0].lower() and not event["close"]
            if event["fence"] is None or not _closes(event, fence):
                continue
            if holds_plan or not fence.in_plan:
                fences.append(text[fence.body : event.start()])
                own.append(text[at : fence.start])
                at = event.end()
            fence, holds_plan = None, False
        elif event["fence"] is not None:
            fence = _Fence(event.start(), event.end(), event["fence"], is_open)
        elif event["quote"] is not None:
            if not is_open or "plan" in event[0].lower():
                own.append(text[at : event.start()])
                at = event.end()
        elif event["close"]:
            is_open = False
        elif not is_wrapped and _is_quoted(text, event.start()):
            place = bisect_right(closes, event.end())
            own.append(text[at : event.start()])
            at = closes[place] if place < len(closes) else event.end()
        else:
            is_open = not event["rest"].rstrip().endswith("/")
    if fence is not None and (holds_plan or not fence.in_plan):  # never closed: cut off, or forgotten
        fences.append(text[fence.body :])
        own.append(text[at : fence.start])
        at = len(text)
    return OwnWords("\n".join([*own, text[at:]]), tuple(fences))


def _fenced(text: str) -> str:
    """A text in which plans that stand in an element for quotations or code stand in a fence."""
    parts: list[str] = []
    at, opened = 0, None
    for tag in _QUOTING.finditer(text):
        if opened is None:
            opened = None if tag["close"] else tag
        elif tag["close"] and tag["name"].lower() == opened["name"].lower():
            body = text[opened.end() : tag.start()]
            if re.search(_TAG, body, re.IGNORECASE):
                parts += [text[at : opened.start()], _FENCE, body, _FENCE]
                at = tag.end()
            opened = None
    return "".join([*parts, text[at:]])


def unquoted(text: str) -> str:
    """A text without actions that stand in code or in quotes, and without the examples of the prompt."""
    text = _CODE.sub(lambda code: "" if "<" in code[0] else code[0], _EXAMPLE.sub("", text))
    return text if text.lstrip()[:1] in ("{", "[") else _QUOTED_ACTION.sub("", text)


def _closes(event: re.Match[str], fence: _Fence) -> bool:
    return event["fence"].startswith(fence.mark) and not event["info"].strip()


def _is_quoted(text: str, start: int) -> bool:
    """Whether a tag stands in quotes or in code that its line opened."""
    before = text[max(text.rfind("\n", 0, start) + 1, start - 400) : start]
    return before[-1:] in ("'", '"', "`", "«", "»") or before.count('"') % 2 == 1 or before.count("`") % 2 == 1
