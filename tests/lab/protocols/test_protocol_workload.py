import json
from pathlib import Path

import pytest
from logged import Turn, bulk, read, recording, run
from msgspec.structs import replace

from tenure.engine.record.entry import Draft, Origin, Role, Text
from tenure.lab.loading import source
from tenure.lab.measured import Profile, Workload
from tenure.lab.protocols.workload import LEAST_HARD, RULES, UseKind, hard_set, profile, use_of
from tenure.lab.source import SessionSource
from tenure.testing.builders import by_words, human, reply

EDIT = ("call", "Edit", json.dumps({"file_path": "a.py", "old_string": "one", "new_string": "two"}), "done")


def used(tool: str, **arguments: str) -> Turn:
    return "call", tool, json.dumps(arguments), "ok"


def classed(folder: Path, *turns: Turn) -> Profile:
    return profile(source(recording(folder / "s.jsonl", *turns)), by_words)


@pytest.mark.parametrize(
    ("tool", "arguments", "use"),
    [
        ("Edit", "{}", UseKind.EDIT),
        ("apply_patch", "{}", UseKind.EDIT),
        ("mcp__files__write_file", "{}", UseKind.WRITE),
        ("Read", "{}", UseKind.READ),
        ("str_replace_based_edit_tool", '{"command": "view", "path": "a"}', UseKind.READ),
        ("str_replace_based_edit_tool", '{"command": "str_replace", "path": "a"}', UseKind.EDIT),
        ("Grep", "{}", UseKind.SEARCH),
        ("Bash", '{"command": "make test"}', UseKind.COMMAND),
        ("Bash", '{"command": "sed -i s/a/b/ x.py"}', UseKind.EDIT),
        ("bash", '{"command": "cat <<EOF > x.py"}', UseKind.EDIT),
        ("Bash", '{"command": "make > log 2>&1"}', UseKind.COMMAND),
        ("WebFetch", "{}", UseKind.WEB),
        ("mcp__playwright__browser_click", "{}", UseKind.WEB),
        ("web_browser_go", "{}", UseKind.WEB),
        ("TodoWrite", "{}", UseKind.PLAN),
        ("Task", "{}", UseKind.AGENT),
        ("book_reservation", "{}", UseKind.OTHER),
    ],
)
def test_a_tool_use_is_for_what_its_name_and_its_command_say(tool: str, arguments: str, use: UseKind) -> None:
    assert use_of(tool, arguments) is use


@pytest.mark.parametrize(
    ("turns", "workload"),
    [
        ([("say", "Hello."), run("ls", "a")], Workload.TALK),
        ([used("WebFetch", url="https://example.org"), *[run("ls", "a")] * 3], Workload.WEB),
        ([used("book", seat="1"), ("human", "Two."), *[used("book", seat="2")] * 3, ("human", "Three.")], Workload.DIALOGUE),
        ([EDIT] * 3 + [run("make test", "a")] * 27, Workload.CODING),
        ([EDIT] * 3 + [run("make test", "a")] * 28, Workload.COMMANDS),
        ([EDIT] * 2 + [read("a.py", "a")] * 3, Workload.READING),
        ([read("a.py", "a")] * 2 + [run("make", "a")] * 2 + [used("book", seat="1")], Workload.MIXED),
        ([used("TodoWrite", todos="x")] * 9 + [read("a.py", "a")], Workload.READING),
    ],
)
def test_the_first_rule_that_holds_gives_the_class(tmp_path: Path, turns: list[Turn], workload: Workload) -> None:
    found = classed(tmp_path, ("human", "Go on."), *turns, ("say", "Ok."))
    assert found.workload is workload
    assert found.rule == next(rule.says for rule in RULES if rule.workload is workload)


def test_some_rule_always_holds_and_every_class_has_one() -> None:
    assert RULES[-1].workload is Workload.MIXED
    assert {rule.workload for rule in RULES} == set(Workload)


def test_what_came_back_in_words_is_a_use_too() -> None:
    def answered(said: str, text: str) -> list[Draft]:
        return [reply(said), Draft(role=Role.USER, blocks=(Text(text=text, origin=Origin.TOOL),))]

    drafts = [
        human("Go on."),
        *answered("```bash\nls\n```", "a.py"),
        *answered("```bash\nsed -i s/a/b/ a.py\n```", ""),
        *answered("Open the page.", "https://example.org\nIt is open."),
    ]
    found = profile(SessionSource("made up", lambda: ("made up", iter(drafts))), by_words)
    assert found.uses == {"command": 1, "edit": 1, "web": 1}
    assert found.result_tokens > 0


def test_a_profile_counts_what_tools_returned_and_what_stood_in_the_window(tmp_path: Path) -> None:
    found = classed(tmp_path, ("human", "Go on."), *(read(f"{n}.txt", bulk(20, str(n))) for n in range(4)), ("say", "Ok."))
    one = found.result_tokens / 4
    assert found.replies == 5
    assert found.pressure_tokens == pytest.approx(one * (0 + 1 + 2 + 3 + 4) / 5)
    assert found.result_share == found.result_tokens / found.tokens > 0.9
    assert found.peak_tokens < found.tokens  # the last answer is in no request


def profiled(number: int, pressure: float, share: float = 0.8) -> Profile:
    return Profile(
        source=f"{number:03}",
        format="made up",
        workload=Workload.READING,
        rule="",
        entries=1,
        replies=1,
        human_turns=1,
        tokens=1,
        result_tokens=1,
        result_share=share,
        peak_tokens=1,
        pressure_tokens=pressure,
        uses={},
    )


def hard(profiles: list[Profile]) -> list[str]:
    return [each.source for each in hard_set(profiles) if each.is_hard]


def test_the_hard_set_is_the_tenth_with_the_most_tool_results_in_the_window() -> None:
    profiles = [profiled(number, float(number)) for number in range(300)]
    assert hard(profiles) == [f"{number:03}" for number in range(270, 300)]
    assert hard_set(profiles)[0] == replace(profiles[0], is_hard=False)


def test_a_small_corpus_has_a_hard_set_too_and_what_is_mostly_talk_is_not_in_it() -> None:
    profiles = [profiled(number, float(number), share=0.1 if number % 2 else 0.8) for number in range(50)]
    assert hard(profiles) == [f"{number:03}" for number in range(50 - 2 * LEAST_HARD, 50, 2)]


def test_of_equal_sessions_the_first_by_address_are_hard_whatever_the_order() -> None:
    profiles = [profiled(number, 1.0) for number in range(40)]
    assert hard(profiles) == sorted(hard(profiles[::-1])) == [f"{number:03}" for number in range(LEAST_HARD)]
