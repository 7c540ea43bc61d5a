"""Which calls load a skill, and what a load brings.

A skill is loaded by a tool of its own (Claude Code's `Skill`, `load_skill`, ...) or by reading its file, `.../NAME/SKILL.md`. Claude Code answers
such a call with one line and says the skill itself in a message of the harness behind it, so that message belongs to the load.
"""

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from msgspec import Struct

from tenure.engine.record.entry import At, ToolResult
from tenure.engine.record.objects import tool_name
from tenure.engine.record.tools import Act, ToolKind, is_notes, is_recall, tools_that

if TYPE_CHECKING:
    from tenure.engine.record.index import Span

# Names in `tool_name` form.
SKILL_TOOLS: Final = frozenset(
    {"skill", "read_skill", "load_skill", "use_skill", "get_skill", "view_skill", "activate_skill", "invoke_skill"}
)
READ_TOOLS: Final = tools_that(Act.READ)
NAME_CHARS: Final = 72
NEAREST: Final = 5  # names that an error lists

_NAME_KEYS: Final = (
    "skill",
    "skill_name",
    "skillName",
    "name",
    "command",
    "id",
)  # of a skill tool's arguments, most telling first
_PATH_KEYS: Final = ("file_path", "filePath", "path", "absolute_path", "filename", "file")
_COMMAND_KEYS: Final = ("command", "cmd", "script")
_FILE: Final = re.compile(r"(?:.*[/\\])?(?P<name>[^/\\]+)[/\\]SKILL\.md", re.IGNORECASE | re.DOTALL)
_SPELT: Final = ("SKILL.md", "skill.md", "Skill.md")  # looked for as they are: most calls are of something else
_READING: Final = re.compile(  # at the start of a command: what it reads, up to where its output goes
    r"(?:^|[;&|\n])[ \t]*+(?:cat|head|tail|sed|less|more|bat|nl|type|Get-Content)[ \t]++(?P<files>[^;&|<>\n]*+)"
)
_IN_PLACE: Final = re.compile(r"(?:^|\s)-i")  # of sed: it writes
_WORD: Final = re.compile(r"\"([^\"]*+)\"|'([^']*+)'|(\S++)")
_COMMAND_CHARS: Final = 4_096
_ANNOUNCES: Final = "Launching skill:"  # Claude Code's result; what the skill says follows in a message of its own
_BODY: Final = "Base directory for this skill:"  # how that begins, unless the skill came with Claude Code
_UNSAFE: Final = re.compile(r"[^\w.:\-]+")


class Load(Struct, gc=False):
    """One time that a skill was loaded: the call that did it, and what the harness said with its result."""

    name: str
    span: int  # ordinal
    said: tuple[tuple[int, int], ...] = ()  # (entry, block)


class Skills:
    """The loads of every skill that did not fail, in the order of their results. Grown by the index, O(1) a block."""

    def __init__(self) -> None:
        self._loads: dict[str, list[Load]] = {}
        self._by_span: dict[int, Load] = {}
        self._asked: dict[int, str] = {}  # calls that have no result yet
        self._said: dict[At, int] = {}  # blocks of the harness, by the span they belong to
        self._newest: list[
            tuple[int, Load, bool]
        ] = []  # those of the newest reply; the entry of the result, whether it announced more

    def add_call(self, span: "Span", arguments: str) -> None:
        """Note a call that may turn out to load a skill."""
        if not (is_recall(span.tool) or is_notes(span.tool)) and (name := skill_of(span.tool, span.kind, arguments)):
            self._asked[span.ordinal] = name

    def add_result(self, span: "Span", at: At, result: ToolResult) -> None:
        """Note the result of a call."""
        name = self._asked.pop(span.ordinal, "")
        if not name or result.error:
            return
        load = Load(name, span.ordinal)
        self._loads.setdefault(name.casefold(), []).append(load)
        self._by_span[span.ordinal] = load
        self._newest.append((at[0], load, result.text.startswith(_ANNOUNCES)))

    def end_reply(self) -> None:
        """Note that the model speaks again: what the harness says from here on belongs to no load before."""
        self._newest.clear()

    def add_words(self, at: At, text: str) -> None:
        """Note words of the harness, which may be what a skill says: beside its result, or opening as Claude Code opens them."""
        if not self._newest:
            return
        opens = text.startswith(_BODY)
        bare = not text.lstrip().startswith("<")  # no reminder, which may stand there as anywhere
        waiting = [load for _, load, announced in self._newest if not load.said and (opens or (announced and bare))]
        waiting = waiting or [load for entry, load, _ in self._newest if entry == at[0] and not opens]
        if not waiting:
            return
        folder = _last_part(text[len(_BODY) :].partition("\n")[0]) if opens else ""
        named = next((load for load in waiting if folder and _plain(load.name) == folder.casefold()), None)
        load = named or waiting[0]
        load.said = (*load.said, at)
        self._said[at] = load.span

    def loads(self, name: str) -> list[Load]:
        """The loads of a skill, oldest first; none of one that was never loaded. Names are known in any case."""
        return self._loads.get(name.casefold(), [])

    def of(self, span: int) -> Load | None:
        """The load that a call was."""
        return self._by_span.get(span)

    def source(self, at: tuple[int, int]) -> int | None:
        """The call to whose load words of the harness belong."""
        return self._said.get(at)

    @property
    def names(self) -> Iterable[str]:
        """The skills loaded so far, in the order of their first load."""
        return [loads[0].name for loads in self._loads.values()]

    def nearest(self, name: str) -> list[str]:
        """The names most like one that is not known; without any likeness the newest."""
        known = {each.casefold(): each for each in self.names}
        folded = name.casefold()
        close = get_close_matches(folded[:NAME_CHARS], known, n=NEAREST, cutoff=0.4)
        within = [each for each in known if folded and (folded in each or each in folded) and each not in close]
        return [known[each] for each in (*close, *within)][:NEAREST] or list(known.values())[-NEAREST:]


