"""What a summariser must write, and the reading of what it wrote.

Forgiving about form: headings of any kind, a sentence of greeting before them or after, a fence around all of it. Strict about substance: a
blank reply, a chat reply, a question, a copy of the transcript or half a brief is refused with a reason, and history stays as it was.
"""

import re
from enum import StrEnum
from typing import Final

from msgspec import Struct

from tenure.engine.planners.handoff.transcript import MARK

END: Final = "[end of brief]"
NONE: Final = "none"

BRIEF_WORDS: Final = 900  # asked for
LEAST: Final = 60  # characters of all sections together
MOST: Final = 24_000
SECTION_MOST: Final = 12_000
PREAMBLE_MOST: Final = 400  # a greeting that may be dropped; more is text that somebody meant
LONGEST_REPLY: Final = 4 * MOST  # beyond this a reply is not even looked at

COPIED_LINE: Final = 40  # characters; shorter lines are alike by chance
COPIED_SHARE: Final = 0.5  # of a reply's long lines, by characters
COPIED_LEAST: Final = 400  # characters that must be copied before it counts
COPIED_LABELS: Final = 3  # lines that are labels of the transcript


class BriefSection(Struct, frozen=True, kw_only=True):
    """One section: what is asked for, what else its heading may be called, and whether there must be something to tell."""

    key: str  # the field of `Sections`
    title: str
    asks: str
    names: tuple[str, ...] = ()  # in the form of `_name`
    needed: bool = False


SECTIONS: Final = (
    BriefSection(
        key="goal",
        title="Goal",
        asks="What the person wants in the end, in their terms, with every change of mind; what counts as done.",
        names=("goals", "the goal", "task", "the task", "objective"),
        needed=True,
    ),
    BriefSection(
        key="state",
        title="State and work done",
        asks="What was found out, decided and changed, with real paths and symbols; what each changed file now holds; what was run to "
        "check it and what came out.",
        names=("state", "current state", "work done", "state and what is done", "state and whats done", "state of work"),
        needed=True,
    ),
    BriefSection(
        key="in_progress",
        title="Work in progress",
        asks="What was begun and is not finished, down to the file and line, and what is known to be broken right now.",
        names=("in progress", "wip"),
    ),
    BriefSection(
        key="dead_ends",
        title="Dead ends",
        asks="What was tried and did not work, and why, so that nobody tries it again.",
        names=("deadends", "failed attempts", "what did not work"),
    ),
    BriefSection(
        key="next_steps",
        title="Next steps",
        asks="What is to be done next, in order, the first one concrete enough to begin at once.",
        names=("next step", "remaining steps"),
    ),
    BriefSection(
        key="constraints",
        title="Constraints and preferences",
        asks="Every rule, limit, wish and refusal the person expressed, however small, in their words.",
        names=("constraints", "preferences", "constraints preferences"),
    ),
)


class Sections(Struct, frozen=True, kw_only=True):
    """What a summariser told, section by section; `none` where there was nothing to tell."""

    goal: str
    state: str
    in_progress: str = NONE
    dead_ends: str = NONE
    next_steps: str = NONE
    constraints: str = NONE


class NoBrief(StrEnum):
    """Why a reply is no brief."""

    BLANK = "blank"
    CUT_SHORT = "cut short"
    TOO_LONG = "too long"
    TOO_SHORT = "too short"
    CHAT = "a chat reply"
    QUESTION = "a question"
    COPY = "a copy of the transcript"
    MISSING = "sections are missing"
    EMPTY = "a section is empty"


class Refusal(Struct, frozen=True, kw_only=True):
    """A reply that is no brief, and why; `detail` says where."""

    reason: NoBrief
    detail: str = ""


def read(reply: str, *, transcript: str = "") -> Sections | Refusal:
    """The brief in a reply, or why there is none. Never raises. Linear.

    The model came to its own end: edges refuse a reply that its provider cut off. `transcript` is what was summarised, to tell a brief from a copy.
    """
    if len(reply) > LONGEST_REPLY:
        return Refusal(reason=NoBrief.TOO_LONG, detail=f"{len(reply):,} characters")
    text = _SURROGATES.sub("\ufffd", reply).replace("\r\n", "\n").replace("\r", "\n").strip()
    if text.startswith("<think>"):  # thinking aloud, which some hosts leave in
        text = text.partition("</think>")[2].strip()
    text, ended = _without_end(text)
    text = _bare(text)
    if not ended:
        text, ended = _without_end(text)
    if not text:
        return Refusal(reason=NoBrief.BLANK)
    preamble, bodies = _parted(text)
    if not bodies:
        return _no_brief(text)
    if not ended:
        bodies = _without_farewell(bodies)
    if refusal := _of_form(preamble, bodies, ended=ended) or _of_substance(bodies, text, transcript):
        return refusal
    return Sections(**{section.key: settled(bodies[section.key]) for section in SECTIONS})


