"""How soon the terminal interface is there, and how soon a key answers while a tool floods it.

    python bench/tui.py [--starts 5] [--keys 150] [--rate 1000000]

Both are measured from outside, through a pseudo-terminal: from the start of the process to the first paint of the prompt, and from a key that is
written to the terminal to the paint that has its letter, while a command of the agent writes `rate` bytes a second, coloured, in lines. A scripted
model plays; nothing else is made easier. Goals (issue 6): 0.5 s, and 50 ms. Run it on a machine that has nothing else to do.
"""

import argparse
import fcntl
import json
import os
import pty
import select
import shutil
import signal
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

START_GOAL_S = 0.5
KEY_GOAL_S = 0.05
LETTERS = [chr(letter) for letter in range(0x0410, 0x0450)]  # that nothing else on the screen has
PROGRAM = str(Path(sys.executable).with_name("tenure"))
PROMPT = "task, / for commands"  # its first letter stands under the cursor
FLOOD = """\
import sys, time
rate, seconds = float(sys.argv[1]), float(sys.argv[2])
began, said, n = time.monotonic(), 0, 0
while time.monotonic() - began < seconds:
    lines = "".join(f"\\x1b[3{n % 8}m{said + i:>9}\\x1b[0m a line as a build prints it, with a path src/module_{n}.py\\n" for i in range(20))
    sys.stdout.write(lines)
    sys.stdout.flush()
    said, n = said + len(lines), n + 1
    time.sleep(max(0.0, said / rate - (time.monotonic() - began)))
"""


class Terminal:
    """A program behind a pseudo-terminal, and what it painted."""

    def __init__(self, *arguments: str, folder: Path, state: Path, size: tuple[int, int] = (40, 120)) -> None:
        self.began = time.perf_counter()
        self._pid, self._fd = pty.fork()
        if self._pid == 0:
            os.chdir(folder)
            environment = dict(os.environ) | {"TERM": "xterm-256color", "COLORTERM": "truecolor", "XDG_STATE_HOME": str(state)}
            os.execve(PROGRAM, [PROGRAM, *arguments], environment)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        self.painted = b""

    def write(self, text: str) -> None:
        """Press keys."""
        os.write(self._fd, text.encode())

    def until(self, wanted: str, *, within_s: float = 30.0) -> float:
        """Wait until a text is painted; when that was. Raises TimeoutError."""
        sign, latest = wanted.encode(), time.perf_counter() + within_s
        while time.perf_counter() < latest:
            if self._read(0.05) and sign in self.painted:
                return time.perf_counter()
        raise TimeoutError(f"{wanted!r} was not painted within {within_s} s; the last of it: {self.painted[-400:]!r}")

    def forget(self) -> None:
        """What was painted so far does not count."""
        while self._read(0.0):
            pass
        self.painted = b""

    def rest(self, seconds: float) -> None:
        """Let it work."""
        latest = time.perf_counter() + seconds
        while time.perf_counter() < latest:
            self._read(0.02)

    def end(self) -> None:
        """End it."""
        with suppress(EOFError):
            os.kill(self._pid, signal.SIGTERM)
            self.rest(0.3)
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._fd)

    def _read(self, wait_s: float) -> bool:
        if not select.select([self._fd], [], [], wait_s)[0]:
            return False
        try:
            self.painted = (self.painted + os.read(self._fd, 1 << 16))[-1_000_000:]
        except OSError as error:
            raise EOFError(f"the program ended; the last of it: {self.painted[-400:]!r}") from error
        return True


@contextmanager
def opened(*arguments: str, folder: Path, state: Path) -> Iterator[Terminal]:
    """A program that is ended, whatever happens."""
    terminal = Terminal(*arguments, folder=folder, state=state)
    try:
        yield terminal
    finally:
        terminal.end()


def starts(folder: Path, state: Path, times: int, *options: str) -> list[float]:
    """Seconds from the start of the process to the prompt."""
    found: list[float] = []
    for _ in range(times):
        with opened(*options, folder=folder, state=state) as terminal:
            found.append(terminal.until(PROMPT) - terminal.began)
    return found


def keys(folder: Path, state: Path, count: int, *, flooded: bool) -> list[float]:
    """Seconds from a key to its letter on the screen, one key after another."""
    found: list[float] = []
    with opened("--approve", "all", folder=folder, state=state) as terminal:
        terminal.until(PROMPT)
        terminal.rest(2.5)  # what is loaded while a person reads is loaded
        if flooded:
            terminal.write("go\r")
            terminal.until("src/module_")
            terminal.rest(0.5)
        for n in range(count):
            if n % 40 == 0:
                terminal.write("\x15")  # a line that is full wraps: begin anew
                terminal.rest(0.2)
            terminal.forget()
            letter, began = LETTERS[n % len(LETTERS)], time.perf_counter()
            terminal.write(letter)
            found.append(terminal.until(letter, within_s=5.0) - began)
            terminal.rest(0.02 + 0.013 * (n % 7))  # at no fixed beat against the screen's own
    return found


def told(name: str, found: list[float], goal_s: float) -> str:
    """A line: middle, 95th percentile, largest, and the goal."""
    ordered = sorted(found)
    p50, p95 = ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    met = "met" if ordered[-1] <= goal_s else "p95 met" if p95 <= goal_s else "missed"
    return (
        f"{name:<42} n {len(found):>4}  p50 {p50 * 1e3:7.1f}  p95 {p95 * 1e3:7.1f}  max {ordered[-1] * 1e3:7.1f} ms"
        f"  goal {goal_s * 1e3:.0f} ms: {met}"
    )


def main() -> None:
    """Measure, and print a line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--keys", type=int, default=150)
    parser.add_argument("--rate", type=int, default=1_000_000, help="bytes a second of tool output")
    asked = parser.parse_args()
    os.environ["TENURE_MODEL"] = "scripted:script.json"
    scratch = Path(tempfile.mkdtemp(prefix="tenure-bench-"))
    try:
        folder, state = scratch / "folder", scratch / "state"
        folder.mkdir()
        (folder / "flood.py").write_text(FLOOD, encoding="utf-8")
        seconds = 5 + asked.keys * 0.2
        flood = {"name": "bash", "arguments": {"command": f"{sys.executable} flood.py {asked.rate} {seconds}", "timeout_s": 600}}
        (folder / "script.json").write_text(json.dumps({"replies": [{"calls": [flood]}, {"text": "done"}]}), encoding="utf-8")
        starts(folder, state, 1)  # what is compiled and cached once
        print(told("start to the first prompt: tenure", starts(folder, state, asked.starts), START_GOAL_S))
        print(told("start to the first prompt: tenure --light", starts(folder, state, asked.starts, "--light"), START_GOAL_S))
        print(told("a key, nothing else going on", keys(folder, state, asked.keys // 2, flooded=False), KEY_GOAL_S))
        name = f"a key, under {asked.rate / 1e6:g} MB/s of tool output"
        print(told(name, keys(folder, state, asked.keys, flooded=True), KEY_GOAL_S))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
