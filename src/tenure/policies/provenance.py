"""Eviction by provenance: what later steps took from a result says what may be asked of it again. No annotation, no model.

Promise: nothing is lost, and the lines that were used stay where they were found. First version, not the default: its weights are set by hand.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from math import exp
from typing import Final

from msgspec import Struct

from tenure.policies.cwl import Cwl
from tenure.policies.placeholder import cleared, is_note
from tenure.policies.policy import Conduct
from tenure.policies.situation import Situation
from tenure.record.entry import Origin, ToolResult
from tenure.record.index import NONE, Span
from tenure.record.objects import tool_name
from tenure.record.tools import ToolKind, is_delimiter
from tenure.view.action import Action, Level, Shorten, Strip
from tenure.view.guard import At

# What can be told apart later: paths, dotted and joined names, names with capitals inside, ids and larger numbers.
_ANCHOR: Final = re.compile(r"[A-Za-z0-9_][\w./:@~-]{2,199}")
_TELLING: Final = re.compile(r"[/_.:@]|[a-z][A-Z]|\d{4}")
_ALARM: Final = re.compile(r"\b(?:error|exception|fail(?:ed|ure)?|warning|traceback|assert)\b", re.IGNORECASE)

RARE: Final = 3  # results of the view that may hold an anchor before it says nothing
LEAST: Final = 80  # tokens: less is not worth a placeholder
NAMES: Final = 0.1  # of a result's tokens that a list of its names may weigh
MOST_NAMES: Final = 300
LONGEST_NAME: Final = 80
LARGE: Final = 1_500  # tokens of a result that is shortened in two steps
LARGEST: Final = 20_000  # tokens that one keeps in the first of them
LONGEST: Final = 240  # characters of a line that is kept
FADE: Final = 24.0  # steps after which a use counts a third

# Needs per 1,000 tokens of a result by its tool, as a first measurement had them: what is cheap to read again is let go first.
NEEDED: Final[Mapping[str, float]] = {"read": 0.06, "grep": 0.03, "glob": 0.05, "bash": 0.36}
OTHERS: Final = 0.2


class Provenance(Struct, frozen=True, kw_only=True):
    """The policy. `kept`: the share of a result's tokens that lines may keep, at most `most` tokens."""

    name: str = "provenance"
    kept: float = 0.1
    most: int = 400
    large: float = 0.4  # what a large result keeps before any goes down to `kept`
    conduct: Conduct = Conduct()

    def __call__(self, situation: Situation, /) -> Iterator[Action]:
        """Old reasoning, then results, those of the least expected loss for each token; steps that changed nothing; then as `cwl` would.

        What the agent itself wrote is what it quotes later, so steps that wrote go last. O(texts of the view).
        """
        results = _Results(situation)
        episodes = sorted(situation.free)
        for ordinal in episodes:
            yield Strip(episode=ordinal, level=Level.REASONING)
        spans = results.by_loss()
        for span in spans:
            if results.is_large(span):
                yield results.shortened(span, self.large, LARGEST, fill=True)
        for span in spans:
            yield results.shortened(span, self.kept, self.most)
        for ordinal in episodes:
            if not results.wrote(ordinal):
                yield Strip(episode=ordinal, level=Level.EPISODE)
        yield from Cwl()(situation)


