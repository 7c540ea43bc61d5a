"""docs/tools.md says what the code does."""

from pathlib import Path

from tenure.agent.approval import Approval, CallEffect, Grants, Mode, verdict
from tenure.agent.tools import edit, grep, ls
from tenure.agent.tools.read import COUNTED_BYTES
from tenure.agent.tools.servers.tool import tool_name
from tenure.agent.tools.tool import ToolLimits
from tenure.agent.tools.toolbox import toolbox
from tenure.engine.record.episodes import ToolAnswer
from tenure.engine.record.tools import DELIMITER, RECALL

PAGE = (Path(__file__).parents[3] / "docs" / "tools.md").read_text(encoding="utf-8")
FLAT = " ".join(PAGE.split())


def table(head: str) -> list[list[str]]:
    """The cells of the rows below a head."""
    rows = PAGE.partition(head)[2].split("\n\n")[0].split("\n")[2:]
    return [[cell.strip().strip("`") for cell in row.split("|")[1:-1]] for row in rows]


def test_all_tools_are_listed_in_their_order() -> None:
    listed = [name.strip(" `") for row in table("| tool | does | at most |") for name in row[0].split(",")]
    box = toolbox(read_skill=lambda name: ToolAnswer(text=name))
    own = [name for name in listed if name not in (DELIMITER, RECALL)]  # those are answered by the record
    assert own == [*box.names, tool_name("server", "tool")]


def test_the_figures_are_the_codes() -> None:
    limits = ToolLimits()
    told = (
        f"| {limits.read_lines:,} lines, {limits.line_chars:,} characters each; images of {limits.image_bytes:,} bytes |",
        f"newest first | {limits.found} |",
        f"| {limits.found}; {grep.COLUMNS} bytes a line |",
        f"hidden entries too | {ls.MOST:,} |",
        f"all or none | {edit.MOST} |",
        f"| {limits.write_chars:,} characters |",
        f"| {limits.command_s:g} s, `timeout_s` up to {limits.command_most_s:g} s |",
        f"| {limits.server_call_s:g} s a call |",
        f"whole up to {limits.output_bytes:,} bytes",
        f"up to {limits.spill_bytes >> 20:,} MB (`Settings(spill",
        f"less than {limits.spare_bytes >> 20} MB left",
        f"above {COUNTED_BYTES >> 20} MB lines",
        f"after {limits.server_start_s:g} s goes on",
    )
    assert [each for each in told if each not in FLAT] == []


def test_what_asks_in_which_mode_is_the_codes() -> None:
    modes = [Mode.READ_ONLY, Mode.ASK, Mode.EDITS, Mode.ALL]

    def row(act: CallEffect | None) -> list[str]:
        approval = Approval(tool="t", act=act, summary="s", reason="r") if act else None
        return [verdict(approval, mode, Grants()).value for mode in modes]

    rows = {cells[0]: cells[2:] for cells in table("| act | what it is |")}
    assert rows == {"-": row(None), **{act.value: row(act) for act in CallEffect}}
