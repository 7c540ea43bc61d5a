"""What code knows about a stretch of history and no summary need be trusted with.

Files touched, from the calls that touched them and the results that say it worked; and failures that nothing later resolved, in their own
words. Both are carried on from brief to brief.
"""

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Final

import msgspec
from msgspec import Struct

from tenure.engine.record.entry import Entry, ToolCall, ToolResult
from tenure.engine.record.index import NONE, Index, Span
from tenure.engine.record.objects import tool_key
from tenure.engine.record.tools import ACTS, Act, ToolKind, cue_of, is_delimiter, is_recall, tools_that

FILES: Final = 80  # listed, most recently touched first
PATH_CHARS: Final = 300
FAILURES: Final = 5  # the newest
FAILURE_CHARS: Final = 1_600  # of one, head and tail
TARGET_CHARS: Final = 160  # of a command; a longer one is known by its hash

# What a call of a tool does to the file it names, in `tool_key` form.
VERBS: Final = {
    name: {Act.CREATE: "created", Act.WRITE: "written", Act.EDIT: "edited", Act.DELETE: "deleted"}[act]
    for name, act in ACTS.items()
    if act in (Act.CREATE, Act.WRITE, Act.EDIT, Act.DELETE)
}
# Tools of several commands: what each does. One that is not here changes nothing.
COMMANDS: Final = {"create": "created", "str_replace": "edited", "insert": "edited", "undo_edit": "edited", "write": "written"}
COMMANDED: Final = tools_that(Act.EDITOR)
PATCHED: Final = {"Add": "created", "Update": "edited", "Delete": "deleted"}

_PATHS: Final = ("file_path", "filePath", "path", "absolute_path", "notebook_path", "target_file", "filename", "file")
_SHELL: Final = ("command", "cmd")
_PATCH = re.compile(r"^\*\*\* (Add|Update|Delete) File: ([^\n]{1,300})$", re.MULTILINE)
_MOVED = re.compile(r"^\*\*\* Move to: ([^\n]{1,300})$", re.MULTILINE)
_STATUS = re.compile(
    r"\W{0,3}(?:(?:the )?(?:process|command) (?:exited|finished|completed) with (?:exit )?code|exit[ _-]?(?:code|status)|returncode)"
    r"\W{1,4}(-?\d{1,10})\b",
    re.IGNORECASE,
)
_STATUS_LINES: Final = 5  # at the start and at the end of a result that may say how a command ended
_STATUS_CHARS: Final = 400
# Programs that only look: that there is nothing to see (1, or 2) is an answer, not an error.
_LOOKING: Final = frozenset(
    "grep egrep fgrep rg ag test [ [[ diff cmp which type pgrep ls tree cat head tail find fd stat file wc echo printf cd pwd true sort"
    " uniq cut".split()
)
_ANSWERS: Final = 2  # the highest exit code that such a program answers with
_QUOTED_TEXT = re.compile(r"\"[^\"]*\"|'[^']*'")
_PARTS = re.compile(r"&&|\|\||[;|\n]")
# A call that a person or the host stopped has not failed. As hosts word it.
_STOPPED: Final = (
    "The user doesn't want to", "The user does not want to", "User rejected", "[Request interrupted", "<tool_use_error>Sibling tool call errored",
    "<tool_use_error>Cancelled",
)  # fmt: skip
_AROUND = re.compile(r"^(?:cd [^&;|\n]{1,200}(?:&&|;)\s*)+|(?:\s*2>&1)?\s*\|\s*(?:head|tail)(?: -[\w ]{1,12})?\s*$|\s*2>&1\s*$")
_LAYERS: Final = 3  # how often `_AROUND` is taken off a command
_COMMAND_CHARS: Final = 20_000


class Touched(Struct, frozen=True, kw_only=True):
    """A file and how often each thing was done to it."""

    path: str
    counts: tuple[tuple[str, int], ...]  # by verb: edited, written, created, deleted, moved; in alphabetical order


class FailedCall(Struct, frozen=True, kw_only=True):
    """A call that failed, as the model saw it; `text` is verbatim but for a middle that may be left out."""

    handle: str
    target: str  # the command or the file
    text: str


