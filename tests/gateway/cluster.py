"""Several gateways over one PostgreSQL behind a balancer, each on a host of its own: network namespaces make hosts of one machine."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

TOKEN = "a-client-token-of-some-length"
NETWORK = "10.213.{n}.{end}"  # the end is 1 here, and 2 at the replica
PORT = 8787


def programs() -> Path:
    """Where PostgreSQL's programs are."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not found:
        pytest.skip("PostgreSQL is not installed")
    return found[-1]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def until(is_so: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until something is so."""
    for _ in range(int(seconds / 0.05)):
        if is_so():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come about")


def answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2).status_code == 200
    except httpx.HTTPError:
        return False


class Postgres:
    """A server of our own, as Debian has it. It refuses to run as root."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port, self.programs = folder, free_port(), programs()
        folder.mkdir()
        if os.getuid() == 0:
            for each in (folder, *folder.parents[:3]):
                each.chmod(0o755)
            shutil.chown(folder, "postgres")
        self._as_owner("initdb", f"--pgdata={folder}/data", "--username=tenure", "--auth=trust", "--encoding=UTF8")

    @property
    def url(self) -> str:
        """For whoever is on this machine."""
        return f"postgresql+psycopg://tenure@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = f"-c listen_addresses=127.0.0.1 -c port={self.port} -c unix_socket_directories={self.folder} -c fsync=off"
        self._as_owner(
            "pg_ctl", f"--pgdata={self.folder}/data", f"--log={self.folder}/log", "--wait", f"--options={options}", "start"
        )

    def stop(self) -> None:
        self._as_owner("pg_ctl", f"--pgdata={self.folder}/data", "--mode=immediate", "stop")

    def _as_owner(self, program: str, *arguments: str) -> None:
        owner = ("runuser", "-u", "postgres", "--") if os.getuid() == 0 else ()
        command = (*owner, str(self.programs / program), *arguments)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")


class Replica:
    """A gateway on a host of its own."""

    def __init__(self, n: int, folder: Path, options: tuple[str, ...]) -> None:
        self.space, self.device, self.folder = f"tenure-{os.getpid()}-{n}", f"tn{os.getpid() % 100000}-{n}", folder
        self.here, self.host, self.options = NETWORK.format(n=n, end=1), NETWORK.format(n=n, end=2), options
        self.process: subprocess.Popen[bytes] | None = None
        inner = f"{self.device}b"
        for command in (
            f"ip netns add {self.space}",
            f"ip link add {self.device} type veth peer name {inner}",
            f"ip link set {inner} netns {self.space}",
            f"ip addr add {self.here}/30 dev {self.device}",
            f"ip link set {self.device} up",
            f"ip netns exec {self.space} ip addr add {self.host}/30 dev {inner}",
            f"ip netns exec {self.space} ip link set {inner} up",
            f"ip netns exec {self.space} ip link set lo up",
        ):
            subprocess.run(command.split(), check=True)

    def start(self, store: str, upstream: str) -> None:
        command = (
            *(
                "ip",
                "netns",
                "exec",
                self.space,
                sys.executable,
                "-m",
                "tenure",
                "serve",
                "--host",
                self.host,
                "--port",
                str(PORT),
            ),
            *("--insecure", "--store", store, "--upstream", f"anthropic={upstream}", *self.options),
        )
        with (self.folder / f"{self.space}.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        until(lambda: answers(f"http://{self.host}:{PORT}/readyz"))

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def end(self) -> int:
        """Ask it to end, and wait until it has."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def cut(self, *, off: bool) -> None:
        """Pull its cable, or put it in again. At its end: at ours the way there would be another one."""
        command = f"ip netns exec {self.space} ip link set {self.device}b {'down' if off else 'up'}"
        subprocess.run(command.split(), check=True)

    def remove(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()
        for command in (f"ip link del {self.device}", f"ip netns del {self.space}"):
            subprocess.run(command.split(), check=False, stderr=subprocess.DEVNULL)


class Cluster:
    """Everything together; `url` is the balancer's."""

    def __init__(self, postgres: Postgres, replicas: list[Replica], url: str, balancer: "subprocess.Popen[bytes]") -> None:
        self.postgres, self.replicas, self.url, self.balancer = postgres, replicas, url, balancer

    def store_of(self, replica: Replica) -> str:
        return f"postgresql+psycopg://tenure@{replica.here}:{self.postgres.port + 1}/postgres?connect_timeout=2"


@contextmanager
def cluster(folder: Path, provider: str, *options: str, count: int = 3) -> Iterator[Cluster]:
    """`count` gateways over PostgreSQL behind HAProxy, which is also how their hosts reach the database and the provider."""
    if os.getuid() != 0 or not shutil.which("haproxy") or not shutil.which("ip"):
        pytest.skip("needs root, HAProxy and iproute2")
    (folder / "tokens").write_text(f"team={TOKEN}\n")
    with ExitStack() as held:
        postgres = Postgres(folder / "postgres")
        postgres.start()
        held.callback(postgres.stop)
        replicas = list[Replica]()
        for n in range(1, count + 1):
            replicas.append(Replica(n, folder, (*options, "--tokens", str(folder / "tokens"))))
            held.callback(replicas[-1].remove)
        front, provider_port = free_port(), int(provider.rpartition(":")[2])
        (folder / "haproxy.cfg").write_text(_haproxy(postgres, replicas, front, provider_port))
        log = held.enter_context((folder / "haproxy.log").open("wb"))
        balancer = subprocess.Popen(
            ["haproxy", "-db", "-f", str(folder / "haproxy.cfg")],
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        held.callback(balancer.wait)
        held.callback(balancer.kill)
        made = Cluster(postgres, replicas, f"http://127.0.0.1:{front}", balancer)
        for replica in replicas:
            replica.start(made.store_of(replica), f"http://{replica.here}:{provider_port + 1}")
        until(lambda: answers(f"{made.url}/readyz"))
        yield made


def _haproxy(postgres: Postgres, replicas: list[Replica], front: int, provider: int) -> str:
    """Requests in turn to whoever is ready; nothing is remembered of who asked."""
    servers = "\n".join(f"    server r{n} {each.host}:{PORT} check inter 200ms fall 2 rise 1" for n, each in enumerate(replicas))
    binds = "\n".join(f"    bind {each.here}:{{port}}" for each in replicas)
    return f"""
defaults
    timeout connect 1s
    timeout client 60s
    timeout server 60s
frontend gateway
    mode http
    bind 127.0.0.1:{front}
    default_backend replicas
backend replicas
    mode http
    balance roundrobin
    option httpchk GET /readyz
    option redispatch 1
    retries 3
    retry-on conn-failure empty-response
{servers}
listen database
    mode tcp
{binds.format(port=postgres.port + 1)}
    server postgres 127.0.0.1:{postgres.port}
listen provider
    mode tcp
{binds.format(port=provider + 1)}
    server provider 127.0.0.1:{provider}
"""