def settled(body: str) -> str:
    """A section's text as a brief holds it: no line of it is a heading of the brief."""
    lines = (f" {line}" if line.startswith("## ") else line for line in body.strip().split("\n"))
    text = "\n".join(lines).strip("\n")
    return NONE if _says_nothing(text) else text


def titled(sections: Sections) -> str:
    """Sections under their headings, as a brief shows them."""
    return "\n\n".join(f"## {section.title}\n{getattr(sections, section.key)}" for section in SECTIONS)


# --- form ------------------------------------------------------------------------------------------------------------------------------

_SURROGATES = re.compile("[\ud800-\udfff\0]")
_FENCE = re.compile(r"```[\w\-]{0,20}\n")
_TAG = re.compile(r"<(/?)([A-Za-z][\w \-]{1,40})>")
_BOLD = re.compile(r"(\*\*|__)([^*_]{2,60})\1\s*(.{0,20000})")
_JOINT = re.compile(r"[:\u2013\u2014-]\s*")
_NUMBER = re.compile(r"\(?\d{1,2}[.):]\s+")
_PARENTHESIS = re.compile(r"\([^()]*\)")
_NOT_WORDS = re.compile(r"[\W_]+")
_HEADING_MOST: Final = 80  # characters

# What a reply to a person opens with; a curly apostrophe counts as a straight one.
_CHAT = re.compile(
    r"(?:sure|certainly|of course|absolutely|ok|okay|great|got it|understood|alright|thanks|thank you|here(?:'s| is| are)|happy to|"
    r"no problem|sorry|unfortunately|hello|hi|as an ai|let me|i(?:'ll|'m|'ve|'d| will| am| can| have| would| understand))\b",
    re.IGNORECASE,
)
_ASSURANCE = re.compile(
    r"(?:sure|certainly|of course|absolutely|as an ai|i'm sorry|i can(?:'|no)t (?:help|do|assist))\b(?!-)", re.IGNORECASE
)
_FAREWELL = re.compile(
    r"(?:please )?(?:let me know|feel free|would you like|do you want|want me to|shall i|should i|how would you like|what would you like|"
    r"is there anything|anything else|i hope|hope this|happy to|ready to (?:continue|proceed)|if you(?:'d| would)? (?:like|want|need)|good luck)\b",
    re.IGNORECASE,
)


def _straight(text: str) -> str:
    return text.replace("\u2019", "'")


def _name(title: str) -> str:
    """A heading's words alone, in lower case."""
    words = _PARENTHESIS.sub(" ", title).replace("&", " and ").casefold()
    words = _straight(words).replace("'", "")
    return _NOT_WORDS.sub(" ", words).strip()


_KEYS: Final = {
    name: section.key for section in SECTIONS for name in (_name(section.title), section.key.replace("_", " "), *section.names)
}


def _bare(text: str) -> str:
    """A reply without a fence or a tag around all of it; a greeting may stand before the fence."""
    if text.endswith("\n```") and (fence := _FENCE.search(text, 0, PREAMBLE_MOST)):
        before = text[: fence.start()]
        if not any(map(_heading, before.split("\n"))):
            text = before + text[fence.end() : -4].strip()
    if (tag := _TAG.match(text)) and not tag[1] and _name(tag[2]) not in _KEYS and text.endswith(f"</{tag[2]}>"):
        text = text[tag.end() : -len(tag[2]) - 3].strip()
    return text


def _without_end(text: str) -> tuple[str, bool]:
    """The text before the last line that was asked for, and whether it is there; a model may dress it up."""
    before, _, last = text.rpartition("\n")
    is_end = len(last) <= len(END) + 12 and _name(last) == _name(END)
    return (before.strip(), True) if is_end else (text, False)


def _parted(text: str) -> tuple[str, dict[str, str]]:
    """What stands before the first heading, and the text under each; a heading that comes again goes on."""
    preamble: list[str] = []
    bodies: dict[str, list[str]] = {}
    lines, fenced = preamble, False
    for line in text.split("\n"):
        fenced ^= line.lstrip().startswith("```")
        heading = None if fenced else _heading(line)
        if heading is None:
            lines.append(line)
        elif heading[0]:
            lines = bodies.setdefault(heading[0], [])
            lines += filter(None, heading[1:])
    return "\n".join(preamble).strip(), {key: "\n".join(body).strip() for key, body in bodies.items()}


