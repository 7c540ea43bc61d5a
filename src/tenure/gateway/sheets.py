"""What the gateway's page shows of conversations, as values read from the store (an edge: it reads). Nothing here knows HTTP or HTML."""

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import accumulate
from threading import Lock
from typing import Final

from msgspec import Struct

from tenure.context import Context
from tenure.engine.lifecycle.terms import Terms
from tenure.engine.meter.gauge import Gauge
from tenure.engine.meter.ledger import Ledger, Savings
from tenure.engine.record.entry import Usage
from tenure.engine.record.index import Index, Span
from tenure.engine.record.tools import is_recall
from tenure.engine.view.edit import Commit, Insert
from tenure.engine.view.guard import Hold
from tenure.gateway.missed import Missed
from tenure.lab.events import HarmLine
from tenure.store.records import Conversation, Observed, Records

NEWEST: Final = 100  # conversations in the list
KEPT: Final = 256  # account books in memory
LIVE_S: Final = 300.0  # since its last reply, for which a conversation is shown as live
EXCERPT: Final = 400  # characters of a block in a difference


class SessionRow(Struct, frozen=True, kw_only=True):
    """A conversation in the list."""

    sheet: Conversation
    about: str  # its title, else the first words of its human
    heard: str  # when it last had a reply, ISO 8601 in UTC
    policy: str
    arm: str  # of a split by `holdout`; empty where there is none
    calls: int
    prompt: int  # provider tokens of all its prompts
    cached: float  # share of them
    usd: float
    unpriced: int
    recalls: int  # answers that brought something back
    missed: int  # needs of what had left, and was no longer in view
    saved: Savings
    is_compared: bool  # whether there is anything to compare: something left, or somebody was paid to say what might

    @property
    def net_usd(self) -> float:
        """What eviction saved, net of breaks, helpers and what was fetched again; 0 where nothing left."""
        return self.saved.net_usd if self.is_compared else 0.0


class SumRow(Struct, frozen=True, kw_only=True):
    """Conversations that have something in common."""

    name: str
    sessions: int
    calls: int
    prompt: int
    cached: float
    recalls: int
    missed: int
    usd: float
    net_usd: float


class CallBar(Struct, frozen=True, kw_only=True):
    """One call of a model, in provider tokens."""

    number: int  # from 0
    usage: Usage
    whole: int  # of its prompt, had nothing left
    commits: tuple[int, ...] = ()  # made just before it


class LeftRow(Struct, frozen=True, kw_only=True):
    """An object that is not shown whole."""

    handle: str
    object: str
    cue: str
    tokens: int  # o200k
    how: str
    commit: int


class RecallRow(Struct, frozen=True, kw_only=True):
    """A question of the agent's for what had left."""

    call: int
    cue: str
    tokens: int  # of the answer
    is_answered: bool


class ConversationSheet(Struct, frozen=True, kw_only=True):
    """Everything about one conversation."""

    row: SessionRow
    gauge: Gauge
    ledger: Ledger
    calls: tuple[CallBar, ...]
    commits: tuple[Commit, ...]
    before_call: tuple[int, ...]  # of each commit
    left: tuple[LeftRow, ...]
    recalls: tuple[RecallRow, ...]
    missed: tuple[HarmLine, ...]
    holds: tuple[Hold, ...]
    steps: int  # replies, of which each is a request


class BlockChange(Struct, frozen=True, kw_only=True):
    """A block that one request has and another has not, or not so."""

    sign: str  # +, - or ±
    where: str
    tokens: int
    text: str


