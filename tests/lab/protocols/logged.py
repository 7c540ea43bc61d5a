"""Recorded sessions of a few lines, in a log format that has times."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

Turn = tuple[str, ...]  # ("human", text), ("say", text), ("call", tool, arguments as JSON, result)

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
STEP_S = 10  # from one message to the next


def recording(path: Path, *turns: Turn, start: datetime | None = START, step_s: float = STEP_S) -> str:
    """A session in a file; its address."""
    lines: list[str] = []
    for number, (kind, *rest) in enumerate(turns):
        if kind == "call":
            tool, arguments, result = rest
            use = {"type": "tool_use", "id": f"c{number}", "name": tool, "input": json.loads(arguments)}
            answer = {"type": "tool_result", "tool_use_id": f"c{number}", "content": result}
            lines += [_line(lines, "assistant", [use], start, step_s), ""]
            lines[-1] = _line(lines[:-1], "user", [answer], start, step_s)
        else:
            lines.append(_line(lines, "user" if kind == "human" else "assistant", rest[0], start, step_s))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def read(file: str, text: str) -> Turn:
    """A call that reads a file."""
    return "call", "Read", json.dumps({"file_path": file}), text


def run(command: str, text: str) -> Turn:
    """A call that runs a command."""
    return "call", "Bash", json.dumps({"command": command}), text


def bulk(rows: int, about: str = "nothing") -> str:
    """Text that nobody wants again."""
    return "\n".join(f"{about} of row {row} is worth {row * row} of anything" for row in range(rows))


def _line(before: Sequence[str], role: str, content: object, start: datetime | None, step_s: float) -> str:
    number = len(before)
    message = {"role": role, "content": content, "id": f"msg_{number}"}
    line = {"type": role, "uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None, "sessionId": "s"}
    at = {} if start is None else {"timestamp": (start + timedelta(seconds=step_s * number)).isoformat().replace("+00:00", "Z")}
    return json.dumps(line | at | {"message": message})
