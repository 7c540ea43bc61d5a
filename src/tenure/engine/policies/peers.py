"""Baselines and the published rules of other tools, for comparison, each with its source.

They run governed: human text, the prologue, the tail and holds stay, calls leave with their results. Where a rule says itself how much
goes, the loop does not stop it at a target (`Conduct.amount`). What they clear can be recalled like everything else; their own placeholders do
not say so, which is part of what is compared.

`tenure replay --faithful` (`Setup.faithful`) lets them run as they were published: human text, prologue, tail and holds may go too. What stays
is the system prompt, the message a request opens with, what the model has not answered yet, pairs, and reasoning with what it led to. Such
a run says so, and counts the protected blocks it changed; comparisons use the governed one.
"""

from collections.abc import Iterator
from typing import Final, Literal

from msgspec import Struct

from tenure.engine.policies.policy import Conduct
from tenure.engine.policies.situation import Situation
from tenure.engine.record.entry import At, ToolResult
from tenure.engine.record.index import NONE, Span
from tenure.engine.record.objects import tool_name
from tenure.engine.record.tools import ToolKind
from tenure.engine.view.action import Action, Shorten, Take

MASK: Final = "[output masked]"
CLEARED: Final = "[Old tool result content cleared]"  # OpenCode's
PROTECTED_TOOLS: Final = frozenset({"skill"})
DUPLICATE: Final = (  # Cline's
    "[[NOTE] This file read has been removed to save space in the context window. Refer to the latest file read for the most up to "
    "date version of this file.]"
)
READS: Final = frozenset("read read_file readfile view".split())
FIRST_STEPS: Final = 1  # messages 0 and 1: the task and the first answer
AS_PUBLISHED: Final = Conduct(amount="all", naming="descriptions")  # the rule says how much goes
UNDER_PRESSURE: Final = Conduct(naming="descriptions")


class ToolPrune(Struct, frozen=True, kw_only=True):
    """Tool-prune: tool outputs go under pressure, oldest first, each with its call.

    Self-GC paper, Baselines: "greedily removes tool outputs under token pressure".
    """

    name: str = "tool-prune"
    conduct: Conduct = UNDER_PRESSURE

    def __call__(self, situation: Situation, /) -> Iterator[Take]:
        """Oldest first."""
        for span in results(situation):
            if is_free(situation, span) and span.result is not None:
                yield Take(how="prune", object=span.object, places=span.blocks)


class OldestTurn(Struct, frozen=True, kw_only=True):
    """Oldest-turn: the oldest conversational spans go, the latest user turn stays.

    Self-GC paper, Baselines: "chronologically folds the oldest conversational spans while preserving the latest user turn".
    """

    name: str = "oldest-turn"
    conduct: Conduct = UNDER_PRESSURE

    def __call__(self, situation: Situation, /) -> Iterator[Take]:
        """Oldest first; the latest turn never."""
        found = groups(situation, "turn")
        newest = max(found, default=0)
        for number, places in found.items():
            if number != newest:
                yield Take(how="prune", object=f"user:{number}" if number else "entry:0", places=tuple(places))


class ToolMaskPrune(Struct, frozen=True, kw_only=True):
    """Tool spans of low signal are masked first, then tool outputs go.

    Self-GC paper, Baselines: "first masks low-signal tool spans and then prunes remaining tool outputs". What is of low signal the paper leaves
    open: here the enumerable output of searches and listings (CWL paper, section 4.4: bulk).
    """

    name: str = "tool-mask-prune"
    conduct: Conduct = UNDER_PRESSURE

    def __call__(self, situation: Situation, /) -> Iterator[Action]:
        """Searches and listings first, then every call, oldest first."""
        for span in results(situation):
            if span.kind is ToolKind.BULK and is_free(situation, span):
                yield Shorten(span=span.ordinal, how="mask", text=MASK)
        yield from ToolPrune()(situation)


class Hybrid(Struct, frozen=True, kw_only=True):
    """Tool outputs go, then the oldest turns. Self-GC paper, Baselines: "combines chronological turn folding with tool-output pruning"."""

    name: str = "hybrid"
    conduct: Conduct = UNDER_PRESSURE

    def __call__(self, situation: Situation, /) -> Iterator[Action]:
        """Oldest first in both."""
        yield from ToolPrune()(situation)
        yield from OldestTurn()(situation)


