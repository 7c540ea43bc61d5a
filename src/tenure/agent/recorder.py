"""What is said and done, taken into the record, and what came of it as events (an edge).

The one place of the agent that changes a `Context`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tenure.agent import events
from tenure.agent.events import Event, Outcome
from tenure.agent.spending import SessionSpend
from tenure.agent.tools.output import Output
from tenure.agent.tools.tool import ToolLimits, ToolOutcome
from tenure.apis import APIS
from tenure.apis.json_text import dump
from tenure.apis.media import MediaSource
from tenure.apis.reply import ReplyCall, WholeReply
from tenure.context import Context
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.decision import Decision, Propose, Unmet
from tenure.engine.policies.policy import marks_of
from tenure.engine.record.entry import Block, Draft, Origin, Role, Spill, Text, ToolCall, ToolResult
from tenure.engine.record.entry import Media as MediaBlock
from tenure.engine.record.episodes import EpisodeType
from tenure.engine.record.index import NONE
from tenure.engine.record.query import Query
from tenure.engine.record.tools import DELIMITER, RECALL, is_delimiter
from tenure.engine.view.edit import Moment

LF: Final = "\n"
VIRTUAL: Final = frozenset({"delimiter", "recall", "notes"})  # which the conversation answers itself


class FinishedCall(Struct, frozen=True, kw_only=True):
    """A call with what came of it, to be recorded. `message` is the result in the dialect's shape."""

    made: ReplyCall
    message: Mapping[str, Any]
    text: str
    outcome: Outcome = "done"
    media: tuple[MediaSource, ...] = ()  # that the message could not carry
    spill: Spill | None = None  # where the text is not the whole output
    pictures: int = 0  # images and documents in all
    seconds: float = 0.0


