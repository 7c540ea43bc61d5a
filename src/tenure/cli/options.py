"""Options that several commands share, with the same name and meaning in each; those that go together are a group, taken as one value."""

import inspect
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Final, Literal, cast

import typer
from msgspec.structs import replace

from tenure.engine.lifecycle.budget import Budget, parse_tokens
from tenure.engine.record.visible import visible_json
from tenure.errors import StoreError

if TYPE_CHECKING:
    from tenure.agent.settings import Settings
    from tenure.models.embedding import Nearness


def option(metavar: str, text: str, *names: str, **more: Any) -> Any:
    """An option with a value; named like its parameter unless `names` say otherwise."""
    return typer.Option(*names, metavar=metavar, help=text, **more)


def flag(name: str, text: str, *others: str) -> Any:
    """An option without a value."""
    return typer.Option(name, *others, help=text)


def argument(metavar: str, text: str, **more: Any) -> Any:
    """What stands without a name."""
    return typer.Argument(metavar=metavar, help=text, **more)


DEFAULT_LIMIT: Final = "80k"  # CWL paper, section 5: where the cost fell and accuracy did not
STDOUT: Final = "-"
SESSION_HELP: Final = "A session file of any known agent, or a Tenure store; `tenure sessions` lists what is on this machine."

Model = Annotated[
    str,
    option(
        "MODEL",
        "The model, such as anthropic:claude-opus-4-5, openai:gpt-5, ollama:qwen3 or scripted:FILE.",
        "--model",
        "-m",
        envvar="TENURE_MODEL",
    ),
]
BaseUrl = Annotated[str, option("URL", "The address of a compatible server.")]
Fields = Annotated[str, option("JSON", 'More settings of the provider\'s API, such as {"reasoning": {"effort": "low"}}.')]
EmbeddingsOption = Annotated[
    str,
    option(
        "MODEL",
        "Search words by meaning too: minilm (on this machine), openai:text-embedding-3-small, ollama:nomic-embed-text, …",
        "--embeddings",
        envvar="TENURE_EMBEDDINGS",
    ),
]
StoreAt = Annotated[str, option("PLACE", "Where sessions are stored: a file or a database URL.")]
Light = Annotated[bool, flag("--light", "Use the light theme.")]
Target = Annotated[str, option("TOKENS", "Above this, evict when it pays: 80k (the default of wrap), or 50% of the window.")]
Ceiling = Annotated[
    str, option("TOKENS", "Never send more than this, whatever it costs. Default but for wrap: 80k, unless --target is given.")
]
Floor = Annotated[str, option("TOKENS", "Evict down to this. Default: 60% of the limit.")]
PricedAs = Annotated[str, option("MODEL", "Price and count as this model. Default: the model in the log.", "--model", "-m")]
HeadTokens = Annotated[
    str,
    option("TOKENS", "Tokens of system prompt and tools, which most logs leave out. Default: what the reported usage reveals."),
]
MarkFiles = Annotated[
    list[str] | None,
    option("FILE", "Read delimiter calls of the agent from this file, or a folder of such files; may be repeated.", "--marks"),
]
JsonLines = Annotated[str, option("FILE", "Write every event as JSON lines (- for standard output).", "--json")]
Bridge = Annotated[bool, flag("--bridge", "Answer Codex's WebSocket, by requests over HTTP. Without it: 426, and it takes HTTP.")]
Quiet = Annotated[bool, flag("--quiet", "Print errors only.", "-q")]


@dataclass(frozen=True, kw_only=True)
class LimitOptions:
    """The limits of a recorded session's window."""

    target: Target = ""
    ceiling: Ceiling = ""
    floor: Floor = ""
    window: Annotated[str, option("TOKENS", "The model's context window, less the room for its reply. Default: 180k.")] = ""

    def budget(self, *, usual: Literal["ceiling", "target", ""] = "ceiling") -> Budget:
        """The budget; without any limit it has the default one, as a ceiling, as a target, or not at all. Raises InputError for nonsense."""
        limits = {"target": self.target, "ceiling": self.ceiling, "floor": self.floor, "window": self.window}
        if usual and not (self.target or self.ceiling):
            limits[usual] = DEFAULT_LIMIT
        return Budget.parse(**{name: text or None for name, text in limits.items()})


@dataclass(frozen=True, kw_only=True)
class SessionOptions:
    """The model and the session of the agent."""

    model: Model = ""
    base_url: BaseUrl = ""
    go_on: Annotated[bool, flag("--continue", "Continue the newest session of this folder.", "-c")] = False
    resume: Annotated[str, option("ID", "Continue this session.")] = ""
    store: StoreAt = ""


@dataclass(frozen=True, kw_only=True)
class PermissionOptions:
    """What the agent may do."""

    approve: Annotated[
        str,
        option(
            "MODE", "What needs no approval: ask (reading only, the default), edits, all. read-only and plan refuse every change."
        ),
    ] = ""
    sandbox: Annotated[
        bool,
        flag("--sandbox", "Run every command in a sandbox (bubblewrap or Landlock): only the folder is writable, no network."),
    ] = False
    network: Annotated[bool, flag("--network", "Allow the network in the sandbox.")] = False
    allow_outside: Annotated[
        bool, flag("--allow-outside", "Let commands that you allowed change files outside the folder too.")
    ] = False
    no_snapshots: Annotated[
        bool, flag("--no-snapshots", "Keep no copy of the files before each change: `tenure rewind` has nothing to undo.")
    ] = False
    follow_links: Annotated[
        bool, flag("--follow-links", "Read instruction files and skills of the folder that are links to files outside it.")
    ] = False
    mcp: Annotated[Path | None, option("FILE", "A JSON file of MCP servers.")] = None


