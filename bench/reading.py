"""How fast session logs are read, and what that holds: `python bench/reading.py [FILE...]`; without files, logs made here of ~100 MB.

Each log is read in a process of its own, straight from its unpacked bytes; the peak is that of the whole process less the one of an
empty log of the same format. `bare` is what splitting the lines and decoding them with the standard library's `json` takes.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tenure.logs.detect import read
from tenure.logs.places.files import open_session

SIZE = 100 * 10**6  # bytes
FILE_TEXT = "\n".join(f'{n:5}→    return self.registry_{n}.lookup(key_{n % 89})  # as of "revision {n}"' for n in range(120))


def claude(n: int) -> Iterator[dict[str, object]]:
    """A call of Claude Code's, with all that its log repeats."""
    common = {"sessionId": "s", "isSidechain": False, "timestamp": "2026-03-01T09:00:00.000Z", "cwd": "/work", "version": "2.1.0"}
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 900, "cache_read_input_tokens": 50_000, "output_tokens": 40}
    use = {"type": "tool_use", "id": f"toolu_{n}", "name": "Read", "input": {"file_path": f"src/module_{n}.py"}}
    answer = {"id": f"msg_{n}", "role": "assistant", "model": "claude-x", "content": [use], "usage": usage}
    yield common | {"type": "assistant", "uuid": f"a{n}", "parentUuid": f"r{n - 1}" if n else None, "message": answer}
    result = {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": FILE_TEXT}
    yield common | {
        "type": "user",
        "uuid": f"r{n}",
        "parentUuid": f"a{n}",
        "message": {"role": "user", "content": [result]},
        "toolUseResult": {"type": "text", "file": {"filePath": f"src/module_{n}.py", "content": FILE_TEXT * 2}},
    }
    if n % 50 == 49:
        yield common | {"type": "system", "subtype": "compact_boundary", "uuid": f"b{n}", "parentUuid": None}


def codex(n: int) -> Iterator[dict[str, object]]:
    """A call of Codex's."""

    def line(type_: str, **payload: object) -> dict[str, object]:
        return {"timestamp": "2026-03-01T09:00:00.000Z", "type": type_, "payload": payload}

    if n == 0:
        yield line("session_meta", id="s", timestamp="2026-03-01T09:00:00.000Z", cwd="/work", originator="cli", cli_version="0.9")
    arguments = json.dumps({"command": ["cat", f"src/module_{n}.py"]})
    yield line("response_item", type="function_call", name="shell", arguments=arguments, call_id=f"call_{n}")
    yield line("response_item", type="function_call_output", call_id=f"call_{n}", output=FILE_TEXT)
    yield line("event_msg", type="exec_command_end", call_id=f"call_{n}", stdout=FILE_TEXT, exit_code=0)


def pi(n: int) -> Iterator[dict[str, object]]:
    """A call of pi's, linear."""
    if n == 0:
        yield {"type": "session", "id": "s", "cwd": "/work", "timestamp": "2026-03-01T09:00:00.000Z"}
    use = {"type": "toolCall", "id": f"c{n}", "name": "read", "arguments": {"path": f"src/module_{n}.py"}}
    yield {"type": "message", "message": {"role": "assistant", "content": [use]}}
    result = [{"type": "text", "text": FILE_TEXT}]
    yield {"type": "message", "message": {"role": "toolResult", "toolCallId": f"c{n}", "toolName": "read", "content": result}}


def goose(n: int) -> Iterator[dict[str, object]]:
    """A call of goose's."""
    if n == 0:
        yield {"working_dir": "/work", "description": "made", "message_count": 2}
    call = {"status": "success", "value": {"name": "developer__shell", "arguments": {"command": f"cat src/module_{n}.py"}}}
    yield {"role": "assistant", "created": 1_770_000_000, "content": [{"type": "toolRequest", "id": f"c{n}", "toolCall": call}]}
    result = {"status": "success", "value": [{"type": "text", "text": FILE_TEXT}]}
    yield {"role": "user", "created": 1_770_000_000, "content": [{"type": "toolResponse", "id": f"c{n}", "toolResult": result}]}


MADE: dict[str, Callable[[int], Iterator[dict[str, object]]]] = {
    "claude-code": claude,
    "codex": codex,
    "pi": pi,
    "goose": goose,
}


def write(path: Path, calls: Callable[[int], Iterator[dict[str, object]]]) -> None:
    """A log of about SIZE bytes."""
    n = 0
    with path.open("w", encoding="utf-8") as file:
        while file.tell() < SIZE:
            for row in calls(n):
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
            n += 1


def measure(path: Path) -> None:
    """Read one log and print how; run in a process of its own."""
    bare = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size, started = sum(map(len, open_session(path))), time.perf_counter()
    reader, events = read(open_session(path), str(path))
    count = sum(1 for _ in events)
    taken = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - bare
    started = time.perf_counter()
    with_json = "-"
    if path.suffix == ".jsonl":
        for line in path.read_bytes().splitlines():
            json.loads(line)
        with_json = f"{size / 1e6 / (time.perf_counter() - started):.0f}"
    print(
        f"{reader.name:16} {size / 1e6:7.1f} MB {size / 1e6 / taken:6.0f} MB/s  {peak / 1024:6.0f} MB held  {count:7,} events  json {with_json} MB/s"
    )


def main() -> None:
    """Every log in a process of its own."""
    if sys.argv[1:2] == ["--one"]:
        measure(Path(sys.argv[2]))
        return
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(name) for name in sys.argv[1:]]
        for name, calls in () if files else MADE.items():
            write(path := Path(folder) / f"{name}.jsonl", calls)
            files.append(path)
        for path in files:
            subprocess.run([sys.executable, __file__, "--one", str(path)], check=True)


if __name__ == "__main__":
    main()
