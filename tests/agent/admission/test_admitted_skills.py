from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted import Link, Locked, Owned, Plant, in_memory, is_superuser, on_disk, skill

from tenure.agent.admission.place import Place
from tenure.agent.admission.skills import (
    BODY_CHARS,
    DESCRIPTION_CHARS,
    INDEX_CHARS,
    MOST,
    FoundSkills,
    Skill,
    find_skills,
    read_skill,
    skills_section,
)
from tenure.engine.record.skills import skill_name

HERE = "/home/ada/api/.tenure/skills"


def names(skills: FoundSkills) -> list[str]:
    return [each.name for each in skills.found]


def described(skills: FoundSkills) -> dict[str, str]:
    return {each.name: each.description for each in skills.found}


def read(place: Place, name: str) -> str:
    told = read_skill(find_skills(place).found, name, place)
    assert not told.error, told.text
    return told.text


def refused(place: Place, name: str) -> str:
    told = read_skill(find_skills(place).found, name, place)
    assert told.error
    return told.text


def test_skills_are_listed_by_name_with_the_file_they_come_from(plant: Plant) -> None:
    place = plant({f"{HERE}/zeta/SKILL.md": skill("zeta"), f"{HERE}/alpha/SKILL.md": skill("alpha")})
    found = find_skills(place)
    assert names(found) == ["alpha", "zeta"]
    assert found.found[0].path == f"{HERE}/alpha/SKILL.md"
    assert not found.notices


def test_the_nearest_skill_of_a_name_shadows_the_others_and_home_is_looked_into_last(plant: Plant) -> None:
    place = plant(
        {
            "/srv/mono/api/.claude/skills/release/SKILL.md": skill("release", "of the package"),
            "/srv/mono/.agents/skills/release/SKILL.md": skill("release", "of the whole"),
            "/srv/mono/.agents/skills/review/SKILL.md": skill("review", "of the whole"),
            "/home/ada/.claude/skills/Review/SKILL.md": skill("Review", "of ada"),
            "/home/ada/.tenure/skills/notes/SKILL.md": skill("notes", "of ada"),
        },
        folder="/srv/mono/api",
    )
    found = find_skills(place)
    assert described(found) == {"notes": "of ada", "release": "of the package", "review": "of the whole"}
    assert [each.distance for each in found.found if each.name in ("release", "review")] == [0, 1]


def test_the_walk_ends_at_home_when_the_folder_lies_in_it() -> None:
    place = in_memory({"/home/.tenure/skills/other/SKILL.md": skill("other"), "/.tenure/skills/top/SKILL.md": skill("top")})
    assert find_skills(place) == FoundSkills()
    assert [path.as_posix() for path in place.outward] == ["/home/ada/api", "/home/ada"]
    apart = in_memory({}, folder="/srv/api")
    assert [path.as_posix() for path in apart.outward] == ["/srv/api", "/srv", "/", "/home/ada"]


def test_our_own_convention_counts_before_the_others_in_one_folder(plant: Plant) -> None:
    place = plant(
        {
            "/home/ada/api/.agents/skills/x/SKILL.md": skill("x", "agents"),
            "/home/ada/api/.claude/skills/x/SKILL.md": skill("x", "claude"),
            "/home/ada/api/.tenure/skills/x.md": skill("x", "tenure"),
        }
    )
    assert described(find_skills(place)) == {"x": "tenure"}


@pytest.mark.parametrize(
    ("path", "text", "notice"),
    [
        ("a/SKILL.md", "# Just a text", "it has no frontmatter"),
        ("a/SKILL.md", "---\nname: a\ndescription: d\n", "its frontmatter has no end"),
        ("a/SKILL.md", "---\nname: a\n---\nbody", "it has no description"),
        ("a/SKILL.md", "---\nname: a\ndescription:   \n---\n", "it has no description"),
        ("a/SKILL.md", "---\nname: ../../etc/passwd\ndescription: d\n---\n", "its name is '../../etc/passwd'"),
        ("a/SKILL.md", "---\nname: '  . '\ndescription: d\n---\n", "expected letters, digits and hyphens"),
        ("a/SKILL.md", b"---\nname: a\0\ndescription: d\n---\n", "it is not text"),
        ("a/SKILL.md", "---\nname: a\ndescription: d\n" + "x: y\n" * 9_000 + "---\n", "its frontmatter has no end"),
        ("a/SKILL.md/inner", "a folder of that name", "not a file"),
        ("a/SKILL.md", Link("SKILL.md"), "Too many levels of symbolic links"),
        ("a", Link("a"), "Too many levels of symbolic links"),
        ("a/SKILL.md", Link("/home/ada/.ssh/id_rsa"), "id_rsa, which is no text"),
        ("a.txt", skill("a"), ""),
        ("README.md", "# What lies here", ""),
        ("a/b/SKILL.md", skill("a"), ""),
    ],
)
def test_what_is_no_skill_is_passed_over_and_a_sound_one_beside_it_still_counts(
    plant: Plant, path: str, text: bytes | str | Link, notice: str
) -> None:
    place = plant({f"{HERE}/{path}": text, f"{HERE}/sound/SKILL.md": skill("sound"), "/home/ada/.ssh/id_rsa": "key"})
    found = find_skills(place)
    assert names(found) == ["sound"]
    assert len(found.notices) == bool(notice)
    assert all(notice in each for each in found.notices)