class SlidingWindow(Struct, frozen=True, kw_only=True):
    """Sliding window: the oldest exchanges go until the rest fits, as in most chat frameworks (LangChain `trim_messages`, Strands).

    The system prompt stays; cut between exchanges, so that no result is left without its call.
    """

    name: str = "sliding-window"
    conduct: Conduct = UNDER_PRESSURE

    def __call__(self, situation: Situation, /) -> Iterator[Take]:
        """Oldest first."""
        for number, places in steps(situation).items():
            yield Take(how="prune", object=f"step:{number}", places=tuple(places))


class ObservationMasking(Struct, frozen=True, kw_only=True):
    """Observation masking: all but the newest observations are replaced by a line, reasoning and actions stay.

    "The Complexity Trap: Simple Observation Masking Is as Efficient as LLM Summarization for Agent Context Management" (arXiv 2508.21433):
    a rolling window of the newest M = 10 observations.
    """

    name: str = "observation-masking"
    window: int = 10  # newest observations that stay
    conduct: Conduct = AS_PUBLISHED

    def __call__(self, situation: Situation, /) -> Iterator[Shorten]:
        """Oldest first."""
        found = results(situation)
        for span in found[: max(0, len(found) - self.window)]:
            if is_free(situation, span) and span.result is not None:
                block = situation.read(span.result[0]).blocks[span.result[1]]
                lines = block.text.count("\n") + 1 if isinstance(block, ToolResult) else 0
                yield Shorten(span=span.ordinal, how="mask", text=f"Previous {lines} lines omitted for brevity.")


class Discard(Struct, frozen=True, kw_only=True):
    """Discard-75 % and discard-all: the oldest three quarters of the tool calls with their results leave, or all of them.

    DeepSeek-V3.2 report, context management of the search agent: "Discard-75%" drops the first 75 % of the tool call history, "Discard-all"
    resets the context by dropping all of it, when usage passes a large share of the window.

    The oldest `share` (0 to 1) of the calls.
    """

    name: str = "discard-75"
    share: float = 0.75
    conduct: Conduct = AS_PUBLISHED

    @classmethod
    def every(cls) -> "Discard":
        """Discard-all."""
        return cls(name="discard-all", share=1.0)

    def __call__(self, situation: Situation, /) -> Iterator[Take]:
        """Oldest first."""
        found = results(situation)
        for span in found[: int(len(found) * self.share)]:
            if is_free(situation, span) and span.result is not None:
                yield Take(how="prune", object=span.object, places=span.blocks)


class ClearToolUses(Struct, frozen=True, kw_only=True):
    """Clearing of tool uses, as Anthropic's API and LangChain do it: all but the newest three results, oldest first.

    Anthropic, context editing, strategy clear_tool_uses_20250919 (beta context-management-2025-06-27): trigger 100,000 input tokens, keep 3,
    clear_at_least none, exclude_tools, clear_tool_inputs false. LangChain's ClearToolUsesEdit has the same numbers and "[cleared]".

    `trigger` and `at_least` in o200k tokens of the view.
    """

    name: str = "clear-tool-uses"
    trigger: int = 100_000
    keep: int = 3
    at_least: int = 0
    exclude: frozenset[str] = frozenset()
    placeholder: str = "[Tool result cleared to save context]"
    conduct: Conduct = AS_PUBLISHED

    @classmethod
    def langchain(cls) -> "ClearToolUses":
        """LangChain's ContextEditingMiddleware with its default edit."""
        return cls(name="langchain-clearing", placeholder="[cleared]")

    def __call__(self, situation: Situation, /) -> Iterator[Shorten]:
        """All but the newest, or nothing below the trigger or where it would save too little."""
        if situation.view.tokens < self.trigger:
            return
        found = results(situation)
        old = found[: max(0, len(found) - self.keep)]
        chosen = [span for span in old if tool_name(span.tool) not in self.exclude and is_free(situation, span)]
        if sum(weight(situation, span) for span in chosen) >= self.at_least:
            for span in chosen:
                yield Shorten(span=span.ordinal, how="clear", text=self.placeholder)


