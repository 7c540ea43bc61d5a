"""One task, given to the agent: the piece that all harnesses and sequences share (an edge).

A session that takes in many tasks is one conversation of one store; each task opens it, works in a folder of
its own, on another machine if need be, and closes it. Nobody answers questions, and every call is approved: a benchmark's container is the sandbox.
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec import Struct

from tenure.agent.approval import Mode
from tenure.agent.breaker import Breaker, CallAndResult
from tenure.agent.catalogue import ModelChoice, chosen, is_scripted, script_path
from tenure.agent.events import CallDone, CallStarted, Committed, Event, Recalled, Replied, SessionOpened, TurnDone
from tenure.agent.session import Agent
from tenure.agent.settings import Allowance, Settings, World
from tenure.agent.spending import SessionSpend
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.decision import Propose
from tenure.engine.meter.ledger import add
from tenure.engine.meter.price import prices_for
from tenure.engine.policies import COMPAT, PEERS, POLICIES, UNBOUNDED, policy_named
from tenure.engine.policies.policy import marks_of
from tenure.engine.record.entry import Usage
from tenure.errors import InputError, ModelError
from tenure.lab.bench.outcome import TaskOutcome
from tenure.store.records import Conversation, Records

CEILING: Final = 80_000  # provider tokens; CWL paper, section 6.1


class Condition(Struct, frozen=True, kw_only=True):
    """A window's rules. `compacts`: nothing is evicted, and at the ceiling the session's model writes a summary in place of what was before."""

    name: str
    policy: str
    compat: str = ""  # a published version of `cwl` instead
    episodes: bool = False  # the agent is offered `delimiter`, and told how to use it
    compacts: bool = False

    def budget(self, ceiling: int, window: int) -> Budget:
        """The budget under this condition, in provider tokens. Without a policy there is only the model's window."""
        if self.policy == UNBOUNDED:
            return Budget(window=window)
        return Budget(ceiling=min(ceiling, window), window=window)


CWL: Final = Condition(name="cwl", policy="cwl", episodes=True)
COMPACTION: Final = Condition(name="compaction", policy=UNBOUNDED, compacts=True)
NO_EVICTION: Final = Condition(name="none", policy=UNBOUNDED)

# What the CWL paper compares (section 6.5), and what anyone would compare it with.
CONDITIONS: Final[Mapping[str, Condition]] = MappingProxyType(
    {
        **{each.name: each for each in (CWL, COMPACTION, NO_EVICTION)},
        **{name: Condition(name=name, policy="cwl", compat=name, episodes=True) for name in COMPAT},
    }
)


def condition_named(name: str) -> Condition:
    """The condition of that name: one of the table, or a policy, for which the agent annotates if it reads marks. Raises InputError."""
    if found := CONDITIONS.get(name):
        return found
    try:
        policy = policy_named(name)
    except InputError as error:
        known = ", ".join([*CONDITIONS, *(each for each in (*POLICIES, *PEERS) if each not in CONDITIONS)])
        raise InputError("condition", repr(name), f"one of {known}, or several policies joined by +") from error
    return Condition(name=name, policy=name, episodes=bool(marks_of(policy)))


# A benchmark's conversations belong to no folder, so that they go on in any: this is no absolute path.
TENANT: Final = "benchmark"
NEXT: Final = (
    "This is a new task. What was said and done for earlier tasks stays as it was, but you may be in another place: work in {folder} now, where paths"
    " start; files of earlier tasks may not be there.\n\n"
)
STOPPED: Final = TurnDone(reason="cancelled", why="it was stopped from outside, before it was done")


class PlaySetup(Struct, frozen=True, kw_only=True):
    """How tasks are played. The limits hold for each task."""

    model: str  # as `tenure run --model` takes it
    condition: Condition = NO_EVICTION
    ceiling: int = CEILING
    window: int = 0  # provider tokens; 0: the model's own, less its output reserve
    base_url: str = ""
    most_calls: int = 0  # of the model, for one task; 0: no limit
    most_usd: float = 0.0
    sandbox: bool = False
    fields: dict[str, object] = {}  # that go with every request
    moves: bool = True  # each task is in another place; it is told so from the second on


class BenchTask(Struct, frozen=True, kw_only=True):
    """What is to be done, and where."""

    name: str
    words: str
    folder: Path


