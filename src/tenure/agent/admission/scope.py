"""SCOPE.md: what is to be known about one folder, for whoever works in exactly that.

Nothing is merged from above and nothing from below: a folder's own page is for those who are there. ("The context window is a resource you
engineer", context attached to a place.) `scopes_below` finds the folders that have one, for whoever hands out work; its walk is bounded, since
an agent may be started in the root of a disk.
"""

from collections import deque
from pathlib import PurePath
from typing import Final, NamedTuple

from msgspec import Struct, structs

from tenure.agent.admission.place import Closed, File, Folder, Place, framed, shown, unending
from tenure.agent.admission.wording import cut, front, one_line, wording

FILE: Final = "SCOPE.md"
TAG: Final = "scope"
BODY_CHARS: Final = 8_000
BODY_BYTES: Final = 65_536
NAME_CHARS: Final = 72
DESCRIPTION_CHARS: Final = 300
DEPTH: Final = 8  # folders below the start
FOLDERS: Final = 10_000  # that are looked into
NAMES: Final = 10_000  # of one folder
PASSED_OVER: Final = frozenset({"node_modules"})  # and all that begin with a dot


class Scope(Struct, frozen=True, kw_only=True):
    """A folder's page. `within` is the nearest folder above that has one too, of those that were found."""

    folder: PurePath
    name: str = ""
    description: str = ""
    body: str = ""
    within: PurePath | None = None
    whole: bool = True  # nothing of the body was left out


class Scopes(Struct, frozen=True, kw_only=True):
    """The pages below a folder, by name, and what was not looked at or could not be read."""

    found: tuple[Scope, ...] = ()
    notices: tuple[str, ...] = ()


def scope_of(start: Place) -> Scope | Closed | None:
    """The page of the place's own folder: its body, frontmatter removed. None when there is none, or nothing in it."""
    found = start.read(start.folder / FILE, BODY_BYTES)
    if not isinstance(found, File):
        return found
    whole = len(found.data) == found.size
    words = wording(found.data, whole=whole)
    if words is None:
        return Closed(why="it is not text")
    head = front(words.text)
    body = unending(TAG, head.body.strip())
    if not body:
        return None
    kept = cut(body, BODY_CHARS)
    fields = head.fields or {}
    return Scope(
        folder=start.folder,
        name=one_line(fields.get("name", ""), NAME_CHARS),
        description=one_line(fields.get("description", ""), DESCRIPTION_CHARS),
        body=kept,
        whole=whole and kept == body,
    )


def scope_section(scope: Scope | None) -> str:
    """The page as the prompt has it; empty without one."""
    if scope is None:
        return ""
    rest = "" if scope.whole else f"\n[cut: the first {len(scope.body):,} characters; read {FILE} for the rest]"
    return f"# This folder{framed(TAG, scope.folder / FILE, scope.body + rest)}"


def scopes_below(start: Place) -> Scopes:
    """The folders below that have a page with a name and a description. Breadth first, so that of two of one name the higher counts."""
    found: dict[str, Scope] = {}
    notices: list[str] = []
    waiting = deque([_Folder(start.folder, 0, None)])
    room = FOLDERS - 1
    more = False
    while waiting:
        here = waiting.popleft()
        inside = start.tree.folder(here.path, NAMES)
        if not isinstance(inside, Folder):
            continue  # closed to us, or gone: nothing below it can be seen
        page = _page(start, here.path, notices) if FILE in inside.files or inside.more else None
        if page is not None and here.depth:
            found.setdefault(page.name, structs.replace(page, within=here.within))
        within = here.path if page is not None else here.within
        entered = _entered(inside) if here.depth < DEPTH else []
        more = more or len(entered) > room
        waiting.extend(_Folder(here.path / name, here.depth + 1, within) for name in entered[:room])
        room -= min(room, len(entered))
    if more:
        notices.append(f"scopes: only {FOLDERS:,} folders were looked into")
    return Scopes(found=tuple(sorted(found.values(), key=lambda scope: scope.name)), notices=tuple(notices))


class _Folder(NamedTuple):
    path: PurePath
    depth: int
    within: PurePath | None


def _page(start: Place, folder: PurePath, notices: list[str]) -> Scope | None:
    """A folder's page that can stand in a list; the start's own needs no name."""
    page = scope_of(structs.replace(start, folder=folder))
    if isinstance(page, Closed):
        notices.append(f"{shown(folder / FILE)} is left out: {page.why}")
        return None
    return page if page is not None and (folder == start.folder or (page.name and page.description)) else None


def _entered(inside: Folder) -> list[str]:
    """The folders that are looked into: no links, which may lead in a circle or anywhere."""
    return [name for name in inside.folders if not name.startswith(".") and name not in PASSED_OVER]
