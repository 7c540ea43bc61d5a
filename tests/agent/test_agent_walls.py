"""What a session does with the walls of its machine."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from holding import Outside, call, folder, of, played, results, says

from tenure.agent.approval import ApprovalAnswer, Mode
from tenure.agent.events import ApprovalAsked, Noticed
from tenure.agent.screens.approval import answers
from tenure.agent.tools.sandbox import Means, find_means

BEHIND = pytest.mark.skipif(find_means() is Means.NONE, reason="needs bubblewrap or Landlock")
WRITE = "python3 -c \"open('{}', 'w')\""


@pytest.mark.parametrize(("mode", "said"), [(Mode.READ_ONLY, True), (Mode.ASK, False)])
def test_read_only_mode_says_at_its_start_that_no_wall_stands(mode: Mode, said: bool, tmp_path: Path) -> None:
    events = played(Outside(folder(tmp_path), says("Done.")), "Go.", mode=mode, world={"walls": Means.NONE})
    assert any("This machine has no wall" in each.text for each in of(events, Noticed)) is said


@BEHIND
def test_read_only_mode_says_nothing_of_walls_where_they_stand(tmp_path: Path) -> None:
    events = played(Outside(folder(tmp_path), says("Done.")), "Go.", mode=Mode.READ_ONLY)
    assert not any("wall" in each.text for each in of(events, Noticed))


@BEHIND
@pytest.mark.parametrize("mode", list(Mode))
def test_what_runs_unasked_runs_behind_the_wall_in_every_mode(mode: Mode, tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), says("", call("bash", command="cat ~/kept/key")), says("Done."))
    keys = tmp_path / "home/kept"
    keys.mkdir(parents=True)
    (keys / "key").write_text("CANARY")
    (tmp_path / "home/.ssh").symlink_to(keys)  # the judge does not see that it is a place of keys; the wall does
    events = played(outside, "Go.", mode=mode)
    assert not of(events, ApprovalAsked)
    assert "CANARY" not in results(outside)[0]


@BEHIND
@pytest.mark.parametrize(
    ("answer", "mode", "settings", "written"),
    [
        (ApprovalAnswer.ONCE, Mode.ASK, {}, False),
        (ApprovalAnswer.EXACT, Mode.EDITS, {}, False),
        (ApprovalAnswer.OUTSIDE, Mode.EDITS, {}, True),
        (ApprovalAnswer.ONCE, Mode.EDITS, {"allow_outside": True}, True),
        (None, Mode.ALL, {}, True),
    ],
)
def test_a_command_that_was_allowed_changes_files_outside_only_if_that_was_allowed_too(
    answer: ApprovalAnswer | None, mode: Mode, settings: dict[str, Any], written: bool, tmp_path: Path
) -> None:
    canary = Path.home() / f".canary-{tmp_path.name}"
    if any(Path(place) in canary.parents for place in ("/tmp", "/var/tmp", tempfile.gettempdir())):
        pytest.skip("needs a home that is not for temporary files")
    world = Outside(folder(tmp_path), says("", call("bash", command=WRITE.format(canary))), says("Done."))
    try:
        events = played(world, "Go.", answer=answer, mode=mode, **settings)
        assert canary.exists() is written
    finally:
        canary.unlink(missing_ok=True)
    offered = [dict(answers(each.approval)) for each in of(events, ApprovalAsked)]
    assert [ApprovalAnswer.OUTSIDE in each for each in offered] == ([not settings] if answer else [])


def test_an_answer_about_outside_is_not_offered_where_there_is_no_wall(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), says("", call("bash", command="touch x")), says("Done."))
    events = played(outside, "Go.", answer=ApprovalAnswer.ONCE, mode=Mode.ASK, world={"walls": Means.NONE})
    assert [each.approval.walled for each in of(events, ApprovalAsked)] == [False]
