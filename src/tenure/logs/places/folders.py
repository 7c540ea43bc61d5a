"""Looking through folders (an edge)."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Final

_WILD: Final = frozenset("*?[")


def matches(folder: str, pattern: str) -> Iterator[str]:
    """The files below a folder that fit a glob, or the folders where it ends with `/`; `**` is any number of folders."""
    folders_wanted = pattern.endswith("/")
    waiting, seen = [(folder, tuple(pattern.rstrip("/").split("/")))], set[tuple[int, int]]()
    while waiting:
        path, parts = waiting.pop()
        deep = parts[0] == "**"
        wanted, *after = parts[deep:]
        if after and not deep and not _WILD & set(wanted):
            waiting.append((os.path.join(path, wanted), tuple(after)))  # noqa: PTH118 - as plain as the names that are listed
            continue
        for entry in entries(path):
            is_folder = holds(entry.is_dir)
            if deep and is_folder and _new(entry.path, seen):
                waiting.append((entry.path, parts))
            if not fnmatchcase(entry.name, wanted):
                continue
            if after and is_folder:
                waiting.append((entry.path, tuple(after)))
            elif not after and (is_folder if folders_wanted else holds(entry.is_file)):
                yield entry.path


def walk(folder: str, whole: Callable[[str, set[str]], bool], passed_over: frozenset[str]) -> Iterator[str]:
    """Every file below a folder; a folder itself where `whole` says of it and its folders' names that it is one thing."""
    waiting, seen = [folder], set[tuple[int, int]]()
    while waiting:
        path = waiting.pop()
        inside = entries(path)
        folders = {entry.name for entry in inside if holds(entry.is_dir)}
        if whole(path, folders):
            yield path
            continue
        for entry in inside:
            if entry.name not in folders:
                if holds(entry.is_file):
                    yield entry.path
            elif entry.name not in passed_over and _new(entry.path, seen):
                waiting.append(entry.path)


def entries(folder: str) -> list["os.DirEntry[str]"]:
    """What a folder holds; nothing when it cannot be read."""
    with suppress(OSError, ValueError), os.scandir(folder) as found:
        return list(found)
    return []


def holds(claim: Callable[[], bool]) -> bool:
    """Whether something on the disk is so; what cannot be seen is not."""
    with suppress(OSError, ValueError):
        return claim()
    return False


def moment(seconds: float) -> datetime:
    """A time of a file, UTC; of one that no calendar knows, the first there is."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return datetime.fromtimestamp(0, UTC)


def _new(folder: str, seen: set[tuple[int, int]]) -> bool:
    """Whether the folder was not seen before, maybe by another name."""
    with suppress(OSError):
        status = os.stat(folder)  # noqa: PTH116 - of thousands
        known = (status.st_dev, status.st_ino)
        if known not in seen:
            seen.add(known)
            return True
    return False