@pytest.mark.skipif(is_superuser(), reason="no file is closed to this user")
def test_a_skill_that_may_not_be_read_is_a_notice_on_the_disk_too(tmp_path: Path) -> None:
    assert "Permission denied" in find_skills(on_disk(tmp_path, {f"{HERE}/a/SKILL.md": Locked()})).notices[0]


def test_a_skill_that_may_not_be_read_is_a_notice() -> None:
    found = find_skills(in_memory({f"{HERE}/a/SKILL.md": Locked()}))
    assert found.notices == (f"skill {HERE}/a/SKILL.md is left out: Permission denied",)


def test_frontmatter_is_read_as_leniently_as_others_read_it(plant: Plant) -> None:
    texts = {
        "q": '---\nname: "q"\n# a comment\ndescription: usage: run it twice\nlicense: MIT\n---\n',
        "f": "---\nname: f\ndescription: >-\n  goes on\n  and on\nmetadata:\n  author: ada\n---\n",
        "l": "---\r\nname: l\r\ndescription: first\r\n  second\r\n---\r\nbody",
        "b": "\ufeff---\nname: b\ndescription: |\n  one\n\n  two\n---\n",
        "s": "---\ndescription: 'it''s here'\n---\n",
    }
    place = plant({f"{HERE}/{name}/SKILL.md": text for name, text in texts.items()})
    assert described(find_skills(place)) == {
        "b": "one two",
        "f": "goes on and on",
        "l": "first second",
        "q": "usage: run it twice",
        "s": "it's here",
    }


def test_without_skills_there_is_no_section(plant: Plant) -> None:
    found = find_skills(plant({"/home/ada/api/a.py": "1"}))
    assert (found, skills_section(found.found)) == (FoundSkills(), "")
    assert refused(plant({}), "any") == "read_skill: there are no skills here"


def test_a_skill_that_only_people_may_ask_for_is_not_listed_and_can_be_read(plant: Plant) -> None:
    text = skill("deploy").replace("---\nDo", "disable-model-invocation: true\n---\nDo")
    place = plant({f"{HERE}/deploy/SKILL.md": text})
    assert skills_section(find_skills(place).found) == ""
    assert read(place, "deploy").endswith("Do it.")


def test_a_description_is_one_harmless_line_of_bounded_length(plant: Plant) -> None:
    place = plant({f"{HERE}/a/SKILL.md": skill("a", "\x1b[31mred\x07\u202e " + "word " * 200)})
    line = skills_section(find_skills(place).found).splitlines()[-1]
    assert line.startswith("- a: red word word")
    assert line.isprintable()
    assert len(line) <= len("- a: ") + DESCRIPTION_CHARS
    assert line.endswith(" word…")


def test_the_farthest_skills_are_left_out_first_and_named() -> None:
    near = {f"{HERE}/zz-{n:02}/SKILL.md": skill(f"zz-{n:02}", "d" * 250) for n in range(20)}
    far = {f"/home/ada/.claude/skills/aa-{n:02}/SKILL.md": skill(f"aa-{n:02}", "d" * 250) for n in range(30)}
    section = skills_section(find_skills(in_memory(near | far)).found)
    assert len(section) <= INDEX_CHARS
    lines = section.splitlines()
    listed = [line.split(":")[0].removeprefix("- ") for line in lines if line.startswith("- ")]
    assert listed == sorted(listed)
    assert [name for name in listed if name.startswith("zz")] == [f"zz-{n:02}" for n in range(20)]
    left_out = 50 - len(listed)
    assert lines[-1].startswith(f"[no room for {left_out} more; `read_skill` reads them too: aa-")
    assert lines[-1].count("aa-") == left_out


def test_a_folder_of_countless_skills_is_looked_at_in_part_and_says_so() -> None:
    found = find_skills(in_memory({f"{HERE}/s{n:04}.md": skill(f"s{n:04}", "d" * 90) for n in range(MOST + 1)}))
    assert len(found.found) == MOST
    assert found.notices == (f"skills in {HERE}: only the first {MOST} names are looked at",)
    section = skills_section(found.found)
    assert len(section) <= INDEX_CHARS
    assert section.endswith(", and so on]")


def test_a_body_comes_on_demand_without_its_frontmatter_and_with_its_folder(plant: Plant) -> None:
    place = plant({f"{HERE}/release/SKILL.md": skill("release", body="# Release\n\nTag, then push.")})
    assert read(place, "release") == f"Base directory for this skill: {HERE}/release\n\n# Release\n\nTag, then push."
    assert read(place, " Release ") == read(place, "release")