class Sheets:
    """Reads a store for the page. Usable by several threads; what an account book cost to make up is remembered."""

    def __init__(
        self,
        store: Records,
        changed: Callable[[str], object] = lambda _conversation: None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`changed` is told of a conversation that was changed by hand, so that whoever has it in memory lets go of it."""
        self.store, self.now, self._changed = store, now, changed
        self.missed = Missed(store)
        self._books: OrderedDict[tuple[str, int, int, int], SessionRow] = OrderedDict()
        self._lock = Lock()

    def rows(self, tenant: str | None = None) -> list[SessionRow]:
        """The newest conversations of a tenant, or of all, the one that was heard of last first."""
        found = [self._row(sheet) for sheet in self.store.conversations(tenant)[:NEWEST] if sheet.length]
        return sorted(found, key=lambda row: row.heard, reverse=True)

    def sheet(self, conversation: str) -> ConversationSheet:
        """One conversation. Raises InputError when there is none."""
        context = self._open(conversation)
        session = context.session
        index, commits = session.index, tuple(session.commits)
        steps = [step.entry for step in index.steps]
        before = tuple(sum(entry < commit.entries for entry in steps) for commit in commits)
        return ConversationSheet(
            row=self._row(self.store.conversation(conversation)),
            gauge=context.gauge,
            ledger=context.ledger,
            calls=tuple(_bars(index, self.store.usages(conversation), before, session.ratio)),
            commits=commits,
            before_call=before,
            left=tuple(_left(context, commits)),
            recalls=tuple(_recalls(index)),
            missed=self.missed.of(conversation),
            holds=self.store.holds(conversation),
            steps=len(steps),
        )

    def changes(self, conversation: str, before: int, after: int) -> list[BlockChange]:
        """What the model saw at one call and not at another. Raises InputError for a call that there was not."""
        context = self._open(conversation)
        found, index = context.diff(before, after), context.session.index

        def block(sign: str, place: tuple[int, int]) -> BlockChange:
            n, at = place
            text = self._text(conversation, n, at)
            return BlockChange(sign=sign, where=f"entry:{n}/{at}", tokens=index.weights(n)[at], text=text[:EXCERPT])

        def insert(sign: str, edit: Insert) -> BlockChange:
            return BlockChange(sign=sign, where="in place of what left", tokens=edit.tokens, text=edit.text[:EXCERPT])

        return [
            *map(partial(block, "−"), found.gone),
            *map(partial(insert, "−"), found.removed),
            *map(partial(block, "±"), found.changed),
            *map(partial(insert, "+"), found.inserted),
            *map(partial(block, "+"), found.come),
        ]

    def pin(self, conversation: str, object_: str) -> None:
        """Keep an object in the view. Raises InputError for what is not there."""
        self._open(conversation).pin(object_)
        self._changed(conversation)

    def unpin(self, conversation: str, object_: str) -> None:
        """Let a pinned object go."""
        self._open(conversation).unpin(object_)
        self._changed(conversation)

    def restore(self, conversation: str, object_: str) -> None:
        """Show an object whole again where it stood. Raises InputError for what is not there."""
        self._open(conversation).restore(object_)
        self._changed(conversation)

    def undo(self, conversation: str, number: int) -> None:
        """Put back what a commit changed. Raises InputError for one that does not exist."""
        self._open(conversation).undo(number)
        self._changed(conversation)

    def _open(self, conversation: str) -> Context:
        self.store.conversation(conversation)  # which says so where there is none: nothing is begun here
        return Context(store=self.store, conversation=conversation)

    def _first_words(self, context: Context) -> str:
        """What the human said first, beside what harnesses put around it."""
        for turn in context.session.index.turns[:1]:
            n, at = turn.start
            words = self._text(context.conversation, n, at)
            return next((line.strip() for line in words.splitlines() if line.strip() and not line.lstrip().startswith("<")), "")
        return ""

    def _text(self, conversation: str, n: int, at: int) -> str:
        entry = next(iter(self.store.entries(conversation, n, n + 1)))
        block = entry.blocks[at]
        return str(getattr(block, "text", "") or getattr(block, "arguments", ""))

    def _row(self, sheet: Conversation) -> SessionRow:
        usages = self.store.usages(sheet.id)
        key = (sheet.id, sheet.length, sheet.commits, len(usages))
        with self._lock:
            if (row := self._books.get(key)) is not None:
                self._books.move_to_end(key)
                return row
        context = self._open(sheet.id)
        ledger, terms = context.ledger, Terms.stored(sheet.terms)
        total = ledger.total
        row = SessionRow(
            sheet=sheet,
            about=sheet.title or self._first_words(context),
            heard=max((each.at for each in usages), default="") or sheet.created,
            policy=terms.policy or "none",
            arm=terms.arm,
            calls=total.calls,
            prompt=total.usage.prompt,
            cached=total.usage.cache_read / total.usage.prompt if total.usage.prompt else 0.0,
            usd=total.usd,
            unpriced=total.unpriced,
            recalls=ledger.recalls.answers,
            missed=len(self.missed.of(sheet.id)),
            saved=ledger.savings,
            is_compared=bool(ledger.compared.calls) and (ledger.compared.touched or any(each.helps for each in ledger.accounts)),
        )
        with self._lock:
            self._books[key] = row
            while len(self._books) > KEPT:
                self._books.popitem(last=False)
        return row


# What conversations are added up by. The arm is that of a split, where some of them are left alone.
SUMS: Final[dict[str, Callable[[SessionRow], str]]] = {
    "tenant": lambda row: row.sheet.tenant or "no tenant",
    "model": lambda row: row.sheet.model or "unknown",
    "day": lambda row: row.sheet.created[:10],
    "policy": lambda row: row.policy,
    "arm": lambda row: row.arm or "no split",
}


def sums(rows: Iterable[SessionRow], of: Callable[[SessionRow], str]) -> list[SumRow]:
    """Conversations added up by what they have in common, the dearest first."""
    groups: dict[str, list[SessionRow]] = defaultdict(list)
    for row in rows:
        groups[of(row)].append(row)
    return sorted((_sum(name, group) for name, group in groups.items()), key=lambda each: -each.usd)


def _sum(name: str, rows: Sequence[SessionRow]) -> SumRow:
    prompt = sum(row.prompt for row in rows)
    return SumRow(
        name=name,
        sessions=len(rows),
        calls=sum(row.calls for row in rows),
        prompt=prompt,
        cached=sum(row.cached * row.prompt for row in rows) / prompt if prompt else 0.0,
        recalls=sum(row.recalls for row in rows),
        missed=sum(row.missed for row in rows),
        usd=sum(row.usd for row in rows),
        net_usd=sum(row.net_usd for row in rows),
    )


def is_live(row: SessionRow, now: datetime) -> bool:
    """Whether a conversation was heard of lately."""
    try:
        return (now - datetime.fromisoformat(row.heard)).total_seconds() < LIVE_S
    except (ValueError, TypeError):
        return False


def _bars(index: Index, usages: Sequence[Observed], before: Sequence[int], ratio: float) -> Iterator[CallBar]:
    """Each call that reported what it used."""
    weights = list(accumulate((sum(index.weights(n)) for n in range(len(index))), initial=0))
    numbers = {step.entry: number for number, step in enumerate(index.steps)}
    made: dict[int, list[int]] = defaultdict(list)
    for n, call in enumerate(before):
        made[call].append(n)
    shown_at: dict[int, int] = {}
    head: int | None = None
    for each in usages:
        number = numbers.get(each.n, -1)
        if number < 0:
            continue
        record = round(weights[min(each.n, len(weights) - 1)] * ratio)
        if head is None:  # what stands before every view, as the first report reveals it
            head = max(0, each.usage.prompt - record)
        shown_at[number] = each.usage.prompt
        yield CallBar(
            number=number, usage=each.usage, whole=max(each.usage.prompt, record + head), commits=tuple(made.pop(number, ()))
        )


def _left(context: Context, commits: Sequence[Commit]) -> Iterator[LeftRow]:
    """The tool calls whose results are not shown as they were."""
    view, index = context.session.view, context.session.index
    acts = {act.object: (commit, act.kind) for commit in commits for act in commit.actions}
    for span in index.spans:
        if span.result is None:
            continue
        n, at = span.result
        shows, instead = view.shows(n, at), view.instead(n, at)
        if shows and instead is None:
            continue
        commit, kind = acts.get(span.object, (None, "clip" if shows else "left"))
        yield LeftRow(
            handle=index.handle(span.object, span.call[0]),
            object=span.object,
            cue=span.cue,
            tokens=_tokens(index, span),
            how=kind if not shows or commit is not None else "clip",
            commit=commit.n if commit is not None else -1,
        )


def _recalls(index: Index) -> Iterator[RecallRow]:
    steps = [step.entry for step in index.steps]
    for span in index.spans:
        if is_recall(span.tool):
            yield RecallRow(
                call=sum(entry <= span.call[0] for entry in steps) - 1,
                cue=span.cue,
                tokens=index.block(span.result).tokens if span.result else 0,
                is_answered=span.result is not None and not span.error,
            )


def _tokens(index: Index, span: Span) -> int:
    return sum(index.block(each).tokens for each in span.blocks)
