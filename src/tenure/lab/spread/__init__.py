"""Independent work over a corpus, by one process, several, or a cluster.

What comes back is the same to the byte whatever the engine: results travel, and are kept, as the same bytes, and are given in the order
of the jobs. A job that fails is a value that names it. Kept results serve again as long as their input and the code are what they were.
"""

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from tenure.lab.spread.engines import ENGINES, Answer, Engine, FailedJob, J, SpreadJob, Work, engine_named, one_process
from tenure.lab.spread.keep import ResultFolder, code_of

__all__ = ("ENGINES", "Engine", "FailedJob", "ResultFolder", "SpreadJob", "engine_named", "spread")

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
