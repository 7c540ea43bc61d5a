"""What `tenure bench` prints: a line for each task as it is done, a column for each condition at the end."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.table import Table

from tenure.cli import words

if TYPE_CHECKING:
    from tenure.lab.bench.measures import Measures
    from tenure.lab.bench.outcome import TaskOutcome
    from tenure.lab.bench.run_folders import BenchReport
    from tenure.lab.bench.sequence import CheckResult, SequenceStep

Row = dict[str, Any]  # of a report

NONE: Final = "–"
NOTE_CHARS: Final = 400
FINDINGS: Final = 20  # of a session, shown


def line_of_run(sequence: str, condition: str, run: int, runs: int) -> str:
    """A run that begins."""
    return f"{sequence}, {condition}" + (f", run {run} of {runs}" if runs > 1 else "")


def line_of_task(step: "SequenceStep", outcome: "TaskOutcome", checked: "CheckResult") -> str:
    """A task that is done, and checked."""
    why = "" if checked.solved else f": {words.first_line(checked.said, 100)}"
    ended = "" if outcome.reason == "done" else f", {outcome.reason}"
    return f"  {'✓' if checked.solved else '✗'} {step.name}: {_figures(outcome)}{ended}{why}"


def line_of_instance(name: str, outcome: "TaskOutcome", patch: str) -> str:
    """An instance of SWE-bench that was played."""
    lines = sum(line[:1] in "+-" and line[:3] not in ("+++", "---") for line in patch.splitlines() if line)
    return f"{words.first_line(name, 80)}: {outcome.reason}, {_figures(outcome)}, {lines} changed lines"


def _figures(outcome: "TaskOutcome") -> str:
    """What a task took."""
    left = f", {words.several(outcome.commits, 'commit')}" if outcome.commits else ""
    left += f", {outcome.summaries} {'summary' if outcome.summaries == 1 else 'summaries'}" if outcome.summaries else ""
    tokens = outcome.usage.prompt + outcome.usage.output
    paid = f", {words.spent(outcome.usd, outcome.unpriced)}" if outcome.usd or outcome.unpriced else ""
    needs = outcome.needs
    looked = (
        f"; needs: {needs.visible} visible, {needs.routed} routed, {needs.lost} lost; {needs.edits_gone} of {needs.edits} edits gone"
        if needs is not None
        else ""
    )
    return f"{outcome.calls} calls, {words.short(tokens)} tokens{paid}{left}{looked}"


def tables(report: "BenchReport", console: Console) -> None:
    """A table for each benchmark, a column for each condition."""
    for benchmark in dict.fromkeys(row["benchmark"] for row in report.rows):
        rows = [row for row in report.rows if row["benchmark"] == benchmark]
        table = _columns(words.first_line(benchmark, 60), [row["condition"] for row in rows])
        for label, cell in _ROWS:
            cells = [cell(row) for row in rows]
            if any(each not in (NONE, "0", "") for each in cells):
                table.add_row(label, *cells)
        console.print(table)
        console.print()
    console.print("Means ± standard deviation by run; shares with Wilson's interval at 95 %.", style="dim")
    for note in report.notes:
        console.print(words.plain(words.first_line(note, NOTE_CHARS)), style="dim")


def marks_of(measured: "Sequence[tuple[str, Measures]]", console: Console) -> None:
    """The annotation of sessions, a column each."""
    table = _columns("", [address.rpartition("/")[2] for address, _ in measured])
    for label, cell in _MEASURES:
        table.add_row(label, *(cell(each) for _, each in measured))
    console.print(table)
    for address, each in measured:
        findings = [
            *(f"{wrong.type} {wrong.episode} is mistyped: {wrong.why}" for wrong in each.typing.mistyped),
            *(
                f"act {gap.act} does not name {gap.expl}, whose {', '.join(gap.anchors)} it uses"
                for gap in each.dependencies.missing
            ),
            *(f"{again.object} gives what {again.earlier} gave: {again.about}" for again in each.explored.again),
        ]
        if findings:
            console.print(words.plain(address), style="bold")
        for line in findings[:FINDINGS]:
            console.print(words.plain("  " + words.first_line(line, 200)))
        if len(findings) > FINDINGS:
            console.print(f"  and {len(findings) - FINDINGS} more, in the JSON")


def _columns(title: str, names: Sequence[str]) -> Table:
    table = Table(
        title=words.plain(title) if title else None, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
    table.add_column("")
    for name in names:
        table.add_column(words.plain(words.first_line(name, 40)), justify="right")
    return table


def _mean(spread: Row | None, text: Callable[[float], str]) -> str:
    """A mean, with its spread where there is more than one run."""
    if spread is None:
        return NONE
    return text(spread["mean"]) + (f" ± {text(spread['sd'])}" if spread["sd"] is not None else "")


def _paid(row: Row) -> str:
    """Money, as far as the prices of its calls are known."""
    if row["usd"] is None or (row["unpriced"] and not row["usd"]["mean"]):
        return NONE
    return ("at least " if row["unpriced"] else "") + _mean(row["usd"], words.money)


def _rate(rate: Row) -> str:
    """So many of so many, with the interval."""
    if rate["value"] is None:
        return NONE
    return f"{rate['hits']} of {rate['of']} ({rate['low'] * 100:.0f}–{rate['high'] * 100:.0f} %)"


def _number(value: float) -> str:
    return f"{value:.0f}" if value == round(value) else f"{value:.1f}"


def _short(value: float) -> str:
    return words.short(round(value))


def _share(value: float | None) -> str:
    return NONE if value is None else words.percent(value)


_ROWS: Final[tuple[tuple[str, Callable[[Row], str]], ...]] = (
    ("runs", lambda row: str(row["runs"])),
    ("solved tasks", lambda row: _rate(row["solved"])),
    ("calls of the model", lambda row: _mean(row["calls"], _number)),
    ("tokens processed", lambda row: _mean(row["processed"], _short)),
    ("of prompts, cached", lambda row: _share(row["cached_share"])),
    ("money", _paid),
    ("calls without a price", lambda row: str(row["unpriced"])),
    ("seconds", lambda row: _mean(row["seconds"], _number)),
    ("commits", lambda row: _mean(row["commits"], _number)),
    ("summaries", lambda row: _mean(row["summaries"], _number)),
    ("recalls", lambda row: _mean(row["marks"]["recalls"], _number)),
    ("delimiters", lambda row: _mean(row["marks"]["delimiters"], _number)),
    ("  refused", lambda row: _rate(row["marks"]["refused"])),
    ("  their tokens, once", lambda row: _mean(row["marks"]["overhead_tokens"], _short)),
    ("  calls for them alone", lambda row: _mean(row["marks"]["overhead_calls"], _number)),
    ("  of tokens processed", lambda row: _share(row["marks"]["overhead_share"])),
    ("episodes", lambda row: _mean(row["marks"]["declared"], _number)),
    ("  mistyped", lambda row: _rate(row["marks"]["mistyped"])),
    ("  left open", lambda row: str(row["marks"]["left_open"])),
    ("dependencies missing", lambda row: _rate(row["marks"]["missing"])),
    ("looks", lambda row: _mean(row["marks"]["explored"], _number)),
    ("  again", lambda row: _rate(row["marks"]["again"])),
    ("  tokens of those", lambda row: _mean(row["marks"]["again_tokens"], _short)),
    ("  of an earlier task", lambda row: str(row["marks"]["again_across"])),
    ("  of what had left", lambda row: str(row["marks"]["again_gone"])),
)

_MEASURES: "Final[tuple[tuple[str, Callable[[Measures], str]], ...]]" = (
    ("replies of the model", lambda each: str(each.replies)),
    ("calls of tools", lambda each: str(each.calls)),
    ("recalls", lambda each: str(each.recalls)),
    ("delimiters", lambda each: str(each.overhead.delimiters)),
    ("  refused", lambda each: str(each.overhead.refused)),
    ("  their tokens, once", lambda each: words.short(each.overhead.tokens)),
    ("  replies for them alone", lambda each: str(each.overhead.replies)),
    ("  tokens those processed", lambda each: words.short(each.overhead.replies_tokens)),
    ("  tokens in every request", lambda each: words.short(each.overhead.standing_tokens)),
    ("expl, act episodes", lambda each: f"{each.typing.expl}, {each.typing.act}"),
    ("  mistyped", lambda each: str(len(each.typing.mistyped))),
    ("  left open", lambda each: str(each.typing.open)),
    ("dependencies declared", lambda each: str(each.dependencies.declared)),
    ("  used, missing", lambda each: f"{each.dependencies.used}, {len(each.dependencies.missing)}"),
    ("looks", lambda each: str(each.explored.looks)),
    ("  again", lambda each: str(len(each.explored.again))),
    ("  tokens of those", lambda each: words.short(each.explored.again_tokens)),
)
