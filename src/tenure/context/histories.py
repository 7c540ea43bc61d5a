"""Clients that send their whole history with each request: which conversation one is of (an edge: it reads and writes the store, and no network).

The gateway and the wrappers of SDK clients are built on this. It is synchronous and knows no transport; whoever uses it moves the bytes.

    histories = Histories(store, Management(budget=Budget(target=80_000)))
    exchange = histories.exchange(api, body, tenant="team-a")      # `api` as `tenure.apis.endpoint_of(path, query)` tells
    while True:
        response = send(exchange.body)                             # the client's own bytes, where nothing is to be changed
        if response.status != 200 and exchange.refused(response.status):
            continue                                               # what we had changed was refused: the client's own bytes go out
        for piece in response.pieces:                              # a stream: server-sent events, in pieces of any size
            client.write(exchange.take(piece))                     # until `is_over`: the last event comes from `end`, once it is recorded
        rest = exchange.end()                                      # a whole reply instead: rest = exchange.whole(response.content)
        if rest is not None:                                       # None: the model called a tool of ours, and `body` is the next request
            client.write(rest)
            break
    exchange.close()                                               # always, also when anything failed

Errors of the provider go to the client as they are. `exchange` raises InputError for what cannot be read, StoreError and others where the store fails: send the
client's own bytes then, and relay the reply. After an exception of `take`, `end` or `whole`, `give_up()` is what the client still has to get.

**Identity.** A client's history is known by a hash chain over its blocks in canonical form (`tenure.apis.client_chain`); places in it are linked to (conversation, number of
entries) in memory and in the store, so that a restart and other replicas find them. The longest linked prefix counts. What follows decides:

- nothing else was recorded behind it: the request leads. Its messages are recorded, what leaves is decided, and its reply will be recorded.
- something else was, and the request brings replies of the model's that are not in the record: it is a branch, a fork from there on.
- something else was, and it brings none: an aside (a title, a side question, a retry, a count). It is answered behind the view as far as it
  is shared, and leaves no trace; if it goes on, it becomes a branch then.
- a history that cannot be found begins a conversation; where it quotes a summary that the model wrote for an earlier one it begins a segment, whose
  `recall` reaches that one. A long one passes through while it is taken in in the background.

Conversations may be used by several threads: an exchange locks its own while it is made and while its reply is recorded, not between.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from time import monotonic
from typing import Final, cast
from uuid import uuid4

from tenure.apis import DialectName
from tenure.apis.api import Api
from tenure.apis.bodies import read_body
from tenure.apis.client_chain import KnownChains, Link, keys_of, start_of
from tenure.context.client_context import OURS, ClientContext
from tenure.context.exchange import LOG, ClientRequest, Exchange, LiveConversation, Management
from tenure.engine.lifecycle.terms import Terms
from tenure.engine.record.entry import Draft, Role, Text, ToolCall, ToolResult
from tenure.engine.record.index import NONE
from tenure.engine.view.piece import Piece
from tenure.errors import Conflict, TenureError
from tenure.store.records import ClientLink, Conversation, Now, Records, utc_now
from tenure.store.soundness import encoded

SUMMARY_CHARS: Final = 400  # of a reply that may be a summary of what came before
_QUOTED: Final = 3  # lines of a summary that are looked for,
_LINE_CHARS: Final = 40  # each of at least so many characters
_TAKEN_IN: Final = "it is being taken in"


class Histories:
    """Finds the conversations of clients. Usable by several threads."""

    def __init__(
        self,
        store: Records,
        management: Management | None = None,
        *,
        clock: Now = utc_now,
        background: Callable[[Callable[[], None]], object] | None = None,
    ) -> None:
        """`background` runs a task later in another thread: what leaves without being forced is decided there, once a reply is recorded.

        Without it that happens before the next request, and long histories are taken in at once.
        """
        self.store, self.management = store, management or Management()
        self.clock, self._background = clock, background
        self._known = KnownChains()
        self._lock = Lock()
        self._live: OrderedDict[str, LiveConversation] = OrderedDict()
        self._links: dict[str, tuple[str, int]] = {}  # those of what is live
        self._adopting = set[str]()
        self._summaries: deque[tuple[str, str, tuple[str, ...]]] = deque(maxlen=64)  # tenant, conversation, lines

    @property
    def live(self) -> int:
        """How many conversations are in memory."""
        return len(self._live)

    def exchange(
        self,
        api: Api,
        raw: bytes,
        *,
        tenant: str = "",
        provider: str = "",
        model: str = "",
        counts: bool = False,
        aside: bool = False,
        hint: str = "",
        offers: bool = True,
        records: bool = False,
    ) -> "Exchange":
        """What becomes of a client's request. Raises InputError for what cannot be read.

        `counts`: it asks for its tokens only; `aside`: it is known to be none that leads; `hint` is what the client calls its session.
        Without `offers` its tools are only weighed, and none of ours stand beside them. `records`: it is a history to be taken in, and is sent nowhere.
        """
        body = read_body(raw, api.body_key)
        fields = body.values()
        if reason := api.unmanaged(fields):
            return Exchange(self, raw, reason=reason)
        with self._lock:
            links = self._known.links(api, start_of(api, tenant), body.messages)
        request = ClientRequest(
            api=api,
            body=body,
            fields=fields,
            tenant=tenant,
            provider=provider,
            model=model or str(fields.get("model") or ""),
            links=links,
            life=api.life_asked(fields, body.messages),
            hint=hint or api.session_of(fields),
            has_tools=api.has_tools(fields, body.messages),
            offers=offers,
            counts=counts,
            records=records,
        )
        for _ in range(3):
            try:
                return self._exchange(request, aside=aside or counts)
            except Conflict:  # another process was first: look again
                self.forget(self._found(request)[1])
            except TenureError:  # perhaps it was deleted: not held against the next request
                self.forget(self._found(request)[1])
                raise
        return Exchange(self, raw, reason="other processes write to its conversation")

    @property
    def decides_later(self) -> bool:
        """Whether what no limit forces is decided behind a reply, so that no request waits for it."""
        return self._background is not None

    def decide_later(self, request: ClientRequest, live: LiveConversation) -> None:
        """Decide what leaves before the next request, unless that comes first."""
        if self._background is None or self.management.mode != "on" or live.refused:
            return

        def decide() -> None:
            try:
                with live.lock:
                    if not live.waiting:
                        live.context.decide(request.fields, offer=request.has_tools and request.offers)
            except TenureError:  # such as another process that was first: the next request finds out what holds
                self.forget(live.context.conversation)
            except Exception:
                LOG.exception("conversation %s: what leaves could not be decided", live.context.conversation)

        self._background(decide)

    def forget(self, conversation: str) -> None:
        """Let go of a conversation that was deleted from the store."""
        with self._lock:
            self._drop(conversation)

    def tidy(self) -> None:
        """Let go of conversations that nobody waits for, the longest unused first, until as many are left as may be, by number and bytes; the store has them."""
        most, most_bytes = self.management.live, self.management.live_bytes
        with self._lock:
            count, size = len(self._live), sum(live.bytes for live in self._live.values())
            for name, live in [*self._live.items()][:-1]:  # the one used last is in use
                if count <= most and size <= most_bytes:
                    return
                if not live.waiting:
                    count, size = count - 1, size - live.bytes
                    self._drop(name)

    def tidy_idle(self, idle_s: float) -> None:
        """Let go of conversations that were not used for so long."""
        with self._lock:
            since = monotonic() - idle_s
            for name in [name for name, live in self._live.items() if not live.waiting and live.used < since]:
                self._drop(name)

    # --- Which conversation

    def _exchange(self, request: ClientRequest, *, aside: bool) -> "Exchange":
        if request.links and request.links[0].id in self._adopting and not request.records:  # its first commit may take long
            return Exchange(self, request.body.raw, reason=_TAKEN_IN)
        n, name, drafts = self._found(request)
        replies = any(draft.role is Role.ASSISTANT for draft in drafts)
        if not name:
            return self._begin(request, drafts, replies=replies, aside=aside)
        live = self._opened(request, name)
        with live.lock:
            if n > live.context.session.length:
                live.context.catch_up()
            n, drafts = self._echoed(live, n, drafts)
            replies = any(draft.role is Role.ASSISTANT for draft in drafts)
            length = live.context.session.length
            if not aside and n == length and not (live.waiting and drafts):
                return self._lead(request, live, drafts)
            if not replies and (source := self._summarised(request, drafts)):
                return self._lead(request, self._new(request, source), self._drafts(request, None))
            if aside or not (replies or (request.records and drafts)):
                return Exchange(self, request.body.raw, request, live, n, drafts, leads=False)
        return self._lead(request, self.branch(request, name, n), drafts)

    def _begin(self, request: ClientRequest, drafts: Sequence[Draft], *, replies: bool, aside: bool) -> "Exchange":
        """A history that cannot be found."""
        if aside or not drafts:
            return Exchange(self, request.body.raw, reason="an aside of no conversation")
        if not (replies or request.has_tools or request.records or self._summarised(request, drafts)):
            return Exchange(self, request.body.raw, reason="a question without tools or history")
        if (
            self._background is not None
            and not request.records
            and sum(map(len, request.body.messages)) > self.management.inline_bytes
        ):
            self._adopt_later(request, drafts)
            return Exchange(self, request.body.raw, reason=_TAKEN_IN)
        return self._lead(request, self._new(request, self._summarised(request, drafts)), drafts)

    def _adopt_later(self, request: ClientRequest, drafts: Sequence[Draft]) -> None:
        key = request.links[0].id
        with self._lock:
            if key in self._adopting or self._background is None:
                return
            self._adopting.add(key)

        def adopt() -> None:
            try:
                live = self._new(request, self._summarised(request, drafts))
                with live.lock:
                    self.take_in(request, live, drafts)
                    if self.management.mode == "on":  # the first commit of a long history takes longest
                        live.context.decide(request.fields, offer=request.has_tools)
            except Exception:
                LOG.exception("a history of %d bytes could not be taken in", len(request.body.raw))
            finally:
                with self._lock:
                    self._adopting.discard(key)

        self._background(adopt)

    def _found(self, request: ClientRequest) -> tuple[int, str, Sequence[Draft]]:
        """The longest prefix that is known: how many entries of which conversation stand behind it, and what the client has behind it."""
        ids = [link.id for link in request.links]
        with self._lock:
            at = next((n for n in range(len(ids) - 1, -1, -1) if ids[n] in self._links), -1)
            name, n = self._links[ids[at]][:2] if at >= 0 else ("", 0)
        drafts = self._drafts(request, request.links[at] if at >= 0 else None)
        if at < 0 or any(draft.role is Role.ASSISTANT for draft in drafts):  # another process may know more
            kept = {link.id: link for link in self.store.links(ids[at + 1 :])}
            found = next((n for n in range(len(ids) - 1, at, -1) if ids[n] in kept), -1)
            if found >= 0:
                link = kept[ids[found]]
                return link.n, link.conversation, self._drafts(request, request.links[found])
        return n, name, drafts

    def _drafts(self, request: ClientRequest, after: Link | None) -> tuple[Draft, ...]:
        """What the client's history has behind a place in it."""
        api, messages = request.api, request.body.messages
        start = 0 if after is None else after.message + 1
        drafts = api.parse([api.unmarked(message) for message in messages[start:]])
        if after is None or after.whole:
            return drafts
        (whole,) = api.parse([api.unmarked(messages[after.message])])
        places = tuple(range(after.blocks, len(whole.blocks)))
        piece = Piece(
            role=whole.role,
            blocks=tuple(whole.blocks[place] for place in places),
            dialect=whole.dialect,
            payload=whole.payload,
            kept=places,
            edited=True,
        )
        return (*api.parse(api.render((piece,))), *drafts)

    def _echoed(self, live: LiveConversation, n: int, drafts: Sequence[Draft]) -> tuple[int, Sequence[Draft]]:
        """The place behind the newest reply, where the first draft is that reply as the client tells it: in other words, with the same calls by id.

        A client that leaves out words of the model's, or puts them otherwise, is not another conversation.
        """
        session, context = live.context.session, live.context
        if drafts and not keys_of(drafts[0]) and n and self._is_replied(live, n):
            return n, drafts[1:]  # reasoning and no more, of a reply whose calls were ours
        called = {block.call_id for block in drafts[0].blocks if isinstance(block, ToolCall)} if drafts else set[str]()
        if not called or n >= session.length or drafts[0].role is not Role.ASSISTANT:
            return n, drafts
        found, at = set[str](), n
        for entry in context.store.entries(context.conversation, n, session.length):
            answers = {block.call_id for block in entry.blocks if isinstance(block, ToolResult)}
            if entry.role is Role.ASSISTANT:
                found |= {block.call_id for block in entry.blocks if isinstance(block, ToolCall)}
            elif answers & called or not answers:
                break
            at = entry.n + 1
        return (at, drafts[1:]) if called <= found and at > n else (n, drafts)

    def _is_replied(self, live: LiveConversation, n: int) -> bool:
        """Whether the `n`-th entry ends a reply: it is of the model, or answers calls of ours."""
        index = live.context.session.index
        facts = index.entries[n - 1]
        spans = [index.spans[block.span] for block in facts.blocks if block.kind == "tool_result" and block.span != NONE]
        return facts.role is Role.ASSISTANT or any(span.tool in OURS for span in spans)

    def _summarised(self, request: ClientRequest, drafts: Sequence[Draft]) -> str:
        """The conversation whose summary these messages quote, as they do when a client has compacted its history; empty where they quote none."""
        texts = [
            block.text
            for draft in drafts
            for block in draft.blocks
            if isinstance(block, Text) and len(block.text) >= SUMMARY_CHARS
        ]
        if not texts:
            return ""
        words = "\n".join(texts)
        known = [(of, lines) for tenant, of, lines in reversed(self._summaries) if tenant == request.tenant]
        hinted = self.store.links([_hint(request)]) if request.hint else ()
        known += [(link.conversation, lines) for link in hinted for lines in self._last_replies(link.conversation)]
        return next((of for of, lines in known if sum(line in words for line in lines) * 2 > len(lines)), "")

    def _last_replies(self, conversation: str) -> Iterable[tuple[str, ...]]:
        length = self.store.conversation(conversation).length
        for entry in self.store.entries(conversation, max(0, length - 4), length):
            if entry.role is Role.ASSISTANT and (lines := _lines(entry.blocks)):
                yield lines

    def note_summary(self, request: ClientRequest, conversation: str, draft: Draft) -> None:
        """Remember a reply that may be a summary of its conversation."""
        if lines := _lines(draft.blocks):
            self._summaries.append((request.tenant, conversation, lines))

    # --- Conversations

    def _context(self, request: ClientRequest, conversation: str) -> ClientContext:
        settings, shadow = self.management, self.management.mode == "shadow"
        return ClientContext(
            store=self.store,
            dialect=cast(DialectName, request.api.name),
            conversation=conversation,
            budget=settings.budget,
            policy=None if shadow else settings.policy,
            gate=settings.gate,
            clip=0 if shadow else settings.clip,
            tenant=request.tenant,
            model=request.model,
            provider=request.provider,
            clock=self.clock,
            holdout=settings.holdout,
            account=f"{request.tenant}\0{request.hint}" if request.hint else "",  # all of one session are in one arm
        )

    def _opened(self, request: ClientRequest, name: str) -> LiveConversation:
        """A conversation of the store, in memory."""
        with self._lock:
            live = self._live.get(name)
            if live is not None:
                self._live.move_to_end(name)
                live.used = monotonic()
                return live
        return self._keep(self._context(request, name))

    def _new(self, request: ClientRequest, parent: str = "") -> LiveConversation:
        """A conversation that begins; with a `parent` it is a segment of that one's record."""
        if not parent:
            return self._keep(self._context(request, ""))
        sheet = self.store.conversation(parent)
        made = self.store.create(
            Conversation(
                id=uuid4().hex,
                tenant=request.tenant,
                parent=parent,
                title=sheet.title,
                model=request.model,
                dialect=request.api.name,
                terms=encoded(Terms(arm=Terms.stored(sheet.terms).arm)),
            )
        )
        return self._keep(self._context(request, made.id))

    def branch(self, request: ClientRequest, name: str, n: int) -> LiveConversation:
        """A conversation that shares the first `n` entries of another."""
        made = self.store.fork(name, n, uuid4().hex) if n else None
        return self._keep(self._context(request, made.id if made else ""))

    def _keep(self, context: ClientContext) -> LiveConversation:
        live = LiveConversation(context)
        with self._lock:
            held = self._live.setdefault(context.conversation, live)
            self._live.move_to_end(context.conversation)
        self.tidy()
        return held

    def _drop(self, name: str) -> None:
        live = self._live.pop(name, None)
        for each in live.links if live is not None else ():
            if self._links.get(each, ("", 0))[0] == name:
                del self._links[each]

    # --- Recording

    def _lead(self, request: ClientRequest, live: LiveConversation, drafts: Sequence[Draft]) -> "Exchange":
        with live.lock:
            self.take_in(request, live, drafts)
            return Exchange(self, request.body.raw, request, live, live.context.session.length, (), leads=True)

    def take_in(self, request: ClientRequest, live: LiveConversation, drafts: Sequence[Draft]) -> None:
        """Record a client's messages, and link the end of each to what stands behind it."""
        start = live.context.session.length
        live.bytes = len(request.body.raw)
        self.tidy()
        if drafts:
            live.context.extend(drafts)
        at = len(request.links) - sum(len(keys_of(draft)) for draft in drafts)
        links: list[ClientLink] = []
        for n, draft in enumerate(drafts, start + 1):
            at += len(keys_of(draft))
            if at > 0:
                links.append(ClientLink(id=request.links[at - 1].id, conversation=live.context.conversation, n=n))
        if drafts and request.hint:
            links.append(ClientLink(id=_hint(request), conversation=live.context.conversation, n=0))
        self.link(live, links)

    def link(self, live: LiveConversation, links: Sequence[ClientLink]) -> None:
        """Keep what stands behind places of a client's history."""
        links = list({each.id: each for each in links}.values())
        if not links:
            return
        self.store.link(links)
        with self._lock:
            for each in links:
                self._links[each.id] = each.conversation, each.n
                live.links.add(each.id)


def _hint(request: ClientRequest) -> str:
    return start_of(request.api, f"{request.tenant}\0session\0{request.hint}")


def _lines(blocks: Iterable[object]) -> tuple[str, ...]:
    """The longest lines of what may be a summary, by which it is known where it is quoted."""
    text = "\n".join(block.text for block in blocks if isinstance(block, Text))
    if len(text) < SUMMARY_CHARS:
        return ()
    lines = sorted({line.strip() for line in text.split("\n") if len(line.strip()) >= _LINE_CHARS}, key=len, reverse=True)
    return tuple(lines[:_QUOTED])