class Quoted(Struct, frozen=True, kw_only=True):
    """Something that goes with the brief word for word."""

    label: str  # a handle, or where a rule comes from
    text: str


class HandoffFacts(Struct, frozen=True, kw_only=True):
    """What code adds to a brief."""

    files: tuple[Touched, ...] = ()  # most recently touched first
    unlisted: int = 0  # files beyond those
    failures: tuple[FailedCall, ...] = ()  # oldest first
    rules: tuple[Quoted, ...] = ()


class _Deed(Struct, frozen=True, kw_only=True):
    """What a call was to do: change files, run a command, or something else about `target`."""

    target: str
    changes: tuple[tuple[str, str], ...] = ()  # (path, verb)
    command: str = ""


def facts_of(
    index: Index,
    entries: Iterable[Entry],
    *,
    cut: int | None = None,
    earlier: HandoffFacts | None = None,
    rules: Iterable[Quoted] = (),
) -> HandoffFacts:
    """What code knows about the entries before `cut` (None: all of them). O(entries).

    Give the entries from the last cut to the record's end: what comes after `cut` is not told, since it stays, but it may resolve a failure.
    `earlier` are the last brief's facts; its files and open failures are carried on, its rules are not: the host knows the present ones.
    """
    ledger = _Ledger(earlier or HandoffFacts())
    deeds: dict[int, _Deed] = {}
    for entry in entries:
        for number, block in enumerate(entry.blocks):
            span = index.block((entry.n, number)).span
            if span == NONE:
                continue
            if isinstance(block, ToolCall):
                deeds[span] = _deed(block)
            elif isinstance(block, ToolResult) and span in deeds:
                ledger.take(index, index.spans[span], deeds.pop(span), block, is_handed_off=cut is None or entry.n < cut)
    return ledger.facts(tuple(rules))


class _Ledger:
    """Files and open failures, brought forward result by result."""

    def __init__(self, earlier: HandoffFacts) -> None:
        self._files = {file.path: dict(file.counts) for file in reversed(earlier.files)}  # most recently touched last
        self._unlisted = earlier.unlisted
        self._open: dict[str, dict[str, FailedCall]] = {}  # by target, then by tool; newest last
        for failure in earlier.failures:
            self._fail(failure, failure.handle.partition("@")[0].rpartition(":")[0])

    def take(self, index: Index, span: Span, deed: _Deed, result: ToolResult, *, is_handed_off: bool) -> None:
        """Learn how a call ended."""
        tool = tool_key(span.tool)
        if is_delimiter(span.tool) or is_recall(span.tool):
            return
        if result.text.startswith(_STOPPED):
            return
        if _went_wrong(deed, result):
            self._resolve(deed, tool)
            if is_handed_off and deed.target and span.kind is not ToolKind.BULK:
                handle = index.handle(span.object, span.call[0])
                text = _clipped(result.text, handle) or "(no output)"
                self._fail(FailedCall(handle=handle, target=deed.target, text=text), tool)
            return
        self._resolve(deed, "" if deed.changes or deed.command else tool)
        for path, verb in deed.changes if is_handed_off else ():
            counts = self._files.pop(path, {})
            counts[verb] = counts.get(verb, 0) + 1
            self._files[path] = counts

    def facts(self, rules: tuple[Quoted, ...]) -> HandoffFacts:
        """What is known now."""
        files = [Touched(path=path, counts=tuple(sorted(counts.items()))) for path, counts in reversed(self._files.items())]
        failures = [failure for tools in self._open.values() for failure in tools.values()]
        return HandoffFacts(
            files=tuple(files[:FILES]),
            unlisted=self._unlisted + max(0, len(files) - FILES),
            failures=tuple(failures[-FAILURES:]),
            rules=rules,
        )

    def _fail(self, failure: FailedCall, tool: str) -> None:
        tools = self._open.pop(failure.target, {})
        tools.pop(tool, None)
        self._open[failure.target] = {**tools, tool: failure}

    def _resolve(self, deed: _Deed, tool: str) -> None:
        """What this call did is no longer open: all of its target where it changed or ran it, else what the same tool left."""
        for target in {deed.target, *(path for path, _ in deed.changes)}:
            if not tool:
                self._open.pop(target, None)
            elif target in self._open:
                self._open[target].pop(tool, None)


