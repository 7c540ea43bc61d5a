"""A gateway for one program (an edge): it is started, the program is run against it, and what it did is added up at the end."""

import asyncio
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread
from typing import Final

import msgspec
import uvicorn
from msgspec import Struct

from tenure.engine.meter.ledger import Account, Savings
from tenure.errors import InputError
from tenure.gateway.home import STORE
from tenure.gateway.programs import program_named, start, upstreams
from tenure.gateway.service import GatewayService, listening_options, prepare
from tenure.gateway.settings import GatewaySettings, names_of
from tenure.gateway.sheets import Sheets
from tenure.gateway.spans import tracing
from tenure.store.records import Now, Records, utc_now
from tenure.store.store import Store

_DRAIN_S: Final = 5.0


class Wrapped(Struct, frozen=True, kw_only=True):
    """What became of a program that was run behind a gateway."""

    code: int
    conversations: tuple[str, ...]  # that it went on with, the longest first
    counts: Mapping[str, int]  # what became of its requests
    untraced: str = ""  # why there are no spans, where the environment asks for some: it is the program's environment, so that is no reason not to run it


class Outcome(Struct, frozen=True, kw_only=True):
    """What conversations cost, and what eviction made of that, added up."""

    account: Account
    commits: int
    forced: int  # of them by a ceiling or the window, whatever they cost
    recalls: int
    recalled: int  # o200k tokens
    missed: int  # needs of what had left, and was no longer in view
    routed: int  # of them: a pointer in view led there
    savings: tuple[Savings, ...]  # of those where something left
    begun: int  # prompt tokens of the longest one's first call: the program's own instructions and tools, mostly

    @property
    def without_usd(self) -> float:
        """What those where something left would have cost, had nothing left; simulated."""
        return sum(each.without_usd for each in self.savings)

    @property
    def sent_usd(self) -> float:
        """What they cost in the same simulation, helper models included."""
        return sum(each.with_usd + each.helpers_usd for each in self.savings)

    @property
    def spared(self) -> int:
        """Provider tokens fewer in prompts."""
        return sum(each.tokens for each in self.savings)


def run_wrapped(
    command: Sequence[str], settings: GatewaySettings, folder: Path, environment: Mapping[str, str], *, now: Now = utc_now
) -> Wrapped:
    """Run a command behind a gateway whose store lies in `folder`, and wait for it. Raises InputError for a program that is not there."""
    path = shutil.which(command[0], path=environment.get("PATH"))
    if path is None:
        package = program_named(command[0]).package
        raise InputError("program", f"{command[0]!r} is not on the PATH", package or "a program that can be started")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    store, begun = Store(f"sqlite:///{folder / STORE}"), now()
    there = {**upstreams(environment), **settings.upstreams}
    service = GatewayService(store, msgspec.structs.replace(settings, upstreams=there, names=names_of("127.0.0.1")))
    try:
        with ExitStack() as spans:
            try:
                spans.enter_context(tracing(service, environment))
                untraced = ""
            except InputError as error:
                untraced = str(error)
            prepare(service)
            with listening(service) as url, tempfile.TemporaryDirectory(dir=folder, prefix="wrap-") as private:
                launch = start(
                    [path, *command[1:]], url, Path(private), environment, is_subscribed=is_subscribed(command[0], environment)
                )
                for name, text in launch.files.items():
                    (Path(private) / name).write_text(text, encoding="utf-8")
                code = _waited(launch.command, launch.environment)
        return Wrapped(code=code, conversations=_since(store, begun), counts=dict(service.counts), untraced=untraced)
    finally:
        store.close()


def is_subscribed(name: str, environment: Mapping[str, str]) -> bool:
    """Whether a program is signed in with a plan rather than a key. Only whether there is a sign-in is read."""
    if program_named(name).name != "codex" or environment.get("CODEX_API_KEY"):
        return False
    home = Path(environment.get("CODEX_HOME") or Path(environment.get("HOME", "~")).expanduser() / ".codex")
    try:
        held = msgspec.json.decode((home / "auth.json").read_bytes(), type=dict[str, msgspec.Raw])
    except (OSError, msgspec.MsgspecError):
        return False
    return (
        bytes(held.get("tokens", msgspec.Raw(b"null"))) != b"null"
        and bytes(held.get("OPENAI_API_KEY", msgspec.Raw(b"null"))) == b"null"
    )


def outcome_of(store: Records, conversations: Sequence[str]) -> Outcome:
    """What conversations of a store cost, and what eviction made of it."""
    held = Sheets(store)
    sheets = [held.sheet(conversation) for conversation in conversations]
    whole = Account(role="all")
    for sheet in sheets:
        whole = whole.together(sheet.ledger.total)
    return Outcome(
        account=whole,
        commits=sum(len(sheet.commits) for sheet in sheets),
        forced=sum(commit.forced for sheet in sheets for commit in sheet.commits),
        recalls=sum(sheet.ledger.recalls.answers for sheet in sheets),
        recalled=sum(sheet.ledger.recalls.tokens for sheet in sheets),
        missed=sum(len(sheet.missed) for sheet in sheets),
        routed=sum(need.verdict == "routed" for sheet in sheets for need in sheet.missed),
        savings=tuple(sheet.row.saved for sheet in sheets if sheet.row.is_compared),
        begun=next((each.spent.usage.prompt for name in conversations[:1] for each in store.usages(name)), 0),
    )


@contextmanager
def listening(service: GatewayService) -> Generator[str, None, None]:
    """Serve on a free port of the loopback interface, in a thread; its address."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # or asyncio sets no TCP_NODELAY
    listener.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(service.app, log_level="critical", lifespan="off", **listening_options(service)))

    async def serve() -> None:
        await server.serve(sockets=[listener])
        await service.aclose(drain_s=_DRAIN_S)

    thread = Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.005)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def _waited(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """A program run to its end, with this terminal; its exit code. Ctrl-C is the program's; a request to end is passed on."""
    with _signals({signal.SIGINT: signal.SIG_IGN, signal.SIGQUIT: signal.SIG_IGN}):
        process = subprocess.Popen(command, env=dict(environment), preexec_fn=_usual_signals)  # noqa: S603 - the user's own command
        with _signals({number: lambda number, _frame: process.send_signal(number) for number in (signal.SIGTERM, signal.SIGHUP)}):
            code = process.wait()
    return code if code >= 0 else 128 - code


def _usual_signals() -> None:
    """What we ignore the program does not."""
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


@contextmanager
def _signals(handlers: Mapping[int, Callable[[int, object], object] | int]) -> Generator[None, None, None]:
    """Handle signals otherwise for a while; in a thread that is not the main one nothing can be handled."""
    try:
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}  # pyright: ignore[reportArgumentType]
    except ValueError:
        before = {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _since(store: Records, begun: str) -> tuple[str, ...]:
    """The conversations in which something was said since then, the longest first."""
    held = [sheet for sheet in store.conversations(None) if sheet.length]
    heard = [sheet for sheet in held if sheet.created >= begun or any(each.at >= begun for each in store.usages(sheet.id)[-1:])]
    return tuple(sheet.id for sheet in sorted(heard, key=lambda sheet: -sheet.length))
