"""Skills: an index at the head, bodies on demand.

A skill is `NAME/SKILL.md` in a folder for skills, or `NAME.md` in it, with a description in its frontmatter. Folders for skills are looked for in
the working folder, in all above it up to home or the root, then in home; the nearest of a name shadows the others. ("The context window is a
resource you engineer": an index up front, the body behind a tool. The folders are those of the Agent Skills format and of Claude Code.)
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from itertools import accumulate
from pathlib import PurePath
from typing import Final

from msgspec import Struct

from tenure.agent.admission.place import Closed, Folder, Place, shown
from tenure.agent.admission.wording import cut, front, one_line
from tenure.engine.record.episodes import ToolAnswer
from tenure.engine.record.skills import skill_name

FOLDERS: Final = (".tenure/skills", ".claude/skills", ".agents/skills")  # the first of a name counts, in one place too
FILE: Final = "SKILL.md"
MOST: Final = 500  # names of one folder that are looked at
HEAD_BYTES: Final = 16_384  # of a file, for its frontmatter
DESCRIPTION_CHARS: Final = 300
INDEX_CHARS: Final = 8_000  # of the whole section
LEFT_OUT_CHARS: Final = 600  # of it, for the names of those that do not fit
BODY_CHARS: Final = 60_000
BODY_BYTES: Final = 4 * BODY_CHARS + HEAD_BYTES
NAMED: Final = 20  # names that an error lists

READ_SKILL: Final = "read_skill"


class Skill(Struct, frozen=True, kw_only=True):
    """A named procedure: its line in the index, and where its body is."""

    name: str
    description: str
    path: str
    distance: int = 0  # folders between the working folder and its own
    listed: bool = True  # False: its author wants it read only when a person names it

    @property
    def key(self) -> str:
        """What it is known by: names are the same in any case, as objects have them."""
        return self.name.casefold()

    @property
    def line(self) -> str:
        """In the index."""
        return f"- {self.name}: {self.description}"


class FoundSkills(Struct, frozen=True, kw_only=True):
    """What was found, by name, and what could not be read."""

    found: tuple[Skill, ...] = ()
    notices: tuple[str, ...] = ()


def find_skills(start: Place) -> FoundSkills:
    """All skills that hold here, sorted by name. Never raises."""
    found: dict[str, Skill] = {}
    notices: list[str] = []
    for skill in _all(start, notices):
        found.setdefault(skill.key, skill)
    return FoundSkills(found=tuple(sorted(found.values(), key=_by_name)), notices=tuple(notices))


def skills_section(skills: Iterable[Skill]) -> str:
    """The index as the prompt has it; empty without skills. The farthest are left out first, and named or at least counted."""
    listed = [skill for skill in skills if skill.listed]
    if not listed:
        return ""
    room = INDEX_CHARS - len(_HEADING) - LEFT_OUT_CHARS
    nearest = sorted(listed, key=lambda skill: skill.distance)  # stable: by name in one place
    ends = accumulate(len(skill.line) + 1 for skill in nearest)
    fitting = bisect_right(list(ends), room)
    lines = [skill.line for skill in sorted(nearest[:fitting], key=_by_name)]
    return "\n".join([_HEADING, *lines, *_left_out([skill.name for skill in nearest[fitting:]])])


def read_skill(skills: Iterable[Skill], name: str, start: Place) -> ToolAnswer:
    """The body of a skill as it is on the disk now. A name is looked up, never made into a path."""
    known = {skill.key: skill for skill in skills}
    skill = known.get(name.strip().casefold()) or known.get(skill_name(name).casefold() if not _is_path(name) else "")
    if skill is None:
        return _refused(name, known)
    path = PurePath(skill.path)
    file = start.text(path, BODY_BYTES)
    if file is None or isinstance(file, Closed):
        why = file.why if file else "it is gone"
        return ToolAnswer(text=f"{READ_SKILL}: {shown(path)} cannot be read now ({why})", error=True)
    body = front(file.text).body.strip("\n")
    if not body.strip():
        return ToolAnswer(
            text=f"{READ_SKILL}: the skill {skill.name!r} has nothing to read beside its description: {skill.description}"
        )
    kept, rest = cut(body, BODY_CHARS), ""
    if len(kept) < len(body) or not file.whole:
        size = f"this is the skill's first {len(kept):,} characters; the file has {file.size:,} bytes"
        rest = f"\n[cut: {size}, read {one_line(path.as_posix())} for the rest]"
    return ToolAnswer(text=f"Base directory for this skill: {one_line(path.parent.as_posix())}\n\n{kept}{rest}")


_HEADING: Final = (
    "# Skills\n"
    "How people here want some kinds of task done. When one fits the task, read it with `read_skill` before you begin, and follow it."
)


def _by_name(skill: Skill) -> tuple[str, str]:
    return skill.key, skill.name


def _all(start: Place, notices: list[str]) -> Iterator[Skill]:
    """Every skill in sight, nearest first."""
    for distance, place in enumerate(start.outward):
        for convention in FOLDERS:
            folder = place / convention
            inside = start.tree.folder(folder, MOST)
            if isinstance(inside, Closed):
                notices.append(f"skills in {shown(folder)} cannot be read: {inside.why}")
            elif inside is not None:
                if inside.more:
                    notices.append(f"skills in {shown(folder)}: only the first {MOST} names are looked at")
                yield from _in_folder(start, folder, inside, distance, notices)


def _in_folder(start: Place, folder: PurePath, inside: Folder, distance: int, notices: list[str]) -> Iterator[Skill]:
    paths = {name: folder / name / FILE for name in (*inside.folders, *inside.links)}
    paths |= {name: folder / name for name in inside.files if name.endswith(".md")}
    for name in sorted(paths):
        skill = _skill(start, paths[name], distance)
        if isinstance(skill, Closed):
            notices.append(f"skill {shown(paths[name])} is left out: {skill.why}")
        elif skill is not None:
            yield skill


def _skill(start: Place, path: PurePath, distance: int) -> Skill | Closed | None:
    file = start.text(path, HEAD_BYTES)
    if file is None or isinstance(file, Closed):
        return file
    head = front(file.text)
    if head.fields is None:
        why = "its frontmatter has no end" if head.unended else "it has no frontmatter"
        return None if path.name != FILE and not head.unended else Closed(why=why)  # a README among skills is none
    given = head.fields.get("name") or (path.parent.name if path.name == FILE else path.stem)
    name = "" if _is_path(given) else skill_name(given)
    description = one_line(head.fields.get("description", ""), DESCRIPTION_CHARS)
    if not name:
        return Closed(why=f"its name is {one_line(given, 80)!r}, expected letters, digits and hyphens")
    if not description:
        return Closed(why="it has no description")
    listed = head.fields.get("disable-model-invocation", "").lower() not in ("true", "yes", "on")
    return Skill(name=name, description=description, path=str(path), distance=distance, listed=listed)


def _left_out(names: list[str]) -> Iterator[str]:
    if not names:
        return
    line = f"[no room for {len(names)} more; `{READ_SKILL}` reads them too: "
    room = LEFT_OUT_CHARS - len(line) - len(", and so on]") - 2
    named: list[str] = []
    for name in names:
        if len(name) + 2 > room:
            break
        named.append(name)
        room -= len(name) + 2
    yield line + ", ".join(named) + (", and so on]" if len(named) < len(names) else "]")


def _is_path(name: str) -> bool:
    return any(sign in name for sign in "/\\\0")


def _refused(name: str, known: Mapping[str, Skill]) -> ToolAnswer:
    said = one_line(name, 80)
    if not known:
        return ToolAnswer(text=f"{READ_SKILL}: there are no skills here", error=True)
    near = get_close_matches(name.casefold()[:80], known, n=3, cutoff=0.5)
    names = [known[key].name for key in dict.fromkeys((*near, *known))]
    there = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
    why = "a skill is read by its name, not by a path" if _is_path(name) else "there is no such skill"
    return ToolAnswer(text=f"{READ_SKILL}: found {said!r}: {why}, expected one of {there}", error=True)
