"""Opening a session: everything that is read, started and looked up before the first word (an edge)."""

import asyncio
import dataclasses
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from msgspec.structs import replace

from tenure.agent.access import UnusableModel, available, configuration_folder, nearness, speaker_of, state_folder
from tenure.agent.admission.git_program import GitRepository
from tenure.agent.admission.place import Place, place_on_disk
from tenure.agent.admission.prompt import Admitted, Manner, admit
from tenure.agent.admission.skills import read_skill
from tenure.agent.approval import LOOKING, Mode, Permissions
from tenure.agent.catalogue import ModelChoice, chosen, fields_of, is_scripted, spec_of, url_elsewhere
from tenure.agent.helper import HelperSignals, model_in_role
from tenure.agent.overflow import bounded
from tenure.agent.recorder import VIRTUAL
from tenure.agent.scratch import Scratch
from tenure.agent.settings import MIDDLE_OUT, Settings, World
from tenure.agent.snapshots import Snapshots
from tenure.agent.tools.sandbox import NO_WALL, Means, Sandbox, Walls, find_means
from tenure.agent.tools.servers.server import read_configs
from tenure.agent.tools.servers.start import Servers, start_servers
from tenure.agent.tools.tool import Tool, ToolLimits
from tenure.agent.tools.toolbox import Toolbox, toolbox
from tenure.agent.workspace import Workspace
from tenure.apis import APIS, DialectName
from tenure.context import Context
from tenure.engine.lifecycle.decision import Decision
from tenure.engine.lifecycle.terms import Terms
from tenure.engine.meter.price import prices_for
from tenure.engine.meter.tokens import o200k
from tenure.engine.policies import PolicyName
from tenure.engine.policies.policy import marks_of
from tenure.engine.record.tools import DECLARATION
from tenure.errors import InputError, StoreError
from tenure.logs.places.files import read_file
from tenure.models.hosts import is_known, is_whole
from tenure.models.speaker import Speaker
from tenure.store.records import OWN_STORE, Conversation, Records
from tenure.store.spills import Spills
from tenure.store.vectors import Vectors

EMBEDDING_S: Final = 3.0  # that one search waits for texts that are not embedded yet
_LARGEST: Final = 16 * 2**20  # bytes of a file of MCP servers


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """An open session's parts, before they are put together."""

    settings: Settings
    world: World
    folder: Path
    choice: ModelChoice
    speaker: Speaker
    context: Context
    place: Place
    admitted: Admitted
    workspace: Workspace
    scratch: Scratch
    repository: GitRepository | None
    toolbox: Toolbox
    permissions: Permissions
    servers: Servers | None
    walls: Means
    snapshots: Snapshots | None
    notices: tuple[str, ...]
    resumed: bool
    prefix: str = ""  # by which the provider is to know what is cached; empty: the conversation's id
    decisions: list[Decision] = field(default_factory=list[Decision])  # of the context, until they are told of
    helping: HelperSignals = field(default_factory=HelperSignals)

    @property
    def tools(self) -> tuple[dict[str, Any], ...]:
        """The tools as requests declare them, without those that the conversation adds itself."""
        api = APIS[self.choice.api]
        return tuple(
            api.tool(tool.name, tool.description, tool.schema) | {DECLARATION: tool.kind.value} for tool in self.toolbox.tools
        )

    @property
    def fields(self) -> dict[str, Any]:
        """What requests say beside the conversation."""
        return fields_of(self.choice, self.prefix or self.context.conversation) | dict(self.settings.fields)


@dataclass(frozen=True, kw_only=True, slots=True)
class Delegation:
    """A sub-agent's start: whom it works for, and the conversation that it begins with, an empty one or a fork of its parent's."""

    parent: Parts
    conversation: str
    is_fork: bool  # then it has its parent's tools, since tools come first in what a provider has cached
    looks: bool = False  # it may change nothing


