"""Summary compaction as agents do it, for comparison: near the limit all but the newest is replaced by a summary, at the price of a call.

No model is at hand. What a summary would say is bounded instead: from below by one that says nothing, from above by one that, beside a stand-in's
brief, lists as many names as its size allows.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

from msgspec import Struct, convert
from msgspec.structs import replace

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.cache import CachedCall, Charge, SimulatedCache, seconds_of
from tenure.engine.meter.price import Prices
from tenure.engine.meter.tokens import Tokenizer
from tenure.engine.planners.handoff import request as handoff
from tenure.engine.planners.handoff.brief import brief, parsed
from tenure.engine.planners.handoff.facts import facts_of
from tenure.engine.planners.handoff.sections import Refusal
from tenure.engine.planners.handoff.sections import read as read_brief
from tenure.engine.planners.handoff.transcript import OPENING
from tenure.engine.policies.policy import Conduct
from tenure.engine.policies.situation import Situation
from tenure.engine.record.entry import Entry, Origin, Role, Text, ToolCall
from tenure.engine.record.index import NONE
from tenure.engine.view.action import Take
from tenure.engine.view.edit import Insert
from tenure.lab.events import CallLine, CommitLine, Line, PlanLine, ReplayLine, SummaryLine
from tenure.lab.harm.names import AnchorForm, names_of
from tenure.lab.measured import AccumulatingRun
from tenure.lab.planner import briefed
from tenure.lab.protocols.accumulating import ConversationTask, run_of
from tenure.lab.protocols.runs import UNBOUNDED, USUAL, Conditions, limits, options
from tenure.lab.replay import replay

Says = Literal["nothing", "brief", "names"]

SUMMARY_TOKENS: Final = 3_000  # the 15 summaries that recorded agents of the open corpus wrote weigh 2,196 to 3,860
ASKED_TOKENS: Final = 1_000  # the words that ask for one
ROOM: Final = 100_000  # o200k tokens of a stand-in's question
NAMED: Final = "## Names, newest first"
_REST: Final = "## Remarks"
_FILLER: Final = "The work went on as it had been asked for, and what was found was taken into account where it mattered. "
_HANDLE: Final = re.compile(r"@[0-9a-f]{4,64}\b")  # a summary of other agents names none: nothing comes back from there
_TELLING: Final = frozenset({AnchorForm.PATH, AnchorForm.URL, AnchorForm.ID, AnchorForm.HASH})


class Compacting(Struct, frozen=True, kw_only=True):
    """When and how far a window is compacted, in o200k tokens, head included in the trigger."""

    trigger: int
    keep: int  # newest tokens that stay as they are
    says: Says = "brief"
    size: int = SUMMARY_TOKENS


# Where agents compact: a window of 200,000 tokens less a reserve of 33,000, keeping 20,000 (Claude Code's trigger, pi's tail); and the same at 80,000.
LATE: Final = Compacting(trigger=167_000, keep=20_000)
EARLY: Final = Compacting(trigger=80_000, keep=10_000)


class SummaryCompaction(Struct, frozen=True, kw_only=True):
    """The rule as a policy: one brief for all but the newest `keep` tokens, the words of people included, as agents do."""

    keep: int
    says: Says
    size: int
    name: str = "compaction"
    conduct: Conduct = Conduct(amount="all", naming="nothing")

    def __call__(self, situation: Situation, /) -> Iterator[Take]:
        """The one action, where there is anything to replace."""
        place = _cut(situation, self.keep)
        places = tuple((row.entry, block) for row in situation.view.rows() if row.entry < place for block in row.blocks)
        if places:
            summary = _summary(situation, place, self.says, self.size)
            yield Take(how="brief", object=f"entry:{place}", places=places, pointer=summary, before_entry=place, inserted=True)


def compacted(
    tasks: Sequence[ConversationTask], compacting: Compacting, tokenizer: Tokenizer, *, conditions: Conditions = USUAL
) -> AccumulatingRun:
    """One conversation under compaction, measured as any policy's. Raises InputError when a source cannot be read."""
    policy = SummaryCompaction(keep=compacting.keep, says=compacting.says, size=compacting.size)
    budget = Budget(ceiling=compacting.trigger, window=UNBOUNDED)
    how = options(policy, budget, replace(conditions, faithful=True))
    lines = charged(replay([task.as_source() for task in tasks], how, tokenizer))
    return run_of(lines, tasks, policy.name, limits(budget), conditions, variant=compacting.says)


