"""Work over a corpus: the same results whoever does it, nothing lost, and nothing done twice."""

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from tenure.errors import InputError, StoreError
from tenure.lab.spread import (
    Answer,
    Engine,
    FailedJob,
    J,
    Processes,
    ResultFolder,
    Work,
    code_of,
    died,
    engine_named,
    one_process,
    reached,
    spread,
)


class Sum(Struct, frozen=True):
    """A job that says what is to happen in it."""

    name: str
    numbers: tuple[float, ...] = ()
    then: str = ""
    log: str = ""  # a file that gets a line each time the job is done

    @property
    def identity(self) -> str:
        return msgspec.json.encode((self.numbers, self.then)).decode()


class Summed(Struct, frozen=True, kw_only=True):
    """What comes of it."""

    name: str
    total: float
    raw: bytes = b""


def work(job: Sum) -> Summed:
    if job.log:
        with Path(job.log).open("a") as log:
            log.write(job.name + "\n")
    match job.then:
        case "refuse":
            raise InputError(job.name, "nothing to add")
        case "break":
            raise ZeroDivisionError("of all things")
        case "die":
            os._exit(9)
        case "something else":
            return Sum(name="no result")  # type: ignore[return-value]
        case "surrogate":
            return Summed(name="\ud800", total=0)
        case "wait":
            time.sleep(0.2)
        case _:
            pass
    return Summed(name=job.name, total=sum(job.numbers), raw=bytes(range(256)))


def other_work(job: Sum) -> Summed:
    return Summed(name=job.name, total=-sum(job.numbers))


JOBS = (
    Sum("slow", (0.1, 0.2), "wait"),
    Sum("refused", then="refuse"),
    Sum("thirds", (1 / 3, 1e300, float("inf"))),
    Sum("broken", then="break"),
    Sum("else", then="something else"),
    Sum("half a character", then="surrogate"),
    Sum("thirds", (1 / 3, 1e300)),
)


def bytes_of(results: Iterator[Summed | FailedJob]) -> list[bytes]:
    return [msgspec.msgpack.encode(each) for each in results]


def done_by(engine: Engine) -> list[bytes]:
    return bytes_of(spread(work, JOBS, Summed, engine=engine))


def test_results_stand_in_the_order_of_their_jobs_and_failures_in_theirs() -> None:
    slow, refused, thirds, broken, other, half, last = spread(work, JOBS, Summed)
    assert slow == Summed(name="slow", total=0.1 + 0.2, raw=bytes(range(256)))
    assert refused == FailedJob(name="refused", kind="InputError", reason="refused: nothing to add")
    assert isinstance(thirds, Summed)
    assert thirds.total == float("inf")
    assert broken == FailedJob(name="broken", kind="ZeroDivisionError", reason="of all things")
    assert other == FailedJob(name="else", kind="OtherResult", reason="gave no Summed")
    assert isinstance(half, FailedJob)
    assert (half.name, half.kind) == ("half a character", "UnicodeEncodeError")
    assert isinstance(last, Summed)


def test_several_processes_give_what_one_gives_to_the_byte() -> None:
    assert done_by(Processes(2)) == done_by(one_process)


def test_a_worker_that_dies_costs_its_own_job_and_no_other() -> None:
    jobs = [Sum("a", (1,)), Sum("killer", then="die"), Sum("b", (2,))]
    found = list(spread(work, jobs, Summed, engine=Processes(2)))
    assert [each.name for each in found] == [job.name for job in jobs]
    assert [each for each in found if isinstance(each, FailedJob)] == [died(jobs[1])]
    assert [each.total for each in found if isinstance(each, Summed)] == [1, 2]


def test_a_cluster_gives_what_one_process_gives_to_the_byte_and_loses_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))  # where `work` is, for the workers
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray's own, of files and sockets that it leaves to the collector
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        try:
            engine = engine_named("ray")
            found = list(spread(work, (*JOBS, Sum("killer", then="die"), Sum("after", (7,))), Summed, engine=engine))
            assert ray.is_initialized()  # a connection that was there stays
        finally:
            ray.shutdown()
    assert bytes_of(iter(found[: len(JOBS)])) == done_by(one_process)
    assert found[len(JOBS) :] == [died(Sum("killer")), Summed(name="after", total=7, raw=bytes(range(256)))]


def test_without_ray_the_error_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"tenure\[ray\]"):
        engine_named("ray")


def test_an_engine_that_is_none_is_told_with_those_there_are() -> None:
    with pytest.raises(InputError, match="one of local, processes, ray"):
        engine_named("abacus")


def test_ray_is_not_imported_until_it_is_asked_for() -> None:
    script = "import sys; import tenure.lab.spread as s; s.engine_named('processes'); print('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "False\n"


def counted(folder: Path, names: str = "abcdef") -> tuple[Path, list[Sum]]:
    log = folder / "log"
    return log, [Sum(name, (ord(name),), log=str(log)) for name in names]


def test_interrupted_work_goes_on_where_it_stopped(tmp_path: Path) -> None:
    log, jobs = counted(tmp_path)
    keep = ResultFolder(tmp_path / "kept")
    begun = spread(work, jobs, Summed, keep=keep)
    first = [next(begun), next(begun)]
    begun.close()
    again = list(spread(work, jobs, Summed, keep=keep))
    assert again[:2] == first
    assert again == list(spread(other_keepless, jobs, Summed))
    assert log.read_text().split() == list("abcdef")


def other_keepless(job: Sum) -> Summed:
    return work(msgspec.structs.replace(job, log=""))


