"""What kind of artefact each tool leaves behind, as a table (CWL paper, section 4.4).

bulk: large enumerable output that is cheap to have again. intermediate: reads and commands, which carry what the agent wanted.
durable: the agent's own work; it leaves only with its whole episode. A host extends the table by name (`Kinds(extra={...})`), or a
tool declares its own kind under the key `x-tenure-kind` of its schema.
"""

import re
from collections.abc import Container, Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, cast

import msgspec

from tenure.engine.record.objects import tool_key
from tenure.errors import InputError


class ToolKind(StrEnum):
    """From least to most costly to lose."""

    BULK = "bulk"
    INTERMEDIATE = "intermediate"
    DURABLE = "durable"


DELIMITER: Final = "delimiter"
RECALL: Final = "recall"
NOTES: Final = "notes"
OURS: Final = "tenure_"  # before a name of ours that the host has a tool of
DECLARATION: Final = "x-tenure-kind"

# Names as Claude Code, OpenCode, pi, Gemini CLI, Codex, Cline and OpenHands use them, in `tool_key` form.
TOOL_KINDS: Final[Mapping[str, ToolKind]] = {
    **dict.fromkeys(
        "grep glob find ls list list_dir list_directory listdirectory list_files search search_files search_file_content codesearch"
        " grep_search file_search glob_search websearch web_search google_web_search tool_search toolsearch list_mcp_resources"
        " listmcpresourcestool lsp list_code_definition_names recall tenure_recall".split(),
        ToolKind.BULK,
    ),
    **dict.fromkeys(
        "edit write multiedit multi_edit notebookedit notebook_edit apply_patch patch replace write_file write_to_file create_file"
        " str_replace str_replace_editor str_replace_based_edit_tool insert replace_in_file save_memory todowrite todo_write"
        " write_todos update_plan delimiter tenure_delimiter exitplanmode enterplanmode askuserquestion ask_user question".split(),
        ToolKind.DURABLE,
    ),
}


class Act(StrEnum):
    """What a call of a tool does."""

    READ = "read"
    SEARCH = "search"
    LIST = "list"
    LOOK_UP = "look up"  # symbols and tools, not files
    RUN = "run"
    PROCESS = "process"  # of a command that runs: its output, its input, its end
    CREATE = "create"
    WRITE = "write"
    EDIT = "edit"
    PATCH = "patch"
    EDITOR = "editor"  # by an argument: reads, creates or edits
    DELETE = "delete"
    FETCH = "fetch"
    SEARCH_WEB = "search the web"
    AGENT = "agent"
    TODO = "todo"
    PLAN = "plan"  # thinking aloud, modes, questions to the user


# By `tool_name`; names as Claude Code, Codex, OpenCode, pi, Gemini CLI, Cline, OpenHands, SWE-agent and Copilot use them.
ACTS: Final[Mapping[str, Act]] = {
    name: act
    for act, names in {
        Act.READ: "read read_file readfile view view_file cat open open_file notebookread read_many_files fs_read get_file_contents",
        Act.SEARCH: "grep search codesearch search_file_content grep_search search_files search_file search_dir",
        Act.LIST: "glob ls list find list_dir list_directory list_files file_search glob_search find_file",
        Act.LOOK_UP: "lsp toolsearch list_code_definition_names",
        Act.RUN: "bash shell exec exec_command run_shell_command run terminal execute_command local_shell execute_bash powershell"
        " run_command run_in_terminal ipython execute_ipython_cell python",
        Act.PROCESS: "bashoutput write_stdin killshell",
        Act.CREATE: "create create_file new_file",
        Act.WRITE: "write write_file write_to_file save_file",
        Act.EDIT: "edit multiedit multi_edit edit_file notebookedit notebook_edit replace str_replace replace_in_file insert"
        " search_replace insert_edit_into_file apply_diff undo_edit",
        Act.PATCH: "apply_patch patch",
        Act.EDITOR: "str_replace_editor str_replace_based_edit_tool file_editor",
        Act.DELETE: "delete_file remove_file",
        Act.FETCH: "webfetch web_fetch fetch fetch_url browse open_url browser_action",
        Act.SEARCH_WEB: "websearch web_search google_web_search",
        Act.AGENT: "task agent spawn_agent dispatch_agent subagent",
        Act.TODO: "todowrite todo_write update_plan write_todos",
        Act.PLAN: "todoread taskcreate taskupdate tasklist taskget think enterplanmode exitplanmode askuserquestion ask_user question"
        " skill finish save_memory reportfindings",
    }.items()
    for name in names.split()
}


def tools_that(*acts: Act) -> frozenset[str]:
    """The names of the tools that do one of these."""
    return frozenset(name for name, act in ACTS.items() if act in acts)


