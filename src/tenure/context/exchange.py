"""One request of a client and its reply: bytes in, bytes out (an edge: it reads and writes the store, and no network)."""

from collections.abc import Sequence
from logging import getLogger
from threading import RLock
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from tenure.apis.api import Api
from tenure.apis.bodies import ClientBody
from tenure.apis.client_chain import Link, chain, keys_of, start_of
from tenure.context.client_context import ClientContext
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.ledger import Ledger, Spent
from tenure.engine.policies import PolicyName
from tenure.engine.policies.policy import Policy
from tenure.engine.record.entry import Draft, ToolCall
from tenure.store.records import ClientLink

if TYPE_CHECKING:
    from tenure.apis.relay import ReplyRelay
    from tenure.context.histories import Histories

Mode = Literal["on", "shadow"]
LOG: Final = getLogger("tenure.histories")
_REFUSALS: Final = (400, 422)  # of a request that we changed: it may be our doing


class Management(Struct, frozen=True, kw_only=True):
    """How the conversations of clients are managed."""

    mode: Mode = "on"  # shadow: they are recorded, and nothing of any request is changed
    budget: Budget | None = None
    policy: PolicyName | Policy | Literal[""] | None = ""
    gate: Literal["", "priced", "bounded", "selfgc-paper"] = "bounded"
    clip: int | None = None
    rounds: int = 8  # requests for one of a client, at most
    live: int = 200  # conversations in memory, at most,
    live_bytes: int = 2**28  # and of their histories as clients send them; in memory each takes about five times its bytes
    inline_bytes: int = 64_000  # an unknown history whose messages are longer passes through while it is taken in
    holdout: float = 0.0  # share of clients' sessions, from 0 to 1, that is left unmanaged, to be compared with


class LedgerGrowth(Struct, frozen=True, kw_only=True):
    """A conversation's account book then and now, and how many commits were made between."""

    before: Ledger
    now: Ledger
    commits: int


class LiveConversation:
    """A conversation in memory. Mutable; `lock` is held by whoever uses its context."""

    def __init__(self, context: ClientContext) -> None:
        self.context, self.lock = context, RLock()
        self.waiting = 0  # exchanges that lead it, and whose reply is still to come
        self.links = set[str]()
        self.used = monotonic()
        self.bytes = 0  # of its history as the client sent it last
        self.refused = False  # the provider refused what we made of it, and took the client's own
        self._counted = context.ledger, len(context.session.commits)

    def growth(self) -> LedgerGrowth:
        """What its account book gained since this was asked last."""
        with self.lock:
            before, commits = self._counted
            self._counted = now, total = self.context.ledger, len(self.context.session.commits)
        return LedgerGrowth(before=before, now=now, commits=total - commits)


class ClientRequest(Struct, frozen=True, kw_only=True):
    """A client's request, read."""

    api: Api
    body: ClientBody
    fields: dict[str, Any]
    tenant: str
    provider: str
    model: str
    links: list[Link]
    life: str | None  # that its cache markers ask for
    hint: str  # the session as the client names it
    has_tools: bool
    offers: bool  # tools of ours may stand beside its own
    counts: bool  # it asks for its tokens only: the reply is none of a model's
    records: bool = False  # it is a history to be taken in, and is sent nowhere

    @property
    def end(self) -> str:
        """What the history is known by."""
        return self.links[-1].id if self.links else start_of(self.api, self.tenant)


