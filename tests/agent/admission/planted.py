"""Trees to be admitted from: the same files in memory and on a real disk, so that both are held to one behaviour."""

import os
import posixpath
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath, PurePosixPath

from msgspec import Struct, structs

from tenure.agent.admission.place import Closed, Disk, FileStart, Folder, Place

LINKS = 40  # that are followed one after another


class Link(Struct, frozen=True):
    """A symbolic link."""

    to: str


class Locked(Struct, frozen=True):
    """A file that may not be read."""


class Owned(Struct, frozen=True):
    """A file of somebody."""

    data: bytes
    owner: int


Node = bytes | str | Link | Locked | Owned
Files = Mapping[str, Node]
Plant = Callable[..., Place]


class MemoryTree:
    """A file system that is a dictionary of absolute paths. Keeps count of what it was asked for."""

    def __init__(self, files: Files) -> None:
        self.nodes = {PurePosixPath(path): node for path, node in files.items()}
        self.folders = {folder for path in self.nodes for folder in path.parents}
        self.links = {path for path, node in self.nodes.items() if isinstance(node, Link)}
        self.asked = 0

    def file(self, path: PurePath, most: int, /) -> FileStart | Closed | None:
        self.asked += 1
        real, node = self._followed(PurePosixPath(path))
        match node:
            case None:
                return Closed(why="not a file") if real in self.folders else None
            case Closed():
                return node
            case Locked():
                return Closed(why="Permission denied")
            case Owned(data, owner):
                return FileStart(data=data[:most], size=len(data), real=real, owner=owner)
            case _:
                data = node if isinstance(node, bytes) else node.encode()
                return FileStart(data=data[:most], size=len(data), real=real)

    def folder(self, path: PurePath, most: int, /) -> Folder | Closed | None:
        self.asked += 1
        real, node = self._followed(PurePosixPath(path))
        if isinstance(node, Closed):
            return node
        if node is not None or real not in self.folders:
            return None
        inside = {p.relative_to(real).parts[0] for p in (*self.nodes, *self.folders) if real in p.parents}
        kinds = [(name, self._kind(real / name)) for name in sorted(inside)]
        kept = kinds[:most]
        files, folders, links = (tuple(n for n, kind in kept if kind == wanted) for wanted in ("file", "folder", "link"))
        return Folder(files=files, folders=folders, links=links, more=len(kinds) > most)

    def _kind(self, path: PurePosixPath) -> str:
        if path in self.folders:
            return "folder"
        real, node = self._followed(path)
        return "link" if real in self.folders or isinstance(node, Closed) else "file"

    def _followed(self, path: PurePosixPath) -> tuple[PurePosixPath, Node | Closed | None]:
        for _ in range(LINKS):
            turn = next((each for each in (*reversed(path.parents), path) if each in self.links), None) if self.links else None
            if turn is None:
                return path, self.nodes.get(path)
            link = self.nodes[turn]
            assert isinstance(link, Link)
            path = PurePosixPath(posixpath.normpath(turn.parent / link.to / path.relative_to(turn)))
        return path, Closed(why="Too many levels of symbolic links")


def in_memory(files: Files, *, folder: str = "/home/ada/api", home: str = "/home/ada", **known: object) -> Place:
    """A place in a tree that is nowhere."""
    place = Place(folder=PurePosixPath(folder), home=PurePosixPath(home), tree=MemoryTree(files))
    return structs.replace(place, **known)


class RootedDisk:
    """The real disk below a folder, which stands for the root: nothing of the machine around it is seen."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.disk = Disk()

    def file(self, path: PurePath, most: int, /) -> FileStart | Closed | None:
        found = self.disk.file(self.below(path), most)
        if isinstance(found, FileStart):
            return structs.replace(found, real=PurePosixPath("/") / found.real.relative_to(self.root.resolve()))
        return found

    def folder(self, path: PurePath, most: int, /) -> Folder | Closed | None:
        return self.disk.folder(self.below(path), most)

    def below(self, path: PurePath | str) -> Path:
        return self.root / PurePosixPath(path).relative_to("/")


def on_disk(root: Path, files: Files, *, folder: str = "/home/ada/api", home: str = "/home/ada", **known: object) -> Place:
    """The same tree below a folder of the real disk."""
    tree = RootedDisk(root)
    for name, node in files.items():
        path = tree.below(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        match node:
            case Link(to):
                path.symlink_to(tree.below(to) if to.startswith("/") else to)
            case Locked():
                path.write_bytes(b"")
                path.chmod(0)
            case Owned():
                raise AssertionError("needs another user")
            case _:
                path.write_bytes(node if isinstance(node, bytes) else node.encode())
    return structs.replace(Place(folder=PurePosixPath(folder), home=PurePosixPath(home), tree=tree), **known)


def is_superuser() -> bool:
    """Whether no file is closed to us."""
    return os.geteuid() == 0


def skill(name: str, description: str = "does it", body: str = "Do it.") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n{body}\n"