class OpencodePrune(Struct, frozen=True, kw_only=True):
    """OpenCode's prune: outputs of tools older than the newest 40,000 tokens of them are cleared, when that saves 20,000.

    anomalyco/opencode, packages/opencode/src/session/compaction.ts: walks backwards, skips the newest two user turns, protects PRUNE_PROTECT
    tokens of tool output, clears the rest if more than PRUNE_MINIMUM would go; the output of the skill tool never.

    Sizes in o200k tokens; OpenCode's own are characters / 4.
    """

    name: str = "opencode-prune"
    protect: int = 40_000
    minimum: int = 20_000
    turns: int = 2
    conduct: Conduct = AS_PUBLISHED

    def __call__(self, situation: Situation, /) -> Iterator[Shorten]:
        """All that is old enough, or nothing."""
        newest = situation.index.turns[-self.turns :]
        stop = newest[0].start[0] if len(newest) == self.turns else 0
        seen, chosen = 0, list[Span]()
        for span in reversed(results(situation)):
            if span.call[0] >= stop or tool_name(span.tool) in PROTECTED_TOOLS:
                continue
            seen += weight(situation, span)
            if seen > self.protect and is_free(situation, span):
                chosen.append(span)
        if sum(weight(situation, span) for span in chosen) > self.minimum:
            for span in reversed(chosen):
                yield Shorten(span=span.ordinal, how="clear", text=CLEARED)


class Cline(Struct, frozen=True, kw_only=True):
    """Cline's truncation: duplicate file reads first; if they save 30 %, nothing else; else half of the messages go, or three quarters.

    cline/cline, src/core/context/context-management/ContextManager.ts: messages 0 and 1 always stay; `getNextTruncationRange` keeps about half
    of the remaining pairs, or a quarter where half would still be too large; of a file that was read several times the latest read stays here
    as there, the others point to it.
    """

    name: str = "cline"
    enough: float = 0.3  # of the view: duplicates that save as much are all that goes
    conduct: Conduct = AS_PUBLISHED

    def __call__(self, situation: Situation, /) -> Iterator[Action]:
        """Duplicate reads, then perhaps the oldest half or three quarters."""
        duplicates = list(self._duplicates(situation))
        for span in duplicates:
            yield Shorten(span=span.ordinal, how="dedupe", text=DUPLICATE)
        saved = sum(weight(situation, span) for span in duplicates)
        if saved >= self.enough * situation.view.tokens:
            return
        found = list(steps(situation).items())[FIRST_STEPS:]
        keeps_half = (situation.view.tokens - saved) // 2 <= situation.limit
        for number, places in found[: len(found) // 2 if keeps_half else len(found) * 3 // 4]:
            yield Take(how="prune", object=f"step:{number}", places=tuple(places))

    def _duplicates(self, situation: Situation) -> Iterator[Span]:
        latest: dict[str, int] = {}
        reads = [span for span in results(situation) if tool_name(span.tool) in READS and span.cue]
        for span in reads:
            latest[span.cue] = span.ordinal
        yield from (span for span in reads if latest[span.cue] != span.ordinal and is_free(situation, span))


def results(situation: Situation) -> list[Span]:
    """The calls whose results are shown, in order; of those that may not go too."""
    index = situation.index
    facts = (index.entries[row.entry].blocks[block] for row in situation.view.rows() for block in row.blocks)
    return [index.spans[fact.span] for fact in facts if fact.kind == "tool_result" and fact.span != NONE]


def is_free(situation: Situation, span: Span) -> bool:
    """Whether a shown result may go."""
    return span.result is not None and situation.is_free(span.result)


def weight(situation: Situation, span: Span) -> int:
    """What a result weighs as it is shown."""
    return situation.view.weight(*span.result) if span.result is not None else 0


def groups(situation: Situation, by: Literal["turn", "step"]) -> dict[int, list[At]]:
    """The shown blocks by human turn, or by reply with its results (0: what came before the first), in order."""
    found: dict[int, list[At]] = {}
    for row in situation.view.rows():
        facts = situation.index.entries[row.entry]
        number = facts.turn if by == "turn" else facts.step
        found.setdefault(number, []).extend((row.entry, block) for block in row.blocks)
    return found


def steps(situation: Situation) -> dict[int, list[At]]:
    """The shown blocks of each reply with its results."""
    return {number: places for number, places in groups(situation, "step").items() if number}
