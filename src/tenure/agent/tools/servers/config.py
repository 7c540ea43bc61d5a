"""Which MCP servers a person has set up, in the form that most agents share. Pure.

{"mcpServers": {"files": {"command": "npx", "args": ["server"], "env": {"TOKEN": "${TOKEN}"}},
                "search": {"url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}}}
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from tenure.apis.json_text import load
from tenure.errors import InputError

_VARIABLE: Final = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


class ServerConfig(Struct, frozen=True, kw_only=True):
    """One server: a `command` that is started, or a `url` that is spoken to."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = {}
    trusted: bool = False  # what it says only reads is taken to only read


class _Entry(ServerConfig, frozen=True, kw_only=True):
    name: str = ""
    type: str = ""
    disabled: bool = False


def configured(
    text: str, environment: Mapping[str, str], where: str = "MCP servers"
) -> tuple[tuple[ServerConfig, ...], tuple[str, ...]]:
    """The servers of a settings file, and what is wrong with the entries that are left out."""
    try:
        whole = load(text, where)
    except InputError as error:
        return (), (str(error),)
    listed = whole.get("mcpServers", whole) if isinstance(whole, dict) else None
    if not isinstance(listed, dict):
        return (), (f"{where}: expected an object with mcpServers",)
    found: list[ServerConfig] = []
    notes: list[str] = []
    for name, entry in listed.items():
        try:
            config = _read(name, entry, environment)
        except (msgspec.ValidationError, InputError) as error:
            notes.append(f"{where}: {name}: {error}".replace("`", ""))
        else:
            found += [config] if config else []
    return tuple(found), tuple(notes)


def _read(name: str, entry: Any, environment: Mapping[str, str]) -> ServerConfig | None:
    read = msgspec.convert(entry, _Entry)
    if read.disabled:
        return None
    if bool(read.command) == bool(read.url):
        raise InputError(name, "both command and url" if read.command else "neither command nor url", "one of the two")
    if read.type == "sse":
        raise InputError(name, "the transport sse", "stdio or streamable HTTP")

    def filled(value: str) -> str:
        return _VARIABLE.sub(lambda found: environment.get(found[1], found[2] or ""), value)

    return ServerConfig(
        name=name,
        command=filled(read.command),
        args=tuple(map(filled, read.args)),
        env={key: filled(value) for key, value in read.env.items()},
        cwd=filled(read.cwd),
        url=filled(read.url),
        headers={key: filled(value) for key, value in read.headers.items()},
        trusted=read.trusted,
    )
