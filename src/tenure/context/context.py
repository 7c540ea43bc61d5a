"""The library's front door (an edge: it opens the store).

    from tenure import Context, Budget
    context = Context(dialect="anthropic", budget=Budget(target=80_000), policy="provenance", store="sqlite:///agent.db")
    context.extend(messages)                                     # dictionaries, as they are
    reply = client.messages.create(**context.request(model="…", tools=tools, max_tokens=4096))
    context.append(reply)                                        # also learns from reply.usage

Every message is stored before anything else happens, and a commit before the request it shapes is handed out, so a process killed at any
moment goes on where it was: `Context(store=…, conversation=context.conversation)`.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from tenure.apis import APIS, USUAL
from tenure.apis.foreign import refuse_foreign, refuse_stream
from tenure.apis.json_text import Message, source
from tenure.apis.json_text import encoded as utf8
from tenure.apis.rendering import light
from tenure.apis.request_builder import Builder, Request
from tenure.apis.rules import rules_for
from tenure.apis.sdk import is_json, plain, reply_id, sendable, storable, undeclared
from tenure.context.answers import Answers
from tenure.context.refusals import Refusals
from tenure.context.stored import Lately, StoredLog
from tenure.engine.clip.setting import Clip
from tenure.engine.lifecycle.automatic import Automatic, threshold_of
from tenure.engine.lifecycle.books import Books, reopen
from tenure.engine.lifecycle.budget import USUAL as USUAL_BUDGET
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.decision import Decision, Propose, Stay, Unmet
from tenure.engine.lifecycle.gate import Rule
from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.lifecycle.terms import Terms
from tenure.engine.lifecycle.undo import restored, undone
from tenure.engine.meter.gauge import Gauge
from tenure.engine.meter.ledger import Ledger, Spent
from tenure.engine.meter.price import prices_for
from tenure.engine.meter.ratio import Ratio
from tenure.engine.meter.tokens import Tokenizer, checked, o200k, weigh
from tenure.engine.meter.warmth import Collapse
from tenure.engine.policies.offer import Offer, offers
from tenure.engine.policies.policy import Policy
from tenure.engine.record.entry import Draft, Entry, Thinking
from tenure.engine.record.notes import NOTES_DESCRIPTION, NOTES_SCHEMA
from tenure.engine.record.query import CAP, Query
from tenure.engine.record.tools import (
    NOTES,
    Kinds,
    ToolKind,
    declared_kinds,
    is_virtual,
    name_of,
    offered_name,
)
from tenure.engine.view.edit import Commit, Drop, Insert, Moment
from tenure.engine.view.guard import Hold, HoldKind
from tenure.engine.view.project import Difference, View, difference, project
from tenure.engine.view.request import Messages
from tenure.errors import InputError
from tenure.models.helpers import HelperModels, Helpers
from tenure.models.hosts import public_url
from tenure.store.records import Conversation, Now, Records, utc_now
from tenure.store.soundness import damage_in, encoded, held_to, sound_holds

if TYPE_CHECKING:  # wanted only by those who hand in a model
    from tenure.engine.lifecycle.planning import Answered
    from tenure.models.question import Model

T = TypeVar("T")
_NOTES_TOOL: Final = Offer(NOTES, NOTES_DESCRIPTION, NOTES_SCHEMA)
_RENAMED: Final = "{} Where this conversation says {}, this tool is meant."


class Context:
    """One conversation's window: messages in, requests out. Not for use by several threads at once."""

    def __init__(
        self,
        *,
        dialect: str = "",
        budget: Budget | None = None,
        policy: str | Policy | None = "",
        compat: str = "",
        store: str | Records = "sqlite:///tenure.db",
        conversation: str = "",
        model: str = "",
        provider: str = "",
        tenant: str = "",
        clip: int | None = None,
        kinds: Mapping[str, ToolKind] | None = None,
        tokenizer: Tokenizer | None = None,
        on_decision: Callable[[Decision], None] | None = None,
        recall_cap: int = CAP,
        gate: str = "",
        cache_life: str = "",
        planner: "Model | None" = None,
        summariser: "Model | None" = None,
        handoff_at: str | int = "85%",
        clock: Now = utc_now,
        notes: bool | None = None,
        digest: "Model | None" = None,
        digest_above: int = 8_000,
        instructions: Mapping[str, str] | None = None,
        markers: bool | None = None,
        base_url: str = "",
    ) -> None:
        """Open a conversation, new unless `conversation` names one in the store. `policy` None evicts nothing.

        One of the store goes on as it was held: `dialect`, `model`, `provider`, `base_url`, `budget`, `policy`, `compat`, `gate`, `clip`,
        `cache_life`, `notes` and `markers` are kept with it; what is given is kept instead from then on. With another model a provider and
        URL that are not given are no longer known. Of a policy that is an object of your own only the name is kept: hand the object in again.
        A new conversation begins with the dialect "anthropic", the budget of 80,000 tokens, the policy "provenance", the gate "priced" and
        clips above 4,000 tokens.

        `base_url` is where you send requests, for whoever goes on with the conversation; nothing is sent from here. What may be secret in it
        is not kept.

        `compat` follows a published version of `cwl` instead: "paper" is the paper's algorithm, "pi-cwl" its public implementation, which
        also counts in its own way. `recall_cap` is what one answer of `recall` may weigh in o200k tokens, and is never more than the share of
        the budget that recalls are kept in.

        Tool results of more than `clip` o200k tokens are shown clipped to as many from their birth; 0 shows all whole. Of those of more than
        `digest_above`, the model `digest` is asked what they say, in 150 words; what it says stands in the clip, labelled as its words.

        `notes` offers the agent a tool to write down what it must not lose: its notes stand in every view.

        `gate` "selfgc-paper" commits by that paper's operating rule instead of by price. `cache_life` is how long your requests ask the provider
        to keep a prefix ("1h"), where that is not its default.

        With a `planner` Self-GC is done without asking, from 30 % of the limit on; with a `summariser` history is handed off at `handoff_at`, a
        share of the window or tokens, 0 for never, as soon as a provider reports that much, and never while `queued` is set. What comes of it is
        told to `on_decision`; a model that fails changes nothing. What `on_decision` raises comes out of `request`; what was decided stands by then. `instructions` (texts by where they come from, such as AGENTS.md) go with every
        brief word for word.

        With `markers` (Messages API), as usual, a request asks the provider to cache its tools and system prompt, and its messages up to the newest: cache
        markers of messages that you hand in are taken off, those in `system` and `tools` stay and count. False: yours go out as given, none is ours.

        Raises InputError for an unknown dialect, policy or store, StoreError when the store cannot be opened, Damaged (a StoreError) when it
        does not hold the conversation as it was written.
        """
        if dialect:
            _named(APIS, "dialect", dialect)
        self._kinds = dict(kinds or {})
        self._count = o200k() if tokenizer is None else checked(tokenizer)
        self._on_decision = on_decision
        self.store = _opened(store)

        def asked(terms: Terms, sheet: Conversation) -> Terms:
            other = bool(model and sheet.model and model != sheet.model)
            served = terms.served(provider=provider, base_url=base_url and public_url(base_url), other_model=other)
            return served.amended(
                policy=policy, compat=compat, gate=gate, clip=clip, cache_life=cache_life, notes=notes, markers=markers
            )

        if conversation:
            self._sheet, terms = held_to(self.store, conversation, budget, asked, dialect=dialect, model=model)
        else:
            sheet = Conversation(id=uuid4().hex, tenant=tenant, model=model, dialect=dialect or USUAL)
            terms = asked(Terms(), sheet)
            self._sheet = self.store.create(replace(sheet, budget=encoded(budget or USUAL_BUDGET), terms=encoded(terms)))
        dialect, model, provider = self._sheet.dialect or USUAL, self._sheet.model, terms.provider
        self._api = _named(APIS, "dialect", dialect)
        budget = budget or Budget.stored(self._sheet.budget)
        self._model, self.rules = model, rules_for(provider, model, dialect)
        setup = Setup(
            budget=budget,
            rules=self.rules,
            prices=prices_for(model, provider, life=terms.cache_life),
            gate=Rule(terms.gate),
            calls_seen=self.store.call_counts(self._sheet.tenant),
            policy=terms.made(policy),
            clip=Clip(above=terms.clip, room=terms.clip) if terms.clip else None,
            tenant=self._sheet.tenant,
        )
        weigher = partial(weigh, tokenizer=self._count, media=self.rules.media)
        if terms.compat == "pi-cwl":
            from tenure.logs.pi_weights import weigh_like_pi as weigher
        log = StoredLog(self.store, self._sheet.id)
        self.session = Session(setup, weigh=weigher, count=self._count, kinds=Kinds(self._kinds), log=log, read=self._read)
        self.decision: Decision | None = None  # what came of the newest request; its text is one line for people
        self.queued = False  # set while messages of a person wait: no surprises then
        self._clock = clock
        self._ratio = Ratio(head_counted=True)
        self._lately = Lately(partial(self.store.entries, self.conversation), lambda n: self.session.view.row(n) is not None)
        self._head = ("", 0)  # the head's JSON and its tokens
        self._sent = 0
        self._terms, self._asked = terms, False  # whether our tools were ever offered
        self.session.index.own.update(terms.tools)
        self._refusals = Refusals(self._api, self.session, self._read)
        self._request: Request | None = None  # the newest: what a planner is asked behind
        self._messages = Messages(self.session.index, self._read, partial(light, api=self._api))
        self._requests = Builder(self._api, ttl="1h" if terms.cache_life == "1h" else "", markers=terms.markers)
        self._answers = Answers(
            self.session,
            self.store,
            self._sheet.id,
            read=self._read,
            api=self._api,
            media=self.rules.media,
            count=self._count,
            cap=recall_cap,
        )
        helpers = Helpers(planner=planner, summariser=summariser, digest=digest, digest_above=digest_above)
        automatic = Automatic(threshold=threshold_of(handoff_at))
        self._helpers = HelperModels(
            self.session, helpers, automatic, rules=instructions, read=self._read, count=self._count, note=self._note, clock=clock
        )
        self._books = Books(self.session, model=model, provider=provider, life=terms.cache_life)
        self._resume()

    @property
    def conversation(self) -> str:
        """The id by which the store knows this conversation."""
        return self._sheet.id

    @property
    def base_url(self) -> str:
        """Where requests of this conversation go, as its host said; "***" stands for what may be secret. Empty: not known."""
        return self._terms.base_url

    @property
    def gauge(self) -> Gauge:
        """How full the window is, in provider tokens of the limit in force; `estimated` until usage is reported, and after a commit."""
        return self._books.gauge(head=self._head[1] if self._sent else None)

    @property
    def ledger(self) -> Ledger:
        """What this conversation's calls cost, by role and model, and what eviction saved. `tenure.engine.meter.statement` puts it in words."""
        return self._books.ledger

    def extend(self, messages: Iterable[Message | object]) -> None:
        """Take messages in: dictionaries as they are, raw JSON, or the SDK's own objects. All are stored, or none.

        Drafts are taken as they are: words of the host, or what a model said before it was cut off. Raises InputError naming the first message
        that cannot be understood, or that another API made. A result that answers no call is kept in the record and sent to nobody; a call
        that the user's next words find without a result counts as interrupted.
        """
        given: Any = messages
        if isinstance(given, str | bytes | Mapping) or callable(getattr(given, "model_dump", None)):
            kind = type(cast(object, given)).__name__
            raise InputError("messages", f"a {kind}", "a list of messages; a whole reply is taken by `append`")
        if not isinstance(given, Iterable) or hasattr(cast(object, given), "response"):
            refuse_stream(messages, self._api, "messages")
        given = list(messages)
        drafts = [storable(each) for each in given if isinstance(each, Draft)]
        if len(drafts) == len(given):
            self._take(drafts)
            return
        bare = [self._message(message, f"message {n}") for n, message in enumerate(given)]
        drafts = self._api.parse(bare)
        for n, draft in enumerate(drafts):
            self._refusals.repeated(draft, f"message {n}")
        self._take(drafts)

    def append(self, reply: Message | object) -> None:
        """Take in a whole API response: its message joins the record, its usage teaches the ratio.

        A stream is not read; its whole reply is what the SDK's helper gives, such as `stream.get_final_message()`. Raises InputError for what is no
        reply, and for one that is in the record already.
        """
        refuse_stream(reply, self._api, "reply")
        given = plain(reply)
        draft = self._api.parse_reply(given)
        self._refusals.again(draft, reply_id(given))
        if draft.usage is not None and draft.usage.prompt and self._sent:
            self._ratio = self._ratio.learn(draft.usage.prompt, self._sent)
        at, ratio = self._clock(), self._ratio.value if self._ratio.growths else None
        usage = draft.usage
        if usage is not None and not self._books.believes(usage, head=self._head[1] if self._sent else None):
            usage = None  # billed as reported; of the window and the cache it says nothing
        if draft.usage is None:
            self._take((draft,))
        else:
            spent = self._books.priced(Spent(model=draft.model, usage=draft.usage, at=at))
            self._take((draft,), spent)
            self.store.observe(self.conversation, self.session.length - 1, draft.usage, spent.model, at, spent.usd)
        self.session.observe(at=at, ratio=ratio, usage=usage)
        self._helpers.reported(usage.prompt if usage is not None else self.gauge.tokens if draft.usage is not None else 0)

    def request(
        self, *, tools: Iterable[Mapping[str, Any] | object] = (), annotate: bool = True, notes: str = "", **fields: Any
    ) -> dict[str, Any]:
        """What to send now, as keyword arguments of the SDK's call; `fields` are passed through, be they no JSON.

        What leaves is decided and stored first. `annotate` offers the tools `recall` and, under a policy that reads marks, `delimiter` beside
        your own; answer their calls with `call`. `notes` stand last, for this request alone: what holds now and is no part of the past. When a
        limit cannot be met, `decision` is an `Unmet` that says what holds the space, and the request is made all the same.
        """
        return self._requested(tools, fields, annotate=annotate, notes=notes).arguments()

    def wire(
        self, *, tools: Iterable[Mapping[str, Any] | object] = (), annotate: bool = True, notes: str = "", **fields: Any
    ) -> bytes:
        """What `request` gives, as the bytes of a body, for SDKs that send one: what stands in the record is joined, and validated by nobody.

        Absent a commit a body begins with the bytes of the one before it, up to that one's notes, markers aside. Raises InputError for a field
        that is no JSON.
        """
        return self._requests.body(self._requested(tools, fields, annotate=annotate, notes=notes))

    def settle(self, moment: Moment = "turn-end") -> Decision:
        """Do what pays at a safe boundary between calls: "turn-end", "task-boundary" or "idle" (when a cold cache makes it cheap)."""
        return self._decide(self._head[1], moment)

    @property
    def collapse(self) -> Collapse | None:
        """Of the newest call: a cached prefix that the provider should have read and did not, though nothing in it had changed."""
        return self.session.calls.warmth.collapse

    def collect(self, model: "Model", *, aim: int = 0) -> "Answered | None":
        """Ask a model what may leave (Self-GC), and do what of its answer is allowed and pays; None when nothing may be named.

        It is asked behind the request that was sent last, so that the provider's cache is read. What it asked for and did not get is in
        `refused`. Raises ModelError when the model fails; nothing has changed then.
        """
        request = self._request or self._made_now({}, "")
        return self._carried_out(self._helpers.collect(model, request.plain(), aim=aim))

    def handoff(
        self, model: "Model", *, focus: str = "", room: int = 100_000, rules: Mapping[str, str] | None = None
    ) -> "Answered | None":
        """Hand earlier history off to one brief that a model writes; None when there is nothing new to hand off.

        Human words stay as they are, and so do pins; `rules` (by where they come from) go with this brief and all later ones word for word. A
        reply that is no brief leaves everything as it was, and so does a model that fails (ModelError).
        """
        return self._carried_out(self._helpers.handoff(model, focus=focus, room=room, rules=rules))

    def bill(self, spent: Spent) -> None:
        """Enter what a helper model cost that the host asked for this conversation's sake, such as for its title."""
        self._note(spent)

    def call(self, tool_call: Mapping[str, Any] | object) -> dict[str, Any] | None:
        """The answer to a call of `delimiter`, `recall` or `notes`, as this dialect's result; None when the call is of another tool.

        Anthropic: a `tool_result` block for the next user message. The others: a message or item of its own.
        """
        return self._answers.to(plain(tool_call), notes=self._terms.notes)

    def recall(
        self, handle: str = "", *, path: str = "", words: str = "", pattern: str = "", lines: str = "", cap: int = 0
    ) -> str:
        """What handles stand for, or where the record speaks of a path, words or a pattern; whole unless `cap` says how many tokens.

        Raises InputError for what cannot be found.
        """
        query = Query(handle=handle, path=path, words=words, pattern=pattern, lines=lines)
        return self._answers.recall(query, cap)

    def pin(self, object_: str = "", *, text: str = "") -> str:
        """Keep an object in the view whatever the budget: `read:12`, `user:3`, `episode:locate-auth`, `entry:40/1`. What was pinned.

        With `text`, the newest block of the view that shows it; it stays as it is shown. Raises InputError for what is not there, and for what
        stands only in reasoning or in words that were put in place of something.
        """
        wanted = object_ or self._holding(text)
        self.hold(wanted)
        return wanted

    def unpin(self, object_: str) -> bool:
        """Let a pinned object go; False when it was not pinned."""
        return self.release(object_)

    def hold(self, object_: str, kind: HoldKind = "pin", reason: str = "") -> None:
        """Keep an object as it is shown, for a reason that the record cannot know: an "approval" is pending, a live "handle" points to it.

        Raises InputError for what is not there.
        """
        hold = Hold(kind=kind, object=object_, reason=reason)
        self.session.hold(hold)
        self.store.hold(self.conversation, hold)

    def release(self, object_: str, kind: HoldKind = "pin") -> bool:
        """Let go of what is held; False when it was not."""
        released = self.store.release(self.conversation, Hold(kind=kind, object=object_))
        self.session.release(object_, kind)
        return released

    def undo(self, number: int) -> Commit:
        """Put back what commit `number` changed, by a new commit. Raises InputError for a commit that does not exist."""
        commit = undone(self.session, number)
        self._commit(commit)
        return commit

    def restore(self, object_: str) -> Commit | None:
        """Show an object whole again where it stood: `read:12`, `step:17`, `episode:locate-auth`. None when it is; `pin` it to keep it there.

        Raises InputError when the record has no such object.
        """
        commit = restored(self.session, object_)
        if commit is not None:
            self._commit(commit)
        return commit

    def view_at(self, call: int) -> View:
        """What the model saw at its `call`-th call, from 0. Raises InputError when there was none."""
        steps = self.session.index.steps
        if not 0 <= call < len(steps):
            raise InputError("call", str(call), f"0 to {len(steps) - 1}" if steps else "a call, of which there are none")
        entry = steps[call].entry
        return project(self.session.index, entry, [commit for commit in self.session.commits if commit.entries <= entry])

    def diff(self, before: int, after: int) -> Difference:
        """What the model saw at one call and not at another."""
        return difference(self.view_at(before), self.view_at(after), self.session.index)

    def close(self) -> None:
        """Let go of the store."""
        self.store.close()

    def __enter__(self) -> "Context":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _resume(self) -> None:
        store, name = self.store, self.conversation
        reports = {each.n: each.spent for each in store.usages(name)}
        forked_at, commits = self._sheet.forked_at, store.commits(name)
        self._asked = bool(reports) or bool(commits)
        with damage_in(store, name):
            reopen(self.session, self._books, store.entries(name), commits, reports, store.asides(name), forked_at=forked_at)
        self.session.observe(at=max((spent.at for spent in reports.values()), default=""))
        self.session.holds = sound_holds(store, name, self.session.index)
        notes = self.session.index.notes.span
        if notes is not None:  # a fork of an older version inherited commits that were made when newer notes stood
            self.restore(self.session.index.spans[notes].object)

    def _note(self, spent: Spent) -> None:
        self.store.note(self.conversation, spent)
        self._books.helped(spent)

    def _take(self, drafts: Iterable[Draft], spent: Spent | None = None) -> None:
        placed = self._helpers.digested(self.session.propose(drafts))
        self.store.append(self.conversation, placed.entries, placed.commits)
        if spent is not None:
            self._books.heard(spent, placed.entries[0].blocks, head=self._head[1] if self._sent else None)
        self.session.accept(placed)
        for entry in placed.entries:
            self._books.took(entry)
        for commit in placed.commits:
            self._books.changing(commit)
        self._lately.take(placed.entries)

    def _message(self, message: Message | object, where: str) -> Message:
        """A message as it is recorded. Raises InputError for what is none, or is one of another API."""
        bare = plain(message)
        refuse_foreign(bare, self._api, where)
        return self._api.unmarked(bare if isinstance(bare, bytes) else utf8(source(bare, where))) if self._terms.markers else bare

    def _decide(self, head_tokens: int, moment: Moment = "before-call") -> Decision:
        self.decision = self._done(self.session.decide(moment, extra=max(head_tokens, self._beside_view), at=self._clock()))
        return self._told(self.decision)

    @property
    def _beside_view(self) -> int:
        """What stands beside the view by the provider's own count, in o200k tokens: a limit holds for what it counts, not for what we estimate."""
        return int(self.gauge.tokens / self.session.ratio) - self.session.view.tokens

    def _done(self, decision: Decision) -> Decision:
        """A decision, carried out."""
        proposal = decision.proposal if isinstance(decision, Unmet) else decision
        if isinstance(proposal, Propose):
            self._commit(proposal.commit)
        return decision

    def _carried_out(self, answered: "Answered | None") -> "Answered | None":
        if answered is not None:
            self._done(answered.decision)
        return answered

    def _decided(
        self, tools: Iterable[Mapping[str, Any] | object], fields: dict[str, Any], *, annotate: bool, beside: int = 0
    ) -> dict[str, Any]:
        """The head of the next request, once what leaves has been decided. `beside`: o200k tokens of its notes."""
        fields = self._api.given(fields)
        offered = self._api.declarations([sendable(dict(plain(tool))) for tool in tools])
        self._declare(offered)
        self._refusals.fields(fields)
        self._refusals.dangling()
        virtual = [self._offered(each) for each in offers(self.session.setup.policy)]  # the last redeems what markers name
        own = [undeclared(tool) for tool in offered] + [self._offered(_NOTES_TOOL)] * self._terms.notes
        head = fields | {"tools": self._api.tools(own + (virtual if annotate else virtual[-1:]))}
        head_tokens = self._head_tokens(head)
        for came in self._helpers.due(self._request and self._request.plain, head_tokens=head_tokens, queued=self.queued):
            self._told(came if isinstance(came, Stay) else self._done(came.decision))
        self._decide(head_tokens + beside)
        if not annotate and not len(self.session.commits):
            head = fields | ({"tools": self._api.tools(own)} if own else {})  # nothing left yet
            self._head_tokens(head)
        return head

    def _sending(self, *, beside: int = 0) -> None:
        self._sent = self.session.view.tokens + self._head[1] + beside
        self.session.send(head=self._head[0], head_tokens=self._head[1], at=self._clock())

    def _requested(
        self, tools: Iterable[Mapping[str, Any] | object], fields: dict[str, Any], *, annotate: bool, notes: str
    ) -> Request:
        """The next request, once what leaves has been decided and stored."""
        notes = sendable(notes)
        weight = self._count(notes) if notes else 0
        head = self._decided(tools, fields, annotate=annotate, beside=weight)
        self._request = self._made_now(head, notes)
        self._sending(beside=weight)
        self._asked = True
        self._refusals.reply = "", b""
        return self._request

    def _made_now(self, head: Mapping[str, Any], notes: str) -> Request:
        """The messages of the view behind a head."""
        named = "" if self._model else str(head.get("model") or "")  # the model that is asked, where none was named before
        rules = rules_for(self.rules.provider, named, self._api.name) if named else self.rules
        shown = self._messages.of(self.session.freeze())
        return self._requests.request(head, shown, rules, notes)

    def _told(self, decision: Decision) -> Decision:
        if self._on_decision is not None:
            self._on_decision(decision)
        return decision

    def _commit(self, commit: Commit) -> None:
        self.store.commit(self.conversation, commit)
        self._books.changing(commit)
        self.session.commit(commit)
        self._lately.changed(edit.entry for edit in commit.edits if isinstance(edit, Drop))

    def _holding(self, text: str) -> str:
        """The newest block of the view that shows a text, as an object. Raises InputError when none does."""
        insert: Insert | None = None
        for line in reversed(self.session.freeze().lines if text else ()):
            if isinstance(line, Insert):
                insert = line if insert is None and text in line.text else insert
                continue
            blocks, instead = self._read(line.entry).blocks, dict(line.replaced)
            for number in reversed(line.blocks):
                block = blocks[number]
                shown = instead[number].text if number in instead else block.text
                if text in shown and not isinstance(block, Thinking):  # reasoning goes when what it led to does
                    return f"entry:{line.entry}/{number}"
        if insert is not None:
            names = " or ".join(insert.routes) or "what it is about"
            raise InputError(
                "pin", f"{text!r}, which stands only in words put in place of what left", f"an object: restore and pin {names}"
            )
        raise InputError("pin", repr(text), "an object, or a text that one message or result of the view shows")

    def _read(self, n: int) -> Entry:
        return self._lately.entry(n)

    def _head_tokens(self, head: Mapping[str, Any]) -> int:
        counted = {key: head[key] for key in self._api.head_fields if is_json(head.get(key, self))}
        text = msgspec.json.encode(counted, enc_hook=plain).decode() if counted else ""
        if text != self._head[0]:
            self._head = (text, self._count(text))
        return self._head[1]

    def _declare(self, tools: list[dict[str, Any]]) -> None:
        declared = declared_kinds(tools)
        if declared:
            self._kinds |= declared
            self.session.index.kinds = Kinds(self._kinds)
        index = self.session.index
        own = [name for name in map(name_of, tools) if name not in index.own and is_virtual(name)]
        if not own:
            return
        since = len(index) if self._asked else 0  # before ours were offered, no call can have been of them
        taken = {**index.own, **dict.fromkeys(own, since)}
        self._terms = replace(self._terms, tools=taken)
        self.store.hold_to(replace(self._sheet, terms=encoded(self._terms)))
        if since:
            index.own.update(taken)
        else:
            index.again(taken, self.store.entries(self.conversation))
            self.session.holds = self.session.holds  # under the names that objects have now

    def _offered(self, offer: Offer) -> dict[str, Any]:
        """One of our tools as it is declared; under another name where the host has a tool of its own."""
        name = offered_name(offer.name, self.session.index.own)
        text = offer.description if name == offer.name else _RENAMED.format(offer.description, offer.name)
        return self._api.tool(name, text, offer.schema)


def _named(table: Mapping[str, T], what: str, name: str) -> T:
    if name not in table:
        raise InputError(what, repr(name), "one of " + ", ".join(table))
    return table[name]


def _opened(store: str | Records) -> Records:
    if not isinstance(store, str):
        return store
    from tenure.store.store import Store

    return Store(store)
