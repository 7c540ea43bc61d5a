"""Money of a model that is in no price list is marked wherever it is shown, and what the mark means is said."""

import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tenure.agent.events import TurnDone
from tenure.agent.screens.status import StatusFacts, line
from tenure.cli.main import main
from tenure.cli.run_screen import Teller
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.decision import Stay, account
from tenure.engine.meter.figures import money, spent
from tenure.engine.meter.gauge import Gauge
from tenure.engine.meter.tokens import o200k
from tenure.engine.record.entry import Usage
from tenure.engine.view.edit import Price
from tenure.lab.events import ReplayLine
from tenure.lab.loading import source
from tenure.lab.replay import Options, replay

UNLISTED, LISTED = "our-house-model-7b", "claude-sonnet-4-5"
AMOUNT = re.compile(r"(?P<mark>~?)[\u2212-]?\$\d")


def session_file(path: Path, model: str) -> Path:
    """A log of Claude Code's in which files are read, and the first of them is edited at the end."""
    lines: list[dict[str, object]] = []

    def said(role: str, content: object, **more: object) -> None:
        above = lines[-1]["uuid"] if lines else None
        at = f"2026-02-01T10:{len(lines):02}:00.000Z"
        message = {"role": role, "content": content, **more}
        lines.append(
            {"type": role, "uuid": f"u{len(lines)}", "parentUuid": above, "sessionId": "s", "timestamp": at, "message": message}
        )

    def called(n: int, name: str, given: dict[str, str], result: str) -> None:
        usage = {"input_tokens": 30_000 + 900 * n, "output_tokens": 20}
        call = {"type": "tool_use", "id": f"t{n}", "name": name, "input": given}
        said("assistant", [call], id=f"m{n}", type="message", model=model, usage=usage)
        said("user", [{"type": "tool_result", "tool_use_id": f"t{n}", "content": result}])

    said("user", "Read every part, then mend the first.")
    for n in range(20):
        text = "\n".join(f"{k}: part {n} has a gauge_{n}_{k} of turbine {k * 37 + n}" for k in range(50))
        called(n, "Read", {"file_path": f"/w/{n}.py"}, text)
    called(
        20, "Edit", {"file_path": "/w/0.py", "old_string": "7: part 0 has a gauge_0_7 of turbine 259", "new_string": "7"}, "ok"
    )
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    return path


COMMANDS: dict[str, Callable[[str, str], list[str]]] = {
    "replay": lambda one, two: ["replay", one, "--ceiling", "40k"],
    "replay of several": lambda one, two: ["replay", one, two, "--each", "--ceiling", "40k"],
    "audit": lambda one, two: ["audit", one, "--ceiling", "40k", "--keep", "no"],
    "audit of several": lambda one, two: ["audit", one, two, "--ceiling", "40k", "--keep", "no"],
    "why": lambda one, two: ["why", one, "read:1", "--ceiling", "40k"],
}


@pytest.mark.parametrize("asked", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("width", ["80", "160"])
def test_every_amount_of_an_unlisted_model_is_marked_and_the_mark_explained(
    asked: Callable[[str, str], list[str]],
    width: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    for model, marked in ((UNLISTED, True), (LISTED, False)):
        one, two = (str(session_file(tmp_path / f"{model}-{n}.jsonl", model)) for n in (1, 2))
        assert main(asked(one, two)) == 0
        said = capsys.readouterr().out
        amounts = list(AMOUNT.finditer(said))
        if asked is not COMMANDS["why"]:
            assert amounts
            assert ("mid-size" in " ".join(said.split())) == marked
        else:
            assert amounts
            assert ("of an assumed price" in " ".join(said.split())) == marked
        assert {bool(found["mark"]) for found in amounts} <= {marked}


def test_the_page_of_an_audit_marks_them_too(tmp_path: Path) -> None:
    for model, marked in ((UNLISTED, True), (LISTED, False)):
        files = [str(session_file(tmp_path / f"{model}-{n}.jsonl", model)) for n in (1, 2)]
        for given in (files[:1], files):
            page = tmp_path / "page.html"
            assert main(["audit", *given, "--ceiling", "40k", "--keep", "no", "-q", "--html", str(page)]) == 0
            amounts = list(AMOUNT.finditer(page.read_text(encoding="utf-8").partition("<script")[0]))
            assert len(amounts) > 20
            assert {bool(found["mark"]) for found in amounts} == {marked}


def test_the_lines_of_a_replay_say_whether_their_prices_are_listed(tmp_path: Path) -> None:
    for model, known in ((UNLISTED, False), (LISTED, True)):
        options = Options(budget=Budget(ceiling=40_000), policy=None)
        header = next(replay([source(str(session_file(tmp_path / "s.jsonl", model)))], options, o200k()))
        assert isinstance(header, ReplayLine)
        assert (header.prices.known, header.is_assumed) == (known, not known)


def test_a_price_that_is_not_known_is_not_shown_as_nothing() -> None:
    assert spent(0.0, 0) == "$0.000"
    assert spent(0.0, 3) == "price unknown"
    assert spent(1.5, 3) == "at least $1.50"
    assert money(1.5, assumed=True) == "~$1.50"


@pytest.mark.parametrize(
    ("usd", "unpriced", "brief", "shown"),
    [(0.0, 2, "$?", "price unknown"), (0.2, 2, "$0.200+", "at least $0.200"), (0.2, 0, "$0.200", "$0.200")],
)
def test_the_line_of_the_terminal_and_the_sum_of_a_run_say_what_is_not_priced(
    usd: float, unpriced: int, brief: str, shown: str
) -> None:
    facts = StatusFacts(model="m", folder=Path("/w"), gauge=Gauge(tokens=10, limit=100), usd=usd, unpriced=unpriced)
    assert brief in line(facts, 200).plain
    out, aside = io.StringIO(), io.StringIO()
    teller = Teller(out, aside, quiet=False, live=False)
    teller.tell(TurnDone(reason="done", steps=2, usage=Usage(uncached=10), usd=usd, unpriced=unpriced))
    assert shown in aside.getvalue()


def test_a_decision_marks_its_account() -> None:
    price = Price(gain_usd=0.01, d=1_000, s=500, n=9.0, p=1.0, w=3e-6, r=3e-7, g=0.002, misses=0.5, recall=0.001)
    for assumed in (True, False):
        for said in (account(price, assumed=assumed), str(Stay(reason="waits", price=price, assumed=assumed))):
            assert {bool(found["mark"]) for found in AMOUNT.finditer(said)} == {assumed}
            assert ("another model" in said) == assumed
