"""Keys to models: from the environment, or from a file that only its owner can read (an edge). A key is never shown.

    # ~/.config/tenure/keys.toml, mode 0600
    anthropic = "sk-ant-…"
    openai = "sk-…"
    "llm.example.org:8000" = "…"       # a server of one's own, by host

The environment counts before the file. A provider that is known gets its own key only (`GROQ_API_KEY`), a server that is not known that of the API it
speaks (`OPENAI_API_KEY`). A file that others can read is not read at all.
"""

import os
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast

from tenure.agent.catalogue import Chosen
from tenure.errors import InputError
from tenure.models.hosts import ANTHROPIC, MAKERS, NAMED, OPENAI, Service, is_loopback

FILE: Final = "keys.toml"
LARGEST: Final = 65_536  # bytes
# Besides a key, what the SDK of Anthropic finds credentials by: a token, a profile, a workload's identity.
_OTHER_WAYS: Final = (
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_PROFILE",
    "ANTHROPIC_CONFIG_DIR",
    "ANTHROPIC_FEDERATION_RULE_ID",
)


def key_for(choice: Chosen, environment: Mapping[str, str], configuration: Path) -> str | None:
    """The key for a model; None to leave it to the SDK, which has ways of its own. Raises InputError for a key file that cannot be trusted.

    A server on this machine that nobody has a key for gets "-".
    """
    service = _service(choice)
    found = next((environment[name] for name in (service.variable, *service.also) if environment.get(name)), None)
    if choice.provider and found:
        return found
    kept = kept_keys(configuration)
    for name in (choice.host, choice.provider):
        if name and kept.get(name):
            return kept[name]
    return found or ("-" if is_loopback(choice.host) else None)


def has_other_way(choice: Chosen, environment: Mapping[str, str], home: Path) -> bool:
    """Whether the SDK may find credentials that are no key."""
    if MAKERS.get(choice.api) is not ANTHROPIC:
        return False
    return any(environment.get(name) for name in _OTHER_WAYS) or (home / ".config" / ANTHROPIC.name).is_dir()


def sought(choice: Chosen, configuration: Path) -> str:
    """Where a key for a model is looked for, for people who have given none."""
    name = choice.provider or f'"{choice.host}"'
    return f'set {_service(choice).variable}, or write {name} = "…" into {configuration / FILE} (chmod 600)'


def _service(choice: Chosen) -> Service:
    """Whose key a model takes: its provider's, else that of the API's maker."""
    return NAMED.get(choice.provider) or MAKERS.get(choice.api) or OPENAI


def configuration_folder(environment: Mapping[str, str], home: Path) -> Path:
    """Where settings of this program lie."""
    return _based(environment.get("XDG_CONFIG_HOME"), home / ".config") / "tenure"


def state_folder(environment: Mapping[str, str], home: Path) -> Path:
    """Where sessions lie."""
    return _based(environment.get("XDG_STATE_HOME"), home / ".local" / "state") / "tenure"


def _based(given: str | None, usual: Path) -> Path:
    """A folder that a variable names; one that is not absolute does not count, says the standard."""
    return Path(given) if given and Path(given).is_absolute() else usual


def kept_keys(configuration: Path) -> Mapping[str, str]:
    """The keys of the file in a configuration folder, by provider or host. Raises InputError for a file that cannot be trusted."""
    path = configuration / FILE
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InputError(str(path), f"cannot be read ({error.strerror or error})", "a file of keys") from error
    try:
        _require_own(path, os.fstat(opened))
        data = os.read(opened, LARGEST)
    finally:
        os.close(opened)
    try:
        held = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeError, RecursionError):
        raise InputError(str(path), "no TOML", 'lines such as anthropic = "…"') from None  # its words may hold a key
    return {name: value for name, value in held.items() if isinstance(value, str)} | _tables(held)


def _require_own(path: Path, facts: os.stat_result) -> None:
    """Raise InputError unless it is a file that nobody but its owner, who is the user, can read."""
    if not stat.S_ISREG(facts.st_mode):
        raise InputError(str(path), "not a file", "a file of keys")
    if not hasattr(os, "geteuid"):
        return
    if stat.S_IMODE(facts.st_mode) & 0o077:
        raise InputError(str(path), f"mode {stat.S_IMODE(facts.st_mode):04o}, so others can read it", f"0600: chmod 600 {path}")
    if facts.st_uid not in (os.geteuid(), 0):
        raise InputError(str(path), "a file of another user", "one of your own")


def _tables(held: Mapping[str, object]) -> dict[str, str]:
    """Keys that stand in a table of their own: `[openai]`, `api_key = "…"`."""
    found: dict[str, str] = {}
    for name, value in held.items():
        if isinstance(value, dict):
            key = cast(dict[str, object], value).get("api_key")
            found |= {name: key} if isinstance(key, str) else {}
    return found
