"""Baselines and the published rules of other tools, for comparison, each with its source.

They run governed: human text, the prologue, the tail and holds stay, calls leave with their results. Where a rule says itself how much
goes, the loop does not stop it at a target (`Conduct.amount`). What they clear can be recalled like everything else; their own placeholders do
not say so, which is part of what is compared.

`tenure replay --faithful` (`Setup.faithful`) lets them run as they were published: human text, prologue, tail and holds may go too. What stays
is the system prompt, the message a request opens with, what the model has not answered yet, pairs, and reasoning with what it led to. Such
a run says so, and counts the protected blocks it changed; comparisons use the governed one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Literal

from msgspec import Struct

from tenure.engine.clip.cut import cut
from tenure.engine.meter.figures import first_line
from tenure.engine.policies.policy import Conduct
from tenure.engine.policies.situation import Situation
from tenure.engine.record.entry import At, Origin, ToolResult
from tenure.engine.record.index import NONE, Span
from tenure.engine.record.objects import tool_name
from tenure.engine.record.quotation import in_quotes
from tenure.engine.record.tools import ToolKind
from tenure.engine.view.action import Action, Shorten, Take

MASK: Final = "[output masked]"
_BOUNDARY: Final = 40  # o200k tokens that a mask keeps at each end
_WORDS: Final = 240  # characters of what a folded turn ended with
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


class Peer(Struct, frozen=True):
    """A rule of others as a policy."""

    name: str
    rule: Callable[[Situation], Iterator[Action]]
    conduct: Conduct = AS_PUBLISHED

    @property
    def settings(self) -> dict[str, Any]:
        """What the rule goes by."""
        rule: Any = self.rule
        return {**(getattr(rule, "func", rule).__kwdefaults__ or {}), **getattr(rule, "keywords", {})}

    def __call__(self, situation: Situation, /) -> Iterator[Action]:
        """What the rule yields, oldest first."""
        return self.rule(situation)


def tool_prune(situation: Situation) -> Iterator[Action]:
    """Tool outputs go under pressure, oldest first, each with its call.

    Self-GC paper, Baselines: "greedily removes tool outputs under token pressure".
    """
    return _pruned(span for span in results(situation) if is_free(situation, span))


def oldest_turn(situation: Situation) -> Iterator[Action]:
    """The oldest conversational spans are folded, the latest user turn stays.

    Self-GC paper, Baselines: "chronologically folds the oldest conversational spans while preserving the latest user turn". A fold "leaves a
    compact recovery pointer" (Actions), which keeps "high-level narrative" (Failure analysis): here the last words of the turn's agent.
    """
    turns = groups(situation, "turn")
    newest = max(turns, default=0)
    for number, places in turns.items():
        if 0 < number < newest:
            yield _folded(situation, number, places)
        elif number < newest:
            yield Take(how="prune", object="entry:0", places=tuple(places))


def tool_mask_prune(situation: Situation) -> Iterator[Action]:
    """Tool spans of low signal are masked first, then tool outputs go.

    Self-GC paper, Baselines: "first masks low-signal tool spans and then prunes remaining tool outputs". What is of low signal the paper leaves
    open: here the enumerable output of searches and listings (CWL paper, section 4.4: bulk). "Mask keeps structural boundary hints while eliding
    repetitive or low-signal middle content" (Actions): its beginning and end stay.
    """
    for span in results(situation):
        if span.kind is ToolKind.BULK and is_free(situation, span):
            yield from _masked(situation, span)
    yield from tool_prune(situation)


def hybrid(situation: Situation) -> Iterator[Action]:
    """The oldest turns are folded, then tool outputs go.

    Self-GC paper, Baselines: "combines chronological turn folding with tool-output pruning", in this order; with the outputs first no turn would
    ever be folded before all outputs are gone.
    """
    yield from oldest_turn(situation)
    yield from tool_prune(situation)


def sliding_window(situation: Situation) -> Iterator[Action]:
    """The oldest exchanges go until the rest fits, as in most chat frameworks (LangChain `trim_messages`, Strands).

    The system prompt stays; cut between exchanges, so that no result is left without its call.
    """
    return _without(steps(situation).items())


def observation_masking(situation: Situation, *, window: int = 10) -> Iterator[Action]:
    """All but the newest `window` observations are replaced by a line, reasoning and actions stay.

    "The Complexity Trap: Simple Observation Masking Is as Efficient as LLM Summarization for Agent Context Management" (arXiv 2508.21433):
    a rolling window of the newest M = 10 observations.
    """
    every = results(situation)
    for span in every[: max(0, len(every) - window)]:
        if is_free(situation, span) and span.result is not None:
            block = situation.read(span.result[0]).blocks[span.result[1]]
            lines = block.text.count("\n") + 1 if isinstance(block, ToolResult) else 0
            yield Shorten(span=span.ordinal, how="mask", text=f"Previous {lines} lines omitted for brevity.")


def discard(situation: Situation, *, share: float = 0.75) -> Iterator[Action]:
    """The oldest `share` (0 to 1) of the tool calls leave with their results: three quarters (discard-75 %), or all (discard-all).

    DeepSeek-V3.2 report, context management of the search agent: "Discard-75%" drops the first 75 % of the tool call history, "Discard-all"
    resets the context by dropping all of it, when usage passes a large share of the window.
    """
    every = results(situation)
    return _pruned(span for span in every[: int(len(every) * share)] if is_free(situation, span))


def clear_tool_uses(
    situation: Situation,
    *,
    trigger: int = 100_000,
    keep: int = 3,
    at_least: int = 0,
    exclude: frozenset[str] = frozenset(),
    placeholder: str = "[Tool result cleared to save context]",
) -> Iterator[Action]:
    """All but the newest `keep` results are cleared, as Anthropic's API and LangChain do it; none below the trigger or where it saves too little.

    Anthropic, context editing, strategy clear_tool_uses_20250919 (beta context-management-2025-06-27): trigger 100,000 input tokens, keep 3,
    clear_at_least none, exclude_tools, clear_tool_inputs false. LangChain's ClearToolUsesEdit has the same numbers and "[cleared]".

    `trigger` and `at_least` in o200k tokens of the view.
    """
    if situation.view.tokens < trigger:
        return
    every = results(situation)
    old = every[: max(0, len(every) - keep)]
    chosen = [span for span in old if tool_name(span.tool) not in exclude and is_free(situation, span)]
    if sum(weight(situation, span) for span in chosen) >= at_least:
        yield from _cleared(chosen, placeholder)


def opencode_prune(situation: Situation, *, protect: int = 40_000, minimum: int = 20_000, turns: int = 2) -> Iterator[Action]:
    """Outputs of tools older than the newest 40,000 tokens of them are cleared, when that saves 20,000.

    anomalyco/opencode, packages/opencode/src/session/compaction.ts: walks backwards, skips the newest two user turns, protects PRUNE_PROTECT
    tokens of tool output, clears the rest if more than PRUNE_MINIMUM would go; the output of the skill tool never.

    Sizes in o200k tokens; OpenCode's own are characters / 4.
    """
    newest = situation.index.turns[-turns:]
    stop = newest[0].start[0] if len(newest) == turns else 0
    seen, chosen = 0, list[Span]()
    for span in reversed(results(situation)):
        if span.call[0] >= stop or tool_name(span.tool) in PROTECTED_TOOLS:
            continue
        seen += weight(situation, span)
        if seen > protect and is_free(situation, span):
            chosen.append(span)
    if sum(weight(situation, span) for span in chosen) > minimum:
        yield from _cleared(chosen[::-1], CLEARED)


def cline(situation: Situation, *, enough: float = 0.3, keeps: tuple[float, float] = (0.5, 0.25)) -> Iterator[Action]:
    """Duplicate file reads go first; if they save `enough` of the view, nothing else; else half of the messages, or three quarters.

    cline/cline, src/core/context/context-management/ContextManager.ts: messages 0 and 1 always stay; `getNextTruncationRange` keeps about half
    of the remaining pairs, or a quarter where half would still be too large: `keeps`. "Escaping Context Amnesia" has them as 75 % and 50 %, which is
    `cline-75-50`; of a file that was read several times the latest read stays here
    as there, the others point to it.
    """
    reads = [span for span in results(situation) if tool_name(span.tool) in READS and span.cue]
    latest = {span.cue: span for span in reads}
    duplicates = [span for span in reads if latest[span.cue] is not span and is_free(situation, span)]
    for span in duplicates:
        yield Shorten(span=span.ordinal, how="dedupe", text=DUPLICATE)
    saved = sum(weight(situation, span) for span in duplicates)
    if saved >= enough * situation.view.tokens:
        return
    older = list(steps(situation).items())[FIRST_STEPS:]
    keeps_half = (situation.view.tokens - saved) // 2 <= situation.limit
    yield from _without(older[: int(len(older) * (1 - keeps[0 if keeps_half else 1]))])


PEERS: Final[Mapping[str, Peer]] = MappingProxyType(
    {
        peer.name: peer
        for peer in (
            Peer("oldest-turn", oldest_turn, UNDER_PRESSURE),
            Peer("tool-prune", tool_prune, UNDER_PRESSURE),
            Peer("tool-mask-prune", tool_mask_prune, UNDER_PRESSURE),
            Peer("hybrid", hybrid, UNDER_PRESSURE),
            Peer("observation-masking", observation_masking),
            Peer("sliding-window", sliding_window, UNDER_PRESSURE),
            Peer("opencode-prune", opencode_prune),
            Peer("cline", cline),
            Peer("cline-75-50", partial(cline, keeps=(0.75, 0.5))),
            Peer("clear-tool-uses", clear_tool_uses),
            Peer("langchain-clearing", partial(clear_tool_uses, placeholder="[cleared]")),
            Peer("discard-75", discard),
            Peer("discard-all", partial(discard, share=1.0)),
        )
    }
)


def _pruned(spans: Iterable[Span]) -> Iterator[Action]:
    return (Take(how="prune", object=span.object, places=span.blocks) for span in spans)


def _folded(situation: Situation, number: int, places: list[At]) -> Take:
    """A turn behind a pointer that says how it ended."""
    index = situation.index
    handle = index.handle(f"user:{number}", index.turns[number - 1].start[0])
    free = [at for at in places if situation.is_free(at)]
    entry = free[0][0] if free else places[-1][0]
    while entry < len(index) and not index.entries[entry].at_rest:
        entry += 1
    spoken = [at for at in free if index.block(at).kind == "text" and index.block(at).origin is Origin.MODEL]
    words = (
        first_line(situation.read(spoken[-1][0]).blocks[spoken[-1][1]].text, _WORDS) if spoken else "its calls and their results"
    )
    tokens = sum(situation.view.weight(*at) for at in free)
    pointer = f"[folded: {handle}, {tokens:,} tokens: {in_quotes(words)} · recall brings it back]"
    return Take(how="fold", object=f"user:{number}", places=tuple(places), pointer=pointer, before_entry=entry, routes=(handle,))


def _masked(situation: Situation, span: Span) -> Iterator[Shorten]:
    """A result with its beginning and its end; none where there is no middle."""
    assert span.result is not None
    block = situation.read(span.result[0]).blocks[span.result[1]]
    start, end, left_out = cut(block.text, _BOUNDARY, _BOUNDARY, situation.count)
    if left_out:
        yield Shorten(span=span.ordinal, how="mask", text=f"{start}\n{MASK}\n{end}")


def _without(steps: Iterable[tuple[int, list[At]]]) -> Iterator[Action]:
    return (Take(how="prune", object=f"step:{number}", places=tuple(places)) for number, places in steps)


def _cleared(spans: Iterable[Span], text: str) -> Iterator[Action]:
    return (Shorten(span=span.ordinal, how="clear", text=text) for span in spans)


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
    places: dict[int, list[At]] = {}
    for row in situation.view.rows():
        facts = situation.index.entries[row.entry]
        number = facts.turn if by == "turn" else facts.step
        places.setdefault(number, []).extend((row.entry, block) for block in row.blocks)
    return places


def steps(situation: Situation) -> dict[int, list[At]]:
    """The shown blocks of each reply with its results."""
    return {number: places for number, places in groups(situation, "step").items() if number}
