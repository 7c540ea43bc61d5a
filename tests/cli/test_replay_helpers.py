"""`tenure replay --planner … --summariser …`: who is asked, and what is said of their answers."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from chats import chat_file, drawn, exchange, quiet_console
from tenure.cli.main import main
from tenure.cli.replay import HelperTotals, briefs, helpers_bill, plans, play, report
from tenure.engine.lifecycle.automatic import Absolute
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.planners.selfgc.setting import SelfGc
from tenure.engine.policies import POLICIES
from tenure.lab.events import Outcome, PlanLine
from tenure.lab.loading import source
from tenure.lab.planner import PLANNER, SUMMARISER
from tenure.lab.replay import Options
from tenure.testing.model import ScriptedModel

TEXT = "\n".join(f"{n}: a line of the module that was read" for n in range(1, 81))


def session_file(path: Path, tasks: int = 10, reads: int = 4) -> Path:
    """Tasks of a person, in each of which files are read."""
    messages: list[dict[str, object]] = []
    for task in range(tasks):
        messages.append({"role": "user", "content": f"Task {task}: make part {task} accept comments."})
        for n in range(reads):
            path_ = {"path": f"src/part_{task}_{n}.py"}
            messages += exchange(f"call_{task}_{n}", "read", path_, f"part {task}.{n}\n{TEXT}")
        messages.append({"role": "assistant", "content": f"Part {task} keeps its comments now."})
    return chat_file(path, messages)


STAND_INS = ["--planner", "stand-in", "--ask-always", "--summariser", "stand-in", "--handoff-at", "9k"]


@pytest.mark.parametrize("width", [80, 160])
def test_the_report_of_a_replay_with_stand_ins_reads_well(width: int, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    options = Options(
        budget=Budget(ceiling=12_000),
        policy=POLICIES["tiered"],
        model="gpt-5",
        planner=PLANNER,
        selfgc=SelfGc(bounded=False),
        summariser=SUMMARISER,
        handoff_at=Absolute(tokens=9_000),
    )
    run = play([source(str(session_file(tmp_path / "session.json")))], ("session.json",), options, quiet_console())
    golden(f"replay-helpers-{width}.txt", drawn(width, report(run)))


def test_the_lines_of_a_replay_name_who_was_asked_and_what_it_cost(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    path = str(session_file(tmp_path / "s.json"))
    assert main(["replay", path, "--ceiling", "12k", *STAND_INS, "--json", str(out), "-q"]) == 0
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert (lines[0]["settings"]["planner"], lines[0]["settings"]["summariser"]) == ("stand-in", "stand-in")
    asked = [line for line in lines if line["type"] == "plan" and line["asked"]]
    assert {line["policy"] for line in asked} == {"selfgc", "handoff"}
    assert lines[-1]["helpers_usd"] == pytest.approx(sum(line["usd"] for line in asked))
    assert lines[-1]["usd"] == pytest.approx(sum(line["usd"] for line in lines if line["type"] == "call"))
    assert lines[-1]["violations"] == []


def test_without_models_nothing_is_said_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(session_file(tmp_path / "s.json")), "--ceiling", "12k"]) == 0
    said = capsys.readouterr().out
    assert not [word for word in ("planner", "summariser", "plans", "briefs", "asking") if word in said]


def test_the_bill_of_several_sessions_has_what_asking_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(session_file(tmp_path / "s.json"))
    assert main(["replay", path, path, "--each", "--ceiling", "12k", *STAND_INS]) == 0
    with_models = capsys.readouterr().out
    out = tmp_path / "out.jsonl"
    main(["replay", path, "--ceiling", "12k", *STAND_INS, "--json", str(out), "-q"])
    summary = json.loads(out.read_text(encoding="utf-8").splitlines()[-1])
    assert f"${summary['usd'] + summary['helpers_usd']:.3f}" in with_models


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--planner", "gpt-5"], "--planner: 'gpt-5', expected stand-in, openai:NAME, anthropic:NAME or batch:[MODEL@]FILE"),
        (["--summariser", "standin"], "--summariser: 'standin', expected stand-in"),
        (["--planner", "hope:gpt-5"], "openai:NAME"),
        (["--handoff-at", "often"], "handoff"),
    ],
)
def test_a_model_that_cannot_be_asked_is_a_sentence(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(session_file(tmp_path / "s.json")), *options]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_failing_model_is_said_with_its_first_reason(tmp_path: Path) -> None:
    path = str(session_file(tmp_path / "s.json"))
    options = Options(
        budget=Budget(ceiling=12_000),
        policy=POLICIES["cwl"],
        planner=ScriptedModel(then="down", name="mini"),
        selfgc=SelfGc(bounded=False),
    )
    run = play([source(path)], ("s.json",), options, quiet_console())
    told = plans(run.plans)
    assert told.startswith(f"{run.plans.asked} asked for: {run.plans.asked} dropped (the planner failed: mini:")
    assert briefs(run.briefs) == ""


def line(outcome: Outcome, *, asked: bool, refused: tuple[str, ...] = ()) -> PlanLine:
    why = tuple({"object": "bash:1", "why": each} for each in refused)
    return PlanLine(
        before_call=1, policy="selfgc", outcome=outcome, commit=None, reason="a reason", refused=why, asked=asked, usd=0.5 * asked
    )


def test_plans_are_counted_by_what_became_of_them() -> None:
    helped = HelperTotals()
    for each in (
        line("committed", asked=True),
        line("pending", asked=True, refused=("is pinned", "is open", "is pinned")),
        line("committed", asked=False),
        line("pending", asked=True),
        line("dropped", asked=False),
        line("committed", asked=False),  # of the policy that went on where nothing of the plan was left
        line("dropped", asked=True),
        line("pending", asked=True),
    ):
        helped.note(each)
    assert plans(helped) == (
        "5 asked for: 1 committed at once, 1 committed after a wait, 1 waiting, 1 given up after a wait, 1 dropped (a reason); "
        '3 objects refused, 2 of them as "is pinned"'
    )
    assert helpers_bill(helped, HelperTotals()) == "; $2.50 of it for asking models"
    assert helpers_bill(HelperTotals()) == ""
