"""Every fixture, damaged in every way: a record or a clear message, in bounded time and memory.

`TENURE_MUTANTS=10000 pytest tests/logs/test_mutants.py -n auto` tries that many of each; a normal run tries fewer.
"""

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from mutation import mutants
from session_reading import FIXTURES, chunked
from test_hostile_sessions import checked

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.tokens import o200k
from tenure.engine.policies import POLICIES
from tenure.errors import InputError
from tenure.lab.loading import load
from tenure.lab.replay import Options, replay
from tenure.lab.source import SessionSource
from tenure.logs.detect import READERS, read
from tenure.logs.reader import Event, HasAgents

COUNT = int(os.environ.get("TENURE_MUTANTS", "15"))
SLOWEST = 5  # seconds of processor time for one mutant of some kilobytes; they take about one millisecond
GROWTH = 400 * 2**10  # KiB
THROUGH_THE_ENGINE = 25  # one in so many is also replayed
OPTIONS = Options(budget=Budget(ceiling=700), policy=POLICIES["cwl"])

SOURCES = {path.name: path.read_bytes() for path in sorted(FIXTURES.iterdir()) if path.is_file()}


@contextmanager
def no_longer_than(seconds: int) -> Iterator[None]:
    def late(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def events(data: bytes) -> tuple[str, list[Event]]:
    reader, found = read(chunked(data, 5000))
    return reader.name, list(found)


def try_all(data: bytes, number: int, own: str) -> None:
    with suppress(InputError):
        checked(events(data)[1])
    reader = next(reader for reader in READERS if reader.name == own)
    for each in {reader, READERS[number % len(READERS)]}:  # also where the damage hides which format it was, or it is another's
        with suppress(InputError):
            checked(list(each.read(chunked(data, 5000))))
    if isinstance(reader, HasAgents) and number % 5 == 0:
        with suppress(InputError):
            checked(list(reader.read_agent(chunked(data, 5000), "ag")))
    if number % THROUGH_THE_ENGINE == 0:
        with suppress(InputError):
            name, found = events(data)
            source = SessionSource("mutant", lambda: (name, iter(found)))
            load([source], o200k())
            *_, summary = replay([source], OPTIONS, o200k())
            assert not getattr(summary, "violations", ())


@pytest.mark.parametrize("name", SOURCES)
def test_a_mutant_ends_in_a_record_or_a_clear_message(name: str) -> None:
    hold(name, COUNT)


@pytest.mark.long
@pytest.mark.parametrize("name", SOURCES)
def test_each_of_many_mutants_ends_in_a_record_or_a_clear_message(name: str) -> None:
    hold(name, 20 * COUNT)


def hold(name: str, count: int) -> None:
    own = events(SOURCES[name])[0]
    others = list(SOURCES.values())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number, data in enumerate(mutants(SOURCES[name], others, count)):
        try:
            with no_longer_than(SLOWEST):
                try_all(data, number, own)
        except BaseException as error:
            error.add_note(f"mutant {number} of {name}")
            raise
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < GROWTH