async def opened(
    settings: Settings, world: World, *, delegation: Delegation | None = None, more: Callable[[], Sequence[Tool]] = tuple
) -> Parts:
    """Everything a session needs. `more` gives tools beside the usual ones. Raises InputError and StoreError; nothing stays open then."""
    parent = delegation.parent if delegation is not None else None
    damage: list[str] = []
    store = parent.context.store if parent is not None else await asyncio.to_thread(_store, settings, world, damage.append)
    scratch, servers, wrong, prefix = Scratch(), None, (), ""
    try:
        sheet = store.conversation(delegation.conversation) if delegation is not None else _sheet(store, settings)
        folder = _folder(settings, sheet)
        if parent is not None:
            choice, speaker, walls = parent.choice, parent.speaker, parent.walls
            looks = delegation is not None and delegation.looks
            permissions = Permissions(settings.mode) if looks else parent.permissions
            manner, served = Manner.PART, parent.servers
        else:
            choice, speaker = _speaking(settings, world, store, sheet)
            walls = await asyncio.to_thread(_means, settings, world)
            permissions = Permissions(settings.mode, outside=settings.allow_outside)
            servers, wrong = await _servers(settings, world, folder, scratch.path)
            manner, served = Manner.ALONE if settings.alone else Manner.PERSON, servers
        place = place_on_disk(
            folder, home=world.home, environment=world.environment, today=world.today, follow=settings.follow_links
        )
        admitted = await asyncio.to_thread(
            admit, place, count=_estimate, manner=manner, episodes=_marks(settings, sheet), work=settings.work
        )
        tools = [*more(), *(served.tools if served is not None else ())]
        decisions, helping = list[Decision](), HelperSignals()
        context = _context(settings, world, store, sheet, folder, choice, speaker, decisions, helping)
        snapshots = _snapshots(settings, world, folder, context, scratch, parent)
        if delegation is not None and delegation.is_fork:
            named = {tool.name: tool for tool in tools}  # its own where it has one of the name, in its parent's order and words
            box = Toolbox([named.get(tool.name, tool) for tool in delegation.parent.toolbox.tools])
            prefix = delegation.parent.prefix or delegation.parent.context.conversation
        else:
            box = _toolbox(settings, world, admitted, place, tools, walls)
        return Parts(
            settings=settings,
            world=world,
            folder=folder,
            choice=choice,
            speaker=speaker,
            context=context,
            place=place,
            admitted=admitted,
            workspace=Workspace(folder, home=world.home, scratch=scratch.path, keeps=snapshots.keeps if snapshots else None),
            scratch=scratch,
            repository=GitRepository(folder, environment=world.environment),
            toolbox=box,
            permissions=permissions,
            servers=servers,
            walls=walls,
            snapshots=snapshots,
            notices=(
                *settings.notices,
                *admitted.notices,
                *unwalled(settings.mode, walls),
                *wrong,
                *(servers.notes if servers else ()),
                *damage,
            ),
            resumed=sheet is not None and delegation is None,
            prefix=prefix,
            decisions=decisions,
            helping=helping,
        )
    except BaseException as error:
        scratch.remove()
        if servers is not None:
            await servers.stop()
        if parent is None and world.store is None:
            store.close()
        if isinstance(error, UnusableModel):
            raise await advised(error, world) from None
        raise


async def advised(error: UnusableModel, world: World) -> UnusableModel:
    """The same error with the models that could be used instead."""
    return UnusableModel(error.problem, available=await available(world.environment, world.home, world.local))


async def close(parts: Parts, *, is_part: bool) -> None:
    """End what was started, and let go of what was opened; of a sub-agent the rest belongs to its parent."""
    if parts.servers is not None:
        await parts.servers.stop()
    if not is_part:
        await parts.speaker.close()
        parts.context.close()
    await asyncio.to_thread(parts.scratch.remove)


def counted(admitted: Admitted, world: World) -> Admitted:
    """What was admitted with its exact weights: the vocabulary takes longer to load than anything else, and nobody waits for it at the start."""
    count = world.tokens or o200k()
    return replace(admitted, sections=tuple(replace(each, tokens=count(each.text)) for each in admitted.sections))


def _estimate(text: str) -> int:
    """Tokens of a text, about: until it is counted."""
    return len(text) // 4


def with_model(parts: Parts, model: str, base_url: str) -> Parts:
    """The same session with another model. Raises InputError for one that cannot be spoken to."""
    settings = replace(parts.settings, model=model, base_url=base_url)
    store, sheet = parts.context.store, parts.context.store.conversation(parts.context.conversation)
    choice, speaker = _speaking(settings, parts.world, store, sheet)
    decisions, helping = list[Decision](), HelperSignals()
    context = _context(settings, parts.world, store, sheet, parts.folder, choice, speaker, decisions, helping)
    return dataclasses.replace(
        parts,
        settings=settings,
        choice=choice,
        speaker=speaker,
        context=context,
        notices=(),
        decisions=decisions,
        helping=helping,
    )


