"""Replaying a recorded session under a budget.

A recorded session has a call for every assistant message. The replay takes its messages in one by one, lets the engine decide before each
call as it would have live, and yields what happened as REPLAY.md's lines. No model is asked but those that are handed in, and nothing is
written.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, assert_never

from msgspec import UNSET, Struct, UnsetType, convert, structs
from msgspec.json import encode

from tenure.apis.rules import rules_for
from tenure.engine.clip.setting import Clip
from tenure.engine.lifecycle.automatic import Threshold
from tenure.engine.lifecycle.budget import Budget, GateRule
from tenure.engine.lifecycle.decision import Propose, Stay, Unmet
from tenure.engine.lifecycle.fit import shortens
from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.meter.media import media_tokens
from tenure.engine.meter.price import Prices, prices_for
from tenure.engine.meter.tokens import FRAMING, Tokenizer, weigh
from tenure.engine.planners.selfgc.plan import RefusedTarget
from tenure.engine.planners.selfgc.setting import OURS, SelfGc
from tenure.engine.policies.cwl import Cwl
from tenure.engine.policies.offer import delimiter_offer
from tenure.engine.policies.policy import Planned, Policy
from tenure.engine.record.chain import neutral_payload
from tenure.engine.record.entry import Block, Draft, Entry, Media, Role, ToolCall, ToolResult, Usage
from tenure.engine.record.index import NONE, kind_of
from tenure.engine.view.action import Action, Shorten, Take
from tenure.engine.view.edit import Commit, Drop, Replace, edits_v2_to_v1
from tenure.engine.view.laws import never_larger, protection, structural, touched
from tenure.engine.view.project import View, shared_prefix
from tenure.engine.view.rules import Rules
from tenure.lab import events as line_of
from tenure.lab.events import HeadTokens, Line, fields_in
from tenure.lab.helping import Helped, Helping
from tenure.lab.kinds import kind_at, stayed_by_kind
from tenure.lab.recorded import Recorded, learned_head
from tenure.lab.sent import SentWindow
from tenure.lab.source import DEFAULT_MODEL, Reading, SessionSource, settings_of
from tenure.logs.pi_weights import weigh_like_pi
from tenure.logs.reader import Event, Rewritten, Skipped, SubAgent

if TYPE_CHECKING:  # wanted only by those who hand in a model
    from tenure.models.question import Model


class Options(Struct, frozen=True, kw_only=True):
    """How to replay. `learn`: the provider's tokens per o200k token are learned from the usage that the log reports.

    A `planner` is asked what may leave (Self-GC) and a `summariser` for briefs whenever a live conversation would ask them.
    """

    budget: Budget
    policy: Policy | None
    model: str = ""  # empty: as the log says
    head: int | HeadTokens | None = 0  # o200k tokens of system prompt and tools; None: what the log's own reports reveal
    clip: Clip | None = None  # how large results are admitted; None: whole, as the recorded agent saw them
    gate: GateRule = GateRule.PRICED
    cache_life: str = ""  # that the requests ask for, such as "1h"; empty: as the log says, else the provider's default
    learn: bool = True
    ratio: float | None = None  # provider tokens per o200k token, where it is known beforehand; None: 1 until more is learned
    like_pi: bool = False  # weigh messages as pi-cwl does: UTF-16 units / 4, rounded up; nothing is learned then
    planner: "Model | None" = None
    summariser: "Model | None" = None
    selfgc: SelfGc = OURS  # how its plans are asked for and carried out
    handoff_at: Threshold | None = None  # when history is handed off; None: as live, at 85 % of the window
    settings: dict[str, str | int | float | bool | None] = {}
    faithful: bool = False  # the policy is a peer's, and protection is waived for it; what it touched of it is counted apart


def replay(sources: Iterable[SessionSource], options: Options, tokenizer: Tokenizer) -> Iterator[Line]:
    """What happens when the sources run one after another in one conversation. Raises InputError when a source cannot be read at all."""
    readings = [Reading(source, number) for number, source in enumerate(sources)]
    named = options.model or next((m for reading in readings if (m := reading.model)), "")
    life = options.cache_life or next((reading.cache_life for reading in readings if reading.cache_life), "")
    tenant = readings[0].source.tenant() if readings else ""
    head = _head(readings, options, named or DEFAULT_MODEL, tokenizer)
    if any(reading.source.is_marked for reading in readings):
        head = structs.replace(head, tokens=head.tokens + _delimiter_tokens(options.policy, tokenizer))
    run = _ReplayRun(options, head, named or DEFAULT_MODEL, life, tokenizer, tenant)
    yield run.header(tuple(reading.file for reading in readings), model_known=bool(named))
    for reading in readings:
        run.begin_source()
        for event in reading.events:
            yield from run.take(event, reading.number)
    yield run.summary(_recoverable(readings, run.evicted, run.session.length))


def beside(agent: SubAgent) -> str:
    """Why a sub-agent's messages are not in the conversation, and how to get at them."""
    return f"sub-agent {agent.id!r}: {agent.messages} messages, a conversation of its own (replay SESSION#{agent.id})"


