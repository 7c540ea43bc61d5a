import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from calling import called, here, workspace

from tenure.agent.approval import Approval, CallEffect
from tenure.agent.tools.tool import Here, Tool, ToolOutcome
from tenure.agent.tools.toolbox import Toolbox, toolbox
from tenure.agent.workspace import Workspace
from tenure.apis import APIS
from tenure.apis.json_text import dump
from tenure.engine.meter.tokens import o200k
from tenure.engine.record.episodes import ToolAnswer
from tenure.engine.record.tools import Kinds, ToolKind


class Broken:
    """A tool with a defect."""

    name = "broken"
    description = ""
    schema: Mapping[str, Any] = {}
    kind = ToolKind.BULK

    def needs(self, arguments: str, workspace: Workspace) -> Approval | None:
        raise ZeroDivisionError

    async def run(self, arguments: str, here: Here) -> ToolOutcome:
        raise ZeroDivisionError("of a kind")


def usual(**more: Any) -> Toolbox:
    return toolbox(
        read_skill=lambda name: ToolAnswer(text=f"# {name}"),
        **more,
    )


def test_the_order_of_tools_and_the_bytes_of_their_schemas_never_change() -> None:
    assert usual().names == ("read", "glob", "grep", "ls", "edit", "write", "bash", "read_skill")
    for dialect in APIS.values():
        first, second = (
            dump([dialect.tool(tool.name, tool.description, tool.schema) for tool in usual().tools]) for _ in range(2)
        )
        assert first == second
        assert (
            first
            == msgspec.json.encode([dialect.tool(tool.name, tool.description, tool.schema) for tool in usual().tools]).decode()
        )


def test_all_tools_together_weigh_less_than_2200_tokens() -> None:
    assert o200k()(dump([[tool.name, tool.description, tool.schema] for tool in usual().tools])) < 2_200


def test_every_kind_is_the_one_that_the_tables_know_by_name() -> None:
    assert {tool.name: tool.kind for tool in usual().tools} == {tool.name: Kinds().of(tool.name) for tool in usual().tools}


@pytest.mark.parametrize("tool", usual().tools, ids=lambda tool: tool.name)
@pytest.mark.parametrize(
    "arguments", ["nonsense", "[]", '{"no such":1}', '{"path":7,"pattern":7,"command":7,"name":7}', "[" * 50_000]
)
def test_malformed_arguments_give_a_result_and_need_nobody(tool: Tool, arguments: str, ws: Workspace) -> None:
    assert tool.needs(arguments, ws) is None
    outcome = asyncio.run(tool.run(arguments, here(ws)))
    assert outcome.error
    assert outcome.text.startswith(f"{tool.name}: arguments: ")
    assert len(outcome.text) < 700


def test_a_tool_is_found_in_any_case_and_an_unknown_one_comes_with_names_like_it(tmp_path: Path) -> None:
    box, place = usual(), here(workspace(tmp_path))
    assert box.find("Read") is box.find("read")
    assert box.find("READ_SKILL ") is box.tools[-1]
    near = asyncio.run(box.run("raed", "{}", place))
    assert near.error
    assert near.text.startswith("There is no tool 'raed'; did you mean read, ")
    unknown = asyncio.run(box.run("x" * 10_000, "{}", place))
    assert unknown.error
    assert unknown.text.endswith("there are " + ", ".join(box.names))
    assert box.needs("x", "{}", place.workspace) is None


def test_a_defect_in_a_tool_is_a_result_and_what_cannot_be_judged_asks(tmp_path: Path) -> None:
    box, place = usual(more=[Broken()]), here(workspace(tmp_path))
    assert box.names[-1] == "broken"
    assert asyncio.run(box.run("broken", "{}", place)) == ToolOutcome(
        text="broken: failed (ZeroDivisionError: of a kind)", error=True
    )
    needed = box.needs("broken", "{}", place.workspace)
    assert needed is not None
    assert needed.act is CallEffect.DESTROY


def test_a_skill_is_answered_by_its_name(tmp_path: Path) -> None:
    box, ws = usual(), workspace(tmp_path)
    skill = box.find("read_skill")
    assert skill is not None
    assert called(skill, ws, name="release").text == "# release"
    assert "missing required field name" in called(skill, ws).text


def test_without_skills_their_tool_is_not_there() -> None:
    assert toolbox().names == ("read", "glob", "grep", "ls", "edit", "write", "bash")
