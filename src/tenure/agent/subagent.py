"""The tool `task`: one part of the work, done by another agent in a window of its own (an edge).

It works in a folder, with that folder's SCOPE.md, and begins afresh, with what the ended explorations found (a brief made by code), or with everything
that its parent knows (a branch, whose prefix the provider has cached). How deep agents may go and what each may use is bounded. Parts of type `expl`
change nothing, and run beside each other; a part with a type is an episode of its parent's record (`tenure.engine.record.episodes`).
"""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal
from uuid import uuid4

from msgspec import Meta, Struct
from msgspec.structs import replace

from tenure.agent.admission.git_note import GitStatus
from tenure.agent.admission.git_program import GitRepository
from tenure.agent.admission.instructions import scope_section
from tenure.agent.admission.place import place_on_disk
from tenure.agent.admission.prompt import MANNERS, Manner
from tenure.agent.approval import Mode
from tenure.agent.events import CallDone, CallStarted, TurnDone
from tenure.agent.opening import Delegation
from tenure.agent.settings import CHILD_STEPS, CHILD_TOKENS, Allowance, Settings
from tenure.agent.tools.arguments import ArgumentTool, parse_arguments
from tenure.agent.tools.tool import Here, ToolOutcome
from tenure.agent.workspace import Workspace
from tenure.engine.record.episodes import EpisodeType
from tenure.engine.record.index import Index
from tenure.engine.record.tools import ToolKind, cue_of
from tenure.errors import InputError, TenureError
from tenure.store.records import PART, Conversation

if TYPE_CHECKING:
    from tenure.agent.session import Agent

BRIEF_CHARS: Final = 8_000
FINDINGS: Final = 24  # of the newest explorations
FILES: Final = 40  # that are named
TOO_DEEP: Final = "task: you are doing a part yourself, and a part is not handed on: do it with the other tools"


class TaskArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `task`."""

    task: Annotated[
        str, Meta(description="what is to be done or found out, complete in itself: the other agent sees nothing else")
    ]
    folder: Annotated[str, Meta(description="where it works; nothing outside may be changed")] = "."
    seed: Annotated[
        Literal["fresh", "brief", "branch"],
        Meta(
            description="what it knows: fresh, the task alone; brief, also what your ended expl episodes found; branch, all that you know"
        ),
    ] = "fresh"
    type: Annotated[
        Literal["expl", "act"],
        Meta(
            description="expl: it looks and changes nothing, and runs beside other expl parts of the same message; act: it may change files"
        ),
    ] = "act"
    name: Annotated[str, Meta(description="a new, telling name for this part, such as locate-auth")] = ""
    dependencies: Annotated[
        tuple[str, ...], Meta(description="of an act: names of the ended expl parts and episodes that it builds on")
    ] = ()


class TaskTool(ArgumentTool[TaskArguments]):
    """Hands a part of the work to another agent. It needs nothing by itself: each of its calls is asked about."""

    name = "task"
    takes = TaskArguments
    kind = ToolKind.DURABLE
    description = (
        "Give one self-contained part of the work to another agent, which has a context of its own and the same tools, in a folder. Worth it where"
        " much must be read for a short answer, or for a change within one folder; not for what takes a call or two. You get its last message and"
        " the files it changed."
    )

    def __init__(self, parent: "Callable[[], Agent]") -> None:
        """`parent` is the agent that offers it, once that is there."""
        self._parent = parent

    def in_its_place(self, arguments: str) -> bool:
        """Whether nothing may run beside it: it may change something, which its own calls ask about."""
        asked = parse_arguments(TaskArguments, arguments, self.name)
        return isinstance(asked, TaskArguments) and asked.type == "act"

    async def _run(self, given: TaskArguments, here: Here) -> ToolOutcome:
        """What the other agent said last, and what it changed."""
        if not self._parent().parts.settings.depth:
            return ToolOutcome(text=TOO_DEEP, error=True)
        if (problem := self._refusal(here.call)) is not None:
            return ToolOutcome(text=f"task: {problem}", error=True)
        try:
            return await self._delegated(given, _folder(given, here.workspace), here)
        except TenureError as error:
            return ToolOutcome(text=f"task: {error}", error=True)

    def _refusal(self, call: str) -> str | None:
        """Why the record takes the call for no part: its name is used already, or there is nothing of the names it builds on."""
        index = self._parent().context.session.index
        span = index.called(call)
        answer = index.answers.get(span.call) if span is not None else None
        return answer.text if answer is not None else None

    async def _delegated(self, asked: TaskArguments, folder: Path, here: Here) -> ToolOutcome:
        from tenure.agent.session import Agent

        parent = self._parent()
        settings, delegation = _settings(parent, folder, looks=asked.type == "expl"), _delegation(parent, asked, folder)
        child = await Agent.open(settings, parent.parts.world, delegation=delegation)
        tell = parent.adopt(here.call, child)
        repository = GitRepository(folder, environment=here.environment)
        before = await asyncio.to_thread(repository.status)
        paths, written, done = dict[str, str](), list[str](), None
        try:
            async for event in child.run(await asyncio.to_thread(_words, asked, parent, folder)):
                tell(event)
                match event:
                    case CallStarted(tool="edit" | "write"):
                        paths[event.call] = cue_of(event.arguments)
                    case CallDone(outcome="done", call=call) if paths.get(call):
                        written.append(paths[call])
                    case TurnDone():
                        done = event
                    case _:
                        pass
        finally:
            parent.release(here.call)
            await child.close()
        changed = [*written, *_newly_changed(before, await asyncio.to_thread(repository.status))]
        return _outcome(done, [_shown(path, child.parts.workspace, here.workspace) for path in changed])


def _outcome(done: TurnDone | None, changed: list[str]) -> ToolOutcome:
    """What its parent reads of a sub-agent's turn."""
    if done is None:
        return ToolOutcome(text="task: it was stopped before it could say anything", error=True)
    files = list(dict.fromkeys(changed))
    named = ", ".join(files[:FILES]) + (f" and {len(files) - FILES} more" if len(files) > FILES else "")
    ended = "" if done.reason == "done" else f"; not finished: {done.reason}" + (f" ({done.why})" if done.why else "")
    facts = f"[{done.steps} calls of the model, {done.usage.prompt + done.usage.output:,} tokens{ended}; changed: {named or 'nothing'}]"
    return ToolOutcome(text=f"{done.text.strip() or '(it said nothing)'}\n\n{facts}", error=done.reason != "done")