class Exchange:
    """One request of a client and its reply. Mutable; sans-IO but for the store, and described at the head of this module."""

    def __init__(
        self,
        histories: "Histories",
        raw: bytes,
        request: ClientRequest | None = None,
        live: LiveConversation | None = None,
        n: int = 0,
        drafts: Sequence[Draft] = (),
        *,
        leads: bool = False,
        reason: str = "",
    ) -> None:
        self.reason = reason  # why the request passes through unmanaged; empty where it does not
        self.leads = leads  # its messages are recorded, and its reply will be
        self._histories, self._raw, self._request, self._live = histories, raw, request, live
        self._n: int = n
        self._drafts = drafts
        self._replies: list[bytes] = []  # of this exchange, as they came
        self.reply: Draft | None = None  # the newest of them, read
        self._is_open = leads
        self.body = raw  # to be sent upstream now
        self._hidden: frozenset[str] = frozenset()
        if live is not None:
            live.waiting += leads
            try:
                self._prepare()
            except BaseException:
                self.close()
                raise
        self._relay = self._new_relay() if live is not None else None

    @property
    def is_changed(self) -> bool:
        """Whether other bytes go upstream than the client's."""
        return self.body is not self._raw

    @property
    def conversation(self) -> str:
        """The conversation that it belongs to; empty where it belongs to none."""
        return self._live.context.conversation if self._live is not None else ""

    @property
    def context(self) -> ClientContext | None:
        """The conversation's context, for reading by whoever holds no other exchange of it."""
        return self._live.context if self._live is not None else None

    @property
    def newest(self) -> bytes:
        """The newest reply as it came; empty before there was one."""
        return self._replies[-1] if self._replies else b""

    @property
    def model(self) -> str:
        """Whom the client asks."""
        return self._request.model if self._request is not None else ""

    def growth(self) -> LedgerGrowth | None:
        """What its conversation's account book gained since this was asked last; None where it belongs to none."""
        return self._live.growth() if self._live is not None else None

    @property
    def is_over(self) -> bool:
        """Whether a streamed reply has ended, so that `end` is due; its last event comes from there, once it is recorded."""
        return self._relay is not None and self._relay.is_over

    def take(self, piece: bytes) -> bytes:
        """What the client gets for a piece of a streamed reply."""
        return piece if self._relay is None else self._relay.take(piece)

    def end(self) -> bytes | None:
        """What the client still has to get at the end of a stream; None: send `body` again, the reply to it goes on where this one ended."""
        if self._relay is None:
            return b""
        whole = self._relay.whole()
        if whole is not None and self._is_answered(whole.reply):
            self._relay.again()
            return None
        rest = self._relay.finish()
        seen = self._relay.seen()
        if whole is not None and seen is not None:
            self._link_reply(seen.reply)
        self._leave()
        return rest

    def whole(self, reply: bytes) -> bytes | None:
        """What the client gets for a whole reply; None: send `body` again."""
        if self._relay is None or self._request is None:
            return reply
        if self._is_answered(reply):
            return None
        shown = self._shown()
        self._link_reply(shown)
        self._leave()
        return shown

    def refused(self, status: int) -> bool:
        """Whether to send `body` again, which is the client's own now: the provider refused what we had made of it."""
        if status not in _REFUSALS or not self.is_changed or self._replies:
            return False
        if self._live is not None:
            self._live.refused = True
            LOG.warning("conversation %s: the provider refused a request that was changed (%d)", self.conversation, status)
        self.body, self._hidden = self._raw, frozenset[str]()
        self._relay = self._new_relay()
        return True

    def give_up(self) -> bytes:
        """What a client still has to get of a stream that cannot be followed any more; of a whole reply, what there is of it."""
        rest = b""
        try:
            if self._replies and self._relay is not None and not self._relay.rounds and self._relay.seen() is None:
                rest = self._shown()
            elif self._relay is not None:
                rest = self._relay.finish()
        finally:
            self._relay = None
            self.close()
        return rest

    def close(self) -> None:
        """Nothing more will come."""
        if self._is_open and self._live is not None:
            self._live.waiting -= 1
        self._is_open = False

    def _leave(self) -> None:
        """The reply is recorded: what is to leave before the next request can be decided while the client is at work."""
        leads = self._is_open
        self.close()
        if leads and self._request is not None and self._live is not None:
            self._histories.decide_later(self._request, self._live)

    def _new_relay(self) -> "ReplyRelay | None":
        request = self._request
        return None if request is None or request.counts else request.api.relay(self._hidden)

    def _prepare(self) -> None:
        """Make the body of the next request."""
        assert self._request is not None
        assert self._live is not None
        live, request, context = self._live, self._request, self._live.context
        if self._histories.management.mode == "shadow" or live.refused or request.records:
            return
        with live.lock:
            if self.leads:
                offer, later = request.has_tools and request.offers, self._histories.decides_later
                change = context.next_request(request.fields, request.life, offer=offer, only_forced=later)
            else:
                change = context.beside(
                    request.fields, request.life, self._n, self._drafts, offer=request.has_tools and request.offers
                )
        if change is not None:
            self.body = request.body.with_messages(change.messages, change.head)
            self._hidden = change.hidden

    def _is_answered(self, reply: bytes) -> bool:
        """Record a reply, and answer its calls of our tools; whether the model is to go on."""
        assert self._request is not None
        assert self._live is not None
        self._replies.append(reply)
        self.reply = draft = self._request.api.parse_reply(reply)
        calls = [block for block in draft.blocks if isinstance(block, ToolCall)]
        ours = [call for call in calls if call.name in self._hidden]
        self._histories.note_summary(self._request, self.conversation, draft)
        if ours and not self.leads:
            self._become_branch()
        with self._live.lock:
            context = self._live.context
            if not self.leads or self._n != context.session.length:
                self._note(draft)
                return False
            context.append(reply)
            if ours:
                context.answer(ours)
            self._n = context.session.length
            if not ours or len(ours) < len(calls) or len(self._replies) >= self._histories.management.rounds:
                return False
            self._prepare()
        return self.is_changed

    def _become_branch(self) -> None:
        """An aside whose reply calls our tools has to be recorded, to be answered."""
        assert self._request is not None
        assert self._live is not None
        live = self._histories.branch(self._request, self._live.context.conversation, self._n)
        with live.lock:
            self._histories.take_in(self._request, live, self._drafts)
            live.waiting += 1
        self._live, self.leads, self._is_open, self._n = live, True, True, live.context.session.length

    def _note(self, draft: Draft) -> None:
        """Enter what an aside cost."""
        if draft.usage is not None and self._live is not None:
            self._live.context.bill(Spent(model=draft.model, usage=draft.usage, at=self._histories.clock()))

    def _shown(self) -> bytes:
        """The whole reply as the client gets it."""
        assert self._request is not None
        return self._request.api.without_calls(self._replies, self._hidden) if self._hidden else self._replies[-1]

    def _link_reply(self, seen: bytes) -> None:
        """Link the client's history behind this reply to what stands behind it."""
        if not self.leads or self._request is None or self._live is None or not self._replies:
            return
        with self._live.lock:
            if self._n != self._live.context.session.length:
                return
            keys = keys_of(self._request.api.parse_reply(seen))
            start = self._request.end
            links = chain(start, [keys])
            end = links[-1].id if links else start
            self._histories.link(self._live, [ClientLink(id=end, conversation=self.conversation, n=self._n)])
