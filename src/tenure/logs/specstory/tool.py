"""A tool's call and result as SpecStory shows them: one block, whose form depends on the agent, the tool and the version.

The call comes first. Its output follows words that say so, or stands in a fence of its own; where an older version put it into a fence
that its own fences end early, it reaches to the end of the block all the same.
"""

import html
import re
from typing import Final

from msgspec import Struct

from tenure.logs.specstory.arguments import arguments
from tenure.logs.specstory.fence import (
    FENCE,
    LABEL,
    LABELLED,
    OUTPUT_LINES,
    OUTPUT_OPENINGS,
    above,
    below,
    close,
    ends_fence,
    output_opening,
    unfenced,
)

# Kinds of tools, where the block names none: by how their names begin.
KINDS: Final = (
    ("write", ("write", "create", "edit", "multiedit", "apply_patch", "search_replace", "replace")),
    ("read", ("read",)),
    ("search", ("glob", "grep", "list", "ls", "search", "codebase_search", "ripgrep")),
)
TAKES_CONTENT: Final = ("write", "create", "add")  # names of tools whose first fence is what they write

# How the editor's extension opened a tool's section before it named the tool, and what a section of nothing but fences is.
UNNAMED: Final = (
    ("Read file: ", "read_file"),
    ("Listed ", "list_dir"),
    ("Searched codebase ", "codebase_search"),
    ("Searched files ", "file_search"),
    ("Searched the web ", "web_search"),
    ("Grep search for ", "grep_search"),
    ("Grep for ", "grep"),
    ("Edit file: ", "edit_file"),
    ("Run command: ", "run_terminal_cmd"),
    ("Read lints ", "read_lints"),
    ("Todo List", "todo_write"),
)
FENCED: Final = {"bash": "run_terminal_cmd", "diff": "edit_file"}

_OPENING: Final = re.compile(r'<tool-use data-tool-type="([^"\n]*)" data-tool-name="([^\n]*?)">(<details>)?\s*(?:<details>)?')
_SUMMARY: Final = re.compile(r"\s*<summary>(.*?)</summary>[ \t]*$", re.DOTALL | re.MULTILINE)
_NAMED: Final = re.compile(r"Tool use: \*\*(.*?)\*\*[ \t]*(?:•[ \t]*)?(.*)", re.DOTALL)
_ENTITY: Final = re.compile(r"&(?:amp|lt|gt|quot|#39|#34|#96|#x27);")
_BARE: Final = re.compile(r"[<>]|&(?!(?:amp|lt|gt|quot|#39|#34|#96|#x27);)")


class Used(Struct, frozen=True, gc=False):
    """A call and what came of it; `result` is None where the block shows none."""

    name: str
    arguments: str  # JSON
    result: str | None
    error: bool = False
    bare: bool = False  # nothing but its name is shown


def used(block: str) -> Used:
    """The tool of a `<tool-use>` block."""
    opening = _OPENING.match(block)
    assert opening is not None
    inner = block[opening.end() :].rstrip().removesuffix("</tool-use>").rstrip().removesuffix("</details>")
    said, body = _summarised(inner)
    if opening[3] is None:  # the extension's form
        said, body = _plain(said), _plain_fences(body)
    named = _NAMED.fullmatch(said)
    return _used(opening[1], html.unescape(opening[2]), said if named is None else named[2], body)


def used_plainly(block: str) -> Used:
    """The tool of a block without tags that opens with its name."""
    line, _, body = block.partition("\n")
    named = _NAMED.fullmatch(line)
    assert named is not None
    said = named[2]
    if body.lstrip().startswith("<details>"):
        shown, body = _summarised(body.strip().removeprefix("<details>").removesuffix("</details>"))
        said = " ".join(filter(None, (said, _plain(shown))))
    return _used("", named[1], said, _plain_fences(body))


def used_without_name(section: str) -> Used | None:
    """The tool of a section that the editor's extension wrote before it named tools; None for prose."""
    said, body = "", section
    if section.startswith("<details>"):
        said, body = _summarised(section.removeprefix("<details>").removesuffix("</details>"))
        if (named := _NAMED.fullmatch(said)) is not None:
            return _used("", named[1], _plain(named[2]), _plain_fences(body))
    elif section.startswith("```"):
        lines = section.split("\n")
        name = FENCED.get(lines[0].strip("`").strip())
        return _used("", name, "", _plain_fences(body)) if name is not None and _all_fenced(lines) else None
    else:
        said, _, body = section.partition("\n")
    name = next((name for opening, name in UNNAMED if said.startswith(opening)), None)
    return None if name is None else _used("", name, _plain(said), _plain_fences(body))


