"""A call's arguments, made of what SpecStory shows of them: named by a label or, where there is none, from a table."""

from typing import Final

import msgspec

from tenure.logs.specstory.fence import FENCE, LABEL, LABELLED, above, below, close, unescaped, unfenced

# What a tool takes, where the block shows it without a label.
TAKES: Final = {
    "bash": "command",
    "exec_command": "cmd",
    "shell_command": "command",
    "shell": "command",
    "run_shell_command": "command",
    "run_terminal_cmd": "command",
    "execute": "command",
    "powershell": "command",
    "read": "file_path",
    "multiedit": "file_path",
    "grep": "pattern",
    "glob": "pattern",
    "search": "pattern",
    "search_file_content": "pattern",
    "webfetch": "url",
    "websearch": "query",
    "web_search": "query",
    "read_file": "path",
    "write_file": "path",
    "edit_file": "path",
    "list_directory": "path",
    "view_image": "path",
}
COMMAND: Final = "command"
OTHER: Final = "input"
IN_FENCE: Final = {"bash": COMMAND, "powershell": COMMAND, "diff": "diff", "json": OTHER, "javascript": "code"}

_INLINE: Final = ("path", "pattern", "include")


class _Clash(Exception):
    """Two values of one name: what is shown does not tell them apart."""


def arguments(name: str, said: str, lines: list[str]) -> str:
    """JSON of what the summary says beside the tool's name and what the lines below it show; each text is in it once."""
    if not said and (given := _object(lines)):
        return given
    try:
        fields = _fields(name, said, lines)
    except _Clash:
        whole = "\n".join(lines).strip("\n")
        fields = {"description": said, "input": whole} if said else {"input": whole}
    return msgspec.json.encode(fields).decode()


def _object(lines: list[str]) -> str:
    """The arguments themselves, where they are shown as JSON; empty where they are not."""
    fence = next((FENCE.fullmatch(line) for line in lines if line.strip()), None)
    if fence is None or fence[2].strip() != "json":
        return ""
    text = unfenced(lines)
    try:
        msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError):
        return ""
    return text


def _fields(name: str, said: str, lines: list[str]) -> dict[str, str]:
    fields: dict[str, str] = {}
    prose = list[str]()
    main = TAKES.get(name.lower(), OTHER)
    if said:
        code = _code(said) if "` in `" not in said else None
        _put(fields, "description" if code is None else main, said if code is None else code)
    at = 0
    while at < len(lines):
        line = lines[at].strip()
        if (fence := FENCE.fullmatch(lines[at])) is not None:
            end = close(lines, at, len(fence[1]))
            label = _label(above(lines, at)) or IN_FENCE.get(fence[2].strip(), "content")
            _put(fields, main if label == COMMAND and main != OTHER else label, unescaped(unfenced(lines[at : end + 1])))
            at = end
        elif line == "**Input:**" or (_label(line) and FENCE.fullmatch(below(lines, at)) is not None):
            pass
        elif (labelled := LABELLED.fullmatch(line)) is not None:
            _put(fields, labelled[1] or labelled[3], labelled[2] if labelled[1] else labelled[4])
        elif lines[at].startswith(" ") and (found := _inline(lines[at], main)):
            for key, value in found.items():
                _put(fields, key, value)
        elif (code := _code(line)) is not None:
            _put(fields, main, code)
        else:
            prose.append(lines[at])
        at += 1
    if text := "\n".join(prose).strip():
        _put(fields, "description" if fields or "\n" not in text else OTHER, text)
    return fields


def _put(fields: dict[str, str], key: str, value: str) -> None:
    if key in fields:
        raise _Clash
    fields[key] = value


def _label(line: str) -> str:
    found = LABEL.fullmatch(line)
    return "" if found is None else found[1] or found[2] or found[3]


def _code(text: str) -> str | None:
    """What stands between backticks, where they enclose all of `text`; several of them enclose what holds fewer."""
    run = len(text) - len(text.lstrip("`"))
    ticks = "`" * run
    if run > 1 and len(text) > 2 * run and text.endswith(ticks) and ticks not in text[run:-run]:
        inner = text[run:-run]
        return inner[1:-1] if inner.startswith(" ") and inner.endswith(" ") else inner
    return text[1:-1] if run and len(text) > 1 and text.endswith("`") else None


def _inline(line: str, main: str) -> dict[str, str]:
    """Claude Code's readers and searchers: ` path `a` pattern `b` and words`, or ` `a` and words`."""
    found: dict[str, str] = {}
    if line.startswith(" `"):
        starts = [(0, main, 2)]
    else:
        keys = ((line.find(f" {key} `"), key) for key in _INLINE)
        starts = [(at, key, at + len(key) + 3) for at, key in keys if at >= 0]
    if not starts or starts[0][0] > 0 or sorted(starts) != starts:
        return {}
    ends = [*(at for at, _, _ in starts[1:]), len(line)]
    for (_, key, start), end in zip(starts, ends, strict=True):
        stop = line.rfind("`", start, end)
        if stop < 0:
            return {}
        found[key] = line[start:stop]
        if rest := line[stop + 1 : end].strip():
            found["description"] = f"{found['description']} {rest}" if "description" in found else rest
    return found
