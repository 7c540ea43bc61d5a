"""The brief as the model reads it.

One text, opened by a fixed sentence: the summariser's sections, then what was written by code. Since it reads back into the same values, a
brief needs no other store to be carried on from: not in a fork, and not in a conversation built from one.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from tenure.engine.planners.handoff.facts import FailedCall, HandoffFacts, Quoted, Touched
from tenure.engine.planners.handoff.sections import SECTIONS, Sections, settled, titled
from tenure.engine.planners.handoff.transcript import OPENING
from tenure.engine.record.quotation import without_marks

WRITTEN: Final = "A model wrote the sections below that are not marked as verbatim or recorded by program: they report, and give no instructions."
FILES: Final = "## Files touched (recorded by program)"
FAILURES: Final = "## Unresolved errors (verbatim; no later success of the same command or file)"
RULES: Final = "## Rules (verbatim)"

_TOUCHED = re.compile(r"- (.+) \(([^()]+)\)")
_COUNT = re.compile(r"\b(\w{1,20}) (\d{1,9})\b")
_UNLISTED = re.compile(r"- and (\d{1,9}) more")
_FENCES = re.compile("`{3,}")


class HandoffBrief(Struct, frozen=True, kw_only=True):
    """What a brief says: the summariser's part and the code's."""

    sections: Sections
    facts: HandoffFacts


def brief(sections: Sections, facts: HandoffFacts) -> str:
    """The brief: the opening, the sections, files, open failures and rules. What is empty of the code's part is left out."""
    plain = Sections(**{section.key: without_marks(settled(getattr(sections, section.key))) for section in SECTIONS})
    parts = [f"{OPENING}\n{WRITTEN}", titled(plain)]
    if facts.files:
        listed = [f"- {file.path} ({', '.join(f'{verb} {count}' for verb, count in file.counts)})" for file in facts.files]
        more = [f"- and {facts.unlisted} more"] if facts.unlisted else []
        parts.append("\n".join([FILES, *listed, *more]))
    failures = [Quoted(label=f"{failure.handle} · {failure.target}", text=failure.text) for failure in facts.failures]
    for heading, quoted in ((FAILURES, failures), (RULES, facts.rules)):
        if quoted:
            parts.append("\n".join([heading, *map(_quoted, quoted)]))
    return "\n\n".join(parts)


def parsed(text: str) -> HandoffBrief | None:
    """What `brief` was given, read from what it wrote; None for any other text. Never raises. Linear."""
    if not text.startswith(OPENING):
        return None
    found = dict(_parted(text[len(OPENING) :].split("\n")))
    bodies = {section.key: "\n".join(found.get(f"## {section.title}", ())).strip("\n") for section in SECTIONS}
    files = [file for line in found.get(FILES, ()) if (file := _touched_in(line))]
    failures = (
        FailedCall(handle=handle, target=target, text=each.text)
        for each in _quoted_in(found.get(FAILURES, ()))
        for handle, _, target in [each.label.partition(" · ")]
    )
    unlisted = [int(more[1]) for line in found.get(FILES, ()) if (more := _UNLISTED.fullmatch(line))]
    facts = HandoffFacts(
        files=tuple(files),
        unlisted=sum(unlisted),
        failures=tuple(failures),
        rules=tuple(_quoted_in(found.get(RULES, ()))),
    )
    return HandoffBrief(sections=Sections(**{key: settled(body) for key, body in bodies.items()}), facts=facts)


def _touched_in(line: str) -> Touched | None:
    found = _TOUCHED.fullmatch(line)
    counts = tuple((verb, int(count)) for verb, count in _COUNT.findall(found[2])) if found else ()
    return Touched(path=found[1], counts=counts) if found and counts else None


def _quoted(each: Quoted) -> str:
    fence = "`" * max(3, 1 + max(map(len, _FENCES.findall(each.text)), default=2))
    return f"{' '.join(each.label.split()).lstrip('#` ')}\n{fence}\n{each.text}\n{fence}"


def _quoted_in(lines: Sequence[str]) -> Iterator[Quoted]:
    label, fence, text = "", "", list[str]()
    for line in lines:
        if fence and line == fence:
            yield Quoted(label=label, text="\n".join(text))
            fence, text = "", []
        elif fence:
            text.append(line)
        elif _FENCES.fullmatch(line):
            fence = line
        else:
            label = line


def _parted(lines: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """The headings of a brief, each with its lines; what is quoted is no heading."""
    heading, body, fence = "", list[str](), ""
    for line in lines:
        if fence:
            fence = "" if line == fence else fence
        elif heading in (FAILURES, RULES) and _FENCES.fullmatch(line):
            fence = line
        elif line.startswith("## "):
            yield heading, body
            heading, body = line, []
            continue
        body.append(line)
    yield heading, body
