"""The disk as admission sees it (an edge)."""

import errno
import os
import platform
import stat
from collections.abc import Iterator, Mapping
from datetime import date
from heapq import nsmallest
from pathlib import Path, PurePath
from typing import Final

from msgspec import structs

from tenure.agent.admission.place import Closed, File, Folder, Place

# A pipe that turns up between the look and the opening is not waited for, and no terminal becomes ours.
_READING: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_CLOEXEC", 0)


class Disk:
    """The real file system."""

    def file(self, path: PurePath, most: int, /) -> File | Closed | None:
        """The first `most` bytes of a file, links followed."""
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116 - any pure path
                return Closed(why="not a file")
            opened = os.open(path, _READING)
            try:
                status = os.fstat(opened)
                if not stat.S_ISREG(status.st_mode):
                    return Closed(why="not a file")
                data = _start(opened, most)
            finally:
                os.close(opened)
            size = max(len(data), status.st_size)
            return File(data=data, size=size, real=PurePath(os.path.realpath(path)), owner=status.st_uid)
        except (OSError, ValueError) as error:
            return _closed(path, error)

    def folder(self, path: PurePath, most: int, /) -> Folder | Closed | None:
        """The first `most` names in a folder, of however many."""
        try:
            with os.scandir(path) as found:
                names = nsmallest(most + 1, _kinds(found))
        except (OSError, ValueError) as error:
            return _closed(path, error)
        kept = names[:most]
        files, folders, links = (tuple(name for name, kind in kept if kind == wanted) for wanted in ("file", "folder", "link"))
        return Folder(files=files, folders=folders, links=links, more=len(names) > most)


def place_on_disk(
    folder: str | Path,
    *,
    home: Path | None = None,
    environment: Mapping[str, str] | None = None,
    today: date | None = None,
    follow: bool = False,
) -> Place:
    """Where an agent starts on this machine. `today` is said only when it is given; with `follow` links may lead out of the folder."""
    own = Path(os.path.abspath(folder))  # noqa: PTH100 - as the user named it: links in it stay
    with_home = home if home is not None else Path(os.path.expanduser("~"))  # noqa: PTH111 - which never raises
    place = Place(
        folder=own,
        home=with_home,
        tree=Disk(),
        workspace=own,
        follow=follow,
        owners=_believed(own),
        platform=" ".join(filter(None, (platform.system(), platform.machine()))),
        shell=(environment if environment is not None else os.environ).get("SHELL", ""),
        today="" if today is None else today.isoformat(),
    )
    return structs.replace(place, real={each: PurePath(os.path.realpath(each)) for each in place.outward})


def _believed(folder: Path) -> frozenset[int]:
    """Who may tell the agent what to do: its user, the system, and whoever the folder belongs to. Where there are no users, everybody."""
    if not hasattr(os, "geteuid"):
        return frozenset()
    try:
        return frozenset({0, os.geteuid(), folder.stat().st_uid})
    except (OSError, ValueError):
        return frozenset({0, os.geteuid()})


def _start(opened: int, most: int) -> bytes:
    data = b""
    while len(data) < most and (more := os.read(opened, most - len(data))):
        data += more
    return data


def _kinds(found: "Iterator[os.DirEntry[str]]") -> Iterator[tuple[str, str]]:
    for entry in found:
        try:
            is_folder, is_link = entry.is_dir(), entry.is_symlink()
        except OSError:  # a loop of links: whoever reads on below it is told
            is_folder = is_link = True
        yield entry.name, "file" if not is_folder else "link" if is_link else "folder"


def _closed(path: PurePath, error: OSError | ValueError) -> Closed | None:
    """Why something cannot be read; None when there is nothing, or when the folder around it does not say."""
    if isinstance(error, NotADirectoryError) or (isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG):
        return None
    if isinstance(error, FileNotFoundError | PermissionError):
        try:
            known = os.lstat(path)
        except (OSError, ValueError):
            return None
        if isinstance(error, FileNotFoundError):
            return Closed(why="a link to nothing") if stat.S_ISLNK(known.st_mode) else None
    return Closed(why=(error.strerror if isinstance(error, OSError) else None) or str(error))
