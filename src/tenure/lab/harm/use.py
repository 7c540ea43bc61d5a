"""What each step used of what stood before it, whatever a policy does later: names, lines, quotations, what an edit is to find.

A use knows all its holders, so the same uses serve every policy and every cut of a session. Each pattern is linear on any text.

What of an assistant's text is content that no model wrote there, or wrote by a file that the record does not hold.

Some logs of resumed sessions hold tool output and whole files as an assistant's text. aider sends the files of its chat with each request and logs
none of them, so what its edits must find was in view whatever had left.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.lab.events import At, StepPart
from tenure.lab.harm.holdings import Field, Holdings, Message, Passage, words_of
from tenure.lab.harm.names import (
    BODIES,
    COMMANDS,
    KIND_OF,
    PATCHES,
    PATTERNS,
    PLACES,
    RARE,
    REMARKS,
    TARGETS,
    Anchor,
    AnchorForm,
    Kind,
    facts_of,
    is_idiom,
    names_of,
)

LISTING: Final = 12  # numbered lines in a row that a tool has numbered; a model quotes fewer
_NUMBERED = re.compile(r"[ \t]*(\d{1,6})(?:→|\t|[|:] ?)")
_CONTENT = re.compile(
    r"<(file_contents?|file|document|tool_result|function_results?|output|stdout|command-output|local-command-stdout|system-reminder)(?:[ \t][^>\n]*)?>"
)
_SEARCH: Final = "<<<<<<< SEARCH"
_DIVIDER: Final = "======="
_REPLACE: Final = ">>>>>>> REPLACE"
_WHOLE = re.compile(r"(?m)^\S*[\w-]\.\w{1,8}\n(`{3,})\w*\n")  # a file's name, then all of it in a fence


def authored(text: str) -> str:
    """`text` without such content; what is left keeps its lines. O(text)."""
    for found in reversed(list(_CONTENT.finditer(text))):
        end = text.find(f"</{found[1]}>", found.end())
        if end >= 0:
            text = text[: found.start()] + text[end:]
    if _SEARCH in text:
        text = _without_searches(text)
    if _WHOLE.search(text):
        text = _without_files(text)
    return _without_listings(text)


def _without_searches(text: str) -> str:
    kept: list[str] = []
    is_search = False
    for line in text.split("\n"):
        if line.startswith(_SEARCH):
            is_search = True
        elif is_search and (line.startswith((_DIVIDER, _REPLACE))):
            is_search = False
        elif not is_search:
            kept.append(line)
    return "\n".join(kept)


def _without_files(text: str) -> str:
    parts: list[str] = []
    place = 0
    while (found := _WHOLE.search(text, place)) is not None:
        parts.append(text[place : found.start()])
        end = text.find(f"\n{found[1]}", found.end() - 1)
        place = len(text) if end < 0 else end + 1
    return "".join([*parts, text[place:]])


def _without_listings(text: str) -> str:
    """Stretches of LISTING or more lines, each with a number that is one more than that of the line before."""
    kept: list[str] = []
    run: list[str] = []
    last = -2
    for line in text.split("\n"):
        found = _NUMBERED.match(line)
        number = int(found[1]) if found else -1
        if number < 0 or number != last + 1:
            kept += run if len(run) < LISTING else []
            run = []
        if number < 0:
            kept.append(line)
        else:
            run.append(line)
        last = number if number >= 0 else -2
    kept += run if len(run) < LISTING else []
    return "\n".join(kept)


SHORTEST_LINE: Final = 24
LONGEST_LINE: Final = 240
SHORTEST_TARGET: Final = 16  # of one of several lines that an edit is to find
WORDS_OF_QUOTE: Final = 3
SHORTEST_ALONE: Final = 8  # of the only one
MOST_NEEDS: Final = 4_000  # of one field; a body of more lines than that is not read to its end

_QUOTED = re.compile(r"\"([^\"\n]{12,240})\"|`([^`\n]{12,240})`|“([^”\n]{12,240})”")
_WORD = re.compile(r"\w{2,64}")
PATCH_MARKS: Final = ("@@", "*** Begin Patch", "\n+++ ")


def verbatim_of(field: Field) -> Iterator[tuple[Anchor, ...]]:
    """Lines that may have been read before, as the stretches in which they stand together; targets come whole."""
    if field.name in TARGETS:
        lines = [line for raw in field.text[: MOST_NEEDS * LONGEST_LINE].split("\n") if (line := raw.strip())]
        shortest = SHORTEST_TARGET if len(lines) > 1 else SHORTEST_ALONE
        if telling := [line for line in lines if len(line) >= shortest]:
            yield tuple(Anchor(AnchorForm.TARGET, line[:LONGEST_LINE]) for line in telling[:MOST_NEEDS])
        return
    if field.name in PATCHES and any(mark in field.text for mark in PATCH_MARKS):
        yield from _patched(field.text)
        return
    if field.name in PLACES:
        return
    lines = (raw.strip() for raw in field.text.split("\n", MOST_NEEDS)[:MOST_NEEDS])
    yield tuple(Anchor(AnchorForm.LINES, line) for line in lines if SHORTEST_LINE <= len(line) <= LONGEST_LINE)
    if field.name not in BODIES:
        for found in _QUOTED.finditer(field.text):
            yield from _quote(found[1] or found[2] or found[3])
    if field.name in PATTERNS and len(field.text) <= LONGEST_LINE:
        yield from _quote(field.text)


def _quote(quoted: str) -> Iterator[tuple[Anchor, ...]]:
    """A quotation, if it is long enough to be one."""
    if " " in quoted.strip() and len(_WORD.findall(quoted)) >= WORDS_OF_QUOTE:
        yield (Anchor(AnchorForm.QUOTE, quoted.strip()),)


def _patched(text: str) -> Iterator[tuple[Anchor, ...]]:
    """The stretches of a patch that must be found: what it takes away, and what it leaves around."""
    stretch: list[Anchor] = []
    for raw in text.split("\n", MOST_NEEDS)[:MOST_NEEDS]:
        line = raw[1:].strip()
        if raw[:1] in ("-", " ") and not raw.startswith("---"):
            if SHORTEST_TARGET <= len(line) <= LONGEST_LINE:
                stretch.append(Anchor(AnchorForm.TARGET, line))
        elif not raw.startswith("+") and stretch:
            yield tuple(stretch)
            stretch = []
    if stretch:
        yield tuple(stretch)


RARE_WORD: Final = 12  # passages that may hold a word that tells a line of its own from one that any text has
_CUES: Final = 12
_CUES_WITHIN: Final = 4_000  # characters of a field
_ENDS: Final = 6  # of a path that are looked for
_LOOKS: Final = 64  # at places of one name in one text
_SLASH = re.compile(r"[/\\]")
_ITSELF: Final = ("self.", "this.")
_PARTS: Final[dict[str, StepPart]] = {"tool_call": "call", "text": "text", "thinking": "thinking"}
_LOCATORS: Final = frozenset({AnchorForm.PATH, AnchorForm.FILE, AnchorForm.URL})


class Wanted(Struct, frozen=True, kw_only=True, gc=False):
    """One string of a use and the passages that held it, oldest first."""

    text: str
    holders: tuple[Passage, ...]


class StepUse(Struct, frozen=True, kw_only=True):
    """Strings that a step used together."""

    entry: int
    block: int
    part: StepPart
    tool: str
    field: str
    form: AnchorForm
    wanted: tuple[Wanted, ...]
    cues: tuple[str, ...]  # what else the step names beside it

    @property
    def kind(self) -> Kind:
        """Locator, verbatim or symbol."""
        return KIND_OF[self.form]


def uses(message: Message, holdings: Holdings) -> Iterator[StepUse]:
    """What an assistant's message uses of what `holdings` hold of the messages before it. O(its needs).

    What it says and calls comes first; what it thinks is looked at apart, as if it said nothing.
    """
    if message.role != "assistant":
        return
    for is_thinking in (False, True):
        finder = _Finder(holdings, message.entry)
        for passage in message.passages:
            part = _PARTS.get(passage.kind)
            if part is not None and (part == "thinking") is is_thinking:
                yield from finder.passage(passage, part)


_Found = tuple[str, AnchorForm, tuple[Wanted, ...]]  # the field's name, and what of it was held
_Source = Callable[[Sequence[Passage]], bool]  # whether lines with these holders were taken from them


class _Finder:
    """The uses of one message: each string once. Mutable."""

    def __init__(self, holdings: Holdings, entry: int) -> None:
        self._holdings, self._entry = holdings, entry
        self._seen: set[str] = set()

    def passage(self, passage: Passage, part: StepPart) -> Iterator[StepUse]:
        """What one block uses: verbatim text first, then what the other lines name."""
        fields = [field for field in passage.fields if field.name not in REMARKS]
        if part == "text":
            fields = [replace(field, text=authored(field.text)) for field in fields]
        fields.sort(key=lambda field: field.name not in TARGETS and field.name not in PATCHES)
        held_lines: set[str] = set()
        found: list[_Found] = []
        for field in fields:
            source = _source_of(passage, field)
            for stretch in verbatim_of(field):
                found += ((field.name, form, run) for form, run in self._runs(stretch, held_lines, source, is_own=part != "call"))
        told = {word for line in held_lines for word in words_of(line)}  # who has the line has the names in it
        for field in fields:
            for anchor in names_of(field.name, _without(field, held_lines)):
                if anchor.form in _LOCATORS or not told.issuperset(words_of(anchor.text)):
                    found += ((field.name, form, (wanted,)) for form, wanted in self._named(anchor))
        for field in fields if part == "text" else ():
            for anchor in facts_of(_without(field, held_lines)):
                if not told.issuperset(words_of(anchor.text)):
                    found += ((field.name, anchor.form, (wanted,)) for wanted in self._fact(anchor))
        cues = tuple(_cues(fields)) if found else ()
        for name, form, wanted in found:
            yield StepUse(
                entry=self._entry,
                block=passage.at[1],
                part=part,
                tool=passage.tool,
                field=name,
                form=form,
                wanted=wanted,
                cues=cues,
            )

    def _runs(
        self, stretch: Sequence[Anchor], held_lines: set[str], source: _Source, *, is_own: bool
    ) -> Iterator[tuple[AnchorForm, tuple[Wanted, ...]]]:
        """The held lines of a stretch, as they stand together: a target whole, other lines as long as one holder has them all."""
        run: list[Wanted] = []
        common: set[str | At] = set()
        for anchor in stretch:
            wanted = self._line(anchor, held_lines, source, is_own=is_own)
            things: set[str | At] = {held.thing for held in wanted.holders} if wanted else set()
            if anchor.form is AnchorForm.TARGET:
                run += [wanted] if wanted else []
            elif wanted and run and common & things:
                run.append(wanted)
                common &= things
            else:
                if self._is_told(run):
                    yield anchor.form, tuple(run)
                run, common = ([wanted], things) if wanted else ([], set())
        if run and (stretch[0].form is not AnchorForm.LINES or self._is_told(run)):
            yield stretch[0].form, tuple(run)

    def _line(self, anchor: Anchor, held_lines: set[str], source: _Source, *, is_own: bool) -> Wanted | None:
        """The line as it was held. Words that say again what was said are no need (`is_own`), nor is what they name."""
        holders = self._holdings.find(anchor.text, self._entry)
        if holders and not source(holders):
            held_lines.update((anchor.text,) if is_own else ())
            return None
        if holders is None or holders:
            held_lines.add(anchor.text)
        if not holders or anchor.text in self._seen or _things(holders) > RARE[anchor.form]:
            return None
        self._seen.add(anchor.text)
        return Wanted(text=anchor.text, holders=holders)

    def _is_told(self, run: Sequence[Wanted]) -> bool:
        """Whether lines say something of this session: several together do, one alone if it has a word that not every text has; idioms never."""
        if all(is_idiom(wanted.text) for wanted in run):
            return False
        if len(run) != 1:
            return True
        return any(self._holdings.count(word, self._entry) <= RARE_WORD for word in words_of(run[0].text))

    def _named(self, anchor: Anchor) -> Iterator[tuple[AnchorForm, Wanted]]:
        """The string as it was held, if it was; of a path the longest end that was."""
        for form, text in _spellings(anchor):
            if text in self._seen:
                return
            self._seen.add(text)
            holders = self._holdings.find(text, self._entry)
            if holders == ():
                continue
            if holders and _things(holders) <= RARE[form] and (form is not AnchorForm.NAME or _is_own(text, holders)):
                yield form, Wanted(text=text, holders=holders)
            return

    def _fact(self, anchor: Anchor) -> Iterator[Wanted]:
        """What words name, where it is rare, a tool or a person said it, and no text has it in plain words."""
        if anchor.text in self._seen:
            return
        self._seen.add(anchor.text)
        holders = self._holdings.find(anchor.text, self._entry)
        if not holders or _things(holders) > RARE[anchor.form] or all(held.origin == "model" for held in holders):
            return
        if anchor.form is AnchorForm.PROPER and not any(
            self._holdings.count(word.lower(), self._entry) <= 1 for word in words_of(anchor.text)
        ):
            return
        if anchor.form is AnchorForm.WORD and self._holdings.count(anchor.text, self._entry) > RARE[anchor.form]:
            return
        yield Wanted(text=anchor.text, holders=holders)


def _things(holders: Sequence[Passage]) -> int:
    return len({held.thing for held in holders})


def _source_of(passage: Passage, field: Field) -> _Source:
    """What the agent put so before, it can put so again: commands repeat commands, and reasoning in words repeats itself."""
    if field.name in COMMANDS:
        return lambda holders: not (holders[0].kind == "tool_call" and holders[0].origin == "model")
    if passage.kind == "tool_call":
        return lambda _holders: True
    return lambda holders: not all(held.kind in ("text", "thinking") and held.origin == "model" for held in holders)


def _spellings(anchor: Anchor) -> Iterator[tuple[AnchorForm, str]]:
    yield anchor.form, anchor.text
    if anchor.form is AnchorForm.PATH:
        parts = [part for part in _SLASH.split(anchor.text) if part]
        for start in range(max(1, len(parts) - _ENDS), len(parts)):
            end = "/".join(parts[start:])
            if len(parts) - start > 1 or "." in end:
                yield (AnchorForm.PATH if len(parts) - start > 1 else AnchorForm.FILE), end


def _is_own(name: str, holders: Sequence[Passage]) -> bool:
    """Whether a name is the session's own: it stood somewhere other than behind a module or class, as in `strconv.ParseUint`."""
    return any(_stands_bare(held.text, name) for held in holders)


def _stands_bare(text: str, name: str) -> bool:
    place = text.find(name)
    for _ in range(_LOOKS):
        if place < 0:
            return False
        if text[place - 1 : place] not in (".", ":", ">") or text[max(0, place - 5) : place].endswith(_ITSELF):
            return True
        place = text.find(name, place + 1)
    return False


def _cues(fields: Sequence[Field]) -> Iterator[str]:
    """The places that a step names, a few."""
    given: set[str] = set()
    for field in fields:
        for anchor in names_of(field.name, field.text[:_CUES_WITHIN]):
            if anchor.form in _LOCATORS and anchor.text not in given:
                given.add(anchor.text)
                yield anchor.text
            if len(given) >= _CUES:
                return


def _without(field: Field, held_lines: set[str]) -> str:
    """The text of a field but the lines that are held as they are."""
    if not held_lines or "\n" not in field.text:
        return "" if field.text.strip() in held_lines else field.text
    return "\n".join([line for line in field.text.split("\n") if line.strip() not in held_lines])
