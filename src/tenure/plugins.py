"""What other packages add, found by the entry points that they declare and loaded when it is first asked for.

    [project.entry-points."tenure.policies"]
    oldest-reads = "my_package:OLDEST_READS"     # a `tenure.engine.policies.policy.Policy`

    [project.entry-points."tenure.readers"]
    my-agent = "my_package:MyAgentReader"        # a `tenure.logs.reader.Reader`, or a class that makes one

One that cannot be loaded costs only itself, and is said.
"""

from collections.abc import Iterator
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from logging import getLogger
from typing import Final

from msgspec import Struct

from tenure.errors import InputError

# Kinds, and what a value of each has to have.
KINDS: Final = {"policies": ("name", "conduct", "__call__"), "readers": ("name", "recognises", "read")}
_LOG: Final = getLogger("tenure.plugins")


class PluginPart(Struct, frozen=True, kw_only=True):
    """One entry point."""

    kind: str
    name: str
    package: str
    version: str
    value: object = None
    wrong: str = ""  # why it cannot be used


def plugin(kind: str, name: str) -> object | None:
    """What a package adds under a name; None where none does. Raises InputError for one that cannot be used."""
    point = next((each for each in _points(kind) if each.name == name), None)
    if point is None:
        return None
    part = _loaded(kind, point)
    if part.wrong:
        raise InputError(
            f"plugin {name!r} of the package {part.package}", part.wrong, "one that can be loaded; `tenure plugins` lists all"
        )
    return part.value


def usable(kind: str) -> tuple[object, ...]:
    """All of a kind that can be used, in the order of their names; the others are reported once."""
    return _usable(kind)


def parts() -> Iterator[PluginPart]:
    """Everything that other packages add, whether it can be used or not."""
    for kind in KINDS:
        yield from (_loaded(kind, point) for point in _points(kind))


def names(kind: str) -> tuple[str, ...]:
    """The names of a kind; nothing is loaded."""
    return tuple(point.name for point in _points(kind))


@cache
def _points(kind: str) -> tuple[EntryPoint, ...]:
    return tuple(sorted(entry_points(group=f"tenure.{kind}"), key=lambda point: point.name))


@cache
def _usable(kind: str) -> tuple[object, ...]:
    found = [_loaded(kind, point) for point in _points(kind)]
    for each in found:
        if each.wrong:
            _LOG.warning("the plugin %r of the package %s is left out: %s", each.name, each.package, each.wrong)
    return tuple(each.value for each in found if not each.wrong)


@cache
def _loaded(kind: str, point: EntryPoint) -> PluginPart:
    package, version = (point.dist.name, point.dist.version) if point.dist is not None else ("", "")
    value: object = None
    wrong = ""
    try:
        value = point.load()
        if isinstance(value, type):
            value = value()
        missing = [name for name in KINDS[kind] if not hasattr(value, name)]
        if missing:
            wrong = f"{point.value} has no {', '.join(missing)}"
        elif getattr(value, "name", "") != point.name:
            wrong = f"{point.value} calls itself {getattr(value, 'name', '')!r}"
    except Exception as error:  # another's code
        wrong = f"{type(error).__name__}: {error}"
    return PluginPart(kind=kind, name=point.name, package=package, version=version, value=value, wrong=wrong)