class _Results:
    """The results of a view that may be touched, what they hold, and which of it was used after them."""

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self._texts: dict[int, str] = {}  # by ordinal of the span
        self._anchors: dict[int, frozenset[str]] = {}
        self._used: dict[str, int] = {}  # the newest step that named an anchor
        index = situation.index
        self._now = len(index.steps)
        for row in situation.view.rows():
            blocks = index.entries[row.entry].blocks
            for number in row.blocks:
                fact = blocks[number]
                if fact.origin is Origin.MODEL:
                    self._name(situation.read(row.entry).blocks[number].text, index.entries[row.entry].step)
                elif fact.kind == "tool_result" and fact.span != NONE:
                    self._take(index.spans[fact.span], (row.entry, number))
        self._holders = Counter(anchor for anchors in self._anchors.values() for anchor in anchors)

    def wrote(self, ordinal: int) -> bool:
        """Whether anything of an episode that may go changed something, or is still open."""
        index = self._situation.index
        spans = (index.block(at).span for at in self._situation.free[ordinal])
        lasting = any(span != NONE and index.spans[span].kind is ToolKind.DURABLE for span in spans)
        return lasting or not index.episodes[ordinal].closed or bool(index.episodes[ordinal].dependents)

    def by_loss(self) -> list[Span]:
        """Spans by expected loss for each token, least first; of equals the oldest."""
        index = self._situation.index
        spans = [index.spans[ordinal] for ordinal in self._texts if self._may(index.spans[ordinal])]
        return sorted(spans, key=lambda span: (self._loss(span), span.ordinal))

    def is_large(self, span: Span) -> bool:
        """Whether it is worth two steps: at once it might take far more than is wanted."""
        return self._situation.view.weight(*_at(span)) >= LARGE

    def shortened(self, span: Span, kept: float, most: int, *, fill: bool = False) -> Shorten:
        """The action that leaves a share of a result; with `fill` lines that nothing speaks for take up what room is left."""
        text = self.instead(span, kept, most, fill=fill)
        return Shorten(span=span.ordinal, how="clear", text=text, routes=(self.handle(span),))

    def instead(self, span: Span, kept: float, most: int, *, fill: bool = False) -> str:
        """The placeholder, and below it the lines that are most likely to be asked for, in their order and as they were."""
        text = self._texts[span.ordinal]
        tokens = self._situation.index.block(_at(span)).tokens
        failed = text if span.error else ""
        note = cleared(self.handle(span), span.cue, span.tool, span.kind, tokens, failed)
        lines = self._lines(span, text.split("\n"), min(most, int(tokens * kept)), fill=fill)
        names = self._names(span, "\n".join(lines), min(MOST_NAMES, int(tokens * NAMES)))
        return "\n".join([note, *([f"[names in it: {' '.join(names)}]"] if names else []), *lines])

    def handle(self, span: Span) -> str:
        """How the record names it."""
        return self._situation.index.handle(span.object, span.call[0])

    def _take(self, span: Span, at: At) -> None:
        block = self._situation.read(at[0]).blocks[at[1]]
        if isinstance(block, ToolResult) and not self._is_noted(at):
            self._texts[span.ordinal] = block.text
            self._anchors[span.ordinal] = _anchors(block.text)

    def _name(self, text: str, step: int) -> None:
        for anchor in _anchors(text):
            self._used[anchor] = step

    def _is_noted(self, at: At) -> bool:
        shown = self._situation.view.instead(*at)
        return shown is not None and is_note(shown.text)

    def _may(self, span: Span) -> bool:
        if is_delimiter(span.tool) or not self._situation.is_free(_at(span)):
            return False
        return self._situation.view.weight(*_at(span)) >= LEAST

    def _loss(self, span: Span) -> float:
        """Needs to be expected for each 1,000 tokens: by the tool, by what was used of it lately, and by what only it holds."""
        tokens = self._situation.view.weight(*_at(span))
        step = self._situation.index.entries[span.call[0]].step
        rare = [anchor for anchor in self._anchors[span.ordinal] if self._holders[anchor] <= RARE]
        uses = sum(exp((used - self._now) / FADE) for anchor in rare if (used := self._used.get(anchor, -1)) > step)
        known = NEEDED.get(tool_name(span.tool), OTHERS) * exp((step - self._now) / (4 * FADE))
        return known + 1_000 * uses / max(tokens, 1) / 8

    def _names(self, span: Span, shown: str, room: int) -> list[str]:
        """What else a result names that hardly any other does: as much as there is room for, what it names most first."""
        said = Counter(_found(self._texts[span.ordinal]))
        kept: list[str] = []
        for name, _ in said.most_common():
            if self._holders[name] > RARE or len(name) > LONGEST_NAME or name in shown:
                continue
            room -= 2 + len(name) // 4
            if room < 0:
                break
            kept.append(name)
        return kept

    def _lines(self, span: Span, lines: list[str], room: int, *, fill: bool) -> list[str]:
        step = self._situation.index.entries[span.call[0]].step
        worth: list[tuple[float, int]] = []
        for number, line in enumerate(lines):
            if not 4 <= len(line) <= LONGEST:
                continue
            found = _anchors(line)
            used = sum(1.0 for anchor in found if self._used.get(anchor, -1) > step and self._holders[anchor] <= RARE)
            rare = sum(0.1 for anchor in found if self._holders[anchor] == 1)
            alarm = 0.5 if _ALARM.search(line) else 0.0
            score = used + rare + alarm
            if score or fill:
                worth.append((score / (8 + len(line) / 4), number))
        kept: list[int] = []
        for _, number in sorted(worth, key=lambda each: (-each[0], each[1])):
            room -= self._situation.count(lines[number]) + 1
            if room < 0:
                break
            kept.append(number)
        return [lines[number] for number in sorted(kept)]


def _at(span: Span) -> At:
    return span.result or span.call


def _anchors(text: str) -> frozenset[str]:
    """The strings of a text that can be told apart later. Linear."""
    return frozenset(_found(text))


def _found(text: str) -> Iterator[str]:
    return (found.rstrip(".:-/") for found in _ANCHOR.findall(text) if _TELLING.search(found))
