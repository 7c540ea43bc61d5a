"""Patterns of paths as models write them. Pure.

`*` and `?` stay within a name, `**` goes through folders, `{a,b}` are alternatives, `[a-z]` is a sign of a set. A pattern without a slash
holds in every folder, one with a slash from the folder that is searched; a leading `!` turns it round. This is how `.gitignore` has it.
"""

import re
from collections.abc import Callable
from fnmatch import translate
from typing import Final

from msgspec import Struct

from tenure.errors import InputError

ALTERNATIVES: Final = 64
LONGEST: Final = 1_000  # characters

_INNERMOST: Final = re.compile(r"\{([^{}]*)\}")
_MAGIC: Final = re.compile(r"[*?\[\]{}!\\]")
_SIMPLE: Final = re.compile(r"[\w.*?{},+@ -]+")  # a name's pattern that ripgrep reads in the same way
_Part = Callable[[str], object] | None  # None: `**`


class Globs(Struct, frozen=True, kw_only=True):
    """A pattern, ready to be held against paths."""

    folder: str  # that all matches lie in, as the pattern begins: no signs, perhaps empty
    names: str  # the pattern of the last name, empty when it cannot be told apart
    parts: tuple[tuple[_Part, ...], ...]
    negative: bool = False

    @property
    def depth(self) -> int:
        """How many folders deep a match can lie, its own name counted; 0 for any."""
        if self.negative or any(part is None for parts in self.parts for part in parts):
            return 0
        return max(map(len, self.parts), default=0)

    def match(self, path: str) -> bool:
        """Whether it holds for a path with `/` in it, relative to `folder`'s own."""
        if not self.parts:
            return True
        return any(_holds(parts, path) for parts in self.parts) is not self.negative


def globs(pattern: str) -> Globs:
    """The pattern as it was written. Raises InputError for one that is none."""
    text = pattern.strip().removeprefix("./")
    negative = text.startswith("!")
    text = text.removeprefix("!")
    if not text or len(text) > LONGEST or "\0" in text:
        raise InputError("glob", repr(pattern[:80]), "a pattern such as *.py, src/**/*.ts or {a,b}.json")
    text = text + "**" if text.endswith("/") else text
    folder, _, rest = _parted(text) if not negative else ("", "", text)
    inside = rest if folder else text.removeprefix("/")
    anchored = bool(folder) or "/" in text.rstrip("/")
    parts = tuple(_parts(each, anchored=anchored) for each in _alternatives(inside))
    names = _last(inside)
    return Globs(folder=folder, names=names if not negative and _SIMPLE.fullmatch(names) else "", parts=parts, negative=negative)


def _parted(text: str) -> tuple[str, str, str]:
    """The folders before the first sign, and the rest."""
    sign = _MAGIC.search(text)
    end = text.rfind("/", 0, sign.start() if sign else len(text))
    return (text[:end] or "/" if end >= 0 else "", "/", text[end + 1 :])


def _last(text: str) -> str:
    """The pattern of the last name; empty where alternatives span folders."""
    last = text.rpartition("/")[2]
    return last if last.count("{") == last.count("}") and last != "**" else ""


def _alternatives(text: str) -> list[str]:
    """What the braces stand for, each alone. Raises InputError when that is too much."""
    waiting, done = [text], list[str]()
    while waiting:
        each = waiting.pop()
        found = _INNERMOST.search(each)
        if found is None:
            done.append(each)
        else:
            waiting += [each[: found.start()] + choice + each[found.end() :] for choice in found[1].split(",")]
        if len(waiting) + len(done) > ALTERNATIVES:
            raise InputError("glob", "too many alternatives in braces", f"at most {ALTERNATIVES}")
    return done


def _parts(text: str, *, anchored: bool) -> tuple[_Part, ...]:
    names = [name for name in text.split("/") if name not in ("", ".")]
    parts: list[_Part] = [] if anchored else [None]
    for name in names:
        if name != "**":
            parts.append(re.compile(translate(_translatable(name))).match)
        elif not parts or parts[-1] is not None:
            parts.append(None)
    return tuple(parts)


def _translatable(name: str) -> str:
    """A name's pattern as fnmatch has it: sets are negated by `!`, a sign is taken as it is in a set of its own."""
    name = re.sub(r"\\(.)", r"[\1]", name).replace("[^", "[!")
    return re.sub(r"\*{2,}", "*", name)


def _holds(parts: tuple[_Part, ...], path: str) -> bool:
    last = parts[-1] if parts else None
    if last is not None:  # which most paths fail at
        if last(path[path.rfind("/") + 1 :]) is None:
            return False
        if len(parts) == 2 and parts[0] is None:
            return True
    states = _through({0}, parts)
    for name in path.split("/"):
        states = _through({next_ for at in states for next_ in _step(parts, at, name)}, parts)
        if not states:
            return False
    return len(parts) in states


def _step(parts: tuple[_Part, ...], at: int, name: str) -> tuple[int, ...]:
    if at == len(parts):
        return ()
    part = parts[at]
    if part is None:
        return (at,)
    return (at + 1,) if part(name) is not None else ()


def _through(states: set[int], parts: tuple[_Part, ...]) -> set[int]:
    """The states with those that `**` reaches without a folder."""
    return states | {at + 1 for at in states if at < len(parts) and parts[at] is None}