def _used(kind: str, name: str, said: str, body: str) -> Used:
    said = said.strip()
    lines = body.strip("\n").split("\n") if body.strip() else []
    shown, output, error = _parted(lines, _kind(kind, name), name, said)
    result = None if output is None else unfenced(output)
    return Used(name, arguments(name, said, shown), result, error, bare=not lines and not said)


def _kind(kind: str, name: str) -> str:
    if kind not in ("", "unknown", "generic"):
        return kind
    return next((kind for kind, openings in KINDS if name.lower().startswith(openings)), "")


def _summarised(inner: str) -> tuple[str, str]:
    """What the summary says, and the body below it."""
    found = _SUMMARY.match(inner)
    return ("", inner) if found is None else (found[1], inner[found.end() :])


def _parted(lines: list[str], kind: str, name: str, said: str) -> tuple[list[str], list[str] | None, bool]:
    """The lines that show the call and those that show its output, if any, and whether that is an error."""
    if kind == "write" and (at := _said_at_the_end(lines)) >= 0:
        return _at_words(lines, at)
    at = fences = 0
    while at < len(lines):
        line = lines[at].strip()
        if line in OUTPUT_LINES or output_opening(line) is not None:
            return _at_words(lines, at)
        fence = FENCE.fullmatch(lines[at])
        if fence is None:
            at += 1
        elif _holds_output(above(lines, at), fence[2].strip(), kind, said, name, first=not fences):
            return lines[:at], lines[at:], False
        else:
            fences += 1
            at = close(lines, at, len(fence[1])) + 1
    listed = kind in ("read", "search") and said and not fences and any(line.strip() for line in lines)
    return ([], lines, False) if listed else (lines, None, False)


def _at_words(lines: list[str], at: int) -> tuple[list[str], list[str] | None, bool]:
    """Parted at the line whose words say what follows."""
    line = lines[at].strip()
    if (opening := output_opening(line)) is not None:
        return lines[:at], [line.removeprefix(opening), *lines[at + 1 :]], OUTPUT_OPENINGS[opening]
    rest = lines[at + 1 :]
    if OUTPUT_LINES[line] and (fence := FENCE.fullmatch(below(lines, at))) is not None:
        end = close(rest, 0 if rest[0].strip() else 1, len(fence[1])) + 1
        if below(rest, end - 1) == "**Input:**":  # of a failed call, shown below its error
            return [*lines[:at], *rest[end:]], rest[:end], True
    return lines[:at], rest, OUTPUT_LINES[line]


def _said_at_the_end(lines: list[str]) -> int:
    """Where the output of a written file is announced: below the last fence, whatever fences the content holds; -1 for nowhere."""
    for at in range(len(lines) - 1, 0, -1):
        line = lines[at].strip()
        if (line in OUTPUT_LINES or output_opening(line) is not None) and ends_fence(above(lines, at)):
            return at
    return -1


def _holds_output(over: str, info: str, kind: str, said: str, name: str, *, first: bool) -> bool:
    """Whether a fence holds the output; `over` is the line above it."""
    if LABEL.fullmatch(over) is not None:
        return False
    if kind == "read":
        return info != "json" or bool(said)
    content = kind == "write" and first and name.lower().startswith(TAKES_CONTENT)
    return (info == "text" and not (content and LABELLED.fullmatch(over) is not None)) or (info == "" and not content)


def _all_fenced(lines: list[str]) -> bool:
    at = 0
    while at < len(lines):
        fence = FENCE.fullmatch(lines[at])
        if fence is not None:
            at = close(lines, at, len(fence[1]))
        elif lines[at].strip() and not lines[at].startswith("Lines added: "):
            return False
        at += 1
    return True


def _plain(text: str) -> str:
    """`text` as it was before some versions of the extension wrote it as HTML: not where anything shows that they did not."""
    return html.unescape(text) if _ENTITY.search(text) is not None and _BARE.search(text) is None else text


def _plain_fences(body: str) -> str:
    """`body` with `_plain` applied to what each fence in it holds."""
    lines = body.split("\n")
    at = 0
    while at < len(lines):
        fence = FENCE.fullmatch(lines[at])
        if fence is not None:
            end = close(lines, at, len(fence[1]))
            if end > at + 1:
                lines[at + 1 : end] = _plain("\n".join(lines[at + 1 : end])).split("\n")
            at = end
        at += 1
    return "\n".join(lines)
