"""A made-up corpus run whole: what is a member, what is run, and that nothing of the machine or the order gets into what is written."""

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from made_up_corpus import LONG, corpus, cut, session
from msgspec.structs import replace

from tenure.engine.meter.tokens import o200k
from tenure.errors import InputError
from tenure.lab.evidence import measure
from tenure.lab.evidence.corpus import Corpus, Member, corpus_of, sample_of, source_of
from tenure.lab.evidence.measure import ALL, MARKED, CorpusEvents, gathered, work
from tenure.lab.evidence.pages import MADE, SECTIONS, files_of, write
from tenure.lab.marks import marks_in
from tenure.lab.measured import AccumulatingRun, CutLine, IsolatedRun, MarkedRun, Needed
from tenure.lab.protocols.runs import budget_of, isolated
from tenure.lab.spread import Answer, Engine, Processes, ResultFolder, Work, engine_named, one_process

TOKENIZER = o200k()
L = TypeVar("L")


def files(found: CorpusEvents, *sections: str) -> dict[str, bytes]:
    return files_of(found, sections or tuple(SECTIONS), is_whole=True)


def events_and_index(found: CorpusEvents) -> object:
    """All that files are made of, and those that need no chart."""
    return found.events, files(found, "sessions")


def lines(found: CorpusEvents, kind: type[L]) -> list[L]:
    return [line for line in found.lines if isinstance(line, kind)]


def ran(folder: Path, *whats: str, engine: Engine = one_process, keep: ResultFolder | None = None) -> CorpusEvents:
    return gathered(corpus_of(folder), whats, engine, keep=keep)


def test_members_are_sessions_by_content_named_from_the_folder_on(tmp_path: Path) -> None:
    found = corpus_of(corpus(tmp_path / "sessions"))
    assert [member.name for member in found.members] == ["observatory/long.json", "observatory/short.json", "site/middling.json"]
    assert found.again == ("site/again.json",)
    assert str(tmp_path) not in source_of(found.folder, "site/middling.json").path


def test_a_sample_takes_so_many_of_each_owner_by_hash(tmp_path: Path) -> None:
    every = corpus_of(corpus(tmp_path / "sessions"))
    sample = sample_of(every, 1)
    first = min(every.members[:2], key=lambda member: member.sha256)
    assert [member.name for member in sample.members] == [first.name, "site/middling.json"]
    assert (sample.found, sample_of(every, 0)) == (3, every)


def test_each_owner_has_conversations_of_its_own_under_every_policy_and_compaction(tmp_path: Path) -> None:
    members = corpus_of(corpus(tmp_path / "sessions"))
    tasks = list(measure.laid_out(map(work, measure.layouts(members))))
    jobs = measure.together(members, tasks)
    owners = [{task.source.partition("/")[0] for task in job.tasks} for job in jobs]
    assert all(len(each) == 1 for each in owners)
    assert {owner for each in owners for owner in each} == {"observatory", "site"}
    assert {job.policy for job in jobs} == {"none", "compaction", *ALL}


def test_marked_sessions_run_with_their_marks_and_without(tmp_path: Path) -> None:
    folder = corpus(tmp_path / "sessions")
    digest = next(member.sha256 for member in corpus_of(folder).members if member.name == "site/middling.json")
    call = {"action": "start", "name": "look", "type": "expl"}
    line = {"session": "middling", "sha256": digest, "call": 0, "entry": 9_999, "entry_sha256": "", "calls": [call]}
    (tmp_path / "marks.jsonl").write_text(json.dumps(line))
    found = gathered(corpus_of(folder), ("marks",), one_process, caps={"": 1}, marks=marks_in([tmp_path / "marks.jsonl"]))
    runs = lines(found, MarkedRun)
    assert {(run.policy, run.variant) for run in runs} == {
        (policy, variant) for policy in MARKED for variant in ("plain", "marked")
    }
    assert {run.annotation.calls for run in runs if run.variant == "marked"} == {1}
    free = {run.variant: run.measured.bill.total_usd for run in runs if run.policy == "none"}
    assert free["plain"] < free["marked"]