def store_url(settings: Settings, world: World) -> str:
    """Where a session's store is."""
    if settings.store:
        return settings.store if "://" in settings.store else f"sqlite:///{settings.store}"
    return f"sqlite:///{state_folder(world.environment, world.home) / OWN_STORE}"


def _store(settings: Settings, world: World, on_damage: Callable[[str], None]) -> Records:
    if world.store is not None:
        return world.store
    from tenure.store.store import Store

    url = store_url(settings, world)
    if not settings.store:
        folder = state_folder(world.environment, world.home)
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{folder}: cannot be made ({error.strerror or error})") from error
    apart = None if url.startswith("sqlite") else Spills(state_folder(world.environment, world.home) / "spills")
    return Store(url, now=world.now, spills=apart, on_damage=on_damage)


def _sheet(store: Records, settings: Settings) -> Conversation | None:
    """The cover sheet of the session that goes on; None for a new one. Raises InputError when there is none such."""
    if not settings.newest and not settings.resume:
        return None
    folder = str(settings.folder.resolve())
    here = [sheet for sheet in store.conversations(folder) if sheet.length and not sheet.is_part]
    if settings.newest:
        if not here:
            raise InputError("session", f"none to go on with in {folder}", "one that was held here before")
        return here[0]
    found = [sheet for sheet in here if sheet.id.startswith(settings.resume)]
    if len(found) > 1:
        raise InputError("session", f"{settings.resume!r} begins the ids of {len(found)} sessions", "more of the id")
    return found[0] if found else store.conversation(settings.resume)


def _folder(settings: Settings, sheet: Conversation | None) -> Path:
    """Where the agent works: a session that goes on, in its own folder."""
    held = Path(sheet.tenant) if sheet is not None and sheet.tenant and not settings.newest else None
    folder = (held if held is not None and held.is_absolute() and held.is_dir() else settings.folder).resolve()
    if not folder.is_dir():
        raise InputError("folder", f"{str(folder)!r} is no folder", "one to work in")
    return folder


def _speaking(settings: Settings, world: World, store: Records, sheet: Conversation | None) -> tuple[ModelChoice, Speaker]:
    if not settings.model and sheet is None:
        raise UnusableModel("no model was named: use --model MODEL (-m), or set TENURE_MODEL")
    if settings.model or sheet is None:
        choice = chosen(settings.model, base_url=settings.base_url or url_elsewhere(settings.model, world.environment))
    else:
        choice = _held(settings, sheet)
    if settings.output:
        choice = replace(choice, output=settings.output)
    done = len(store.usages(sheet.id)) if sheet is not None else 0
    choice, speaker = speaker_of(choice, world, settings.folder, done=done)
    if settings.allowance.usd and not prices_for(choice.name, choice.provider).known:
        raise InputError("--max-usd", f"no price is known for {choice.spec}", "a model in the price list, or --max-tokens")
    return choice, speaker


def _held(settings: Settings, sheet: Conversation) -> ModelChoice:
    """The model of a session that goes on, where it was. Raises UnusableModel when that is not known: the session may be nobody else's to read."""
    url = settings.base_url or Terms.stored(sheet.terms).base_url
    held = f"session {sheet.id[:8]} was held with {sheet.model or 'a model that was not named'}"
    if not url:
        raise UnusableModel(f"{held}, and the store does not say where: name the model with --model MODEL (-m)")
    if not is_whole(url):
        raise UnusableModel(f"{held} at {url}, of which what may be secret is not kept: give all of it with --base-url URL")
    if settings.store and not settings.base_url and not is_known(url):
        # whoever made the store may not have been this user, and the key of the API would go there
        raise UnusableModel(f"{held} at {url}, says the store: to send it there, add --base-url {shlex.quote(url)}")
    spec = spec_of(sheet.dialect, sheet.model, url)
    if not spec:
        raise UnusableModel(f"{held} at {url}, which cannot be asked for again: name the model with --model MODEL (-m)")
    return chosen(spec, base_url="" if is_scripted(spec) else url)


