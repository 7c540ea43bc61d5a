"""Plan mode, and instructions of folders that work comes to."""

from pathlib import Path

import pytest
from holding import Outside, call, end, folder, of, played, recorded, results, says

from tenure.agent.approval import Mode
from tenure.agent.events import CallDone, Noticed, Requested


def nested(tmp_path: Path) -> Path:
    """A workspace with instructions in two folders below."""
    where = folder(tmp_path, top_py="top = 1\n")
    (where / "src" / "core").mkdir(parents=True)
    (where / "AGENTS.md").write_text("Say it short.\n", encoding="utf-8")
    (where / "src" / "AGENTS.md").write_text("Tabs only.\n", encoding="utf-8")
    (where / "src" / "core" / "CLAUDE.md").write_text("No floats.\n", encoding="utf-8")
    (where / "src" / "core" / "a.py").write_text("a = 1\n", encoding="utf-8")
    return where


def harness(outside: Outside) -> list[str]:
    return [
        block.text for entry in recorded(outside) if entry.role == "user" for block in entry.blocks if block.origin == "harness"
    ]


def test_instructions_of_a_folder_are_said_once_when_work_goes_there(tmp_path: Path) -> None:
    where = nested(tmp_path)
    reads = [
        says("", call("read", path="top.py")),
        says("", call("read", path="src/core/a.py"), call("read", path="src/core/a.py")),
    ]
    outside = Outside(where, *reads, says("", call("ls", path="src/core")), says("Done."))
    events = played(outside, "Go.")
    (text,) = harness(outside)
    assert text.index("Tabs only.") < text.index("No floats.")
    assert "Say it short." not in text
    assert end(events).reason == "done"
    assert len([each for each in of(events, Noticed) if "hold from here" in each.text]) == 1


@pytest.mark.parametrize("dialect", ["anthropic", "openai-chat", "openai-responses", "gemini"])
def test_they_stand_behind_all_results_of_a_reply(dialect: str, tmp_path: Path) -> None:
    where = nested(tmp_path)
    calls = [call("read", path="src/core/a.py"), call("bash", command="true"), call("read", path="top.py")]
    outside = Outside(where, says("", *calls), says("Done."), dialect=dialect)
    assert end(played(outside, "Go.")).text == "Done."
    roles = [entry.role for entry in recorded(outside)]
    assert roles[-2:] == ["user", "assistant"]
    assert len(results(outside)) == 3


def test_a_link_out_of_the_workspace_is_not_followed_and_much_text_is_bounded(tmp_path: Path) -> None:
    where = nested(tmp_path)
    (tmp_path / "secret.md").write_text("the secret", encoding="utf-8")
    (where / "src" / "AGENTS.md").unlink()
    (where / "src" / "AGENTS.md").symlink_to(tmp_path / "secret.md")
    (where / "src" / "core" / "CLAUDE.md").write_text("word " * 20_000, encoding="utf-8")
    outside = Outside(where, says("", call("read", path="src/core/a.py")), says("Done."))
    played(outside, "Go.")
    (text,) = harness(outside)
    assert "the secret" not in text
    assert len(text) < 9_000


def test_in_plan_mode_nothing_is_changed_and_a_plan_is_asked_for(tmp_path: Path) -> None:
    where = folder(tmp_path)
    outside = Outside(where, says("", call("write", path="a.txt", content="x")), says("1. Write a.txt."))
    events = played(outside, "Write it.", mode=Mode.PLAN)
    assert not (where / "a.txt").exists()
    assert of(events, CallDone)[0].outcome == "declined"
    assert all("[plan mode:" in each.notes for each in of(events, Requested))
    assert end(events).text == "1. Write a.txt."
    assert not any("plan mode" in block.text for entry in recorded(outside) for block in entry.blocks if entry.role == "user")