def test_a_name_with_spaces_is_known_as_objects_know_it(plant: Plant) -> None:
    place = plant({f"{HERE}/pdf/SKILL.md": skill("PDF Processing")})
    assert names(find_skills(place)) == ["PDF_Processing"]
    assert read(place, "PDF Processing") == read(place, "pdf_processing")


def test_an_unknown_name_is_answered_with_those_there_are(plant: Plant) -> None:
    place = plant({f"{HERE}/{name}/SKILL.md": skill(name) for name in ("release", "review")})
    assert refused(place, "relase") == "read_skill: found 'relase': there is no such skill, expected one of release, review"


@pytest.mark.parametrize("name", ["../release", "/etc/passwd", "release/SKILL.md", "..\\release", "release\0"])
def test_a_skill_is_never_read_by_a_path(plant: Plant, name: str) -> None:
    place = plant({f"{HERE}/release/SKILL.md": skill("release")})
    assert "a skill is read by its name, not by a path, expected one of release" in refused(place, name)


def test_a_skill_that_is_gone_or_has_become_something_else_is_refused_in_words() -> None:
    before = in_memory({f"{HERE}/release/SKILL.md": skill("release")})
    known = find_skills(before).found
    gone = read_skill(known, "release", in_memory({}))
    assert (gone.text, gone.error) == (f"read_skill: {HERE}/release/SKILL.md cannot be read now (it is gone)", True)
    led_away = read_skill(known, "release", in_memory({f"{HERE}/release/SKILL.md": Link("/etc/shadow"), "/etc/shadow": "root"}))
    assert "a link to /etc/shadow, which is no text" in led_away.text


def test_a_skill_without_a_body_says_so(plant: Plant) -> None:
    place = plant({f"{HERE}/a/SKILL.md": skill("a", "says it all", body=" \n")})
    assert read(place, "a") == "read_skill: the skill 'a' has nothing to read beside its description: says it all"


def test_a_gigantic_body_is_cut_and_says_where_the_rest_is(plant: Plant) -> None:
    place = plant({f"{HERE}/a/SKILL.md": skill("a", body="word\n" * 200_000)})
    text = read(place, "a")
    assert len(text) < BODY_CHARS + 500
    assert "the file has 1,000,0" in text.splitlines()[-1]
    assert text.endswith("/a/SKILL.md for the rest]")


def test_above_the_folder_only_files_of_people_who_are_believed_count() -> None:
    strange = Owned(skill("strange").encode(), 1_001)
    files = {"/srv/.tenure/skills/strange/SKILL.md": strange, "/srv/api/.tenure/skills/own/SKILL.md": strange}
    found = find_skills(in_memory(files, folder="/srv/api", owners=frozenset({0, 1_000})))
    assert [PurePosixPath(each.path).parts[2] for each in found.found] == ["api"]
    assert "it belongs to another user" in found.notices[0]
    assert len(find_skills(in_memory(files, folder="/srv/api")).found) == 1  # one shadows the other where nobody is asked for


@given(st.binary(max_size=400), st.binary(max_size=40))
def test_any_bytes_in_any_file_never_raise(data: bytes, head: bytes) -> None:
    fenced = b"---\nname: " + head + b"\ndescription: d\n---\n" + data
    place = in_memory({f"{HERE}/a/SKILL.md": data, f"{HERE}/b/SKILL.md": fenced, f"{HERE}/c.md": data})
    found = find_skills(place)
    assert found == find_skills(place)
    assert len(skills_section(found.found)) <= INDEX_CHARS
    for each in found.found:
        assert each.name == skill_name(each.name), "an object could not be called so"
        assert not read_skill(found.found, each.name, place).error


described_skills = st.builds(
    Skill,
    name=st.from_regex(r"[a-z]{1,72}", fullmatch=True),
    description=st.text(max_size=400),
    path=st.just("/x"),
    distance=st.integers(0, 9),
)


@given(st.lists(described_skills, max_size=200))
def test_the_index_never_exceeds_its_cap_and_drops_nothing_near_for_something_far(skills: list[Skill]) -> None:
    section = skills_section(skills)
    assert len(section) <= INDEX_CHARS
    shown = [each for each in skills if f"- {each.name}: {each.description}\n" in section + "\n"]
    left_out = [each for each in skills if each not in shown]
    assert not left_out or max((each.distance for each in shown), default=0) <= min(each.distance for each in left_out)


@pytest.mark.parametrize("link", ["skills/evil", "skills/evil/SKILL.md", "skills"])
def test_a_skill_behind_a_link_out_of_the_workspace_is_said_and_not_read(link: str) -> None:
    away = {"skills/evil": "/srv/evil", "skills/evil/SKILL.md": "/srv/evil/SKILL.md", "skills": "/srv"}[link]
    base = HERE.removesuffix("/skills")
    place = in_memory({f"{base}/{link}": Link(away), "/srv/evil/SKILL.md": skill("evil")})
    found = find_skills(place)
    assert found.found == ()
    assert any("a link out of the workspace, to /srv/evil/SKILL.md" in notice for notice in found.notices)
