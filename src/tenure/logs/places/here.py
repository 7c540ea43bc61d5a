"""The machine as it looks to one user in one folder (an edge)."""

import os
import tempfile
import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Raw, Struct

_MOST: Final = 500  # projects that other tools know; more are not looked into
_LARGEST: Final = 16 * 2**20  # bytes of a list of projects


class Surroundings(Struct, frozen=True, kw_only=True):
    """Home, current folder, environment and the folder for temporary files."""

    home: Path
    current: Path
    environment: Mapping[str, str] = {}
    temporary: Path = Path(tempfile.gettempdir())

    def folders(self, template: str) -> list[Path]:
        """The folders that a template means, which need not be there.

        It starts with `~`, `.`, `$VARIABLE` (nothing when unset), `UP` (the current folder and all above it), `TMP`, or `PROJECT` (the
        current folder, and those that other tools have worked in).
        """
        start, _, rest = template.partition("/")
        return [base / rest for base in self._bases(start)]

    def _bases(self, start: str) -> Iterable[Path]:
        match start:
            case "~":
                return (self.home,)
            case ".":
                return (self.current,)
            case "UP":
                return (self.current, *self.current.parents)
            case "TMP":
                return (self.temporary,)
            case "PROJECT":
                return (self.current, *self.projects())
            case _:
                return self._set(self.environment.get(start.removeprefix("$"), ""))

    def _set(self, value: str) -> Iterable[Path]:
        """What a variable names: a path, maybe below home; a place on the net is none."""
        if not value or "://" in value or "\0" in value:
            return ()
        if value == "~" or value.startswith(("~/", "~\\")):
            return (self.home / value[2:],)
        return (self.current / value,)

    def projects(self) -> list[Path]:
        """The folders that Claude Code, Gemini CLI and Codex know to have worked in."""
        named = [
            *_listed_in(self.home / ".claude.json"),
            *_listed_in(self.home / ".gemini" / "projects.json"),
            *_configured(self.home / ".codex" / "config.toml"),
        ]
        known = [Path(name) for name in dict.fromkeys(named) if "\0" not in name]
        return [path for path in known if path.is_absolute()][:_MOST]


def here() -> Surroundings:
    """Where this process runs."""
    home = Path.home()
    with suppress(OSError):  # the current folder may be gone
        return Surroundings(home=home, current=Path.cwd(), environment=os.environ)
    return Surroundings(home=home, current=home, environment=os.environ)


class _HereListed(Struct, frozen=True, gc=False):
    """All that is read of a tool's list of its projects."""

    projects: dict[str, Raw] = {}


class _Configured(Struct, frozen=True, gc=False):
    projects: dict[str, object] = {}


def _listed_in(path: Path) -> list[str]:
    with suppress(OSError, ValueError, RecursionError):
        if path.is_file() and path.stat().st_size <= _LARGEST:
            return list(msgspec.json.decode(path.read_bytes(), type=_HereListed).projects)
    return []


def _configured(path: Path) -> list[str]:
    with suppress(OSError, ValueError, RecursionError):
        if path.is_file() and path.stat().st_size <= _LARGEST:
            return list(msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), _Configured).projects)
    return []
