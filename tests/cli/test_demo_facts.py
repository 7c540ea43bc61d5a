"""What the demo says of a session."""

import json

import pytest

from tenure.apis.rules import rules_for
from tenure.cli.demo_screen import BETWEEN, Remains, about, remains, returned
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.session import Setup
from tenure.testing.builders import call, end_act, end_expl, human, reply, result, session, start_act, start_expl

FILE = b"import csv\n\n\ndef write():\n    pass\n"
READ = "3\t\n4\tdef write():\n5\t    pass\n[lines 3 to 5 of 5, the last.]"


def test_what_came_back_is_told_with_its_place_and_size() -> None:
    back = returned("read:2", READ, f"[read:2@3fa9: call of read]\n{{}}\n\n[result]\n{READ}", "report.py", FILE)
    assert back is not None
    assert (back.first, back.last, back.size) == (3, 5, len("\ndef write():\n    pass"))


@pytest.mark.parametrize(
    ("brought", "disk"),
    [
        (READ.replace("pass", "..."), FILE),  # not what was read
        (READ, FILE.replace(b"pass", b"...")),  # not what the file holds
        (READ.partition("\n")[2], FILE),  # not all of it
        ("", FILE),
    ],
)
def test_what_is_not_the_same_in_every_byte_has_not_come_back(brought: str, disk: bytes) -> None:
    assert returned("read:2", READ, brought, "report.py", disk) is None


def test_a_file_that_was_never_read_has_not_come_back() -> None:
    assert returned("read:2", "", "anything", "report.py", FILE) is None


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("grep", {"pattern": "def w", "path": "app"}, "grep def w app"),
        ("grep", {"pattern": "def w", "path": "."}, "grep def w"),
        ("read", {"path": "a.py", "offset": 3, "limit": 10}, "read a.py, lines 3 to 12"),
        ("bash", {"command": "make"}, "bash make"),
        ("recall", {"handle": "read:2"}, "recall read:2"),
        ("edit", {"path": "a.py"}, "edit a.py"),
    ],
)
def test_a_call_is_told_by_what_it_is_about(tool: str, arguments: dict[str, object], said: str) -> None:
    cue = arguments.get("path", "")
    assert about(tool, json.dumps(arguments), f"{tool} {cue}", 60) == said


def test_a_call_with_arguments_that_are_none_is_told_in_one_harmless_line() -> None:
    assert about("bash", "{not json", "bash \x1b[2J\nrm", 20).isprintable()
    assert len(about("grep", json.dumps({"pattern": "x" * 500}), "grep", 20)) == 20


def test_episodes_are_told_with_what_is_still_shown_of_them() -> None:
    setup = Setup(budget=Budget(ceiling=100), rules=rules_for("", "", "openai-chat"))
    told = session(
        setup,
        human("do it"),
        reply(start_expl("locate")),
        result("started"),
        reply(call("read", path="a.py")),
        result("word " * 50),
        reply(end_expl("it is in a.py")),
        result("ended"),
        reply("between"),
        reply(start_act("change", "locate")),
        result("started"),
        reply(call("edit", path="a.py")),
        result("done"),
    )
    locate, beside = remains(told)  # the open one is not told
    assert (locate.name, locate.found, beside.name) == ("locate", True, BETWEEN)
    assert locate.whole == locate.shown > 50
    told.append(reply(end_act()))
    assert [each.name for each in remains(told)] == ["locate", "change", BETWEEN]
    assert isinstance(locate, Remains)