def _deed(call: ToolCall) -> _Deed:
    arguments = _arguments(call.arguments)
    patch = next((value for value in (*arguments.values(), call.arguments) if "*** Begin Patch" in value), "")
    if patch:
        changes = tuple(_patched(patch))
        return _Deed(target=changes[0][0] if changes else target_of(cue_of(call.arguments)), changes=changes)
    path = next((arguments[name] for name in _PATHS if arguments.get(name, "").strip()), "")
    if path:
        path = _one_line(path)[:PATH_CHARS]
        verb = _verb(call.name, arguments)
        return _Deed(target=path, changes=((path, verb),) if verb else ())
    command = next((arguments[name] for name in _SHELL if arguments.get(name, "").strip()), "")
    if command:
        return _Deed(target=target_of(command), command=command[:_COMMAND_CHARS])
    return _Deed(target=target_of(cue_of(call.arguments)))


def target_of(command: str) -> str:
    """A command as failures know it: in one line, without where it ran and how its output was cut; a long one by its start and hash."""
    line = _one_line(command[:_COMMAND_CHARS])
    for _ in range(_LAYERS):
        line = _AROUND.sub("", line)
    if len(command) <= _COMMAND_CHARS and len(line) <= TARGET_CHARS:
        return line
    return f"{line[: TARGET_CHARS - 12].rstrip()}…#{sha256(command.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _arguments(text: str) -> dict[str, str]:
    """The arguments of a call that are texts, or lists of them."""
    found: dict[str, str] = {}
    try:
        raw = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        for name in (*_PATHS, *_SHELL, "input", "patch", "patchText"):
            if name in raw:
                value = msgspec.json.decode(raw[name], type=str | list[str])
                found[name] = value if isinstance(value, str) else " ".join(value)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        pass  # what a host could not make sense of either touched no file
    return found


def _verb(tool: str, arguments: dict[str, str]) -> str:
    key = tool_key(tool)
    key = key if key in VERBS or key in COMMANDED else key.rpartition("__")[2]
    return COMMANDS.get(arguments.get("command", ""), "") if key in COMMANDED else VERBS.get(key, "")


def _patched(patch: str) -> Iterator[tuple[str, str]]:
    for verb, path in _PATCH.findall(patch):
        yield _one_line(path), PATCHED[verb]
    for path in _MOVED.findall(patch):
        yield _one_line(path), "moved"


def _went_wrong(deed: _Deed, result: ToolResult) -> bool:
    """Whether a call failed: by its host's word, or by the exit code that the output of a command names."""
    if not deed.command:
        return result.error
    code = _exit_code(result.text)
    if (code or 0) <= _ANSWERS and _only_looks(deed.command):
        return False
    return result.error or bool(code)


def _exit_code(text: str) -> int | None:
    lines = [*text[:_STATUS_CHARS].split("\n")[:_STATUS_LINES], *text[-_STATUS_CHARS:].split("\n")[-_STATUS_LINES:]]
    codes = [int(found[1]) for line in lines if (found := _STATUS.match(line))]
    return codes[-1] if codes else None


def _only_looks(command: str) -> bool:
    parts = (part.split(None, 1) for part in _PARTS.split(_QUOTED_TEXT.sub("_", command)))
    return all(part[0] in _LOOKING for part in parts if part)


def _clipped(text: str, handle: str) -> str:
    text = text.replace("\0", "\ufffd").strip("\n")
    if len(text) <= FAILURE_CHARS:
        return text
    half = FAILURE_CHARS // 2
    gap = f"[… {len(text) - 2 * half:,} characters left out; recall {handle} for all of it …]"
    return f"{text[:half]}\n{gap}\n{text[-half:]}"


def _one_line(text: str) -> str:
    return " ".join(text.replace("\0", " ").split())