def test_another_name_or_another_byte_is_another_corpus(tmp_path: Path) -> None:
    first = corpus_of(corpus(tmp_path / "one"))
    assert corpus_of(corpus(tmp_path / "two")).sha256 == first.sha256
    session(tmp_path / "two" / "site" / "middling.json", reads=15)
    assert corpus_of(tmp_path / "two").sha256 != first.sha256
    (tmp_path / "one" / "site" / "middling.json").rename(tmp_path / "one" / "site" / "other.json")
    assert corpus_of(tmp_path / "one").sha256 != first.sha256


@pytest.mark.parametrize("folder", ["missing", "empty"])
def test_a_folder_without_sessions_is_told(folder: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=folder):
        corpus_of(tmp_path / folder)


@pytest.mark.long
def test_the_whole_bake_off_runs_everything_and_says_nothing_of_the_machine_or_of_what_was_said(tmp_path: Path) -> None:
    found = ran(corpus(tmp_path / "sessions", LONG), "alone", "cuts", "needs", "billed", "together")
    made = files(found)
    assert found.failed == ()
    assert {run.policy for run in lines(found, IsolatedRun)} == {"none", *ALL}
    assert {run.source for run in lines(found, IsolatedRun) if run.measured.commits} == {"observatory/long.json"}
    assert {line.policy for line in lines(found, CutLine) if not line.matched} == {*ALL, "oracle-objects", "oracle-lines"}
    assert {line.matched for line in lines(found, CutLine)} > {""}
    assert {run.policy for run in lines(found, AccumulatingRun)} == {"none", "compaction", *ALL}
    pages = {*SECTIONS} - {"bill", "detector"}  # no usage is reported, and nothing was read by hand
    assert {name for name in made if name.endswith(".md")} == {"README.md", *(f"{name}.md" for name in pages)}
    for body in made.values():
        assert str(tmp_path).encode() not in body
        assert b"TICKET" not in body
        assert b"ever wanted" not in body


def test_the_same_sessions_elsewhere_give_the_same_files_to_the_byte(tmp_path: Path) -> None:
    for name in ("here", "a/longer/way/there"):
        session(tmp_path / name / "observatory" / "short.json", reads=6, wanted=2)
    one, other = (ran(tmp_path / name, "alone", "needs") for name in ("here", "a/longer/way/there"))
    assert events_and_index(one) == events_and_index(other)