def test_work_that_is_not_to_be_taken_up_again_is_done_anew_and_kept_anew(tmp_path: Path) -> None:
    log, jobs = counted(tmp_path, "ab")
    keep = ResultFolder(tmp_path / "kept")
    for reads in (True, False, True):
        list(spread(work, jobs, Summed, keep=ResultFolder(keep.folder, reads=reads)))
    assert log.read_text().split() == list("abab")


@given(place=st.integers(0, 150), flip=st.integers(0, 255), cut=st.booleans())
def test_a_kept_result_that_was_damaged_is_not_believed(
    tmp_path_factory: pytest.TempPathFactory, place: int, flip: int, cut: bool
) -> None:
    keep = ResultFolder(tmp_path_factory.mktemp("kept"))
    keep.put("a" * 64, bytes(range(80)))
    (path,) = (path for path in keep.folder.rglob("*") if path.is_file())
    whole = path.read_bytes()
    place = min(place, len(whole) - 1)
    damaged = whole[:place] if cut else whole[:place] + bytes([whole[place] ^ flip]) + whole[place + 1 :]
    path.write_bytes(damaged)
    assert keep.get("a" * 64) == (bytes(range(80)) if damaged == whole else None)
    assert keep.get("b" * 64) is None


def test_what_was_kept_under_another_key_is_not_taken_for_this_one(tmp_path: Path) -> None:
    keep = ResultFolder(tmp_path)
    keep.put("a" * 64, b"of a")
    (path,) = (path for path in tmp_path.rglob("*") if path.is_file())
    path.with_name("a" * 61 + "b").write_bytes(path.read_bytes())
    assert keep.get("a" * 63 + "b") is None


def test_kept_results_that_no_longer_read_are_made_again(tmp_path: Path) -> None:
    log, jobs = counted(tmp_path, "a")
    keep = ResultFolder(tmp_path / "kept")
    list(spread(work, jobs, Summed, keep=keep))
    (path,) = (path for path in keep.folder.rglob("*") if path.is_file())
    keep.put(path.parent.name + path.name, msgspec.msgpack.encode({"name": 7}))
    (found,) = spread(work, jobs, Summed, keep=keep)
    assert found == Summed(name="a", total=97, raw=bytes(range(256)))
    assert log.read_text().split() == ["a", "a"]


def test_what_a_result_depends_on_decides_whether_it_serves_again(tmp_path: Path) -> None:
    keep = ResultFolder(tmp_path)

    def total(job: Sum) -> list[Summed | FailedJob]:
        return list(spread(work, [job], Summed, keep=keep))

    assert total(Sum("a", (1,))) != total(Sum("a", (2,)))
    assert total(Sum("a", (1,))) != total(Sum("b", (1,)))
    (other,) = spread(other_work, [Sum("a", (1,))], Summed, keep=keep)
    assert other == Summed(name="a", total=-1)


def test_what_failed_is_tried_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    jobs = [Sum("a", then="refuse", log=str(log))]
    for _ in range(2):
        (found,) = spread(work, jobs, Summed, keep=ResultFolder(tmp_path / "kept"))
        assert isinstance(found, FailedJob)
    assert log.read_text().split() == ["a", "a"]


def test_a_keep_that_cannot_be_written_is_said_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot keep a result there"):
        ResultFolder(tmp_path / "file" / "kept").put("a" * 64, b"")


def test_whoever_waits_hears_of_every_job_that_is_settled(tmp_path: Path) -> None:
    _, jobs = counted(tmp_path, "abc")
    keep = ResultFolder(tmp_path / "kept")
    list(spread(work, jobs[:1], Summed, keep=keep))
    heard: list[tuple[int, int]] = []
    list(spread(work, jobs, Summed, keep=keep, progress=lambda done, of: heard.append((done, of))))
    assert heard == [(1, 3), (2, 3), (3, 3)]


@given(st.permutations(range(7)), st.data())
def test_the_order_in_which_jobs_end_is_of_no_account(order: list[int], data: st.DataObject) -> None:
    def engine(task: Work[J], jobs: "list[J]", /) -> Iterator[tuple[int, Answer]]:
        for place in order:
            yield place, task(jobs[place])

    jobs = [Sum(str(n), (n,), data.draw(st.sampled_from(("", "refuse")))) for n in range(7)]
    assert bytes_of(spread(work, jobs, Summed, engine=engine)) == bytes_of(spread(work, jobs, Summed))


def test_a_worker_with_other_code_says_so_and_gives_no_figure() -> None:
    answer = Work[Sum](work, "another hash")(Sum("a", (1,)))
    assert isinstance(answer, FailedJob)
    assert (answer.name, answer.kind) == ("a", "OtherCode")


def test_the_code_of_work_is_all_that_it_reaches_and_nothing_else() -> None:
    import tenure.lab.spread as room

    names = {path.name for path in reached(Path(room.__file__))}
    assert {"spread.py", "errors.py"} <= names
    assert "spread.py" in {path.name for path in reached(Path(__file__))}
    assert "screens" not in {path.parent.name for path in reached(Path(room.__file__))}
    assert code_of(work) == code_of(other_work) != code_of(spread)


def test_what_modules_read_from_beside_them_is_reached_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "tenure"
    monkeypatch.setattr("tenure.lab.spread.PACKAGE", package)
    for name, text in (
        ("first/work.py", "def work():\n    from tenure.second import table\n"),
        ("second/__init__.py", ""),
        ("second/table.py", ""),
        ("second/weights.json", "{}"),
        ("third/other.py", ""),
        ("third/other.json", "{}"),
    ):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    found = {path.relative_to(package).as_posix() for path in reached(package / "first" / "work.py")}
    assert found == {"first/work.py", "second/__init__.py", "second/table.py", "second/weights.json"}