# Arguments that say in a few words what a call was about, most telling first.
_CUES: Final = (
    "file_path", "filePath", "path", "absolute_path", "notebook_path", "pattern", "query", "url", "command", "cmd", "skill", "name",
    "description", "prompt", "dir_path", "directory", "code", "input", "handle", "words",
)  # fmt: skip
_REFERENCE: Final = re.compile(r'"type": ?"tool_reference"')
_CUE_CHARS: Final = 72
_SPACES = re.compile(r"\s+")


class Kinds:
    """The table with a host's own additions; an unknown tool is intermediate."""

    def __init__(self, extra: Mapping[str, ToolKind] | None = None) -> None:
        self._extra = {tool_key(name): kind for name, kind in (extra or {}).items()}
        self._table = {**TOOL_KINDS, **self._extra}

    def declared(self, tool: str) -> ToolKind:
        """The kind of a host's own tool that has a name of ours."""
        return self._extra.get(tool_key(tool), ToolKind.INTERMEDIATE)

    def of(self, tool: str) -> ToolKind:
        """The kind of `tool`; a tool of an MCP server counts by its own name."""
        key = tool_key(tool)
        return self._table.get(key) or self._table.get(key.rpartition("__")[2]) or ToolKind.INTERMEDIATE


def declared_kinds(tools: Iterable[Mapping[str, Any]]) -> dict[str, ToolKind]:
    """Kinds that tool schemas declare themselves, by tool name; both providers' shapes are understood. Raises InputError for an unknown kind."""
    found: dict[str, ToolKind] = {}
    for tool in tools:
        function = tool.get("function", tool)
        kind = tool.get(DECLARATION) or function.get(DECLARATION)
        if kind and function.get("name"):
            if kind not in tuple(ToolKind):
                raise InputError(f"tool {function['name']!r}", f"{DECLARATION} is {kind!r}", "one of " + ", ".join(ToolKind))
            found[function["name"]] = ToolKind(kind)
    return found


def name_of(tool: Mapping[str, Any]) -> str:
    """A declared tool's name, in either provider's shape; empty where it has none."""
    function: Any = tool.get("function")
    inner = cast(Mapping[str, Any], function) if isinstance(function, Mapping) else tool
    return str(tool.get("name") or inner.get("name") or "")


def is_delimiter(tool: str) -> bool:
    """Whether a call of `tool` marks an episode, also behind an MCP server's prefix."""
    return _is(tool, DELIMITER)


def is_notes(tool: str) -> bool:
    """Whether a call of `tool` may be one of the agent's notes, also behind an MCP server's prefix."""
    return _is(tool, NOTES)


def is_recall(tool: str) -> bool:
    """Whether a call of `tool` brings something back, also behind an MCP server's prefix."""
    return _is(tool, RECALL)


def is_virtual(tool: str) -> bool:
    """Whether `tool` has a name under which one of ours is offered."""
    return is_delimiter(tool) or is_recall(tool) or is_notes(tool)


def offered_name(tool: str, taken: Container[str]) -> str:
    """The name under which ours is offered where the host has tools of the names `taken`."""
    names = (tool, *(f"{OURS}{tool}{'_' * n}" for n in range(len(OURS))))
    return next(name for name in names if name not in taken)


def _is(tool: str, ours: str) -> bool:
    bare = tool.rpartition("__")[2]
    return bare == ours or (tool.startswith(OURS) and tool.removeprefix(OURS).rstrip("_") == ours)


def is_reference(text: str) -> bool:
    """Whether a result is nothing but references to tools, which it declares for the rest of the conversation (ToolSearch of Claude Code)."""
    lines = [line for line in text.split("\n") if line.strip()] if "tool_reference" in text else []
    return bool(lines) and all(line.startswith("{") and _REFERENCE.search(line) for line in lines)


def cue_of(arguments: str) -> str:
    """What a call was about, in one short line: its path, pattern or command. Empty when its arguments say nothing."""
    try:
        parsed = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return _short(arguments)
    if not isinstance(parsed, dict):
        return _short(arguments)
    found = cast(dict[str, Any], parsed)
    for key in _CUES:
        value = found.get(key)
        if isinstance(value, str) and value.strip():
            return _short(value)
        if isinstance(value, list) and value:
            return _short(" ".join(map(str, cast(list[object], value))))
    return ""


def is_shortened(cue: str) -> bool:
    """Whether a cue is not all that a call was about: nobody knows whether the rest is the same as another's."""
    return cue.startswith("…") or cue.endswith("…")


def _short(text: str) -> str:
    """In one line of at most _CUE_CHARS characters; of a long path the end, where the name stands."""
    line = _SPACES.sub(" ", text[: _CUE_CHARS * 4]).strip()
    if len(line) <= _CUE_CHARS:
        return line
    is_path = ("/" in line or "\\" in line) and " " not in line and len(text) < _CUE_CHARS * 4
    return "…" + line[1 - _CUE_CHARS :] if is_path else line[: _CUE_CHARS - 1] + "…"
