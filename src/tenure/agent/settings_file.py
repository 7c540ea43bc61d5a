"""The settings of the agent by the names that people use: in files, on the command line and behind `/set` (an edge: it reads files).

    # ~/.config/tenure/settings.toml, the user's; .tenure/settings.toml in a folder, the project's
    model = "anthropic:claude-opus-4-5"
    ceiling = "50%"
    summariser = "openai:gpt-5-mini"
    handoff_at = "120k"

The command line counts before the project's file, that before the user's. A project's file is somebody else's: it may say how the window is held, but not
who is asked, what is allowed or what is spent, and what is wrong in it is told and left out.
"""

import os
import stat
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.agent.access import check_embedding, configuration_folder
from tenure.agent.approval import Mode
from tenure.agent.settings import MIDDLE_OUT, SETTINGS_FILE, Settings, World
from tenure.engine.clip.setting import FEWEST
from tenure.engine.lifecycle.automatic import threshold_of
from tenure.engine.lifecycle.budget import GateRule, parse_tokens
from tenure.engine.policies import COMPAT, policy_named
from tenure.errors import InputError

PROJECT: Final = Path(".tenure") / SETTINGS_FILE
OPTION: Final = "--"  # where a text stands that is an option of the command line
_LARGEST: Final = 65_536  # bytes of a file
_SWITCH: Final[Mapping[str, bool]] = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}

Reader = Callable[[str, str], Any]  # where it stands, and the text -> the value. Raises InputError


class Setting(Struct, frozen=True, kw_only=True):
    """One thing that a person can set. `field` is where `Settings` holds it, `form` what may be written."""

    name: str
    form: str
    about: str
    field: str
    read: Reader
    by_project: bool = False  # a project's file may set it
    at_start: bool = False  # and not in a session that is open


class FileSettings(Struct, frozen=True, kw_only=True):
    """What the files say: texts by name, where each stands, and what of a project's file was left out."""

    values: Mapping[str, str] = {}
    origins: Mapping[str, str] = {}
    notices: tuple[str, ...] = ()


def _text(_: str, text: str) -> str:
    return text


def _one_of(*allowed: str) -> Reader:
    def read(where: str, text: str) -> str:
        if text not in allowed:
            raise InputError(where, repr(text), "one of " + ", ".join(allowed))
        return text

    return read


def _switch(where: str, text: str) -> bool:
    if text.lower() not in _SWITCH:
        raise InputError(where, repr(text), "on or off")
    return _SWITCH[text.lower()]


def _number(where: str, text: str) -> int:
    if not text.isdecimal():
        raise InputError(where, repr(text), "a whole number; 0 for no limit")
    return int(text)


def _usd(where: str, text: str) -> float:
    try:
        amount = float(text)
    except ValueError:
        amount = -1.0
    if not 0 <= amount < 1e9:
        raise InputError(where, repr(text), "an amount in USD; 0 for no limit")
    return amount


def _amount(where: str, text: str) -> int:
    """Tokens; 0 is allowed."""
    return 0 if text == "0" else parse_tokens(where, text, of=None)


def _clip(where: str, text: str) -> int:
    tokens = _amount(where, text)
    if 0 < tokens < FEWEST:
        raise InputError(where, repr(text), f"0 for none, or at least {FEWEST} tokens")
    return tokens


def _limit(where: str, text: str) -> str:
    parse_tokens(where, text, of=1_000_000)
    return text


def _handoff_at(where: str, text: str) -> str:
    try:
        threshold_of(text)
    except InputError:
        raise InputError(where, repr(text), "a share of the window such as 85%, tokens such as 120k, or 0 for never") from None
    return text


def _policy(where: str, text: str) -> str:
    try:
        policy_named(text)
    except InputError as error:
        raise InputError(where, str(error)) from None
    return text


def _compat(_: str, text: str) -> str:
    return _one_of(*COMPAT)("compat", text)


def _embeddings(where: str, text: str) -> str:
    try:
        check_embedding(text)
    except InputError as error:
        raise InputError(where, repr(text), error.allowed) from None
    return "" if text == "off" else text


_ROLE: Final = "off, same, helper or MODEL"
_TOKENS: Final = "80k, or 50% of the model's window"