def _head(readings: list[Reading], options: Options, model: str, tokenizer: Tokenizer) -> HeadTokens:
    """The head that was given, else what the reports reveal; where messages are weighed as pi-cwl does, reports tell nothing."""
    match options.head:
        case HeadTokens():
            return options.head
        case int():
            return HeadTokens(tokens=options.head, origin="given")
        case None if options.like_pi or not options.learn:
            return HeadTokens()
        case None:
            return learned_head((reading.source.events()[1] for reading in readings), model, tokenizer)


def _delimiter_tokens(policy: Policy | None, count: Tokenizer) -> int:
    """What the tool weighs as an agent is offered it; under a policy that reads no marks, as `cwl` offers it."""
    offer = delimiter_offer(policy) or delimiter_offer(Cwl())
    assert offer is not None
    return sum(map(count, (offer.name, offer.description, encode(offer.schema).decode())))


class _Pending(Struct, frozen=True, kw_only=True):
    """A model's plan that waits in the session, and the turns of a person when it was made."""

    plan: Planned
    turns: int


class _ReplayRun:
    """One replay in progress. Mutable; yields lines."""

    def __init__(
        self, options: Options, head: HeadTokens, model: str, cache_life: str, tokenizer: Tokenizer, tenant: str
    ) -> None:
        self.options, self.head, self.model, self._cache_life = options, head, model, cache_life
        self.rules: Rules = rules_for("", model, "")
        self.prices: Prices = prices_for(model, life=cache_life)
        self._tokenizer = tokenizer
        setup = Setup(
            budget=options.budget,
            rules=self.rules,
            prices=self.prices,
            policy=options.policy,
            gate=options.gate,
            selfgc=options.selfgc,
            clip=options.clip,
            tenant=tenant,
            faithful=options.faithful,
        )
        weigher = weigh_like_pi if options.like_pi else partial(weigh, tokenizer=tokenizer, media=self.rules.media)
        self._texts: dict[int, Entry] = {}  # of the entries that are in the view; with helpers of all, as a store has them
        self.session = Session(setup, weigh=weigher, count=tokenizer, read=self._texts.__getitem__)
        self._ratio = options.ratio or head.ratio  # 0: learned call by call
        self.session.ratio = self._ratio or self.session.ratio
        self.recorded = Recorded(self.session.index, tokenizer)
        self._helping = Helping(
            self.session,
            planner=options.planner,
            summariser=options.summariser,
            handoff_at=options.handoff_at,
            read=self._texts.__getitem__,
            count=tokenizer,
        )
        self._pending: _Pending | None = None
        self._helpers_usd = 0.0
        self.evicted: dict[int, str] = {}  # entry -> payload hash, of entries of which something left
        self._sent, self._uncapped = (SentWindow(self.prices, one_model=bool(options.model)) for _ in range(2))
        self._protected: dict[tuple[int, int], str] = {}
        self._hashes: list[str] = []
        self._calls = 0
        self._skipped = 0
        self._unmet = 0
        self._peak = 0
        self._violations: list[str] = []
        self._waived: Counter[str] = Counter()
        self._left: dict[str, int] = {}

    def header(self, sources: tuple[line_of.SourceFile, ...], *, model_known: bool) -> line_of.ReplayLine:
        """The first line."""
        options = self.options
        helpers = {
            role: str(getattr(model, "name", "") or "a function")
            for role, model in (("planner", options.planner), ("summariser", options.summariser))
            if model is not None
        }
        life = {"cache_life": self._cache_life} if self._cache_life else {}
        return line_of.ReplayLine(
            sources=sources,
            policy=options.policy.name if options.policy else "none",
            settings={"faithful": options.faithful, **helpers} | options.settings | settings_of(options.policy) | life,
            model=self.model,
            model_known=model_known,
            budget=line_of.BudgetLine.of(self.options.budget),
            tokenizer="utf16/4" if self.options.like_pi else "o200k_base",
            framing={"entry": 0 if self.options.like_pi else FRAMING},
            prices=convert(self.prices, line_of.PricesLine, from_attributes=True),
            rules={"thinking": self.rules.thinking, "provider": self.rules.provider, "dialect": self.rules.dialect},
            head_tokens=self.head.tokens,
            head=self.head,
        )

    def begin_source(self) -> None:
        """The next events come from another file; its reader counts its messages from 0."""
        self.recorded.begin_source(self.session.length)
        self._sent.begin_source()
        self._uncapped.begin_source()

    def take(self, event: Event, source: int) -> Iterator[Line]:
        """One event of a reader."""
        match event:
            case Draft(role=Role.ASSISTANT):
                yield from self._before_call(event)
                yield self._call(event)
                yield from self._append(event, source)
            case Draft():
                yield from self._append(event, source)
            case Rewritten():
                yield from self._rewritten(event)
            case Skipped():
                self._skipped += 1
                yield line_of.SkippedLine(source=source, line=event.line, bytes=event.bytes, reason=event.reason)
            case SubAgent():
                self._skipped += 1
                yield line_of.SkippedLine(source=source, line=event.line, bytes=event.bytes, reason=beside(event))
            case _:
                assert_never(event)

    def summary(self, recoverable_share: float) -> line_of.SummaryLine:
        """The last line."""
        return line_of.SummaryLine(
            calls=self._calls,
            commits=len(self.session.commits),
            usd=self._sent.usd,
            usd_uncapped=self._uncapped.usd,
            peak_view_tokens=self._peak,
            violations=tuple(self._violations),
            entries=self.session.length,
            record_tokens=self.session.index.tokens,
            skipped=self._skipped,
            unmet=self._unmet,
            stayed_by_kind=stayed_by_kind(self.session),
            evicted_tokens=sum(self._left.values()),
            evicted_by_kind=dict(sorted(self._left.items(), key=lambda item: -item[1])),
            recoverable_share=recoverable_share,
            prefix_reuse=self._sent.reuse,
            prefix_reuse_uncapped=self._uncapped.reuse,
            prompt_tokens=self._sent.prompt,
            prompt_tokens_uncapped=self._uncapped.prompt,
            helpers_usd=self._helpers_usd,
            waived=dict(self._waived.most_common()),
        )

    def _append(self, draft: Draft, source: int) -> Iterator[Line]:
        placed = self.session.append(draft)
        for entry in placed.entries:
            self.recorded.append(entry)
            self._texts[entry.n] = entry
            self._hashes.append(entry.sha256)
            yield self._entry(entry, source)
        for commit in placed.commits:
            self._count_left(commit, at_birth=True)
            yield self._committed(commit)

    def _before_call(self, draft: Draft) -> Iterator[Line]:
        for helped in self._helping.due(extra=self.head.tokens, at=draft.at):
            yield from self._planned(helped)
        yield from self._decided(draft)
        yield from self._overdue()

    def _planned(self, helped: Helped) -> Iterator[Line]:
        """What a model answered, carried out, kept for later or dropped."""
        self._helpers_usd += helped.usd
        decision = helped.decision
        taken = isinstance(decision, Propose) or (isinstance(decision, Stay) and decision.price is not None)
        if taken and helped.who == "selfgc" and self._pending is not None:
            yield self._plan(self._pending.plan.name, "dropped", "overtaken by the next plan")
            self._pending = None
        match decision:
            case Propose():
                yield from self._commit(decision, helped)
            case Stay():
                waiting = self.session.waiting if decision.price is not None else None
                if waiting is not None:
                    self._pending = _Pending(plan=waiting, turns=len(self.session.index.turns))
                yield self._plan(helped.who, "dropped" if waiting is None else "pending", decision.reason, helped=helped)
            case Unmet():  # of a limit; no answer of a model is one
                raise AssertionError(decision)
            case _:
                assert_never(decision)

    def _overdue(self) -> Iterator[Line]:
        """A plan that waited and does not any more, though nothing came of it."""
        if self._pending is None or self.session.waiting is not None:
            return
        late = len(self.session.index.turns) - self._pending.turns > 1
        why = "forgotten at the second turn of a person after it was made" if late else "nothing of it may leave any more"
        yield self._plan(self._pending.plan.name, "dropped", why)
        self._pending = None

    def _plan(
        self, policy: str, outcome: line_of.Outcome, reason: str, *, commit: int | None = None, helped: Helped | None = None
    ) -> line_of.PlanLine:
        return line_of.PlanLine(
            before_call=self._calls,
            policy=policy,
            outcome=outcome,
            commit=commit,
            reason=reason,
            refused=tuple(map(_refusal, helped.refused)) if helped is not None else (),
            asked=helped is not None,
            usd=helped.usd if helped is not None else 0.0,
            assumed=helped is not None and helped.assumed,
        )

    def _decided(self, draft: Draft) -> Iterator[Line]:
        decision = self.session.decide(extra=self.head.tokens, at=draft.at)
        match decision:
            case Stay(price=None):
                return
            case Stay():
                yield line_of.HoldLine(before_call=self._calls, reason=decision.reason, price=decision.price)
            case Propose():
                yield from self._commit(decision)
            case Unmet():
                if decision.proposal is not None:
                    yield from self._commit(decision.proposal)
                self._unmet += 1
                yield line_of.UnmetLine(
                    before_call=self._calls, view_tokens=decision.tokens, ceiling=decision.limit, held_by=decision.held_by
                )
            case _:
                assert_never(decision)

    def _commit(self, proposal: Propose, helped: Helped | None = None) -> Iterator[Line]:
        yield from self._protect()
        commit, guard, governed = proposal.commit, self.session.guard(), self.session.guard(governed=True)
        before, after = self._carry_out(commit)
        index = self.session.index
        if self.options.faithful:
            self._waived.update(why for _, why in touched(before, after, index, governed, self.rules))
        found = chain(
            protection(before, after, index, guard, self.rules),
            never_larger(before, after, commit),
            structural(after, index, self.rules),
        )
        self._violations += [f"commit {commit.n}: {wrong}" for wrong in found]
        yield from self._settled(commit)
        yield self._plan(commit.policy, "committed", commit.reason, commit=commit.n, helped=helped)
        yield self._committed(commit)

    def _settled(self, commit: Commit) -> Iterator[Line]:
        """A plan that waited and was to begin with when a limit was passed, but of which nothing is in the commit."""
        pending = self._pending
        if pending is None or pending.plan.name not in commit.policy.split("+"):
            return
        self._pending = None
        wanted = {_named(action, self.session) for action in pending.plan.actions}
        if not any((act.kind, act.object) in wanted for act in commit.actions):
            yield self._plan(pending.plan.name, "dropped", "nothing of it was left to leave when a limit was passed")

    def _carry_out(self, commit: Commit) -> tuple[View, View]:
        before = self.session.freeze()
        self._count_left(commit)
        self.session.commit(commit)
        after = self.session.freeze()
        if self.options.planner is None and self.options.summariser is None:
            for entry in [entry for entry in self._texts if not self._is_read(entry)]:
                del self._texts[entry]
        self._sent.keep(self.head.tokens + shared_prefix(before, after, self.session.index))
        return before, after

    def _is_read(self, entry: int) -> bool:
        """Whether a policy may read an entry: it is in the view, or a result of one of its calls is."""
        index, view = self.session.index, self.session.view
        results = (span.result for span in index.spans_in(entry, entry + 1))
        return view.row(entry) is not None or any(result is not None and view.shows(*result) for result in results)

    def _committed(self, commit: Commit) -> line_of.CommitLine:
        edits = edits_v2_to_v1(commit.edits)
        return line_of.CommitLine(**fields_in(commit, line_of.CommitLine, commit=commit.n, before_call=self._calls, edits=edits))

    def _protect(self) -> Iterator[Line]:
        """What is protected besides human text, as changes since it was last said. One pass over the view."""
        guard = self.session.guard()
        now: dict[tuple[int, int], str] = {}
        for row in self.session.view.rows():
            for block in row.blocks:
                why = guard.why_for_good((row.entry, block))
                if why is not None and why != "human":
                    now[row.entry, block] = why
        for at, what in self._protected.items():
            if now.get(at) != what:
                yield line_of.ProtectLine(op="remove", what=what, entry=at[0], block=at[1])
        for at, what in now.items():
            if self._protected.get(at) != what:
                yield line_of.ProtectLine(op="add", what=what, entry=at[0], block=at[1])
        self._protected = now

    def _call(self, answer: Draft) -> line_of.CallLine:
        session, head = self.session, self.head.tokens
        output = (
            answer.usage.output
            if answer.usage and answer.usage.output
            else sum(self._tokenizer(block.text) for block in answer.blocks)
        )
        tokens = head + session.view.tokens
        shared = self._sent.unbroken
        usage = self._sent.send(tokens, session.ratio, output, answer)
        self._uncapped.send(head + self.recorded.view.tokens, session.ratio, output, answer)
        self._peak = max(self._peak, tokens)
        made = line_of.CallLine(
            call=self._calls,
            at=answer.at,
            model=answer.model,
            entries=session.length,
            entry=session.length,
            head_tokens=head,
            ratio=session.ratio,
            view_tokens=tokens,
            record_tokens=session.index.tokens,
            shared_prefix_tokens=shared,
            **fields_in(usage, line_of.CallLine),
            usd=self.prices.cost_usd(usage),
            reported=convert(answer.usage, line_of.ReportedLine, from_attributes=True) if answer.usage else None,
        )
        self._calls += 1
        self._learn(answer)
        return made

    def _learn(self, answer: Draft) -> None:
        learns = self.options.learn and not self.options.like_pi
        if learns:
            self.recorded.learn(answer.usage)
        self.session.observe(at=answer.at, ratio=self._ratio or self.recorded.ratio.value)
        self._helping.reported(self._prompt(answer.usage if learns else None))

    def _prompt(self, usage: Usage | None) -> int:
        """Provider tokens of the request that was answered: as reported, less what has left of it here; counted where no report is.

        Live no history is handed off on an estimate, lest somebody at work be surprised. Nobody is at work in a replay, all of whose figures
        are simulated and say so; and a report is of the recorded agent's window, so what it says of ours is an estimate in any case.
        """
        session = self.session
        if usage is None or not usage.prompt:
            return int((session.view.tokens + self.head.tokens) * session.ratio)
        return usage.prompt - int((self.recorded.view.tokens - session.view.tokens) * session.ratio)

    def _rewritten(self, event: Rewritten) -> Iterator[Line]:
        """The recorded agent changed its own window: the same happens to the view, and to the window without us."""
        edits, window = self.recorded.edits(self.session.view, event), self.recorded.view
        was = window.freeze()
        if self.recorded.rewrite(event):
            self._uncapped.keep(self.head.tokens + shared_prefix(was, window.freeze(), self.session.index))
        if not edits:
            return
        before = self.session.view.tokens
        copy = self.session.view.copy()
        copy.apply(edits)
        commit = Commit(
            n=len(self.session.commits),
            entries=self.session.length,
            policy="recorded",
            moment="recorded",
            reason=event.reason,
            tokens_before=before,
            tokens_after=copy.tokens,
            ratio=self.session.ratio,
            edits=edits,
        )
        self._carry_out(commit)
        yield self._committed(commit)

    def _count_left(self, commit: Commit, *, at_birth: bool = False) -> None:
        """What a commit removes, by kind; called while the view still shows it, but of results that were never shown otherwise."""
        for edit in commit.edits:
            if not isinstance(edit, Drop | Replace):
                continue
            self.evicted[edit.entry] = self._hashes[edit.entry]
            kind = kind_at(self.session.index, (edit.entry, edit.block))
            stays = edit.tokens if isinstance(edit, Replace) else 0
            weight = (
                self.session.index.weights(edit.entry)[edit.block]
                if at_birth
                else self.session.view.weight(edit.entry, edit.block)
            )
            self._left[kind] = self._left.get(kind, 0) + weight - stays

    def _entry(self, entry: Entry, source: int) -> line_of.EntryLine:
        facts = self.session.index.entries[entry.n]
        blocks = tuple(self._block(block, (entry.n, number)) for number, block in enumerate(entry.blocks))
        own = {"entry": entry.n, "source": source, "role": str(entry.role), "turn": facts.turn, "blocks": blocks}
        return line_of.EntryLine(**fields_in(entry, line_of.EntryLine, **own))

    def _block(self, block: Block, at: tuple[int, int]) -> line_of.BlockLine:
        facts = self.session.index.block(at)
        return line_of.BlockLine(
            block=at[1],
            kind=kind_of(block),
            origin=str(block.origin),
            objects=tuple(self.session.index.objects_of(at)),
            tokens=facts.tokens,
            text=block.text,
            call_id=block.call_id if isinstance(block, ToolCall | ToolResult) else UNSET,
            name=self.session.index.spans[facts.span].tool if facts.span != NONE else UNSET,
            error=block.error if isinstance(block, ToolResult) else UNSET,
            signed=True if facts.signed else UNSET,
            media=self._media(block),
        )

    def _media(self, block: Block) -> line_of.MediaLine | UnsetType:
        items = (block,) if isinstance(block, Media) else block.media if isinstance(block, ToolResult) else ()
        if not items:
            return UNSET
        return line_of.MediaLine(
            sha256=items[0].sha256,
            tokens=sum(media_tokens(item, self.rules.media) for item in items),
            all=tuple(item.sha256 for item in items) if len(items) > 1 else UNSET,
        )


def _refusal(refused: RefusedTarget) -> dict[str, str]:
    told = {"object": refused.object, "why": refused.why}
    return told | {"action": refused.action} if refused.action else told


def _named(action: Action, session: Session) -> tuple[str, str]:
    """What a commit's account calls an action of a plan."""
    match action:
        case Take(how=how, object=object_):
            return how, object_
        case Shorten(how=how):
            return how, shortens(session.index, action)
        case _:
            return "", ""


def _recoverable(readings: list[Reading], evicted: dict[int, str], length: int) -> float:
    """Share of the entries of which something left whose bytes, read again from the source, have the hash they had."""
    drafts = (event for reading in readings for event in reading.source.events()[1] if isinstance(event, Draft))
    again = (
        sha256(draft.payload or neutral_payload(draft.blocks)).hexdigest() == evicted[number]
        for number, draft in enumerate(drafts)
        if number in evicted and number < length
    )
    return sum(again) / len(evicted) if evicted else 1.0