async def play(
    task: BenchTask,
    setup: PlaySetup,
    session: str,
    world: World,
    *,
    on_event: Callable[[Event], object] = lambda _: None,
    progress: Callable[[TaskOutcome], object] = lambda _: None,
    on_open: Callable[[Agent], object] = lambda _: None,
) -> TaskOutcome:
    """Play one task in a session, which is opened, or begun when the store does not know it. `world` brings the store.

    `on_event` gets each event as it comes; `progress` what it has come to after every reply, which counts when the process is killed; `on_open` gets
    the agent, to cancel it. Raises InputError for settings that cannot be; a model that fails is an outcome.
    """
    store = world.store
    if store is None:
        raise InputError("benchmark", "no store", "one that the session lives in")
    settings = _settings(task, setup, session)
    await asyncio.to_thread(_begun, store, setup, session, settings, world)
    agent = await Agent.open(settings, world)
    on_open(agent)
    try:
        first = agent.context.session.length

        def came(done: TurnDone) -> TaskOutcome:
            return _outcome(task, setup, turn, done, first)

        turn = _TaskTurn(agent, setup, on_event, lambda: progress(came(STOPPED)))
        progress(came(STOPPED))
        return came(await turn.played(_words(task, setup, first)))
    finally:
        await agent.close()


class _TaskTurn:
    """One task's turn; under compaction a turn of one call each, since history is only handed off between turns. Mutable."""

    def __init__(
        self, agent: Agent, setup: PlaySetup, on_event: Callable[[Event], object], on_reply: Callable[[], object]
    ) -> None:
        self.agent, self._setup, self._on_event, self._on_reply = agent, setup, on_event, on_reply
        self.calls = self.commits = self.recalls = self.summaries = 0
        self.seconds = 0.0
        self.unpriced = _unpriced(agent)
        self.helpers = _helpers(agent)
        self._ended = SessionSpend()  # in turns that are over, sub-agents included
        self._running = SessionSpend()  # in the turn that runs
        self._deeds: list[CallAndResult] = []  # calls of the newest turn, with what came of them
        self._unmet = 0  # tokens of the record when a summary was tried last

    @property
    def spent(self) -> SessionSpend:
        """So far; what summaries cost is not in it."""
        return self._ended.plus(self._running)

    async def played(self, words: str) -> TurnDone:
        """Give the words, and go on until the task is done."""
        done, breaker = await self._once(words), Breaker()
        while done.reason == "step limit" and self._setup.condition.compacts and self._may_go_on():
            breaker = breaker.after(self._deeds)  # the turn's own begins anew with every call
            if breaker.cycle.stops:
                return msgspec.structs.replace(done, reason="stuck", why=breaker.cycle.words)
            await self._compact()
            done = await self._once("")
        return done

    async def _once(self, words: str) -> TurnDone:
        done = TurnDone(reason="failed", why="the turn had no end")
        arguments: dict[str, str] = {}
        self._deeds.clear()
        async for event in self.agent.run(words):
            if not self._ends_inner(event):
                self._on_event(_as_new(event))
            match event:
                case Committed():
                    self.commits += 1
                case Recalled():
                    self.recalls += 1
                case CallStarted():
                    arguments[event.call] = event.arguments
                case CallDone():
                    self._deeds.append(CallAndResult(tool=event.tool, arguments=arguments.get(event.call, ""), result=event.text))
                case Replied():
                    self.calls += 1
                    self._running = self._running.plus(SessionSpend(usage=event.usage or Usage(), usd=event.usd or 0.0))
                    self._on_reply()
                case TurnDone():
                    done = event
                    self.seconds += event.seconds
                    self._ended = self._ended.plus(SessionSpend(usage=event.usage, usd=event.usd))
                    self._running = SessionSpend()
                case _:
                    pass
        return done

    def _ends_inner(self, event: Event) -> bool:
        """Whether a turn ends that is one of a task's many, of one call each."""
        return isinstance(event, TurnDone) and event.reason == "step limit" and self._setup.condition.compacts

    def _may_go_on(self) -> bool:
        """Whether another call is allowed, where each turn is one call."""
        most, usd = self._setup.most_calls, self._setup.most_usd
        return (not most or self.calls < most) and (not usd or self.spent.usd < usd)

    async def _compact(self) -> None:
        """Let the model write a summary, where the window has reached the ceiling; one that comes to nothing is tried again when a tenth more came."""
        record = self.agent.context.session.index.tokens
        if self.agent.gauge.tokens < self._setup.ceiling or record < self._unmet + self._setup.ceiling // 10:
            return
        self._unmet = record
        try:
            answered = await self.agent.handoff()
        except ModelError:
            return
        self.summaries += answered is not None and isinstance(answered.decision, Propose)