SETTINGS: Final = (
    Setting(name="model", form="MODEL", about="the model to talk with", field="model", read=_text, at_start=True),
    Setting(name="base_url", form="URL", about="the address of a compatible server", field="base_url", read=_text, at_start=True),
    Setting(name="helper", form="MODEL", about="the model that writes titles, and what is left to a helper", field="helper", read=_text),
    Setting(name="policy", form="NAME, or tiered@60/70/85", about="what decides what leaves the window", field="policy", read=_policy, by_project=True),
    Setting(name="compat", form=" or ".join(COMPAT), about="a published version of cwl instead", field="compat", read=_compat, by_project=True),
    Setting(name="gate", form=" or ".join(GateRule), about="what a plan is priced by", field="gate", read=_one_of(*GateRule), by_project=True),
    Setting(name="target", form=_TOKENS, about="above this, evict when it pays", field="limits.target", read=_limit, by_project=True),
    Setting(name="ceiling", form=_TOKENS, about="never send more than this", field="limits.ceiling", read=_limit, by_project=True),
    Setting(name="floor", form="48k, or 60% of the limit", about="how far down one eviction goes", field="limits.floor", read=_limit, by_project=True),
    Setting(name="window", form="200k", about="the model's window, less room for a reply", field="limits.window", read=_limit),
    Setting(name="clip", form="4k; 0: never", about="larger tool results are shown shortened", field="clip", read=_clip, by_project=True),
    Setting(name="notes", form="on or off", about="the agent may write notes that stay", field="notes", read=_switch, by_project=True),
    Setting(name="episodes", form="on or off", about="the agent marks episodes where the policy reads them", field="episodes", read=_switch, by_project=True),
    Setting(name="summariser", form=_ROLE, about="the model that writes the brief of a handoff", field="summariser", read=_text),
    Setting(name="handoff_at", form="85%, 120k; 0: never", about="the prompt at which history is handed off", field="handoff_at", read=_handoff_at, by_project=True),
    Setting(name="handoff", form="whole or middle-out", about="what a brief stands for; middle-out leaves the first exchange too", field="handoff", read=_one_of("whole", MIDDLE_OUT), by_project=True),
    Setting(name="planner", form=_ROLE, about="the model that plans what leaves (Self-GC)", field="planner", read=_text),
    Setting(name="digest", form=_ROLE, about="the model that says what a very large result holds", field="digest", read=_text),
    Setting(name="digest_above", form="8k", about="results of more tokens are digested", field="digest_above", read=_amount, by_project=True),
    Setting(name="embeddings", form="off, minilm or MODEL", about="the model by which history is searched by meaning too", field="embeddings", read=_embeddings),
    Setting(name="look_back", form="on or off", about="tell the model what left the window and fits a prompt", field="look_back", read=_switch, by_project=True),
    Setting(name="cache_life", form="1h", about="how long the provider keeps a prefix", field="cache_life", read=_text),
    Setting(name="approve", form=", ".join(Mode), about="what needs no approval", field="mode", read=lambda where, text: Mode(_one_of(*Mode)(where, text))),
    Setting(name="sandbox", form="on or off", about="run every command in a sandbox", field="sandbox", read=_switch, at_start=True),
    Setting(name="network", form="on or off", about="allow the network in the sandbox", field="network", read=_switch, at_start=True),
    Setting(name="snapshots", form="on or off", about="keep the files as they were before each change", field="snapshots", read=_switch, at_start=True),
    Setting(name="follow_links", form="on or off", about="read instruction files that are links out of the folder", field="follow_links", read=_switch, at_start=True),
    Setting(name="mcp", form="FILE", about="a JSON file of MCP servers", field="servers", read=lambda _, text: Path(text).expanduser(), at_start=True),
    Setting(name="store", form="FILE or URL", about="where sessions are stored", field="store", read=_text, at_start=True),
    Setting(name="max_steps", form="N; 0: no limit", about="calls of the model in one turn", field="allowance.steps", read=_number),
    Setting(name="max_usd", form="USD; 0: no limit", about="money of a session, sub-agents included", field="allowance.usd", read=_usd),
    Setting(name="max_tokens", form="TOKENS; 0: no limit", about="tokens of a session, prompts and replies", field="allowance.tokens", read=_amount),
    Setting(name="theme", form="dark or light", about="of the terminal interface", field="theme", read=_one_of("dark", "light"), at_start=True),
)  # fmt: skip
BY_NAME: Final = {each.name: each for each in SETTINGS}