def charged(lines: Iterable[Line]) -> Iterator[Line]:
    """A replay's lines with the price of every summary: a call that sends the whole window and the question, and writes the summary.

    It reads from the cache what the request before it left there, and keeps the head warm for the next.
    """
    cache = SimulatedCache(prices=Prices(uncached=0.0, write=0.0, read=0.0, output=0.0))
    head = sent = 0  # o200k tokens
    usd = helpers_usd = 0.0
    waiting: list[Line] = []  # since a compaction, until the time of the next call is known

    def send(call: CallLine, prompt: int, shared: int, output: int) -> Charge:
        nonlocal cache
        request = CachedCall(
            prompt_tokens=round(prompt * call.ratio),
            shared_prefix_tokens=round(shared * call.ratio),
            output=output,
            at=seconds_of(call.at),
        )
        charge, cache = cache.send(request)
        return charge

    for line in lines:
        match line:
            case ReplayLine():
                head = line.head_tokens
                cache = SimulatedCache(prices=convert(line.prices, Prices, from_attributes=True))
                yield line
            case CallLine():
                price = 0.0
                for commit in waiting:
                    if isinstance(commit, CommitLine) and (summary := _inserted(commit)):
                        prompt = head + commit.tokens_before + ASKED_TOKENS
                        price += send(line, prompt, sent, round(summary * line.ratio)).usd
                helpers_usd += price
                for each in waiting:
                    yield replace(each, asked=True, usd=price) if isinstance(each, PlanLine) else each
                waiting.clear()
                charge = send(line, line.view_tokens, line.shared_prefix_tokens, line.output)
                sent = line.view_tokens
                usd += charge.usd
                used = charge.usage
                yield replace(
                    line, uncached=used.uncached, cache_write=used.cache_write, cache_read=used.cache_read, usd=charge.usd
                )
            case SummaryLine():
                yield from waiting
                yield replace(line, usd=usd, helpers_usd=helpers_usd)
            case _ if waiting or isinstance(line, PlanLine):
                waiting.append(line)
            case _:
                yield line


def _inserted(commit: CommitLine) -> int:
    return sum(edit.tokens for edit in commit.edits if isinstance(edit, Insert))


def _cut(situation: Situation, keep: int) -> int:
    """The entry before which everything goes: the first message of the newest `keep` tokens that may open what stays; 0 when there is none.

    A reply with its results stays whole or goes whole. Of one that alone weighs more, the reply is where it is cut.
    """
    index = situation.index
    kept, earliest = 0, len(index)  # `earliest`: the oldest call of the results seen so far
    found = 0
    for row in reversed(list(situation.view.rows())):
        facts = index.entries[row.entry]
        for block in row.blocks:
            span = facts.blocks[block].span
            if span != NONE and facts.blocks[block].kind == "tool_result":
                earliest = min(earliest, index.spans[span].call[0])
        kept += row.tokens
        if kept > keep and found:
            break
        opens = facts.role is not Role.TOOL and not any(facts.blocks[block].kind == "tool_result" for block in row.blocks)
        if opens and earliest >= row.entry:
            found = row.entry
    return found


def _summary(situation: Situation, place: int, says: Says, size: int) -> str:
    """What stands for the entries before `place`, of `size` tokens or what the brief weighs."""
    if says == "nothing":
        return _filled(OPENING, size, situation)
    rows = [row.entry for row in situation.view.rows()]
    old = next((insert.text for insert in situation.view.inserts if insert.text.startswith(OPENING)), "")
    text = _HANDLE.sub("", _brief(situation, rows, place, old))
    if says == "names":
        text = _with_names(
            text, _named((situation.read(entry) for entry in reversed(rows) if entry < place), old), size, situation
        )
    return _filled(text, size, situation)


def _brief(situation: Situation, rows: Sequence[int], place: int, old: str) -> str:
    """The stand-in's brief of what goes, with the facts that code gathers; where it is refused, the facts alone."""
    read = situation.read
    gone = [read(entry) for entry in rows if entry < place]
    request = handoff.ask(gone, situation.index, room=ROOM, count=situation.count, previous=old)
    earlier = parsed(old)
    facts = facts_of(situation.index, map(read, rows), cut=place, earlier=earlier.facts if earlier else None)
    sections = read_brief(briefed(request.user), transcript=request.transcript) if request else None
    if sections is None or isinstance(sections, Refusal):
        return OPENING if earlier is None else brief(earlier.sections, facts)
    return brief(sections, facts)


def _named(newest_first: Iterable[Entry], old: str) -> Iterator[str]:
    """What the agent and people named there, newest first, then what the summary before listed."""
    for entry in newest_first:
        for block in reversed(entry.blocks):
            if isinstance(block, ToolCall) or (isinstance(block, Text) and block.origin in (Origin.MODEL, Origin.HUMAN)):
                yield from (anchor.text for anchor in names_of("", block.text) if anchor.form in _TELLING)
    yield from old.partition(f"{NAMED}\n")[2].split("\n\n")[0].split("\n")


def _with_names(text: str, names: Iterable[str], size: int, situation: Situation) -> str:
    room = size - situation.count(text) - situation.count(NAMED)
    listed: list[str] = []
    for name in dict.fromkeys(filter(None, names)):
        room -= situation.count(name) + 1
        if room < 0:
            break
        listed.append(name)
    return "\n\n".join([text, "\n".join([NAMED, *listed])]) if listed else text


def _filled(text: str, size: int, situation: Situation) -> str:
    """The text with words that name nothing, up to `size` tokens."""
    words = (size - situation.count(f"{text}\n\n{_REST}\n")) // situation.count(_FILLER)
    return f"{text}\n\n{_REST}\n{_FILLER * words}".rstrip() if words > 0 else text
