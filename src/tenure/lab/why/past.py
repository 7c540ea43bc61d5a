"""What happened in a conversation, from a replay or from a store of our own."""

from bisect import bisect_left
from collections.abc import Sequence

from msgspec import Struct, structs

from tenure.apis.rules import rules_for
from tenure.engine.lifecycle.budget import USUAL, Budget
from tenure.engine.lifecycle.session import Session
from tenure.engine.meter.tokens import Tokenizer, weigh
from tenure.engine.policies.policy import Policy
from tenure.engine.record.entry import Entry, Role
from tenure.engine.record.index import Index
from tenure.engine.record.recall import media_in
from tenure.engine.view.edit import Commit, edits_v1_to_v2
from tenure.engine.view.guard import Hold
from tenure.errors import InputError
from tenure.lab.bill import Watched, accounted
from tenure.lab.events import CallLine, CommitLine, HarmLine, ReplayLine, fields_in
from tenure.lab.harm.watch import RecordWatch
from tenure.lab.loading import load
from tenure.lab.replay import Options, replay
from tenure.lab.source import SessionSource, session_for
from tenure.store.records import Conversation, Records
from tenure.store.soundness import whole_record


class Past(Struct, frozen=True, kw_only=True):
    """A conversation to its end: its entries, its commits, and what its later steps needed of what had left."""

    entries: Sequence[Entry]
    commits: tuple[Commit, ...]
    needs: tuple[HarmLine, ...]
    budget: Budget
    policy: Policy | None
    model: str = ""
    tenant: str = ""
    holds: tuple[Hold, ...] = ()
    ratios: tuple[float, ...] = ()  # at each call, provider tokens to one of o200k; empty: as the commits say
    head: int = 0  # o200k tokens of system prompt and tools before every view, as far as they are known
    simulated: bool  # a replay, and not what happened


class Moment(Struct, frozen=True, kw_only=True):
    """A conversation as it stood before a call, or at its end."""

    session: Session
    call: int  # that comes next, from 0
    calls: int  # of the whole conversation
    past: Past

    @property
    def is_end(self) -> bool:
        """Whether no recorded call comes after it."""
        return self.call == self.calls


def replayed(sources: Sequence[SessionSource], options: Options, tokenizer: Tokenizer) -> Past:
    """The past that a session would have had under a policy and a budget. Raises InputError when it cannot be read."""
    lines: list[Watched] = [
        line
        for line in accounted(replay(sources, options, tokenizer))
        if isinstance(line, ReplayLine | CommitLine | CallLine | HarmLine)
    ]
    header = lines[0]
    assert isinstance(header, ReplayLine)
    model = header.model
    return Past(
        entries=_weighed(load(sources, tokenizer).entries, model, tokenizer),
        commits=tuple(
            Commit(**fields_in(line, Commit, n=line.commit, edits=edits_v1_to_v2(line.edits)))
            for line in lines
            if isinstance(line, CommitLine)
        ),
        needs=tuple(line for line in lines if isinstance(line, HarmLine)),
        budget=options.budget,
        policy=options.policy,
        model=model,
        ratios=tuple(line.ratio for line in lines if isinstance(line, CallLine)),
        head=header.head_tokens,
        simulated=True,
    )


def kept(store: Records, conversation: Conversation, policy: Policy | None, budget: Budget | None = None) -> Past:
    """What a store has of a conversation: its own commits. `policy` is whose opinion is asked."""
    entries = tuple(whole_record(store, conversation))
    commits = store.commits(conversation.id)
    watch = RecordWatch()
    watch.take(entries, commits)
    return Past(
        entries=entries,
        commits=commits,
        needs=tuple(watch.needs),
        budget=budget or Budget.stored(conversation.budget, otherwise=USUAL),
        policy=policy,
        model=conversation.model,
        tenant=conversation.tenant,
        holds=store.holds(conversation.id),
        simulated=False,
    )


def moment(past: Past, tokenizer: Tokenizer, at_call: int | None = None) -> Moment:
    """A conversation before call `at_call`, counted from 0, or at its end. Raises InputError when it made no such call."""
    replies = [entry.n for entry in past.entries if entry.role is Role.ASSISTANT]
    if at_call is not None and not 0 <= at_call < len(replies):
        raise InputError(
            "--at-call", str(at_call), f"0 to {len(replies) - 1}" if replies else "nothing: the session made no call"
        )
    stop = len(past.entries) if at_call is None else replies[at_call]
    call = len(replies) if at_call is None else at_call
    read = past.entries.__getitem__
    session = session_for(past.model, tokenizer, budget=past.budget, policy=past.policy, tenant=past.tenant, read=read)
    waiting = [commit for commit in reversed(past.commits) if commit.entries <= stop]
    for entry in past.entries[:stop]:
        _carry_out(session, waiting, entry.n)
        session.follow(entry)
    _carry_out(session, waiting, stop)
    told = past.ratios[: call + 1] or tuple(commit.ratio for commit in session.commits)
    session.ratio = told[-1] if told else 1.0
    for hold in past.holds:
        try:
            session.hold(hold)
        except InputError:  # of something that comes later
            continue
    return Moment(session=session, call=call, calls=len(replies), past=past)


def call_of(index: Index, entry: int) -> int:
    """How many calls had been answered before a record entry was there. O(log calls)."""
    return bisect_left(index.steps, entry, key=lambda step: step.entry)


def _weighed(entries: Sequence[Entry], model: str, tokenizer: Tokenizer) -> tuple[Entry, ...]:
    """The entries as the replay weighed them: images and documents weigh what they do for the model whose prices it has."""
    media = rules_for("", model, "").media
    return tuple(
        structs.replace(entry, tokens=weigh(entry.blocks, tokenizer, media)) if any(map(media_in, entry.blocks)) else entry
        for entry in entries
    )


def _carry_out(session: Session, waiting: list[Commit], length: int) -> None:
    """The commits that were made when the record had so many entries."""
    while waiting and waiting[-1].entries <= length:
        session.commit(waiting.pop())