def skill_of(tool: str, kind: ToolKind, arguments: str) -> str:
    """The skill that a call loads; empty when it loads none. Never raises."""
    mentioned = any(spelt in arguments for spelt in _SPELT)
    if not mentioned and "skill" not in tool.lower():
        return ""
    name = tool_name(tool)
    may_read = kind is ToolKind.INTERMEDIATE or name in READ_TOOLS
    if name not in SKILL_TOOLS and not (may_read and mentioned):
        return ""
    fields = _fields(arguments)
    if name in SKILL_TOOLS:
        found = _first(fields, _NAME_KEYS) or next((value for value in fields.values() if isinstance(value, str)), "")
        return skill_name(found) or skill_file(_first(fields, _PATH_KEYS))
    return next((found for path in _paths(name, fields) if (found := skill_file(path))), "")


def skill_file(path: str) -> str:
    """The skill whose file a path names; empty when it names none."""
    found = _FILE.fullmatch(path) if len(path) <= _COMMAND_CHARS else None
    return skill_name(found["name"]) if found else ""


def skill_name(text: str) -> str:
    """A skill's name as objects use it, with nothing in it that would end an id: `/office:tables ` is `office:tables`."""
    inner = skill_file(text) if text.endswith(_SPELT) else ""
    return inner or _UNSAFE.sub("_", text[: NAME_CHARS * 4].strip())[:NAME_CHARS].strip("_:.-")


def _paths(tool: str, fields: dict[str, Any]) -> Iterator[str]:
    """The files that a call was there to read."""
    if tool in READ_TOOLS or set(fields) <= {*_PATH_KEYS, "offset", "limit", "start_line", "end_line", "view_range"}:
        yield from filter(None, [_first(fields, _PATH_KEYS)])
        return
    for reading in _READING.finditer(_command(fields)[:_COMMAND_CHARS]):
        files = reading["files"]
        if not _IN_PLACE.search(files):
            yield from ("".join(word) for word in _WORD.findall(files))


def _command(fields: dict[str, Any]) -> str:
    """The command of a shell's call, without the shell it is given to."""
    value = next((fields[key] for key in _COMMAND_KEYS if fields.get(key)), "")
    if not isinstance(value, list):
        return value if isinstance(value, str) else ""
    words = [str(word) for word in cast(list[object], value)]
    return words[-1] if len(words) > 2 and words[1] in ("-c", "-lc") else " ".join(words)


def _fields(arguments: str) -> dict[str, Any]:
    try:
        parsed = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return {}
    return cast(dict[str, Any], parsed) if isinstance(parsed, dict) else {"skill": parsed} if isinstance(parsed, str) else {}


def _first(fields: dict[str, Any], keys: Iterable[str]) -> str:
    return next((value for key in keys if isinstance(value := fields.get(key), str) and value.strip()), "")


def _last_part(path: str) -> str:
    return re.split(r"[/\\]", path.strip().rstrip("/\\"))[-1]


def _plain(name: str) -> str:
    """A skill's own name, without the plugin it comes with."""
    return name.rpartition(":")[2].casefold()