class Recorder:
    """Takes in one conversation. Mutable: it knows what it has said before."""

    def __init__(
        self, context: Context, dialect: str, decisions: list[Decision], *, annotate: bool, delegated: Callable[[], SessionSpend]
    ) -> None:
        """`annotate` offers the tool `delimiter`; `delegated` gives what sub-agents used; the context adds what it decides to `decisions`."""
        self._annotate = annotate
        self.context, self._api = context, APIS[dialect]
        self._delegated, self._decisions = delegated, decisions
        self.is_task_over = False  # the newest reply ended an act, and no episode is open
        self.unmet = False  # nothing more could leave, the last time it was looked at
        self.cached_share = 0.0  # of the newest prompt what the provider read from its cache, 0 to 1

    # --- What comes in

    def system(self, text: str) -> None:
        """The prompt, as the record's first entry: so it is the same when the session goes on in a year."""
        self.context.extend([self._api.system(text)])

    def human(self, text: str, images: Sequence[MediaSource] = ()) -> int:
        """What a person says; its entry."""
        words = [self._api.text(text)] if text.strip() else []  # an empty part is refused
        self.context.extend([self._api.user([*words, *map(self._api.medium, images)] if images else text)])
        return self.length - 1

    def host(self, text: str) -> None:
        """Words of this program that become a part of the past."""
        self.context.extend([Draft(role=Role.USER, blocks=(Text(text=text, origin=Origin.HARNESS),))])

    def reply(self, whole: WholeReply, seconds: float) -> Iterator[Event]:
        """A complete reply."""
        before = self.context.ledger.total
        self.context.append(whole.reply)
        after = self.context.ledger.total
        usage = whole.usage
        if usage is not None and usage.prompt:
            self.cached_share = usage.cache_read / usage.prompt
        spent = after.usd - before.usd if after.unpriced == before.unpriced and usage is not None else None
        yield events.Replied(
            entry=self.length - 1,
            text=whole.text,
            calls=len(whole.calls),
            stop=whole.stop,
            usage=usage,
            usd=spent,
            seconds=seconds,
        )
        yield from self._episodes(self.length - 1)
        yield self.gauged()

    def results(self, done: Sequence[FinishedCall]) -> Iterator[Event]:
        """Results of calls, in their order, in one transaction."""
        first = self.length
        self.context.extend(self._messages(done))
        session = self.context.session
        index = session.index
        blocks = ((n, number) for n in range(first, self.length) for number in range(len(index.entries[n].blocks)))
        for each, at in zip(done, (at for at in blocks if index.block(at).kind == "tool_result"), strict=True):
            facts = index.block(at)
            span = index.spans[facts.span] if facts.span != NONE else None
            yield events.CallDone(
                call=each.made.call_id,
                tool=each.made.tool,
                text=each.text,
                outcome=each.outcome,
                handle=index.handle(span.object, span.call[0]) if span is not None else "",
                tokens=facts.tokens,
                shown=session.view.weight(*at),
                media=each.pictures,
                seconds=each.seconds,
            )
            recalled = index.recalls.get(facts.span)
            if recalled is not None and span is not None and not span.error:
                yield events.Recalled(objects=recalled.sources, tokens=facts.tokens)
        self._tidy(each.made for each in done)
        yield self.gauged()

    def part(self, call: str) -> Path | None:
        """Where the output of a call of the newest reply goes while it runs."""
        return self.context.store.spills.part(self.context.conversation, self.context.session.index.reply, call)

    def unended(self, made: ReplyCall, text: str) -> ToolOutcome:
        """What came of a call that was cut off: what it had said until then, and a text that says so."""
        part = self.part(made.call_id)
        try:
            output = Output.left_in(part, ToolLimits().output_bytes) if part is not None and part.is_file() else None
        except OSError as error:
            return ToolOutcome(
                text=f"{text}\n[what it had said is in {part}, which cannot be read: {error.strerror or error}]", error=True
            )
        if output is None or not output.bytes:
            return ToolOutcome(text=text, error=True)
        said = output.text()
        return ToolOutcome(text=f"{said}{LF * (not said.endswith(LF))}{text}", error=True, spill=output.spill)

    def _tidy(self, made: Iterable[ReplyCall]) -> None:
        """Remove the files of calls whose results are recorded."""
        for part in filter(None, (self.part(each.call_id) for each in made)):
            with suppress(OSError):
                part.unlink(missing_ok=True)

    @property
    def unanswered(self) -> tuple[ReplyCall, ...]:
        """The calls of the newest reply that have no result."""
        index = self.context.session.index
        return tuple(self._call_at(span.call) for span in index.spans_in(index.reply, len(index)) if span.result is None)

    def unresolved(self, made: Sequence[ReplyCall], text: str) -> None:
        """Give calls a result that says why there is none."""
        if made:
            self.context.extend(self._messages([self.outcome(each, self.unended(each, text)) for each in made]))
            self._tidy(made)

    def cut_off(self, said: str, why: str) -> Iterator[Event]:
        """A turn was aborted: what the model had said stays, and an open episode is closed in its name."""
        episode = self.context.session.index.graph.open
        words: tuple[Block, ...] = (Text(text=said, origin=Origin.MODEL),) if said.strip() else ()
        if episode is None:
            if words:
                self.context.extend([Draft(role=Role.ASSISTANT, blocks=words)])
            return
        found = f"{why}, before it was done; it had looked at {self._looked_at(episode.start[0])}"
        given = {"action": "end"} | ({"description": found} if episode.type == "expl" else {})
        call_id = f"closed_{self.length}"
        call = ToolCall(call_id=call_id, name=DELIMITER, arguments=dump(given))
        self.context.extend([Draft(role=Role.ASSISTANT, blocks=(*words, call))])
        n = self.length - 1
        told = self.context.call({"id": call_id})
        if told is not None:
            self.context.extend(self._api.results([told]))
        self.close_loop(why)
        yield from (
            replace(event, aborted=True) if isinstance(event, events.EpisodeEnded) else event for event in self._episodes(n)
        )
        yield self.gauged()

    def bring_back(self, query: Query) -> Iterator[Event]:
        """A recall on the person's word, at the record's end: the call as the model would have made it, its answer, and by whom it was wanted."""
        made = self.call_by_hand(RECALL, {name: value for name, value in msgspec.structs.asdict(query).items() if value})
        yield events.CallStarted(call=made.call_id, tool=RECALL, summary=f"{RECALL} {query.handle}", arguments=made.arguments)
        yield from self.results([self.virtual(made)])
        self.close_loop("recalled on the user's word")

    def call_by_hand(self, tool: str, arguments: Mapping[str, Any]) -> ReplyCall:
        """A call that the person makes, recorded as if the model had made it."""
        made = ReplyCall(call_id=f"by_hand_{self.length}", tool=tool, arguments=dump(arguments))
        self.context.extend([Draft(role=Role.ASSISTANT, blocks=(_call(made),))])
        return made

    # --- What goes out

    def request(self, *, tools: Iterable[Mapping[str, Any]], fields: Mapping[str, Any], notes: str) -> bytes:
        """The body of the next request; what left before it, `decided` tells."""
        return self.context.wire(tools=tools, notes=notes, annotate=self._annotate, **fields)

    def settle(self, moment: Moment) -> None:
        """Decide at a safe boundary, where what waits may pay; what left, `decided` tells."""
        self.context.settle(moment)

    def bound(self, budget: Budget) -> None:
        """Keep to a budget as the model's window allows it. The record keeps the budget that the session was given."""
        session = self.context.session
        if session.setup.budget != budget:
            session.setup = replace(session.setup, budget=budget)

    def decided(self) -> Iterator[Event]:
        """What was decided since, as far as anything came of it."""
        waiting = self._decisions.copy()
        self._decisions.clear()
        for decision in waiting:
            is_unmet = isinstance(decision, Unmet)
            proposal = decision.proposal if is_unmet else decision
            if isinstance(proposal, Propose):
                yield _committed(proposal)
                yield self.gauged()
            if is_unmet and not self.unmet:
                held = dict(decision.held_by)
                yield events.LimitUnmet(text=str(decision), tokens=decision.tokens, limit=decision.limit, held_by=held)
            self.unmet = is_unmet

    @property
    def length(self) -> int:
        """Entries in the record."""
        return self.context.session.length

    def gauged(self) -> events.Gauged:
        """How full the window is, and what the session cost so far, sub-agents included, as far as prices are known."""
        gauge, total, delegated = self.context.gauge, self.context.ledger.total, self._delegated()
        return events.Gauged(
            tokens=gauge.tokens,
            limit=gauge.limit,
            window=gauge.of_window.limit,
            severity=gauge.severity,
            estimated=gauge.estimated,
            cached_share=self.cached_share,
            usd=total.usd + delegated.usd,
            unpriced=total.unpriced + delegated.unpriced,
        )

    @property
    def evicts(self) -> bool:
        """Whether room is made without anybody's doing: there is a policy, and it could keep the limit so far."""
        return self.context.session.setup.policy is not None and not self.unmet

    @property
    def has_marks(self) -> bool:
        """Whether the agent marks episodes, and the policy reads the marks."""
        return self._annotate and bool(marks_of(self.context.session.setup.policy))

    # --- Results

    def virtual(self, made: ReplyCall) -> FinishedCall:
        """The conversation's own answer to a call."""
        told = self.context.call({"id": made.call_id})
        if told is None:
            return self.outcome(made, ToolOutcome(text=f"{made.tool}: not offered in this session", error=True))
        text = self._api.text_of(told)
        is_error = bool(told.get("is_error")) or text.startswith(("delimiter refused", "recall:"))
        return FinishedCall(made=made, message=told, text=text, outcome="error" if is_error else "done")

    def outcome(self, made: ReplyCall, came: ToolOutcome, *, outcome: Outcome = "done", seconds: float = 0.0) -> FinishedCall:
        """What a tool answered, in the dialect's shape. Media that a result cannot carry here are said behind it."""
        carried = [each for each in came.media if self._api.carries(each)]
        said = "error" if came.error and outcome == "done" else outcome
        return FinishedCall(
            made=made,
            message=self._api.result(_call(made), came.text, error=came.error, media=carried),
            text=came.text,
            outcome=said,
            media=tuple(each for each in came.media if each not in carried),
            spill=came.spill,
            pictures=len(came.media),
            seconds=seconds,
        )

    def noted(self, done: FinishedCall, note: str) -> FinishedCall:
        """A result with a note of this program behind it."""
        return replace(done, message=self._api.with_text(done.message, note), text=done.text + note)

    def _messages(self, done: Sequence[FinishedCall]) -> list[Any]:
        messages: list[Any] = self._api.results([each.message for each in done])
        if not any(each.spill or each.media for each in done):
            return messages
        beside = [(each, image) for each in done for image in each.media]
        named = ((self._api.text(f"[what {each.made.tool} showed:]"), self._api.medium(image)) for each, image in beside)
        content = [part for pair in named for part in pair]
        drafts = list(self._api.parse([*messages, *([self._api.user(content)] if content else [])]))
        if content:
            drafts[-1] = replace(drafts[-1], blocks=tuple(map(_of_host, drafts[-1].blocks)))
        spills = {each.made.call_id: each.spill for each in done if each.spill}
        return [replace(draft, blocks=tuple(_with_spill(block, spills) for block in draft.blocks)) for draft in drafts]

    def _call_at(self, at: tuple[int, int]) -> ReplyCall:
        block = self.context.store.entry(self.context.conversation, at[0]).blocks[at[1]]
        assert isinstance(block, ToolCall)
        return ReplyCall(call_id=block.call_id, tool=block.name, arguments=block.arguments)

    def close_loop(self, why: str) -> None:
        """End a loop of calls: no provider takes a person's words behind a call that the model did not think about, unless it is ended."""
        words = Text(text=f"({why[:1].upper()}{why[1:]}.)", origin=Origin.MODEL)
        self.context.extend([Draft(role=Role.ASSISTANT, blocks=(words,))])

    # --- Episodes

    def _episodes(self, n: int) -> Iterator[Event]:
        """What the delimiters of entry `n` began and ended, in their order."""
        index = self.context.session.index
        self.is_task_over = False
        if not any(is_delimiter(span.tool) for span in index.spans_in(n, n + 1)):
            return
        found: list[tuple[int, Event]] = []
        for episode in reversed(index.episodes):
            if not episode.declared:
                continue
            if episode.end is not None and episode.end[0] == n:
                ended = events.EpisodeEnded(name=episode.name, type=episode.type, description=episode.description)
                found.append((episode.end[1], ended))
                self.is_task_over |= episode.type == EpisodeType.ACT and index.graph.open is None
            if episode.start[0] == n:
                names = tuple(index.episodes[each].name for each in episode.dependencies)
                found.append((episode.start[1], events.EpisodeStarted(name=episode.name, type=episode.type, dependencies=names)))
            elif episode.start[0] < n:
                break
        yield from (event for _, event in sorted(found, key=lambda pair: pair[0]))

    def _looked_at(self, start: int) -> str:
        """What the calls from an entry on were about, in a line."""
        index = self.context.session.index
        cues = list(
            dict.fromkeys(span.cue for span in index.spans_in(start, len(index)) if span.cue and not is_delimiter(span.tool))
        )
        return ", ".join(cues[:8]) + (f" and {len(cues) - 8} more" if len(cues) > 8 else "") or "nothing yet"


def _committed(proposal: Propose) -> events.Committed:
    commit = proposal.commit
    return events.Committed(
        n=commit.n,
        policy=commit.policy,
        reason=commit.reason,
        account=str(proposal),
        left=tuple(events.ObjectLeft(action=act.kind, object=act.object, level=act.level) for act in commit.actions),
        tokens_before=commit.tokens_before,
        tokens_after=commit.tokens_after,
        forced=commit.forced,
        gain_usd=None if commit.price is None else commit.price.gain_usd,
    )


def _call(made: ReplyCall) -> ToolCall:
    return ToolCall(call_id=made.call_id, name=made.tool, arguments=made.arguments)


def _of_host(block: Block) -> Block:
    """A block that this program put beside results, and no person."""
    return replace(block, origin=Origin.HARNESS) if isinstance(block, Text | MediaBlock) else block


def _with_spill(block: Block, spills: Mapping[str, Spill]) -> Block:
    """A result with where the rest of its output is."""
    return replace(block, spill=spills[block.call_id]) if isinstance(block, ToolResult) and block.call_id in spills else block
