"""The command that plays one task, as a harness gives it to a shell in a container. Pure."""

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from tenure.agent.catalogue import is_scripted
from tenure.lab.bench.play import CEILING, CWL

SESSION: Final = "tenure"  # the conversation's id, in every container the same
FOLDER: Final = "tenure"  # below a harness's folder of logs
WORDS: Final = "words.txt"
PID: Final = "pid"
LOG: Final = "log.txt"
EXTRAS: Final = "tenure[agent,anthropic,openai]"

# Variables with keys, and where servers are: what the agent's process is given, and its commands are not.
KEYS: Final = (
    "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "DEEPSEEK_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY", "XAI_API_KEY", "GEMINI_API_KEY",
    "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL",
)  # fmt: skip
# Providers that speak OpenAI's API, by the names that harnesses give them.
SERVERS: Final[Mapping[str, str]] = {
    "openrouter": "https://openrouter.ai/api/v1",
    "deepseek": "https://api.deepseek.com/v1",
    "groq": "https://api.groq.com/openai/v1",
    "mistral": "https://api.mistral.ai/v1",
    "xai": "https://api.x.ai/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta/openai",
}
_OURS: Final = re.compile(r"(?:openai|anthropic|openai-chat|openai-responses|scripted):")


class PlayCommand(Struct, frozen=True, kw_only=True):
    """What a harness's user decides."""

    model: str  # as the harness names it: provider/name
    condition: str = CWL.name
    ceiling: str = str(CEILING)
    endpoint: str = ""
    max_calls: int = 0
    max_usd: float = 0.0
    fields: str = ""  # JSON
    program: str = "tenure"


def spec_of(model: str) -> tuple[str, str]:
    """A harness's model as ours, and where its API is if not at its owner's: `anthropic/claude-…` is `anthropic:claude-…`."""
    if _OURS.match(model):
        return model, ""
    provider, slash, name = model.partition("/")
    if not slash:
        return f"openai:{model}", ""
    if provider in ("openai", "anthropic"):
        return f"{provider}:{name}", ""
    if provider in SERVERS:
        return f"openai:{name}", SERVERS[provider]
    return f"openai:{model}", ""


def command(playing: PlayCommand, folder: str, *, task: str, cwd: str = ".") -> str:
    """The command line. `folder` is where the words are and everything goes to; its process writes down its id, so that it can be asked to end."""
    spec, server = spec_of(playing.model)
    endpoint = playing.endpoint or server
    arguments: Sequence[str] = (
        playing.program,
        "bench",
        "task",
        f"--words={folder}/{WORDS}",
        f"--folder={folder}",
        f"--task={task}",
        f"--session={SESSION}",
        f"--cwd={cwd}",
        f"--model={spec}",
        f"--condition={playing.condition}",
        f"--ceiling={playing.ceiling}",
        *([f"--base-url={endpoint}"] if endpoint and not is_scripted(spec) else []),
        *([f"--max-steps={playing.max_calls}"] if playing.max_calls else []),
        *([f"--max-usd={playing.max_usd}"] if playing.max_usd else []),
        *([f"--fields={playing.fields}"] if playing.fields else []),
    )
    inner = f"echo $$ > {shlex.quote(f'{folder}/{PID}')}; exec {shlex.join(arguments)}"
    return f"sh -c {shlex.quote(inner)} 2>&1 </dev/null | tee {shlex.quote(f'{folder}/{LOG}')}"


def stop(folder: str) -> str:
    """The command line that asks a running task to end, and waits up to ten seconds until it has: its record is whole then."""
    pid = shlex.quote(f"{folder}/{PID}")
    return (
        f"if [ -s {pid} ]; then p=$(cat {pid}); kill -TERM $p 2>/dev/null; n=0;"
        " while kill -0 $p 2>/dev/null && [ $n -lt 100 ]; do sleep 0.1; n=$((n+1)); done; kill -KILL $p 2>/dev/null; fi; true"
    )


def install(requirement: str) -> str:
    """A script that installs the agent for the user that it runs as, with a Python of its own; `requirement` as pip takes it."""
    return "\n".join(
        [
            "set -eu",
            'export PATH="$HOME/.local/bin:$PATH"',
            "if ! command -v uv >/dev/null 2>&1; then curl -LsSf https://astral.sh/uv/install.sh | sh; fi",
            f"uv tool install --python 3.12 {shlex.quote(requirement)}",
            "tenure --help >/dev/null",
        ]
    )


def requirement(package: str) -> str:
    """What to install: a version, a URL or a requirement as it is, a wheel by the path that it has in the container."""
    if package.endswith(".whl"):
        return f"{EXTRAS} @ file://{package}"
    if re.fullmatch(r"[\d.]+\w*", package):
        return f"{EXTRAS}=={package}"
    return package or EXTRAS