def _heading(line: str) -> tuple[str, str] | None:
    """The section that a line opens and what it already says of it; an empty key for a tag that closes one."""
    plain = line.strip()
    if tag := _TAG.fullmatch(plain):
        key = _KEYS.get(_name(tag[2]))
        return None if key is None else ("" if tag[1] else key, "")
    title = plain.lstrip("#").lstrip()
    marked = plain.startswith("#")
    number = _NUMBER.match(title)
    title = title[number.end() :] if number else title
    rest = ""
    if bold := _BOLD.fullmatch(title):
        marked, title = True, bold[2]
        joint = _JOINT.match(bold[3])
        if bold[3] and not joint and not title.rstrip().endswith(":"):
            return None  # a sentence that begins with a bold word
        rest = bold[3] if joint is None or title.rstrip().endswith(":") else bold[3][joint.end() :]
    elif ":" in title[:_HEADING_MOST] and (marked or not number):
        title, _, rest = title.partition(":")
    if len(title) > _HEADING_MOST or (not marked and title.startswith(("-", "*", "+"))):
        return None
    key = _KEYS.get(_name(title))
    return None if key is None else (key, rest.strip())


def _without_farewell(bodies: dict[str, str]) -> dict[str, str]:
    """The sections without a last paragraph that speaks to a reader who can answer."""
    last = next(reversed(bodies))
    before, _, line = bodies[last].rpartition("\n")
    if len(line) <= PREAMBLE_MOST and _FAREWELL.match(_straight(line.strip())):
        return {**bodies, last: before.strip()}
    return bodies


def _says_nothing(body: str) -> bool:
    return len(body) < 24 and _name(body) in ("", "none", "n a", "nothing", "none yet", "nothing yet", "not applicable")


# --- substance -------------------------------------------------------------------------------------------------------------------------


def _no_brief(text: str) -> Refusal:
    """What a reply without a single section is."""
    start = text[:80].split("\n")[0]
    if text.endswith(("?", "\uff1f")):
        return Refusal(reason=NoBrief.QUESTION, detail=start)
    opening, closing = _straight(text[:80]), _straight(text.rpartition("\n")[2][:80].strip())
    if _CHAT.match(opening) or _FAREWELL.match(opening) or _FAREWELL.match(closing):
        return Refusal(reason=NoBrief.CHAT, detail=start)
    if _holds_labels(text):
        return Refusal(reason=NoBrief.COPY, detail=start)
    return Refusal(reason=NoBrief.MISSING, detail="all of them")


def _of_form(preamble: str, bodies: dict[str, str], *, ended: bool) -> Refusal | None:
    """What is wrong with the parts of a reply."""
    missing = [section for section in SECTIONS if section.key not in bodies]
    if missing:
        begun = not ended and missing == list(SECTIONS[-len(missing) :])  # as far as it goes, it goes in order
        reason = NoBrief.CUT_SHORT if begun else NoBrief.MISSING
        return Refusal(reason=reason, detail="no " + ", no ".join(repr(section.title) for section in missing))
    if len(preamble) > PREAMBLE_MOST:
        return Refusal(reason=NoBrief.CHAT, detail=f"{len(preamble):,} characters before the first section")
    for section in SECTIONS:
        body = bodies[section.key]
        if not body or (section.needed and _says_nothing(body)):
            return Refusal(reason=NoBrief.EMPTY, detail=repr(section.title))
        if len(body) > SECTION_MOST:
            return Refusal(reason=NoBrief.TOO_LONG, detail=f"{section.title!r} has {len(body):,} characters")
        if body.count("```") % 2:
            return Refusal(reason=NoBrief.CUT_SHORT, detail=f"a fence in {section.title!r} is not closed")
    return None


def _of_substance(bodies: dict[str, str], text: str, transcript: str) -> Refusal | None:
    """What is wrong with what a reply says."""
    size = sum(map(len, bodies.values()))
    if size > MOST:
        return Refusal(reason=NoBrief.TOO_LONG, detail=f"{size:,} characters, at most {MOST:,}")
    if size < LEAST:
        return Refusal(reason=NoBrief.TOO_SHORT, detail=f"{size:,} characters, at least {LEAST:,}")
    for section in SECTIONS:
        start = bodies[section.key][:80]
        if _ASSURANCE.match(_straight(start)):
            return Refusal(reason=NoBrief.CHAT, detail=start.split("\n")[0])
    return Refusal(reason=NoBrief.COPY) if _holds_labels(text) or _is_copied(text, transcript) else None


def _holds_labels(text: str) -> bool:
    """Whether the reply repeats labels of the transcript."""
    return sum(line.startswith(MARK) for line in text.split("\n")) >= COPIED_LABELS


def _is_copied(text: str, transcript: str) -> bool:
    """Whether the reply is mostly whole lines of the transcript."""
    lines = _long_lines(text)
    size = sum(map(len, lines))
    known = set(_long_lines(transcript)) if size >= COPIED_LEAST else set[str]()
    copied = sum(len(line) for line in lines if line in known)
    return copied >= COPIED_LEAST and copied > COPIED_SHARE * size


def _long_lines(text: str) -> list[str]:
    plain = (line.strip(" -*\t") for line in text.split("\n"))
    return [line for line in plain if len(line) >= COPIED_LINE]
