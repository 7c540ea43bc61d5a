"""What a gateway finds on this machine: agents, keys, ports, its store; and what would keep it from working (an edge: it looks, and changes nothing)."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct

import tenure
from tenure.engine.meter.figures import several
from tenure.errors import TenureError
from tenure.gateway.home import STORE
from tenure.gateway.programs import BASE_URLS, PROGRAMS, Program
from tenure.models.hosts import SERVICES, host_of

Verdict = Literal["ok", "absent", "wrong"]
NEEDED: Final = ("httpx", "jinja2", "prometheus_client", "starlette", "uvicorn", "wsproto")
_VERSION_S: Final = 15.0  # that a program may take to tell its version


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that was looked at. No value of a secret stands in it."""

    area: str
    name: str
    verdict: Verdict
    text: str


class _ClaudeSettings(Struct, frozen=True):
    """What counts of Claude Code's settings."""

    env: dict[str, str] = {}


def checkup(environment: Mapping[str, str], home: Path, folder: Path) -> Iterator[Finding]:
    """Everything, one after another; `folder` is where the gateway's store lies."""
    yield Finding(area="tenure", name="version", verdict="ok", text=tenure.__version__)
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        text = f"{', '.join(missing)} not installed: pip install 'tenure[gateway]'"
        yield Finding(area="tenure", name="packages", verdict="wrong", text=text)
    for program in PROGRAMS.values():
        yield _program(program, environment)
    yield from _keys(environment)
    yield from _addresses(environment, home)
    yield _port()
    yield _store(folder)


def _program(program: Program, environment: Mapping[str, str]) -> Finding:
    path = shutil.which(program.name, path=environment.get("PATH"))
    if path is None:
        return Finding(area="agents", name=program.name, verdict="absent", text=f"not on the PATH ({program.package})")
    try:
        done = subprocess.run(  # noqa: S603 - a program of the user's, by the name in our table
            [path, program.version],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_VERSION_S,
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        return Finding(area="agents", name=program.name, verdict="wrong", text=f"{path} does not start ({type(error).__name__})")
    lines = [line.strip() for line in (done.stdout or done.stderr).splitlines() if line.strip()]
    if done.returncode:
        why = lines[-1][:120] if lines else "no message"
        return Finding(
            area="agents", name=program.name, verdict="wrong", text=f"{path} does not start (exit code {done.returncode}: {why})"
        )
    return Finding(area="agents", name=program.name, verdict="ok", text=f"{lines[0][:60] if lines else 'no version'}, {path}")


def _keys(environment: Mapping[str, str]) -> Iterator[Finding]:
    for service in SERVICES:
        names = [name for name in (service.variable, *service.also) if name and environment.get(name)]
        if names:
            yield Finding(area="keys", name=service.title, verdict="ok", text=f"{' and '.join(names)} set")
    if not any(environment.get(service.variable) for service in SERVICES if service.variable):
        text = "none in the environment: agents that are signed in need none"
        yield Finding(area="keys", name="keys", verdict="absent", text=text)


def _addresses(environment: Mapping[str, str], home: Path) -> Iterator[Finding]:
    """Base URLs that are set already. Those of the environment are followed; those of a configuration are not seen by a wrapper."""
    for name in BASE_URLS:
        if url := environment.get(name):
            yield Finding(
                area="addresses", name=name, verdict="ok", text=f"set to {host_of(url)}; the gateway sends requests on to it"
            )
    folder = Path(environment.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    try:
        url = msgspec.json.decode((folder / "settings.json").read_bytes(), type=_ClaudeSettings).env.get("ANTHROPIC_BASE_URL", "")
    except (OSError, msgspec.MsgspecError, UnicodeError):
        url = ""
    if url:
        text = f"{folder / 'settings.json'} sets it to {host_of(url)}, which counts more than what tenure wrap sets: take it out there"
        yield Finding(area="addresses", name="ANTHROPIC_BASE_URL", verdict="wrong", text=text)


def _port() -> Finding:
    try:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
    except OSError as error:
        text = f"the loopback interface cannot be listened on ({error.strerror})"
        return Finding(area="ports", name="127.0.0.1", verdict="wrong", text=text)
    return Finding(area="ports", name="127.0.0.1", verdict="ok", text="a free port can be had")


def _store(folder: Path) -> Finding:
    from tenure.store.store import Store

    path = folder / STORE
    if not path.exists():
        parent = next(each for each in (folder, *folder.parents) if each.exists())
        if os.access(parent, os.W_OK):
            return Finding(area="store", name=str(path), verdict="absent", text="will be made when it is needed")
        return Finding(area="store", name=str(path), verdict="wrong", text=f"{parent} cannot be written")
    try:
        held = Store(f"sqlite:///{path}", read_only=True)
        try:
            count = len(held.conversations(None))
        finally:
            held.close()
    except TenureError as error:
        return Finding(area="store", name=str(path), verdict="wrong", text=str(error))
    others = path.parent.stat().st_mode & 0o077
    if others and os.name == "posix":
        return Finding(
            area="store", name=str(path), verdict="wrong", text=f"others may look into {path.parent}: chmod 700 {path.parent}"
        )
    size = path.stat().st_size / 1e6
    return Finding(area="store", name=str(path), verdict="ok", text=f"{several(count, 'conversation')}, {size:,.1f} MB")
