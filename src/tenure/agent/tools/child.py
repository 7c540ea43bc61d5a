"""A program that runs in a process group of its own, and what it knows of the agent's own environment (an edge).

Its output comes through a pipe that the event loop reads, so that it is held back rather than piled up. The program has ended when the
process that was started has, even if something that it left behind keeps the pipe open.
"""

import asyncio
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Final
from uuid import uuid4

from tenure.agent.admission.git_program import EVERYWHERE, LOOKING, configured, looking
from tenure.errors import InputError

CHUNK: Final = 2**16  # bytes; what a pipe holds
MARK: Final = "TENURE_CALL"  # a variable by which what left the group is still found
GRACE_S: Final = 0.5  # between asking a group to end and ending it
DRAIN_S: Final = 0.2  # for what was written before the end to arrive
_POLL_S: Final = 0.01
_REAP_S: Final = 2.0
_ROUNDS: Final = 5  # of looking for what left the group

OnBytes = Callable[[bytes], None]


class Remainder(Enum):
    """What is left of a program when the process that was started has ended, as far as its output tells."""

    NOTHING = ""
    ENDED = "; what it had left in the background was ended"
    AWAY = "; what it has left in a session of its own is not listened to any more"


class Child:
    """A running program; its standard input is closed. Use within a running event loop, and always `end` or `kill` it."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        on_output: OnBytes,
        on_error: OnBytes | None = None,
        descriptors: Sequence[int] = (),
    ) -> None:
        """Start it. What it writes goes to `on_output`, its errors in order among the rest unless `on_error` takes them. Raises InputError.

        It inherits `descriptors`, which stay the caller's to close.
        """
        self._loop = asyncio.get_running_loop()
        self._mark = environment.get(MARK, "").rpartition(",")[2]
        self.exit: asyncio.Future[int] = self._loop.create_future()  # the exit code, negative for a signal
        self._pipes: dict[int, asyncio.Future[None]] = {}
        out, out_end = os.pipe()
        error, error_end = os.pipe() if on_error else (-1, out_end)
        try:
            self._process = subprocess.Popen(  # noqa: S603 - which programs may run is the approval's to say
                command,
                cwd=folder,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=out_end,
                stderr=error_end,
                start_new_session=True,
                pass_fds=descriptors,
            )
        except (OSError, ValueError) as failed:
            for descriptor in {out, error} - {-1}:
                os.close(descriptor)
            raise InputError(command[0], f"cannot be started ({failed})", "a program, and a folder to start it in") from failed
        finally:
            for descriptor in {out_end, error_end}:
                os.close(descriptor)
        self._listen(out, on_output)
        if on_error:
            self._listen(error, on_error)
        self._watch()

    async def rest(self) -> Remainder:
        """What it still had to say once it has ended, and what was left of it then, which is ended as far as it is in its group."""
        if await self._closed():
            return Remainder.NOTHING
        self._signal(signal.SIGKILL)
        return Remainder.ENDED if await self._closed() else Remainder.AWAY

    async def _closed(self) -> bool:
        open_ = [closed for closed in self._pipes.values() if not closed.done()]
        return not open_ or not (await asyncio.wait(open_, timeout=DRAIN_S))[1]

    async def end(self, grace_s: float = GRACE_S) -> None:
        """Ask all of it to end, and end it a moment later. When this is itself cancelled, at once."""
        try:
            self._signal(signal.SIGTERM)
            await asyncio.wait([self.exit, *self._pipes.values()], timeout=grace_s)
        finally:
            self.kill()

    def kill(self, *, strays: bool = True) -> None:
        """End all of it at once; with `strays` also what has left the group. A second time does nothing."""
        if self._process.returncode is not None:
            return
        self._signal(signal.SIGKILL)  # its leader is not waited for yet, so that the group's number is still its own
        if strays and self._mark:
            _end_marked(self._mark)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_REAP_S)
        self._ended()
        for descriptor in list(self._pipes):
            self._close(descriptor)

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):  # nobody is left; on macOS: only the dead are
            os.killpg(self._process.pid, number)

    def _listen(self, descriptor: int, on_output: OnBytes) -> None:
        os.set_blocking(descriptor, False)
        self._pipes[descriptor] = self._loop.create_future()
        self._loop.add_reader(descriptor, self._read, descriptor, on_output)

    def _read(self, descriptor: int, on_output: OnBytes) -> None:
        try:
            chunk = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if chunk:
            on_output(chunk)
        else:
            self._close(descriptor)

    def _close(self, descriptor: int) -> None:
        closed = self._pipes[descriptor]
        if not closed.done():
            self._loop.remove_reader(descriptor)
            os.close(descriptor)
            closed.set_result(None)

    def _watch(self) -> None:
        try:
            self._sight = os.pidfd_open(self._process.pid)
        except (AttributeError, OSError):  # no Linux, or an old one
            self._sight = -1
            self._loop.call_later(_POLL_S, self._look)
        else:
            self._loop.add_reader(self._sight, self._ended)

    def _look(self) -> None:
        if not self._ended():
            self._loop.call_later(_POLL_S, self._look)

    def _ended(self) -> bool:
        code = self._code()
        if code is None:
            return False
        if self._sight >= 0:
            self._loop.remove_reader(self._sight)
            os.close(self._sight)
            self._sight = -1
        if not self.exit.done():
            self.exit.set_result(code)
        return True

    def _code(self) -> int | None:
        """Its exit code, None while it runs. Where the system can tell without, it stays unburied, and its number its own."""
        if self._process.returncode is not None or not hasattr(os, "waitid"):
            return self._process.poll()
        told = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if told is None:
            return None
        return told.si_status if told.si_code == os.CLD_EXITED else -told.si_status


def _end_marked(mark: str) -> None:
    """End every process that carries a call's mark. Only Linux shows it, and not of a process that threw its environment away."""
    for _ in range(_ROUNDS):
        found = False
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if int(place.name) != os.getpid() and _carries((place / "environ").read_bytes(), mark.encode()):
                    os.kill(int(place.name), signal.SIGKILL)
                    found = True
        if not found:
            return