def _context(
    settings: Settings,
    world: World,
    store: Records,
    sheet: Conversation | None,
    folder: Path,
    choice: ModelChoice,
    speaker: Speaker,
    decisions: list[Decision],
    helping: HelperSignals,
) -> Context:
    room = choice.window - choice.reserve
    context = Context(
        dialect=cast(DialectName, choice.api),
        budget=settings.budget or settings.limits.budget(room),
        policy=cast(PolicyName, settings.policy),
        compat=cast(Any, settings.compat),  # checked where it is read
        gate=cast(Any, settings.gate),
        cache_life=settings.cache_life,
        planner=model_in_role("planner", choice, speaker, settings, world, helping),
        summariser=model_in_role("summariser", choice, speaker, settings, world, helping),
        handoff_at=settings.handoff_at,
        middle_out=settings.handoff == MIDDLE_OUT,
        digest=model_in_role("digest", choice, speaker, settings, world, helping),
        digest_above=settings.digest_above,
        nearest=nearness(settings.embeddings, world, Vectors.beside(store.spills.folder), patience_s=EMBEDDING_S),
        store=store,
        conversation=sheet.id if sheet is not None else "",
        model=choice.name,
        provider=choice.provider,
        base_url=choice.url(folder),
        tenant=str(folder),
        clip=settings.clip,
        tokenizer=world.tokens,
        on_decision=decisions.append,
        clock=world.now,
        notes=settings.notes,
    )
    setup = context.session.setup  # the model's window bounds the budget in force, and not the one that is kept
    context.session.setup = replace(setup, budget=bounded(setup.budget, room))
    return context


def _marks(settings: Settings, sheet: Conversation | None) -> bool:
    """Whether the agent marks episodes: it may, and the policy reads marks."""
    kept = Terms.stored(sheet.terms if sheet is not None else "")
    policy = kept.amended(policy=settings.policy, compat=settings.compat).policy_object(settings.policy)
    return settings.episodes and bool(marks_of(policy))


async def _servers(settings: Settings, world: World, folder: Path, scratch: Path) -> tuple[Servers | None, tuple[str, ...]]:
    if settings.servers is None:
        return None, ()
    try:
        text = read_file(settings.servers, _LARGEST).decode()
    except UnicodeError as error:
        raise InputError(str(settings.servers), f"cannot be read ({error})") from error
    configs, wrong = read_configs(text, world.environment, str(settings.servers))
    taken = {*VIRTUAL, *toolbox().names}
    return await start_servers(configs, folder=folder, limit_s=ToolLimits().server_start_s, taken=taken, logs=scratch), wrong


def _snapshots(
    settings: Settings, world: World, folder: Path, context: Context, scratch: Scratch, parent: Parts | None
) -> Snapshots | None:
    """Where the files are kept as they were; a sub-agent in the same folder keeps them with those of the agent that it works for."""
    if parent is not None and (parent.snapshots is None or parent.snapshots.folder == folder):
        return parent.snapshots
    if not settings.snapshots:
        return None
    kept = Snapshots.beside(context.store.spills.folder, scratch.path)
    return Snapshots(kept, folder, context.conversation, environment=world.environment, now=world.now)


def unwalled(mode: Mode, means: Means) -> tuple[str, ...]:
    """What is to be said of a mode in which only what reads may run, where nothing but its words tells that it does."""
    return (NO_WALL,) if mode in LOOKING and means is Means.NONE else ()


def _means(settings: Settings, world: World) -> Means:
    """What makes the walls. Raises InputError where they were asked for and there are none."""
    means = world.walls if world.walls is not None else find_means(world.environment)
    if settings.sandbox and means is Means.NONE:
        raise InputError("--sandbox", "neither bubblewrap (`bwrap`) nor Landlock works here", "one of them, or no sandbox")
    return means


def _toolbox(settings: Settings, world: World, admitted: Admitted, place: Place, more: Sequence[Tool], means: Means) -> Toolbox:
    hidden = (configuration_folder(world.environment, world.home),)
    walls = Walls(means=means, hidden=hidden, sandbox=Sandbox(network=settings.network) if settings.sandbox else None)
    skills = admitted.skills
    return toolbox(read_skill=(lambda name: read_skill(skills, name, place)) if skills else None, walls=walls, more=more)
