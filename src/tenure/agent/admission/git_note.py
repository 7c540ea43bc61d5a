"""What git says of a folder, as a note.

Pure: `git status --porcelain=v2 --branch -z` in, words out. File names are other people's text: they come out in one line each, and quoted where
they hold anything that a terminal or a reader would take for more than a name. (CWL paper, section 6.1: git-status injection.)
"""

import posixpath
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from tenure.agent.admission.wording import one_line

LISTED: Final = 20  # files
NAME_CHARS: Final = 120  # of one of them, and of a branch
NOTE_CHARS: Final = 1_600  # of the whole note


class GitChange(Struct, frozen=True, kw_only=True):
    """One line of git's status: two letters as git prints them (`M `, ` M`, `??`, `UU`), and a path from the working folder."""

    letters: str
    path: str


class GitStatus(Struct, frozen=True, kw_only=True):
    """The state of a repository at one moment. With `trouble`, all that is known is why there is no more."""

    branch: str = ""  # empty: a detached head
    commit: str = ""  # its start; empty before the first
    upstream: str = ""
    ahead: int = 0  # commits
    behind: int = 0
    changed: int = 0  # files that git knows
    staged: int = 0  # of them
    conflicts: int = 0  # of them
    untracked: int = 0  # files and folders
    unseen: bool = False  # untracked files were not looked for
    changes: tuple[GitChange, ...] = ()  # the first LISTED
    more: bool = False  # the counts go on where git was stopped
    trouble: str = ""

    @property
    def clean(self) -> bool:
        """Whether there is nothing to tell but where one is."""
        return not (self.changed or self.untracked or self.more)


def parse_status(output: bytes, *, prefix: str = "", more: bool = False, unseen: bool = False) -> GitStatus:
    """What git printed. `prefix` is the working folder as the repository's root has it; `more`: the output was cut short. Never raises."""
    records = output.split(b"\0")
    if records[-1] or more:
        records = records[:-1]  # no end: not all of it
    heads: dict[str, str] = {}
    changes: list[GitChange] = []
    changed = staged = conflicts = untracked = 0
    lines = iter(records)
    for record in filter(None, lines):
        text = record.decode("utf-8", "backslashreplace")
        kind = text[:2]
        if kind == "# ":
            key, _, value = text[2:].partition(" ")
            heads.setdefault(key, one_line(value, NAME_CHARS))
            continue
        if kind == "2 ":
            next(lines, None)  # the old name of a renamed file is a record of its own
        letters, path = _change(text)
        if not path:
            continue
        untracked += letters == "??"
        changed += letters != "??"
        staged += kind in ("1 ", "2 ") and letters[0] != " "
        conflicts += kind == "u "
        if len(changes) < LISTED:
            changes.append(GitChange(letters=letters, path=quoted(_from(path, prefix))))
    ahead, behind = _apart(heads.get("branch.ab", ""))
    head, commit = heads.get("branch.head", ""), heads.get("branch.oid", "")
    return GitStatus(
        branch="" if head == "(detached)" else head,
        commit="" if commit == "(initial)" else commit[:8],
        upstream=heads.get("branch.upstream", ""),
        ahead=ahead,
        behind=behind,
        changed=changed,
        staged=staged,
        conflicts=conflicts,
        untracked=untracked,
        unseen=unseen,
        changes=tuple(changes),
        more=more,
    )


def git_note(status: GitStatus | None) -> str:
    """The note, at most NOTE_CHARS long; empty where there is no repository."""
    if status is None:
        return ""
    if status.trouble:
        return f"[git status now: {status.trouble}]"
    head = f"[git status now: {', '.join(_facts(status))}]"
    lines, room = [head], NOTE_CHARS - len(head) - 40
    for change in status.changes:
        line = f"{change.letters} {change.path}"
        if len(line) + 1 > room:
            break
        lines.append(line)
        room -= len(line) + 1
    rest = status.changed + status.untracked - (len(lines) - 1)
    if rest:
        lines.append(f"[and {rest:,}{' or more' if status.more else ''} others]")
    return "\n".join(lines)


def quoted(path: str) -> str:
    """A path as it is shown: as it is, or in quotes with what is odd escaped; the end of a long one."""
    if path.isprintable() and path == path.strip() and not path.startswith('"'):
        shown = path
    else:
        inner = path.replace("\\", "\\\\").replace('"', '\\"')
        signs = (sign if sign.isprintable() else sign.encode("unicode_escape", "backslashreplace").decode() for sign in inner)
        shown = f'"{"".join(signs)}"'
    return shown if len(shown) <= NAME_CHARS else "…" + shown[1 - NAME_CHARS :]


# How many fields stand before the path, by the first letter of a line.
_FIELDS: Final = {"1": 8, "2": 9, "u": 10, "?": 1}


def _change(text: str) -> tuple[str, str]:
    """The letters and the path of a line; no path when it is no change."""
    before = _FIELDS.get(text[:1])
    parts = text.split(" ", before) if before else []
    if before is None or len(parts) <= before:
        return "", ""
    return ("??" if text[0] == "?" else parts[1].replace(".", " ")[:2].ljust(2)), parts[before]


def _from(path: str, prefix: str) -> str:
    """A path of the repository as it is called in the working folder."""
    if not prefix:
        return path
    found = posixpath.relpath(f"/{path}", f"/{prefix}")
    return f"{found}/" if path.endswith("/") else found


def _apart(text: str) -> tuple[int, int]:
    parts = text.split()
    if len(parts) == 2 and all(part[1:].isdecimal() and part.isascii() and len(part) < 12 for part in parts):
        return int(parts[0][1:]), int(parts[1][1:])
    return 0, 0


def _facts(status: GitStatus) -> Iterator[str]:
    if status.branch:
        yield f"branch {status.branch}" + ("" if status.commit else " without a commit yet")
    else:
        yield f"no branch, at {status.commit or 'no commit'}"
    if status.ahead or status.behind:
        apart = [f"{count:,} {word}" for count, word in ((status.ahead, "ahead of"), (status.behind, "behind")) if count]
        yield f"{' and '.join(apart)} {status.upstream}"
    if status.clean:
        yield "nothing changed" if status.unseen else "clean"
    if status.changed:
        parts = [f"{count:,} {word}" for count, word in ((status.staged, "staged"), (status.conflicts, "in conflict")) if count]
        yield f"{status.changed:,} changed" + (f" ({', '.join(parts)})" if parts else "")
    if status.untracked:
        yield f"{status.untracked:,} untracked"
    if status.unseen:
        yield "untracked files not looked for"
    if status.more:
        yield "and more: git was stopped"
