"""Agents that `tenure wrap` can start, and how each is told where to send its requests: by environment and arguments, never by its configuration.

In the values `$url` stands for the gateway's address, `$folder` for a private folder of this run. Held against the programs themselves by tests/clients.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from string import Template
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from tenure.models.hosts import MAKERS

NOTHING: Final[Mapping[str, str]] = MappingProxyType({})

# Where SDKs and LiteLLM look for a base URL; any program that uses one of them finds the gateway there.
BASE_URLS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ANTHROPIC_BASE_URL": "$url",
        "ANTHROPIC_API_BASE": "$url",
        "OPENAI_BASE_URL": "$url/v1",
        "OPENAI_API_BASE": "$url/v1",
        "GOOGLE_GEMINI_BASE_URL": "$url",
        "GEMINI_API_BASE": "$url/v1beta",
    }
)
CHATGPT: Final = "chatgpt"  # the upstream of a Codex that is signed in with ChatGPT
CHATGPT_URL: Final = "https://chatgpt.com/backend-api/codex"


class Program(Struct, frozen=True, kw_only=True):
    """An agent, and what starts it in front of a gateway."""

    name: str  # behind `tenure wrap`, and on the PATH
    title: str = ""
    environment: Mapping[str, str] = BASE_URLS
    arguments: tuple[str, ...] = ()  # in front of the user's own
    files: Mapping[str, str] = NOTHING  # by name, in the private folder
    kept: tuple[str, ...] = ()  # variables that stay as they are where the user has set them
    package: str = ""  # that installs it
    version: str = "--version"  # the argument with which it tells its version, in its first line


class Launch(NamedTuple):
    """A command and its environment, ready to run."""

    command: tuple[str, ...]
    environment: dict[str, str]
    files: Mapping[str, str]  # to be written into the private folder first


# It adds to each what follows the version itself.
_OPENCODE: Final = """\
{"provider": {
  "anthropic": {"options": {"baseURL": "$url/v1"}},
  "openai": {"options": {"baseURL": "$url/v1"}},
  "google": {"options": {"baseURL": "$url/v1beta"}}
}}"""
_PI: Final = """\
export default function (pi) {
  pi.registerProvider("anthropic", { baseUrl: "$url" });
  pi.registerProvider("openai", { baseUrl: "$url/v1" });
  pi.registerProvider("google", { baseUrl: "$url/v1beta" });
}
"""

# With a base URL in the environment Gemini CLI 0.61 takes a kind of credentials that it then refuses itself; these defaults name the usual one. What the user has chosen counts more.
_GEMINI: Final = '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'

_PROGRAMS: Final = (
    Program(
        name="claude",
        title="Claude Code",
        environment=MappingProxyType({"ANTHROPIC_BASE_URL": "$url"}),
        package="npm i -g @anthropic-ai/claude-code",
    ),
    Program(
        name="codex",
        title="Codex",
        environment=NOTHING,
        arguments=("-c", 'openai_base_url="$url/v1"'),
        package="npm i -g @openai/codex",
    ),
    Program(
        name="opencode",
        title="OpenCode",
        environment=MappingProxyType({"OPENCODE_CONFIG_CONTENT": _OPENCODE}),
        package="npm i -g opencode-ai",
    ),
    Program(
        name="pi",
        title="pi",
        environment=NOTHING,
        arguments=("-e", "$folder/tenure.ts"),
        files=MappingProxyType({"tenure.ts": _PI}),
        package="npm i -g @earendil-works/pi-coding-agent",
    ),
    Program(
        name="gemini",
        title="Gemini CLI",
        environment=MappingProxyType(
            {"GOOGLE_GEMINI_BASE_URL": "$url", "GEMINI_CLI_SYSTEM_DEFAULTS_PATH": "$folder/gemini.json"}
        ),
        files=MappingProxyType({"gemini.json": _GEMINI}),
        kept=("GEMINI_CLI_SYSTEM_DEFAULTS_PATH",),
        package="npm i -g @google/gemini-cli",
    ),
    Program(name="mini", title="mini-swe-agent", package="pip install mini-swe-agent", version="--help"),
    Program(name="aider", title="aider", package="pip install aider-chat"),
)
PROGRAMS: Final[Mapping[str, Program]] = MappingProxyType({each.name: each for each in _PROGRAMS})
ALIASES: Final[Mapping[str, str]] = MappingProxyType({"mini-swe-agent": "mini"})


def program_named(name: str) -> Program:
    """The program of a command; of one that is not known, whatever finds a base URL in its environment."""
    plain = Path(name).name
    known = PROGRAMS.get(ALIASES.get(plain, plain))
    return known or Program(name=plain)


def start(
    command: Sequence[str], url: str, folder: Path, environment: Mapping[str, str], *, is_subscribed: bool = False
) -> Launch:
    """How to run a command in front of the gateway at `url`. `is_subscribed`: it signs in with a plan rather than a key."""
    program = program_named(command[0])
    fill = _filler(url, folder)
    arguments = [fill(each) for each in program.arguments]
    if is_subscribed:
        arguments = [each.replace(f"{url}/v1", f"{url}/{CHATGPT}") for each in arguments]
    added = {
        name: fill(value) for name, value in program.environment.items() if name not in program.kept or name not in environment
    }
    merged = {name: _merged(environment.get(name, ""), value) for name, value in added.items()}
    return Launch(
        command=(command[0], *arguments, *command[1:]),
        environment={**environment, **merged},
        files={name: fill(text) for name, text in program.files.items()},
    )


def upstreams(environment: Mapping[str, str]) -> dict[str, str]:
    """Base URLs by name where they are not the makers' own: those that the user's environment has named until now, and the one of a plan."""
    named = {maker.name: environment.get(maker.elsewhere, "") for maker in MAKERS.values()}
    return {CHATGPT: CHATGPT_URL, **{name: url for name, url in named.items() if url}}


def _filler(url: str, folder: Path) -> Callable[[str], str]:
    return lambda text: Template(text).safe_substitute(url=url, folder=str(folder))


def _merged(given: str, ours: str) -> str:
    """Our value, with what the user has set where both are settings in JSON."""
    try:
        theirs = msgspec.json.decode(given, type=dict[str, Any])
        return msgspec.json.encode(_together(theirs, msgspec.json.decode(ours, type=dict[str, Any]))).decode()
    except msgspec.MsgspecError:
        return ours


def _together(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The settings of both; what both set is as `other` says."""
    shared = {key: _together(one[key], other[key]) for key in one.keys() & other.keys() if _is_nested(one[key], other[key])}
    return {**one, **other, **shared}


def _is_nested(*values: object) -> bool:
    return all(isinstance(value, dict) for value in values)