def _as_new(event: Event) -> Event:
    """The event as it is on_task: a session that was made beforehand and holds nothing does not go on."""
    is_new = isinstance(event, SessionOpened) and not event.entries
    return msgspec.structs.replace(event, resumed=False) if is_new else event


def _settings(task: BenchTask, setup: PlaySetup, session: str) -> Settings:
    window = setup.window or _room(setup)
    steps = 1 if setup.condition.compacts else setup.most_calls
    return Settings(
        folder=task.folder,
        model=setup.model,
        base_url=setup.base_url,
        resume=session,
        budget=setup.condition.budget(setup.ceiling, window),
        policy=setup.condition.policy,
        compat=setup.condition.compat,
        mode=Mode.ALL,
        alone=True,
        allowance=Allowance(steps=steps, usd=setup.most_usd),
        sandbox=setup.sandbox,
        snapshots=False,  # a task's folder is thrown away
        fields=setup.fields,
        episodes=setup.condition.episodes,
    )


def _room(setup: PlaySetup) -> int:
    choice = chosen(setup.model, base_url=setup.base_url)
    return choice.window - choice.reserve


def _begun(store: Records, setup: PlaySetup, session: str, settings: Settings, world: World) -> None:
    """Make the conversation, unless it is there. It belongs to no folder, so whatever folder a task names is where it goes on."""
    try:
        store.conversation(session)
    except InputError:
        choice = _known(chosen(setup.model, base_url=setup.base_url), settings, world)
        budget = msgspec.json.encode(settings.budget).decode()
        sheet = Conversation(id=session, tenant=TENANT, title=session, model=choice.name, dialect=choice.api, budget=budget)
        store.create(sheet)


def _known(choice: ModelChoice, settings: Settings, world: World) -> ModelChoice:
    """The model with the name and the API that its script gives it."""
    if world.speaker is not None:
        speaker = world.speaker(choice)
        return msgspec.structs.replace(choice, name=speaker.name, api=speaker.dialect)
    if is_scripted(choice.spec):
        from tenure.models.scripted import read_script

        playing = read_script(script_path(choice, settings.folder)).playing
        return msgspec.structs.replace(choice, name=playing.model, api=playing.dialect)
    return choice


def _words(task: BenchTask, setup: PlaySetup, length: int) -> str:
    return (NEXT.format(folder=task.folder.as_posix()) if length and setup.moves else "") + task.words


def _outcome(task: BenchTask, setup: PlaySetup, turn: _TaskTurn, done: TurnDone, first: int) -> TaskOutcome:
    agent = turn.agent
    helpers = _helpers(agent).since(turn.helpers)
    return TaskOutcome(
        task=task.name,
        condition=setup.condition.name,
        model=setup.model,
        session=agent.id,
        ceiling=setup.ceiling,
        first=first,
        last=agent.context.session.length,
        reason=done.reason,
        why=done.why,
        text=done.text,
        calls=turn.calls,
        usage=add(turn.spent.usage, helpers.usage),
        usd=turn.spent.usd + helpers.usd,
        unpriced=_unpriced(agent) - turn.unpriced,
        seconds=turn.seconds,
        commits=turn.commits,
        summaries=turn.summaries,
        recalls=turn.recalls,
    )


def _helpers(agent: Agent) -> SessionSpend:
    """What summaries cost in all the session's life, which no turn counts."""
    usage, usd = Usage(), 0.0
    for account in agent.ledger.accounts:
        if account.role != "agent":
            # A helper that tells its usage and no price, as a script's does, is priced as the list has it.
            listed = prices_for(account.model, agent.choice.provider)
            priced = listed.cost_usd(account.usage) if account.unpriced == account.calls and listed.known else account.usd
            usage, usd = add(usage, account.usage), usd + priced
    return SessionSpend(usage=usage, usd=usd)


def _unpriced(agent: Agent) -> int:
    """The agent's own calls whose money is not known."""
    return sum(account.unpriced for account in agent.ledger.accounts if account.role == "agent")