@dataclass(frozen=True, kw_only=True)
class WindowOptions:
    """The policy and the limits of the agent's window. Without a limit the usual budget holds."""

    policy: Annotated[str, option("NAME", "The eviction policy: graph, cwl, tiered or none. Default: the session's own.")] = ""
    compat: Annotated[str, option("NAME", "A published version of cwl instead: paper or pi-cwl.")] = ""
    gate: Annotated[str, option("NAME", "What a plan is priced by: priced, bounded or selfgc-paper.")] = ""
    target: Target = ""
    ceiling: Annotated[str, option("TOKENS", "Never send more than this.")] = ""
    floor: Floor = ""
    window: Annotated[
        str, option("TOKENS", "The model's context window. Default: as the price list says, at most 180k, less room for a reply.")
    ] = ""
    summariser: Annotated[
        str, option("MODEL", "Who writes briefs of handoffs: a model, same, helper or off. Default: helper.")
    ] = ""
    handoff_at: Annotated[
        str, option("TOKENS", "Hand off history at a prompt of that size: 85% of the window, or 120k; 0: never.")
    ] = ""
    planner: Annotated[str, option("MODEL", "Who plans what leaves (Self-GC): a model, same, helper or off. Default: off.")] = ""
    digest: Annotated[str, option("MODEL", "Who digests very large results: a model, same, helper or off. Default: off.")] = ""


def settings_of(
    context: typer.Context, session: SessionOptions, may: PermissionOptions, window: WindowOptions, *, folder: Path | None = None
) -> "Settings":
    """The agent's settings: what was given, else the files'. A session that goes on keeps its own model, not the environment's. Raises InputError."""
    from tenure.agent.settings_file import OPTION, changed, usual_settings

    goes_on = session.go_on or bool(session.resume)
    folder, given = folder or Path.cwd(), context.get_parameter_source("model")
    keeps_own = goes_on and given is not None and given.name == "ENVIRONMENT"
    settings = usual_settings(folder, goes_on=goes_on)
    texts = {
        "model": "" if keeps_own else session.model,
        "base_url": session.base_url,
        "store": session.store,
        "approve": may.approve,
        "mcp": str(may.mcp or ""),
        **{each.name: getattr(window, each.name) for each in fields(window)},
    }
    settings = changed(settings, {name: text for name, text in texts.items() if text}, where=OPTION)
    return replace(
        settings,
        resume=session.resume,
        newest=session.go_on,
        sandbox=settings.sandbox or may.sandbox,
        network=settings.network or may.network,
        allow_outside=may.allow_outside,
        snapshots=settings.snapshots and not may.no_snapshots,
        follow_links=settings.follow_links or may.follow_links,
    )


def flat(command: Callable[..., object]) -> Callable[..., object]:
    """A command with the fields of its groups as options of their own, which is how typer takes them."""
    groups: dict[str, type] = {}
    parameters: list[inspect.Parameter] = []
    for each in inspect.signature(command, eval_str=True).parameters.values():
        if is_dataclass(each.annotation):
            groups[each.name] = cast(type, each.annotation)
            parameters += inspect.signature(groups[each.name], eval_str=True).parameters.values()
        else:
            parameters.append(each)

    @wraps(command)
    def called(**given: Any) -> object:
        values = {name: group(**{each.name: given.pop(each.name) for each in fields(group)}) for name, group in groups.items()}
        return command(**given, **values)

    keyword = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    called.__signature__ = inspect.Signature(keyword)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    return called


def head_of(tokens: str) -> int | None:
    """None for what the log's reports reveal. Raises InputError for what is no number of tokens."""
    if not tokens.strip():
        return None
    return 0 if tokens.strip() == "0" else parse_tokens("--head-tokens", tokens, of=None)


def fields_of(text: str) -> dict[str, object]:
    """Settings given as a JSON object. Raises InputError for what is none."""
    from tenure.apis.json_text import load, object_of

    return dict(object_of(load(text, "--fields"), "--fields")) if text.strip() else {}


class _VisibleOutput:
    """Standard output, which may be a terminal: JSON is written so that no terminal obeys it, and means the same."""

    def write(self, encoded: bytes) -> int:
        """Write some whole lines of JSON."""
        return sys.stdout.buffer.write(visible_json(encoded))

    def flush(self) -> None:
        """Flush standard output."""
        sys.stdout.buffer.flush()


@contextmanager
def output(path: str) -> Generator[IO[bytes] | None]:
    """The file of that path, `-` for standard output; None without a path. Raises StoreError where it cannot be written."""
    if not path:
        yield None
    elif path == STDOUT:
        yield cast(IO[bytes], _VisibleOutput())
        sys.stdout.buffer.flush()
    else:
        try:
            with Path(path).open("wb") as file:
                yield file
        except BrokenPipeError:
            raise
        except OSError as error:
            raise StoreError(f"{path}: cannot be written ({error.strerror or error})") from error


def nearness(spec: str) -> "Nearness | None":
    """What ranks texts by meaning; None for an empty name. Vectors are kept in the user's state folder. Raises InputError."""
    if not spec:
        return None
    from tenure.agent import access
    from tenure.agent.settings import World
    from tenure.store.vectors import Vectors

    world = World()
    return access.nearness(spec, world, Vectors(access.state_folder(world.environment, world.home) / "sessions.vectors"))
