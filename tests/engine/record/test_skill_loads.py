"""A skill is an object by its name, whatever tool loaded it and wherever its words stand."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.engine.record.entry import Draft, Entry, ToolCall
from tenure.engine.record.index import Index
from tenure.engine.record.objects import parse_handle
from tenure.engine.record.query import Query
from tenure.engine.record.recall import answer, blocks_of, raw
from tenure.engine.record.skills import SKILL_TOOLS, skill_name, skill_of
from tenure.engine.record.tools import TOOL_KINDS, Kinds, ToolKind
from tenure.errors import InputError
from tenure.testing.builders import by_words, call, harness, human, placed, reminder, reply, result, results, returned
from tenure.testing.transcripts import transcripts

BODY = "Base directory for this skill: /home/ada/.claude/skills/release\n\n# Release\nTag, then push."


class Past:
    """A record to ask."""

    def __init__(self, *drafts: Draft) -> None:
        self.entries: tuple[Entry, ...] = placed(*drafts)
        self.index = Index()
        for entry in self.entries:
            self.index.grow(entry)

    def ask(self, **query: str) -> str:
        return answer(self.index, self.entries.__getitem__, Query(**query), count=by_words)

    def raw(self, handle: str) -> str:
        return raw(self.index, self.entries.__getitem__, handle).decode()

    def handle(self, name: str, load: int) -> str:
        entry = self.index.spans[self.index.skills.loads(name)[load].span].call[0]
        return self.index.handle(f"skill:{name}", entry)


def loaded(text: str = "Tag, then push.", name: str = "release") -> tuple[Draft, Draft]:
    return reply(call("load_skill", name=name)), result(text)


@pytest.mark.parametrize(
    ("tool", "arguments", "name"),
    [
        ("Skill", {"skill": "release"}, "release"),
        ("Skill", {"skill": "release", "args": "of the notes skill"}, "release"),
        ("Skill", {"command": "/release"}, "release"),
        ("Skill", {"skill": "office:tables"}, "office:tables"),
        ("skill", {"name": "release notes"}, "release_notes"),
        ("mcp__hub__use_skill", {"skill_name": "release"}, "release"),
        ("load_skill", {"path": "skills/release/SKILL.md"}, "release"),
        ("read", {"path": "/home/ada/skills/release/SKILL.md"}, "release"),
        ("Read", {"file_path": "C:\\work\\.claude\\skills\\release\\SKILL.md"}, "release"),
        ("read_file", {"path": "release/skill.md", "offset": 1}, "release"),
        ("fs__open", {"path": "release/SKILL.md"}, "release"),
        ("bash", {"command": "cat skills/release/SKILL.md"}, "release"),
        ("bash", {"command": "cd /work && sed -n 1,80p 'my skills/release/SKILL.md' | cat -n"}, "release"),
        ("shell", {"command": ["bash", "-lc", "head -n 40 skills/release/SKILL.md"]}, "release"),
        ("bash", {"command": "cat > skills/release/SKILL.md <<EOF"}, ""),
        ("bash", {"command": "sed -i s/a/b/ skills/release/SKILL.md"}, ""),
        ("bash", {"command": "grep -n tag skills/release/SKILL.md"}, ""),
        ("Agent", {"prompt": "read more in skills/release/SKILL.md", "description": "look"}, ""),
        ("edit", {"path": "skills/release/SKILL.md"}, ""),
        ("ls", {"path": "skills/release/SKILL.md"}, ""),
        ("read", {"path": "SKILL.md"}, ""),
        ("read", {"path": "docs/release.md"}, ""),
        ("Skill", {}, ""),
    ],
)
def test_what_loads_a_skill_and_which(tool: str, arguments: dict[str, object], name: str) -> None:
    assert skill_of(tool, Kinds().of(tool), json.dumps(arguments)) == name


@given(
    st.sampled_from([*sorted(SKILL_TOOLS), "read", "bash"]),
    st.text() | st.sampled_from(['{"skill":', "[" * 5_000, '"x"', "7", "[]"]),
)
@settings(max_examples=200)
def test_no_arguments_are_too_odd_and_a_name_is_part_of_a_handle(tool: str, arguments: str) -> None:
    name = skill_of(tool, TOOL_KINDS.get(tool, ToolKind.INTERMEDIATE), arguments + "SKILL.md")
    assert not name or parse_handle(f"skill:{name}").object == f"skill:{name}"


@given(st.text(max_size=400))
def test_a_skills_name_never_ends_a_handle(text: str) -> None:
    name = skill_name(text)
    assert not name or parse_handle(f"skill:{name}").object == f"skill:{name}"


def test_a_skill_is_what_its_last_load_brought() -> None:
    past = Past(human("go"), *loaded("old words"), *loaded("new words"))
    assert past.raw("skill:release") == "new words"
    told = past.ask(handle="skill:release")
    assert "new words" in told
    assert "old words" not in told
    assert past.ask(handle="SKILL:release".lower()) == told
    assert past.raw("skill:Release") == "new words"


def test_an_earlier_load_is_had_by_its_hash_and_a_foreign_hash_is_refused() -> None:
    past = Past(human("go"), *loaded("old words"), *loaded("new words"))
    assert past.raw(past.handle("release", 0)) == "old words"
    assert past.raw(past.handle("release", 1)) == "new words"
    with pytest.raises(InputError, match="another record"):
        past.raw("skill:release@00000000")


def test_words_of_the_harness_that_came_with_the_result_belong_to_the_load() -> None:
    past = Past(
        human("go"),
        reply(call("Skill", "a", skill="release"), call("read", "b", path="x")),
        results(returned("Launching skill: release", "a"), returned("text", "b"), reminder("# Release")),
        reply("ok"),
        harness("unrelated"),
    )
    assert list(blocks_of(past.index, parse_handle("skill:release"))) == [(1, 0), (2, 0), (2, 2)]
    assert past.raw("skill:release") == "Launching skill: release\n# Release\n"
    assert "# Release" in past.ask(handle="skill:release")


def test_a_skill_whose_words_come_in_the_next_message_has_them() -> None:
    past = Past(
        human("go"), reply(call("Skill", skill="release")), result("Launching skill: release"), harness(BODY), reply("so")
    )
    assert past.raw("skill:release").endswith(BODY + "\n")
    assert "Tag, then push." in past.ask(handle="skill:release")


def test_a_skill_that_is_announced_says_what_comes_next_and_a_reminder_is_not_it() -> None:
    past = Past(
        human("go"),
        reply(call("Skill", skill="release")),
        result("Launching skill: release"),
        harness("<system-reminder>mind the gap</system-reminder>"),
        harness("Approach a release with care."),
        harness("And something else."),
        reply("so"),
    )
    assert past.raw("skill:release") == "Launching skill: release\nApproach a release with care.\n"


def test_of_two_skills_loaded_at_once_each_has_its_own_words() -> None:
    notes = BODY.replace("release", "notes").replace("Tag", "Write")
    past = Past(
        human("go"),
        reply(call("Skill", "a", skill="release"), call("Skill", "b", skill="office:notes")),
        results(returned("Launching skill: release", "a"), returned("Launching skill: notes", "b")),
        harness(notes),
        harness(BODY),
        harness(BODY),
        reply("so"),
    )
    assert "Tag" in past.raw("skill:release")
    assert "Write" in past.raw("skill:office:notes")
    assert "Tag" not in past.raw("skill:office:notes")


def test_a_load_that_failed_or_is_still_open_is_none() -> None:
    past = Past(
        human("go"), reply(call("Skill", skill="release")), result("no such skill", error=True), reply(call("Skill", skill="x"))
    )
    with pytest.raises(InputError, match="there is none yet"):
        past.raw("skill:release")


def test_an_unknown_skill_is_answered_with_the_nearest() -> None:
    past = Past(human("go"), *loaded(name="release"), *loaded(name="office:tables"), *loaded(name="review"))
    with pytest.raises(InputError, match="skill:release") as refused:
        past.ask(handle="skill:relaese")
    assert str(refused.value).index("skill:release") < str(refused.value).index("skill:review")
    with pytest.raises(InputError, match="skill:office:tables"):
        past.ask(handle="skill:tables")
    with pytest.raises(InputError, match="skill:review"):
        past.ask(handle="skill:zzzzzz")


def test_a_recall_of_a_skill_is_a_copy_of_its_load() -> None:
    past = Past(human("go"), *loaded(), reply(call("recall", "r", handle="skill:release")), result("copy", "r"))
    (recalled,) = past.index.recalls.values()
    assert recalled.sources == ("load_skill:1",)


@given(transcripts())
@settings(max_examples=40, deadline=None)
def test_no_conversation_upsets_the_loads(drafts: tuple[Draft, ...]) -> None:
    past = Past(*drafts)
    for span in past.index.spans:
        load = past.index.skills.of(span.ordinal)
        assert load is None or isinstance(past.entries[span.call[0]].blocks[span.call[1]], ToolCall)
