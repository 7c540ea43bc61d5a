"""The library's front door (an edge: it opens the store).

    from tenure import Context, Budget
    context = Context(dialect="anthropic", budget=Budget(target=80_000), policy="graph", store="sqlite:///agent.db")
    context.extend(messages)                                     # dictionaries, as they are
    reply = client.messages.create(**context.request(model="…", tools=tools, max_tokens=4096))
    context.append(reply)                                        # also learns from reply.usage

Every message is stored before anything else happens, and a commit before the request it shapes is handed out, so a process killed at any
moment goes on where it was: `Context(store=…, conversation=context.conversation)`.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from tenure.apis import APIS, USUAL, DialectName
from tenure.apis.json_text import Message
from tenure.apis.sdk import plain
from tenure.context.alone import alone, in_thread
from tenure.context.answers import Answers
from tenure.context.durable_session import DurableSession
from tenure.context.intake import Intake
from tenure.context.offered_tools import OfferedTools
from tenure.context.opening import ContextOptions, open_sheet, setup_of
from tenure.context.refusals import Refusals
from tenure.context.requests import Requests
from tenure.context.run import CALLS, Hooks, RunOutcome, Steps, arun, named, run, steps
from tenure.engine.lifecycle.arms import CONTROL, Arm
from tenure.engine.lifecycle.automatic import Automatic, threshold_of
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.decision import Decision
from tenure.engine.lifecycle.session import Session
from tenure.engine.meter.gauge import Gauge
from tenure.engine.meter.ledger import Ledger, Spent
from tenure.engine.meter.tokens import Tokenizer, checked, o200k, weigh
from tenure.engine.meter.warmth import Collapse
from tenure.engine.planners.selfgc.setting import SelfGc
from tenure.engine.policies import PolicyName
from tenure.engine.policies.policy import Policy
from tenure.engine.record.entry import ToolCall
from tenure.engine.record.fitting import Fit
from tenure.engine.record.query import CAP, Query
from tenure.engine.record.search import Nearest
from tenure.engine.record.tools import Kinds, ToolKind
from tenure.engine.view.edit import Commit, Moment
from tenure.engine.view.guard import Hold, HoldKind
from tenure.engine.view.locate import object_showing
from tenure.engine.view.project import Difference, View, difference, project
from tenure.engine.view.rules import Rules
from tenure.errors import InputError
from tenure.models.helpers import HelperModels, Helpers
from tenure.store.records import Now, Records, utc_now

if TYPE_CHECKING:  # wanted only by those who hand in a model
    from tenure.engine.lifecycle.planning import Answered
    from tenure.models.question import Model

T = TypeVar("T")


class Context:
    """One conversation's window: messages in, requests out.

    Threads take turns: while one is in a method that changes the conversation, another gets InputError, and nothing is done. Several conversations
    over one store may be at work at once.
    """

    def __init__(
        self,
        *,
        dialect: DialectName | Literal[""] = "",
        budget: Budget | None = None,
        policy: PolicyName | Policy | Literal[""] | None = "",
        compat: Literal["", "paper", "pi-cwl"] = "",
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
        gate: Literal["", "priced", "bounded", "selfgc-paper"] = "",
        cache_life: str = "",
        planner: "Model | None" = None,
        selfgc: SelfGc | None = None,
        in_background: bool = False,
        summariser: "Model | None" = None,
        handoff_at: str | int = "85%",
        middle_out: bool = False,
        clock: Now = utc_now,
        notes: bool | None = None,
        digest: "Model | None" = None,
        digest_above: int = 8_000,
        nearest: Nearest | None = None,
        instructions: Mapping[str, str] | None = None,
        markers: bool | None = None,
        base_url: str = "",
        holdout: float = 0.0,
        account: str = "",
    ) -> None:
        """Open a conversation, new unless `conversation` names one in the store. `policy` None evicts nothing.

        One of the store goes on as it was held: `dialect`, `model`, `provider`, `base_url`, `budget`, `policy`, `compat`, `gate`, `clip`,
        `cache_life`, `notes` and `markers` are kept with it; what is given is kept instead from then on. With another model a provider and
        URL that are not given are no longer known. Of a policy that is an object of your own only the name is kept: hand the object in again.
        A new conversation begins with the dialect "anthropic", the budget of 80,000 tokens, the policy "graph", the gate "priced" and
        clips above 4,000 tokens.

        `base_url` is where you send requests, for whoever goes on with the conversation; nothing is sent from here. What may be secret in it
        is not kept.

        `compat` follows a published version of `cwl` instead: "paper" is the paper's algorithm, "pi-cwl" its public implementation, which
        also counts in its own way. `recall_cap` is what one answer of `recall` may weigh in o200k tokens, and is never more than the share of
        the budget that recalls are kept in.

        Tool results of more than `clip` o200k tokens are shown clipped to as many from their birth; 0 shows all whole. Of those of more than
        `digest_above`, the model `digest` is asked what they say, in 150 words; what it says stands in the clip, labelled as its words.

        With `nearest` (such as `tenure.models.embedding.Nearness`) `recall` ranks what words are looked for by their meaning too.

        `notes` offers the agent a tool to write down what it must not lose: its notes stand in every view.

        `gate` "selfgc-paper" commits by that paper's operating rule instead of by price. `cache_life` is how long your requests ask the provider
        to keep a prefix ("1h"), where that is not its default.

        With a `planner` Self-GC is done without asking, from 30 % of the limit on, where it can pay; `selfgc` says how. `in_background`: no request waits for it, and its plan is
        taken up by the first request after it has come, if the window has not been rewritten since. With a `summariser` history is handed off at `handoff_at`, a
        share of the window or tokens, 0 for never, as soon as a provider reports that much, and never while `queued` is set. What comes of it is
        told to `on_decision`; a model that fails changes nothing. What `on_decision` raises comes out of `request`; what was decided stands by then. With `middle_out` a
        brief stands for the middle only: the first exchange stays as it is, and the newest four replies. `instructions` (texts by where they come from, such as AGENTS.md) go with every
        brief word for word.

        With `markers` (Messages API), as usual, a request asks the provider to cache its tools and system prompt, and its messages up to the newest: cache
        markers of messages that you hand in are taken off, those in `system` and `tools` stay and count. False: yours go out as given, none is ours.

        With a `holdout` above 0, a new conversation is held out with that probability, by a hash of `account`, else of its own id: nothing of it leaves or is
        clipped, and no planner is asked, so that `tenure report` can hold both arms against each other. The arm is kept with the conversation.

        Raises InputError for an unknown dialect, policy or store, StoreError when the store cannot be opened, Damaged (a StoreError) when it
        does not hold the conversation as it was written.
        """
        self.turn = RLock()
        options = ContextOptions(
            dialect=dialect and _named(APIS, "dialect", dialect).name,
            budget=budget,
            policy=policy,
            compat=compat,
            model=model,
            provider=provider,
            tenant=tenant,
            clip=clip,
            gate=gate,
            cache_life=cache_life,
            notes=notes,
            markers=markers,
            base_url=base_url,
            selfgc=selfgc,
            holdout=holdout,
            account=account,
        )
        count = o200k() if tokenizer is None else checked(tokenizer)
        self.store = _opened(store)
        sheet, terms = open_sheet(self.store, conversation, options)
        api = _named(APIS, "dialect", sheet.dialect or USUAL)
        setup = setup_of(self.store, sheet, terms, options)
        weigher = partial(weigh, tokenizer=count, media=setup.rules.media)
        if terms.compat == "pi-cwl":
            from tenure.logs.pi_weights import weigh_like_pi as weigher
        self._durable = durable = DurableSession(
            self.store, sheet, terms, setup, weigh=weigher, count=count, kinds=Kinds(dict(kinds or {}))
        )
        self.queued = False  # set while messages of a person wait: no surprises then
        self._helpers = HelperModels(
            durable.session,
            Helpers(
                planner=planner if terms.arm != CONTROL else None,
                in_background=in_background,
                summariser=summariser,
                middle_out=middle_out,
                digest=digest,
                digest_above=digest_above,
            ),
            Automatic(threshold=threshold_of(handoff_at)),
            rules=instructions,
            read=durable.entry,
            count=count,
            note=durable.note,
            clock=clock,
        )
        self._api, self._model = api, sheet.model
        refusals = Refusals(api, durable.session, durable.entry)
        self._intake = Intake(durable, api, self._helpers, refusals, clock)
        tools = OfferedTools(durable, api, kinds or {}, offered_before=durable.resume())
        self._requests = Requests(
            durable, api, self._helpers, refusals, tools, model=sheet.model, on_decision=on_decision, clock=clock
        )
        self._answers = Answers(durable, api, cap=recall_cap, nearest=nearest)

    @property
    def arm(self) -> Arm:
        """Whether it is held out of an experiment ("control") or not ("managed"); empty when it takes no part."""
        return self._durable.terms.arm

    @property
    def session(self) -> Session:
        """The state machine behind it, with record, view and commits."""
        return self._durable.session

    @property
    def rules(self) -> Rules:
        """What the provider and the model take."""
        return self.session.setup.rules

    @property
    def decision(self) -> Decision | None:
        """What came of the newest request; its text is one line for people."""
        return self._requests.decision

    @property
    def conversation(self) -> str:
        """The id by which the store knows this conversation."""
        return self._durable.id

    @property
    def base_url(self) -> str:
        """Where requests of this conversation go, as its host said; "***" stands for what may be secret. Empty: not known."""
        return self._durable.terms.base_url

    @property
    def gauge(self) -> Gauge:
        """How full the window is, in provider tokens of the limit in force; `estimated` until usage is reported, and after a commit."""
        return self._durable.gauge

    @property
    def ledger(self) -> Ledger:
        """What this conversation's calls cost, by role and model, and what eviction saved. `tenure.engine.meter.statement` puts it in words."""
        return self._durable.accounts.ledger

    @alone
    def extend(self, messages: Iterable[Message | object]) -> None:
        """Take messages in: dictionaries as they are, raw JSON, or the SDK's own objects. All are stored, or none.

        Drafts are taken as they are: words of the host, or what a model said before it was cut off. Raises InputError naming the first message
        that cannot be understood, or that another API made. A result that answers no call is kept in the record and sent to nobody; a call
        that the user's next words find without a result counts as interrupted.
        """
        self._intake.take_messages(messages)

    @alone
    def append(self, reply: Message | object) -> None:
        """Take in a whole API response: its message joins the record, its usage teaches the ratio.

        A stream is not read; its whole reply is what the SDK's helper gives, such as `stream.get_final_message()`. Raises InputError for what is no
        reply, and for one that is in the record already.
        """
        self._intake.take_reply(reply)

    @alone
    def request(
        self, *, tools: Iterable[Mapping[str, Any] | object] = (), annotate: bool = True, notes: str = "", **fields: Any
    ) -> dict[str, Any]:
        """What to send now, as keyword arguments of the SDK's call; `fields` are passed through, be they no JSON.

        What leaves is decided and stored first. `annotate` offers the tools `recall` and, under a policy that reads marks, `delimiter` beside
        your own; answer their calls with `call`. Once something has left, `recall` is offered without it too. `notes` stand last, for this
        request alone: what holds now and is no part of the past. When a limit cannot be met, `decision` is an `Unmet` that says what holds the
        space, and the request is made all the same.
        """
        return self._requests.next_request(tools, fields, annotate=annotate, notes=notes, queued=self.queued).arguments()

    @alone
    def wire(
        self, *, tools: Iterable[Mapping[str, Any] | object] = (), annotate: bool = True, notes: str = "", **fields: Any
    ) -> bytes:
        """What `request` gives, as the bytes of a body, for SDKs that send one: what stands in the record is joined, and validated by nobody.

        Absent a commit a body begins with the bytes of the one before it, up to that one's notes, markers aside. Raises InputError for a field
        that is no JSON.
        """
        request = self._requests.next_request(tools, fields, annotate=annotate, notes=notes, queued=self.queued)
        return self._requests.body(request)

    @alone
    def settle(self, moment: Moment = "turn-end") -> Decision:
        """Do what pays at a safe boundary between calls: "turn-end", "task-boundary" or "idle" (when a cold cache makes it cheap)."""
        return self._requests.settle(moment)

    @property
    def collapse(self) -> Collapse | None:
        """Of the newest call: a cached prefix that the provider should have read and did not, though nothing in it had changed."""
        return self.session.calls.warmth.collapse

    @alone
    def collect(self, model: "Model", *, aim: int = 0) -> "Answered | None":
        """Ask a model what may leave (Self-GC), and do what of its answer is allowed and pays; None when nothing may be named.

        The agent's own model is asked behind the request that was sent last, so that the provider's cache is read; another one is told the window
        in words. What it asked for and did not get is in `refused`. Raises ModelError when the model fails; nothing has changed then.
        """
        return self._carried_out(self._helpers.collect(model, self._requests.prefix(), aim=aim))

    @alone
    def handoff(
        self, model: "Model", *, focus: str = "", room: int = 100_000, rules: Mapping[str, str] | None = None
    ) -> "Answered | None":
        """Hand earlier history off to one brief that a model writes; None when there is nothing new to hand off.

        Human words stay as they are, and so do pins; `rules` (by where they come from) go with this brief and all later ones word for word. A
        reply that is no brief leaves everything as it was, and so does a model that fails (ModelError).
        """
        return self._carried_out(self._helpers.handoff(model, focus=focus, room=room, rules=rules))

    # The same, awaited: each waits for a model or the store.
    aextend, aappend, arequest = in_thread(extend), in_thread(append), in_thread(request)
    asettle, acollect, ahandoff = in_thread(settle), in_thread(collect), in_thread(handoff)

    @alone
    def bill(self, spent: Spent) -> None:
        """Enter what a helper model cost that the host asked for this conversation's sake, such as for its title."""
        self._durable.note(spent)

    @alone
    def call(self, tool_call: Mapping[str, Any] | object) -> dict[str, Any] | None:
        """The answer to a call of `delimiter`, `recall` or `notes`, as this dialect's result; None when the call is of another tool.

        Anthropic: a `tool_result` block for the next user message. The others: a message or item of its own.
        """
        return self._answers.to(plain(tool_call), notes=self._durable.terms.notes)

    @property
    def unanswered(self) -> tuple[ToolCall, ...]:
        """The calls of the newest reply that have no result."""
        index = self.session.index
        places = [span.call for span in index.spans_in(index.reply, len(index)) if span.result is None] if len(index) else []
        calls = [self._durable.entry(entry).blocks[block] for entry, block in places]
        return tuple(call for call in calls if isinstance(call, ToolCall))

    def run(
        self,
        client: object,
        prompt: str = "",
        *,
        tools: Mapping[str, Callable[..., Any]],
        model: str = "",
        max_tokens: int = 8_192,
        calls: int = CALLS,
        usd: float | None = None,
        hooks: Hooks | None = None,
        **fields: Any,
    ) -> RunOutcome:
        """Ask the model, carry out its calls, and ask again until it has no more to do; how that ended.

        `client` is one of the official SDKs' own. `tools` are functions by the names that the model calls them by, declared by their signatures and
        docstrings; what one raises is an error that the model sees. `calls` limits how often the model is asked, `usd` what may be spent. Replies are
        streamed: `hooks` hears of each piece, call and result. `fields` go into every request. Calls that an earlier run left without a result get one
        that says so. Raises what the SDK raises, and ModelError for a reply that breaks off; nothing of either is recorded, and the run can go on.
        """
        hooks = hooks or Hooks()
        todo, name = self._steps(prompt, tools, model, max_tokens, calls, usd, hooks, fields)
        return run(client, self._api, name, todo, hooks)

    async def arun(
        self,
        client: object,
        prompt: str = "",
        *,
        tools: Mapping[str, Callable[..., Any]],
        model: str = "",
        max_tokens: int = 8_192,
        calls: int = CALLS,
        usd: float | None = None,
        hooks: Hooks | None = None,
        **fields: Any,
    ) -> RunOutcome:
        """`run` with a client that is awaited; functions may be awaited too, and the calls of one reply run side by side."""
        hooks = hooks or Hooks()
        todo, name = self._steps(prompt, tools, model, max_tokens, calls, usd, hooks, fields)
        return await arun(client, self._api, name, todo, hooks)

    def _steps(
        self,
        prompt: str,
        tools: Mapping[str, Callable[..., Any]],
        model: str,
        max_tokens: int,
        calls: int,
        usd: float | None,
        hooks: Hooks,
        fields: dict[str, Any],
    ) -> tuple[Steps, str]:
        if not (name := model or self._model):
            raise InputError("model", "none", "the name of one, here or in Context(model=…)")
        functions = named(tools)
        asked = self._api.fields(name, output=max_tokens, own=True, session=self.conversation) | fields
        return steps(self, self._api, functions, hooks, calls=calls, usd=usd, prompt=prompt, fields=asked), name

    @alone
    def recall(
        self, handle: str = "", *, path: str = "", words: str = "", pattern: str = "", lines: str = "", cap: int = 0
    ) -> str:
        """What handles stand for, or where the record speaks of a path, words or a pattern; whole unless `cap` says how many tokens.

        Raises InputError for what cannot be found.
        """
        query = Query(handle=handle, path=path, words=words, pattern=pattern, lines=lines)
        return self._answers.recall(query, cap)

    def fitting(self, words: str) -> tuple[Fit, ...]:
        """Results that left the window and fit some words, such as what a person asks for now; at most three, and mostly none."""
        return self._answers.fitting(words)

    @alone
    def pin(self, object_: str = "", *, text: str = "") -> str:
        """Keep an object in the view whatever the budget: `read:12`, `user:3`, `episode:locate-auth`, `entry:40/1`. What was pinned.

        With `text`, the newest block of the view that shows it; it stays as it is shown. Raises InputError for what is not there, and for what
        stands only in reasoning or in words that were put in place of something.
        """
        wanted = object_ or object_showing(text, self.session.freeze(), self.session.index, self._durable.entry)
        self.hold(wanted)
        return wanted

    @alone
    def unpin(self, object_: str) -> bool:
        """Let a pinned object go; False when it was not pinned."""
        return self.release(object_)

    @alone
    def hold(self, object_: str, kind: HoldKind = "pin", reason: str = "") -> None:
        """Keep an object as it is shown, for a reason that the record cannot know: an "approval" is pending, a live "handle" points to it.

        Raises InputError for what is not there.
        """
        self._durable.hold(Hold(kind=kind, object=object_, reason=reason))

    @alone
    def release(self, object_: str, kind: HoldKind = "pin") -> bool:
        """Let go of what is held; False when it was not."""
        return self._durable.release(object_, kind)

    @alone
    def undo(self, number: int) -> Commit:
        """Put back what commit `number` changed, by a new commit. Raises InputError for a commit that does not exist."""
        return self._durable.undo(number)

    @alone
    def restore(self, object_: str) -> Commit | None:
        """Show an object whole again where it stood: `read:12`, `step:17`, `episode:locate-auth`. None when it is; `pin` it to keep it there.

        Raises InputError when the record has no such object.
        """
        return self._durable.restore(object_)

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

    def _carried_out(self, answer: "Answered | None") -> "Answered | None":
        if answer is not None:
            self._durable.carry_out(answer.decision)
        return answer


def _named(table: Mapping[str, T], what: str, name: str) -> T:
    if name not in table:
        raise InputError(what, repr(name), "one of " + ", ".join(table))
    return table[name]


def _opened(store: str | Records) -> Records:
    if not isinstance(store, str):
        return store
    from tenure.store.store import Store

    return Store(store)
