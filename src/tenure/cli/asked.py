"""Options that several commands share, with the same name and meaning in each."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Final, cast

import typer

from tenure.engine.lifecycle.budget import Budget, parse_tokens
from tenure.engine.record.visible import visible_json
from tenure.errors import StoreError

DEFAULT_CEILING: Final = "80k"  # CWL paper, section 5: where the cost fell and accuracy did not
STDOUT: Final = "-"

# The model that is talked with.
Model = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        envvar="TENURE_MODEL",
        help="The model, such as anthropic:claude-opus-4-5, openai:gpt-5, ollama:qwen3 or scripted:FILE.",
    ),
]
BaseUrl = Annotated[str, typer.Option(metavar="URL", help="The address of a compatible server.")]
Fields = Annotated[
    str,
    typer.Option(metavar="JSON", help='More settings of the provider\'s API, such as {"reasoning": {"effort": "low"}}.'),
]
Continue = Annotated[bool, typer.Option("--continue", "-c", help="Continue the newest session of this folder.")]
Resume = Annotated[str, typer.Option(metavar="ID", help="Continue this session.")]
StoreAt = Annotated[str, typer.Option(metavar="PLACE", help="Where sessions are stored: a file or a database URL.")]
Approve = Annotated[
    str,
    typer.Option(metavar="MODE", help="What needs no approval: ask (reading only), edits, all. read-only refuses every change."),
]
SandboxOn = Annotated[
    bool,
    typer.Option(
        "--sandbox", help="Run every command in a sandbox (bubblewrap or Landlock): only the folder is writable, no network."
    ),
]
AllowOutside = Annotated[
    bool, typer.Option("--allow-outside", help="Let commands that you allowed change files outside the folder too.")
]
NoSnapshots = Annotated[
    bool,
    typer.Option("--no-snapshots", help="Keep no copy of the files before each change: `tenure rewind` has nothing to undo."),
]
FollowLinks = Annotated[
    bool,
    typer.Option("--follow-links", help="Read instruction files and skills of the folder that are links to files outside it."),
]
Mcp = Annotated[Path | None, typer.Option(metavar="FILE", help="A JSON file of MCP servers.")]
Light = Annotated[bool, typer.Option("--light", help="Use the light theme.")]

# What decides about a window.
PolicyName = Annotated[
    str, typer.Option(metavar="NAME", help="The eviction policy: provenance, cwl, tiered or none. Default: the session's own.")
]
Target = Annotated[str, typer.Option(metavar="TOKENS", help="Above this, evict when it pays: 80k, or 50% of the window.")]
Ceiling = Annotated[
    str, typer.Option(metavar="TOKENS", help="Never send more than this. Default: 80k, unless --target is given.")
]
# Of a session that is talked with: without a limit the usual budget holds.
Limit = Annotated[str, typer.Option("--ceiling", metavar="TOKENS", help="Never send more than this.")]
ModelWindow = Annotated[
    str,
    typer.Option(
        "--window",
        metavar="TOKENS",
        help="The model's context window. Default: as the price list says, at most 180k, less room for a reply.",
    ),
]
Floor = Annotated[str, typer.Option(metavar="TOKENS", help="Evict down to this. Default: 60% of the limit.")]
Window = Annotated[
    str, typer.Option(metavar="TOKENS", help="The model's context window, less the room for its reply. Default: 180k.")
]

# Of recorded sessions.
PricedAs = Annotated[
    str, typer.Option("--model", "-m", metavar="MODEL", help="Price and count as this model. Default: the model in the log.")
]
HeadTokens = Annotated[
    str,
    typer.Option(
        metavar="TOKENS",
        help="Tokens of system prompt and tools, which most logs leave out. Default: what the reported usage reveals.",
    ),
]
SESSION_HELP: Final = "A session file of any known agent, or a Tenure store; `tenure sessions` lists what is on this machine."
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]


def model_of(context: typer.Context, model: str, *, going_on: bool) -> str:
    """The model of the options. That of the environment is for new sessions: one that goes on keeps its own."""
    source = context.get_parameter_source("model")
    return "" if going_on and source is not None and source.name == "ENVIRONMENT" else model


def budget_of(target: str, ceiling: str, floor: str, window: str, *, bounded: bool = True) -> Budget:
    """The budget of the options; without any limit, the default ceiling if it is to be `bounded`. Raises InputError for nonsense."""
    limit = ceiling or ("" if target or not bounded else DEFAULT_CEILING)
    return Budget.parse(target=target or None, ceiling=limit or None, floor=floor or None, window=window or None)


def head_of(tokens: str) -> int | None:
    """None for what the log's reports reveal. Raises InputError for what is no number of tokens."""
    if not tokens.strip():
        return None
    return 0 if tokens.strip() == "0" else parse_tokens("--head-tokens", tokens, of=None)


class _Printed:
    """Standard output, which may be a terminal: JSON is written so that no terminal obeys it, and says the same."""

    def write(self, encoded: bytes) -> int:
        """Write some whole lines of JSON."""
        return sys.stdout.buffer.write(visible_json(encoded))

    def flush(self) -> None:
        """Let it be read."""
        sys.stdout.buffer.flush()


@contextmanager
def output(path: str) -> Generator[IO[bytes] | None]:
    """The file that was asked for, `-` for standard output; a disk that is full is said, and what was written before stays."""
    if not path:
        yield None
    elif path == STDOUT:
        yield cast(IO[bytes], _Printed())
        sys.stdout.buffer.flush()
    else:
        try:
            with Path(path).open("wb") as file:
                yield file
        except BrokenPipeError:
            raise
        except OSError as error:
            raise StoreError(f"{path}: cannot be written ({error.strerror or error})") from error
