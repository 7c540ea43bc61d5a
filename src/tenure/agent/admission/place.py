"""Where an agent starts, and the little that admission asks of a file system.

A `Tree` only reads and never raises: what cannot be read is a value that says why. `Disk` is one; tests bring their own.
"""

import errno
import os
import platform
import stat
from collections.abc import Iterator, Mapping
from datetime import date
from heapq import nsmallest
from pathlib import Path, PurePath
from typing import Final, Protocol

from msgspec import Struct, structs

from tenure.agent.admission.wording import one_line, wording

MARKDOWN: Final = frozenset({".md", ".mdc", ".markdown", ".txt"})  # what a link may lead to
NAMES: Final = ("AGENTS.md", "AGENTS.local.md", "CLAUDE.md", "CLAUDE.local.md", "AGENT.md", "AGENT.local.md")  # of instructions
PATH_CHARS: Final = 160  # of a path that is shown


class FileStart(Struct, frozen=True, kw_only=True):
    """The start of a file, and what it really is."""

    data: bytes  # at most as much as was asked for
    size: int  # bytes, of the whole file
    real: PurePath  # where it lies once every link is followed: the same for one file under two names
    owner: int = 0  # user id


class FileText(Struct, frozen=True, kw_only=True):
    """What the start of a file says."""

    text: str  # its lines parted by single newlines
    size: int  # bytes, of the whole file
    whole: bool  # all of it was read
    oddities: tuple[str, ...] = ()


class Folder(Struct, frozen=True, kw_only=True):
    """The names in a folder, sorted."""

    files: tuple[str, ...] = ()  # and links to files
    folders: tuple[str, ...] = ()
    links: tuple[str, ...] = ()  # those that lead to folders
    more: bool = False  # there are others, later in the order


class Closed(Struct, frozen=True, kw_only=True):
    """There is something, and it cannot be read."""

    why: str


class Tree(Protocol):
    """A file system to be looked at. None: there is nothing of that name."""

    def file(self, path: PurePath, most: int, /) -> FileStart | Closed | None:
        """The first `most` bytes of a file, links followed. What is no regular file is `Closed`: a pipe would never end."""
        ...

    def folder(self, path: PurePath, most: int, /) -> Folder | Closed | None:
        """The first `most` names in a folder."""
        ...


class Place(Struct, frozen=True, kw_only=True):
    """A folder to work in, and what is known of the machine around it. Words that are empty are not said."""

    folder: PurePath  # absolute
    home: PurePath
    tree: Tree
    workspace: PurePath | None = None  # out of which no link of it is followed; None: the folder
    real: Mapping[PurePath, PurePath] = {}  # where folders of `outward` lie, if that is elsewhere
    follow: bool = False  # links may lead anywhere
    owners: frozenset[int] = frozenset()  # whose files above the folder are believed; empty: everybody's
    platform: str = ""
    shell: str = ""
    today: str = ""  # to the day, so that the same morning gives the same prompt

    @property
    def outward(self) -> tuple[PurePath, ...]:
        """The folder and all above it, up to home or the root, nearest first; then home, where that is none of them."""
        chain = (self.folder, *self.folder.parents)
        if self.home in chain:
            return chain[: chain.index(self.home) + 1]
        return (*chain, self.home)

    def read(self, path: PurePath, most: int) -> FileStart | Closed | None:
        """The start of a file that may be believed.

        A link must lead to a text: in a strange repository it may lead to a key. It must not lead out of the workspace, or out of the folder above
        in which it lies, but to another file of instructions that holds here; what lies in the home is its user's, and may lead anywhere. Above the folder, where others may write as well (a shared
        temporary folder), a file must belong to someone who is believed.
        """
        found = self.tree.file(path, most)
        if not isinstance(found, FileStart):
            return found
        if found.real.name != path.name and found.real.suffix.lower() not in MARKDOWN:
            return Closed(why=f"a link to {shown(found.real)}, which is no text")
        if not self.follow and self._leads_out(path, found.real):
            return Closed(why=f"a link out of the workspace, to {shown(found.real)}, which is not followed")
        inside = self.folder == path.parent or self.folder in path.parents
        if self.owners and not inside and found.owner not in self.owners:
            return Closed(why="it belongs to another user")
        return found

    def text(self, path: PurePath, most: int) -> FileText | Closed | None:
        """What the first `most` bytes of a file say, if it may be believed."""
        file = self.read(path, most)
        if not isinstance(file, FileStart):
            return file
        whole = len(file.data) >= file.size
        words = wording(file.data, whole=whole)
        if words is None:
            return Closed(why="it is not text")
        return FileText(text=words.text, size=file.size, whole=whole, oddities=words.oddities)

    def _leads_out(self, path: PurePath, real: PurePath) -> bool:
        roots = (self.workspace or self.folder, *self.outward)
        root = next((each for each in roots if each in path.parents), None)
        if root is None or root == self.home:
            return False
        known = real.name in NAMES and real.parent in {self.real.get(each, each) for each in self.outward}
        return not known and self.real.get(root, root) not in real.parents


def shown(path: PurePath) -> str:
    """A path as it is said: one line, nothing in it that a terminal or a model would obey, and the end rather than the start of a long one."""
    text = one_line(path.as_posix())
    return text if len(text) <= PATH_CHARS else "…" + text[1 - PATH_CHARS :]


def framed(tag: str, path: PurePath, text: str, also: str = "") -> str:
    """The words of a file between two marks, which its own headings cannot be taken for. They must not hold the second: `unending`."""
    same = f' also="{also}"' if also else ""
    return f'\n\n<{tag} from="{shown(path)}"{same}>\n{text}\n</{tag}>'


def unending(tag: str, text: str) -> str:
    """A text with every mark broken that would end its frame."""
    return text.replace(f"</{tag}", f"<\\/{tag}")


# A pipe that turns up between the look and the opening is not waited for, and no terminal becomes ours.
_READING: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_CLOEXEC", 0)


class Disk:
    """The real file system."""

    def file(self, path: PurePath, most: int, /) -> FileStart | Closed | None:
        """The first `most` bytes of a file, links followed."""
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116 - any pure path
                return Closed(why="not a file")
            opened = os.open(path, _READING)
            try:
                status = os.fstat(opened)
                if not stat.S_ISREG(status.st_mode):
                    return Closed(why="not a file")
                data = b""
                while len(data) < most and (more := os.read(opened, most - len(data))):
                    data += more
            finally:
                os.close(opened)
            size = max(len(data), status.st_size)
            return FileStart(data=data, size=size, real=PurePath(os.path.realpath(path)), owner=status.st_uid)
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
    place = Place(
        folder=own,
        home=home if home is not None else Path(os.path.expanduser("~")),  # noqa: PTH111 - which never raises
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
