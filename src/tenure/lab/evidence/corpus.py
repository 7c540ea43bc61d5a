"""The sessions of a corpus, by names that say nothing of the machine (an edge)."""

from hashlib import sha256
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tenure.errors import InputError
from tenure.lab.events import spelled
from tenure.lab.loading import source
from tenure.lab.source import SessionSource
from tenure.logs.places.first_sight import glimpse
from tenure.logs.places.known_places import below


class Member(Struct, frozen=True, kw_only=True):
    """A session of a corpus."""

    name: str  # its address from the corpus folder on, with / between folders
    tool: str
    sha256: str  # of the unpacked bytes


class Corpus(Struct, frozen=True, kw_only=True):
    """All sessions below a folder, by name."""

    folder: str
    members: tuple[Member, ...]
    again: tuple[str, ...] = ()  # names of what holds the same bytes as a member before it, which are counted once
    found: int = 0  # sessions before a sample was taken of them; 0: all of them
    cap: str = ""  # of the sample, as it is asked for: so many of each owner, of some sections others

    @property
    def sha256(self) -> str:
        """Of names and contents: another corpus has another."""
        return sha256("\n".join(f"{member.sha256} {member.name}" for member in self.members).encode()).hexdigest()


def corpus_of(folder: Path) -> Corpus:
    """What is a session by its content, in the order of names. Raises InputError for a folder that is none, or that holds no session."""
    if not folder.is_dir():
        raise InputError(str(folder), "no such folder", "a folder of recorded sessions")
    found: list[Member] = []
    for each in below([folder]):
        about = glimpse(each)
        if about is not None:
            name = spelled(Path(each.address).relative_to(folder).as_posix())
            found.append(Member(name=name, tool=about.tool, sha256=source_of(str(folder), name).sha256()))
    if not found:
        raise InputError(str(folder), "found no session", "a folder of recorded sessions")
    first: dict[str, Member] = {}
    again: list[str] = []
    for member in sorted(found, key=lambda member: member.name):
        if member.sha256 in first and "#" not in member.name:
            again.append(member.name)
        else:
            first[member.sha256] = member
    return Corpus(folder=str(folder), members=tuple(first.values()), again=tuple(again))


def sample_of(corpus: Corpus, cap: int) -> Corpus:
    """At most `cap` members of each owner, those whose hashes come first; 0: all."""
    if not cap:
        return corpus
    taken: dict[str, int] = {}
    chosen: set[str] = set()
    for member in sorted(corpus.members, key=lambda member: (member.sha256, member.name)):
        owner = owner_of(member.name)
        taken[owner] = taken.get(owner, 0) + 1
        if taken[owner] <= cap:
            chosen.add(member.name)
    members = tuple(member for member in corpus.members if member.name in chosen)
    return replace(corpus, members=members, found=len(corpus.members), cap=str(cap))


def owner_of(member: str) -> str:
    """The first folder of a member's name: whose sessions it is one of."""
    return member.partition("/")[0]


def source_of(folder: str, name: str) -> SessionSource:
    """A member to be read, under its name. Raises InputError when it cannot be opened."""
    return replace(source(address_of(folder, name)), path=name)


def address_of(folder: str, name: str) -> str:
    """Where a member lies on this machine."""
    return str(Path(folder, name))


def without_folder(text: str, folder: str) -> str:
    """A text about a member, without the folder's own place."""
    return text.replace(str(Path(folder)) + "/", "").replace(str(Path(folder)) + "\\", "")
