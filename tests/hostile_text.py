"""Text that obeys nobody: everything that acts on a terminal, in a browser or on markup, and sessions that are full of it."""

import json
import re
from pathlib import Path

from tenure.engine.record.entry import Draft
from tenure.testing.builders import call, human, reply, result

MARKUP = "[link=http://evil.example][bold red]owned[/] [/nothing] $evil {evil} <b>&amp;</b> :smile:"
# By class: what each would do where it is obeyed.
CLASSES = {
    "sequence": "\x1b[2J\x1b[31m\x1b[10;10Hcsi",
    "title": "\x1b]0;owned\x07",
    "link": "\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\",
    "clipboard": "\x1b]52;c;ZXZpbA==\x07",
    "device": "\x1bP$q\x1b\\\x1b_apc\x1b\\\x1b^pm\x1b\\\x1bc",
    "c1": "\x9b31m\x9d0;owned\x9c\x80\x85\x90\x9f",
    "controls": "a\x07b\x08\x08\x08c\x0b\x0c\x0e\x0f\x7f",
    "overwrite": "rm -rf /\rls       ",
    "null": "nu\x00ll",
    "direction": "\u202egpj.exe\u202c \u2066x\u2069 \u200e\u200f\u061c",
    "separators": "one\u2028two\u2029three\ufeff",
    "tags": "hidden\U000e0041\U000e0042\U000e007f",
    "surrogate": "lone \ud800 and \udfff",
    "markup": MARKUP,
}
EVIL = " ".join(CLASSES.values())
SOUND = EVIL.encode("utf-8", "replace").decode()  # as a record holds it

_ACTS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
OWN_STYLE = re.compile(r"\r\n|\r(?=\x1b\[2K)|\x1b\[(?:[0-9;]*m|2K|1A|\?25[lh])")  # colours, and a progress bar in its place


def acting(text: str) -> list[str]:
    """The characters of a text that a terminal would obey, or that mislead its reader."""
    return _ACTS.findall(text)


# A file's name, and an argument: short, without a slash or a null, and with a byte that is not UTF-8.
NAME = "n\x1b[2J\x1b]0;o\x07\x9b31m\x80\u202e\r\x08\x7f[bold]x[link=e]\U000e0041\u2028\udcff"


def drafts() -> list[Draft]:
    """A session of several thousand words in which everything is hostile."""
    found = [human(f"do {SOUND}")]
    for n in range(12):
        tool = f"t{n % 3}{SOUND}"
        found += [
            reply(f"I {SOUND}", call(tool, f"c{n}", path=f"src/{SOUND}{n}.py", command=SOUND), model=SOUND),
            result(f"{n} {SOUND}\n" * 40, f"c{n}", error=n % 4 == 0),
            reply(call("read", f"r{n}", path=f"src/{SOUND}.py")),
            result(f"{n}: value_{n * 7919} {SOUND}\n" * 30, f"r{n}"),
            human(f"go on {n} {SOUND}") if n % 3 == 2 else reply(f"so {n} {SOUND}"),
        ]
    return [*found, reply(f"done {SOUND}")]


def message_file(path: Path) -> Path:
    """The same as a chat in a file of messages."""
    messages: list[dict[str, object]] = [{"role": "user", "content": f"do {EVIL}"}]
    for n in range(12):
        made: list[dict[str, object]] = [
            {
                "id": f"c{n}",
                "type": "function",
                "function": {"name": f"t{n % 3}{EVIL}", "arguments": json.dumps({"path": f"{EVIL}{n}"})},
            },
            {
                "id": f"r{n}",
                "type": "function",
                "function": {"name": "read", "arguments": json.dumps({"path": f"src/{EVIL}.py"})},
            },
        ]
        messages += [
            {"role": "assistant", "content": f"I {EVIL}", "tool_calls": made},
            {"role": "tool", "tool_call_id": f"c{n}", "content": f"{n} {EVIL}\n" * 40},
            {"role": "tool", "tool_call_id": f"r{n}", "content": f"{n}: value_{n * 7919} {EVIL}\n" * 30},
        ]
        messages.append({"role": "assistant", "content": f"so {n} {EVIL}"})
        messages.append({"role": "user", "content": f"go on {n} {EVIL}"})
    messages.append({"role": "assistant", "content": EVIL})
    path.write_text(json.dumps({"model": EVIL, "title": EVIL, "messages": messages}))
    return path


def log_file(path: Path) -> Path:
    """The same as a log of Claude Code."""
    rows: list[dict[str, object]] = []

    def row(kind: str, message: dict[str, object], **more: object) -> None:
        parent = f"u{len(rows) - 1}" if rows else None
        rows.append(
            {
                "type": kind,
                "uuid": f"u{len(rows)}",
                "parentUuid": parent,
                "sessionId": f"s{EVIL}",
                "cwd": f"/w/{EVIL}",
                "message": message,
            }
            | {"version": EVIL, "gitBranch": EVIL, "timestamp": "2026-01-02T03:04:05Z"}
            | more
        )

    row("user", {"role": "user", "content": f"do {EVIL}"})
    for n in range(8):
        use = {"type": "tool_use", "id": f"c{n}", "name": f"t{EVIL}", "input": {"file_path": f"/w/{EVIL}"}}
        said = [{"type": "thinking", "thinking": EVIL, "signature": EVIL}, {"type": "text", "text": EVIL}, use]
        usage = {"input_tokens": 900 * n, "output_tokens": 10}
        row("assistant", {"role": "assistant", "id": f"m{n}", "model": EVIL, "content": said, "usage": usage})
        row("user", {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"c{n}", "content": f"{EVIL}\n" * 50}]})
    row("assistant", {"role": "assistant", "id": "end", "model": EVIL, "content": [{"type": "text", "text": EVIL}]})
    title = {"type": "summary", "summary": EVIL, "leafUuid": f"u{len(rows) - 1}"}
    path.write_text("\n".join(map(json.dumps, [title, *rows])) + f"\n{{broken {SOUND}\n", encoding="utf-8")
    return path