def changed(settings: Settings, values: Mapping[str, str], *, where: str = "") -> Settings:
    """The settings with these texts, by the names of `SETTINGS`; `where` they stand is said in front of a name.

    Raises InputError for the first that cannot be.
    """
    for name, text in values.items():
        setting = setting_named(name, where)
        value: Any = setting.read(where + (name.replace("_", "-") if where == OPTION else name), text.strip())
        group, _, field = setting.field.rpartition(".")
        if group:
            field, value = group, replace(getattr(settings, group), **{field: value})
        settings = replace(settings, **{field: value} | ({"budget": None} if group == "limits" else {}))
        if name in ("policy", "compat"):
            settings = replace(settings, **{"compat" if name == "policy" else "policy": ""})
    return settings


def setting_named(name: str, where: str = "") -> Setting:
    """The setting of that name. Raises InputError with the names that are near, or all."""
    from difflib import get_close_matches

    if name not in BY_NAME:
        near = get_close_matches(name, BY_NAME, 3) or sorted(BY_NAME)
        raise InputError(where.rstrip(": ") or "setting", f"no setting is named {name[:40]!r}", "one of " + ", ".join(near))
    return BY_NAME[name]


def shown(settings: Settings, setting: Setting) -> str:
    """A setting's value as it is written; empty where the usual holds."""
    value: Any = settings
    for part in setting.field.split("."):
        value = getattr(value, part)
    if value is True or value is False:
        return "on" if value else "off"
    return "" if value is None or value == "" else f"{value:,}" if isinstance(value, int | float) else str(value)


def user_file(world: World) -> Path:
    """Where the user's own settings are."""
    return configuration_folder(world.environment, world.home) / SETTINGS_FILE


def file_settings(folder: Path, world: World) -> FileSettings:
    """What the user's and the project's file say. Raises InputError for a user's file that cannot be understood."""
    path = user_file(world)
    values = _values(path)
    changed(Settings(folder=folder), values, where=f"{path}: ")
    origins = dict.fromkeys(values, str(path))
    project, notices = folder / PROJECT, list[str]()
    try:
        ours = _values(project, within=folder)
    except InputError as error:
        return FileSettings(values=values, origins=origins, notices=(f"{error}; nothing of it holds",))
    for name, text in ours.items():
        try:
            if not setting_named(name, f"{project}: ").by_project:
                raise InputError(f"{project}: {name}", "a setting that only its user may set", f"it in {path}")
            changed(Settings(folder=folder), {name: text}, where=f"{project}: ")
        except InputError as error:
            notices.append(str(error))
        else:
            values[name], origins[name] = text, str(project)
    return FileSettings(values=values, origins=origins, notices=tuple(notices))


def usual_settings(folder: Path, world: World | None = None, *, goes_on: bool = False) -> Settings:
    """The settings that nobody gave, from the files; a session that goes on keeps what it was held to. Raises InputError as `file_settings`."""
    files = file_settings(folder, world or World())
    settings = changed(Settings(folder=folder, notices=files.notices), files.values)
    return settings.as_held() if goes_on else settings


def _values(path: Path, within: Path | None = None) -> dict[str, str]:
    """The texts of a file, by name; none where there is no file. Raises InputError for what is no such file, or lies elsewhere."""
    try:
        if within is not None and not path.resolve().is_relative_to(within.resolve()):
            raise InputError(str(path), "a link out of its folder", "a file")
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return {}
    except (OSError, RuntimeError) as error:
        raise InputError(str(path), f"cannot be read ({getattr(error, 'strerror', None) or error})", "a TOML file") from error
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise InputError(str(path), "no file", "a TOML file")
        data = os.read(opened, _LARGEST + 1)
    finally:
        os.close(opened)
    if len(data) > _LARGEST:
        raise InputError(str(path), f"more than {_LARGEST:,} bytes", "a file of settings")
    try:
        held = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeError, RecursionError) as error:
        raise InputError(str(path), f"cannot be read as TOML ({error})", 'lines such as ceiling = "80k"') from error
    return {name: _written(path, name, value) for name, value in held.items()}


def _written(path: Path, name: str, value: object) -> str:
    """A TOML value as the text that a person would write."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str | int | float):
        return str(value)
    raise InputError(f"{path}: {name[:40]}", f"a {type(value).__name__}", "a text, a number, true or false")