def test_engines_and_kept_results_give_the_same_files(tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    for place in ("observatory/short.json", "site/middling.json"):
        session(folder / place, reads=6, wanted=2)
    keep = ResultFolder(tmp_path / "kept")
    first = events_and_index(ran(folder, "needs"))
    assert events_and_index(ran(folder, "needs", engine=Processes(1), keep=keep)) == first
    asked: list[str] = []

    def work_again(task: Work[Any], rest: Sequence[Any], /) -> Iterator[tuple[int, Answer]]:
        asked.extend(job.name for job in rest)
        return one_process(task, rest)

    session(folder / "site" / "middling.json", reads=13)
    ran(folder, "needs", engine=work_again, keep=keep)
    assert sorted(asked) == ["needs: site/middling.json", "profile: site/middling.json"]


def test_a_session_that_cannot_be_read_is_told_under_its_name_and_the_rest_is_run(tmp_path: Path) -> None:
    members = corpus_of(corpus(tmp_path / "sessions"))
    (tmp_path / "sessions" / "site" / "middling.json").unlink()
    found = gathered(members, ("needs", "together"), one_process)
    assert [failed.name for failed in found.failed] == ["profile: site/middling.json"]
    assert [line.source for line in lines(found, Needed)] == ["observatory/long.json", "observatory/short.json"]
    assert {task.source for run in lines(found, AccumulatingRun) for task in run.tasks} == {
        line.source for line in lines(found, Needed)
    }
    index = files(found, "sessions")["README.md"].decode()
    assert "| profile: site/middling.json | InputError: site/middling.json: no such file" in index
    assert str(tmp_path) not in index


def test_a_session_below_every_limit_is_as_if_it_had_been_run_under_each(tmp_path: Path) -> None:
    path = session(tmp_path / "short.json", reads=5)
    found = corpus_of(tmp_path)
    (job,) = measure.of_sessions(found, ("alone",))
    runs = [line for line in work(job).lines if isinstance(line, IsolatedRun)]
    for name in ("cwl", "cline", "clear-tool-uses", "discard-all"):
        copied = next(run for run in runs if run.policy == name and run.budget.ceiling == 80_000)
        really = isolated(source_of(found.folder, path.name), ALL[name], budget_of(80_000), TOKENIZER)
        assert copied == really


def test_what_a_job_depends_on_is_not_where_the_corpus_lies(tmp_path: Path) -> None:
    member = Member(name="a.json", tool="messages", sha256="00")
    job = measure.CorpusJob(what="cuts", folder="/home/ada/sessions", members=(member,))
    assert job.identity == replace(job, folder="/mnt/sessions").identity
    assert job.identity != replace(job, members=(replace(member, sha256="01"),)).identity
    assert job.identity != replace(job, what="needs").identity


def test_every_policy_is_run_under_the_common_ceiling() -> None:
    assert all(measure.CEILING in measure.ceilings_of(name) for name in ALL)
    assert set(measure.SWEPT) <= set(ALL)
    assert set(measure.TARGETED) <= set(ALL)
    assert set(measure.BESIDE) <= set(ALL)


def test_needs_carry_the_name_of_their_session(tmp_path: Path) -> None:
    session(tmp_path / "short.json", reads=5)
    (job,) = measure.of_sessions(corpus_of(tmp_path), ("needs",))
    (line,) = work(job).lines
    assert isinstance(line, Needed)
    assert line.source == "short.json"


def test_cuts_are_made_at_every_share(tmp_path: Path) -> None:
    session(tmp_path / "middling.json", reads=12)
    (job,) = measure.of_sessions(corpus_of(tmp_path), ("cuts",))
    lines = [line for line in work(job).lines if isinstance(line, CutLine) and not line.matched]
    assert {line.target for line in lines} == set(measure.PRUNES)


def test_a_later_run_takes_its_own_leavings_away_and_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "evidence"
    write(out, {"README.md": MADE.encode() + b"old", "cuts.jsonl": b"{}\n", "cuts-30.svg": MADE.encode()}, is_whole=True)
    (out / "labels.jsonl").write_text("{}\n")
    (out / "notes.md").write_text("# Somebody's own")
    write(out, {"README.md": MADE.encode() + b"new"}, is_whole=True)
    assert sorted(path.name for path in out.iterdir()) == ["README.md", "labels.jsonl", "notes.md"]
    assert (out / "README.md").read_bytes().endswith(b"new")


def test_a_run_of_one_section_leaves_the_others_where_they_are(tmp_path: Path) -> None:
    out = tmp_path / "evidence"
    write(out, {"whole.md": MADE.encode(), "README.md": MADE.encode()}, is_whole=True)
    write(out, {"cuts.md": MADE.encode()}, is_whole=False)
    assert sorted(path.name for path in out.iterdir()) == ["README.md", "cuts.md", "whole.md"]


def test_rows_too_large_to_be_kept_are_not_and_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = tuple(cut(policy, number) for policy in ("cwl", "graph") for number in range(5))
    found = CorpusEvents(corpus=Corpus(folder="sessions", members=()), code="0", lines=rows)
    assert "cuts.jsonl" in files(found, "cuts")
    monkeypatch.setattr("tenure.lab.evidence.pages.ROWS_MOST", 10)
    small = files(found, "cuts")
    assert "cuts.jsonl" not in small
    assert b"are not kept here" in small["cuts.md"]


def test_the_engine_of_a_cluster_is_found_by_name() -> None:
    pytest.importorskip("ray")
    assert type(engine_named("ray")).__name__ == "OnRay"


def test_a_corpus_survives_being_copied(tmp_path: Path) -> None:
    corpus(tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    assert replace(corpus_of(tmp_path / "one"), folder="") == replace(corpus_of(tmp_path / "two"), folder="")