def _carries(environment: bytes, mark: bytes) -> bool:
    """Whether a process was started by the call; an agent that runs below another one adds its mark to the other's."""
    marks = next((entry for entry in environment.split(b"\0") if entry.startswith(f"{MARK}=".encode())), b"")
    return mark in marks.partition(b"=")[2].split(b",")


# Keys to models, by how their providers and the usual SDKs name them.
_KEYS: Final = re.compile(
    r"(?:ANTHROPIC|CLAUDE(?:_CODE)?|OPENAI|AZURE(?:_OPENAI|_AI)?|CODEX|GEMINI|GOOGLE(?:_AI|_GENERATIVE_AI)?|VERTEX|MISTRAL|CODESTRAL"
    r"|GROQ|DEEPSEEK|XAI|GROK|OPENROUTER|TOGETHER(?:_AI|AI)?|FIREWORKS(?:_AI)?|COHERE|CO|CEREBRAS|PERPLEXITY|PPLX|MOONSHOT|KIMI|ZAI|ZHIPU(?:AI)?"
    r"|GLM|DASHSCOPE|QWEN|MINIMAX|NVIDIA|NIM|SAMBANOVA|DEEPINFRA|HYPERBOLIC|NOVITA|REPLICATE|HF|HUGGINGFACE(?:HUB)?|BEDROCK|AI_GATEWAY"
    r"|LITELLM(?:_MASTER)?|VOYAGE|TENURE)_(?:API_|AUTH_|OAUTH_|BEARER_|ACCESS_)*(?:KEY|TOKEN|SECRET)S?(?:_\d+)?",
    re.IGNORECASE,
)
# A shell would act on them, or they make programs that only look run others, read other files or leave traces.
_UNWANTED: Final = frozenset(
    "BASH_ENV ENV PROMPT_COMMAND SHELLOPTS BASHOPTS PS4 CDPATH OLDPWD GLOBIGNORE IFS BASH_XTRACEFD EXECIGNORE LESSOPEN LESSCLOSE GREP_OPTIONS"
    " RIPGREP_CONFIG_PATH TAR_OPTIONS GIT_EXTERNAL_DIFF POSIXLY_CORRECT JQ_LIBRARY_PATH AWKPATH AWKLIBPATH MAGIC HISTFILE".split()
)
# Which hold keys as well.
_WITH_HEADERS: Final = re.compile(r"(?:ANTHROPIC|OPENAI|OTEL_EXPORTER_OTLP)_(?:CUSTOM_)?HEADERS", re.IGNORECASE)

# Programs that would wait for a person, page, or draw; and Python, which would hold back what it prints.
_SETTLED: Final[Mapping[str, str]] = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "false",
    "EDITOR": "false",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PYTHONUNBUFFERED": "1",
}
_LONGEST: Final = 8  # characters; a shorter value is not looked for elsewhere


def scrub(environment: Mapping[str, str], names: Iterable[str] = ()) -> dict[str, str]:
    """The environment without the keys to models: known by their names, by `names`, or by having the value of one of these."""
    named = {name for name in environment if name in names or _KEYS.fullmatch(name) or _WITH_HEADERS.fullmatch(name)}
    values = {environment[name] for name in environment if name in named and len(environment[name]) > _LONGEST}
    return {
        name: value
        for name, value in environment.items()
        if name not in named and name not in _UNWANTED and not name.startswith("BASH_FUNC_") and value not in values
    }


def for_command(
    environment: Mapping[str, str], names: Iterable[str] = (), temporary: str = "", *, looks: bool = False
) -> dict[str, str]:
    """The environment of one command: scrubbed, settled, and marked so that what it starts can be found.

    In a command that only `looks`, git runs nothing that a repository names.
    """
    mark = ",".join(filter(None, (environment.get(MARK), uuid4().hex)))
    folder = {"TMPDIR": temporary} if temporary else {}
    settled = {**scrub(environment, names), **_SETTLED, **folder, MARK: mark}
    return configured(looking(settled), LOOKING) if looks else configured(settled, EVERYWHERE)