def _folder(asked: TaskArguments, workspace: Workspace) -> Path:
    folder = workspace.path(asked.folder)
    if not folder.is_dir():
        raise InputError("folder", f"{asked.folder!r} is no folder", "one in the workspace")
    if not workspace.holds(folder):
        raise InputError("folder", f"{asked.folder!r} is outside the workspace", "one in it")
    return folder.resolve()


def _settings(parent: "Agent", folder: Path, *, looks: bool) -> Settings:
    """How the part is held: as its parent, in its folder, with what its parent may still use and not more than one part may.

    `looks`: it may change nothing, whatever its parent may.
    """
    settings = parent.parts.settings
    left = parent.spending.left(settings.allowance)
    tokens = min(CHILD_TOKENS, left.tokens or CHILD_TOKENS)
    return replace(
        settings,
        folder=folder,
        resume="",
        newest=False,
        depth=settings.depth - 1,
        mode=Mode.READ_ONLY if looks else settings.mode,
        allowance=Allowance(steps=CHILD_STEPS, usd=left.usd, tokens=tokens),
    )


def _delegation(parent: "Agent", asked: TaskArguments, folder: Path) -> Delegation:
    """Whom the part works for, and the conversation that it begins with, which is made."""
    parts, context = parent.parts, parent.context
    store, id_, title = context.store, uuid4().hex, f"{PART}{' '.join(asked.task.split())[:60]}"
    if asked.seed == "branch":
        store.fork(context.conversation, context.session.index.reply, id_, title)
    else:
        own, model, dialect = store.conversation(context.conversation), parts.choice.name, parts.choice.api
        store.create(
            Conversation(
                id=id_, tenant=str(folder), title=title, model=model, dialect=dialect, budget=own.budget, terms=own.terms
            )
        )
    return Delegation(parent=parts, conversation=id_, is_fork=asked.seed == "branch", looks=asked.type == "expl")


def _words(asked: TaskArguments, parent: "Agent", folder: Path) -> str:
    """What the part is told."""
    match asked.seed:
        case "fresh":
            return asked.task
        case "brief":
            return "\n\n".join([*_brief(parent.context.session.index), f"# Your task\n{asked.task}"])
        case "branch":
            world = parent.parts.world
            page = scope_section(place_on_disk(folder, home=world.home, environment=world.environment))
            scope = page if isinstance(page, str) else ""
            place = f"You work in the folder {folder.as_posix()} now, and paths start there."
            return "\n\n".join(filter(None, (asked.task, MANNERS[Manner.PART], place, scope)))


def _brief(index: Index) -> Iterator[str]:
    """What the ended explorations found, newest last, made by code."""
    lines: list[str] = []
    room = BRIEF_CHARS
    for episode in reversed(index.episodes):
        if not (episode.declared and episode.closed and episode.type is EpisodeType.EXPL):
            continue
        line = f"- {episode.name}: {episode.description}"
        room -= len(line) + 1
        if room < 0 or len(lines) == FINDINGS:
            break
        lines.append(line)
    if lines:
        yield "# What is known already\n" + "\n".join(reversed(lines))


def _shown(path: str, inner: Workspace, outer: Workspace) -> str:
    """A path of the part's folder as its parent would write it."""
    try:
        return outer.shown(inner.path(path))
    except InputError:
        return path


def _newly_changed(before: GitStatus | None, after: GitStatus | None) -> list[str]:
    """What git tells of now and did not before."""
    known = {change.path for change in before.changes} if before is not None else set[str]()
    return [change.path for change in after.changes if change.path not in known] if after is not None else []
