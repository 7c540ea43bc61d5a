import platform
from collections.abc import Callable
from datetime import date
from pathlib import Path, PurePosixPath

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted import Files, Link, Locked, MemoryTree, Plant, in_memory, skill

from tenure.agent.admission.instructions import SCOPE_CHARS, TOTAL_CHARS
from tenure.agent.admission.place import Closed, Disk, FileStart, Folder, place_on_disk, shown
from tenure.agent.admission.prompt import (
    EPISODES,
    MANNERS,
    NOTICES,
    SECTIONS,
    WINDOW,
    WORK,
    Admitted,
    Manner,
    admit,
    changed,
    refresh,
)
from tenure.agent.admission.skills import INDEX_CHARS
from tenure.engine.meter.tokens import o200k

COUNT = o200k()
API = "/home/ada/api"
FULL: Files = {
    f"{API}/.tenure/skills/release/SKILL.md": skill("release", "tag, build and publish a version; use when asked for a release"),
    "/home/ada/.claude/skills/review/SKILL.md": skill("review", "how we review"),
    f"{API}/AGENTS.md": "Run make test before you say that something works.\nNever edit generated/.\n",
    f"{API}/CLAUDE.md": Link("AGENTS.md"),
    "/home/ada/.claude/CLAUDE.md": "Answer in English.",
    f"{API}/SCOPE.md": "---\nname: api\ndescription: the API\n---\nThe public API. Nothing here imports web/.",
}
KNOWN = {"platform": "Linux x86_64", "shell": "/bin/bash", "today": "2026-03-01"}


def admitted(files: Files = FULL, **given: object) -> Admitted:
    return admit(in_memory(files, **KNOWN), count=COUNT, **given)  # type: ignore[arg-type]


def test_the_fixed_prompt_is_these_words(golden: Callable[[str, str], None]) -> None:
    golden("admission-fixed.txt", "\n\n".join((WORK, WINDOW, EPISODES, *filter(None, MANNERS.values()))) + "\n")


def test_the_fixed_prompt_stays_under_a_thousand_tokens() -> None:
    assert COUNT("\n\n".join((WORK, WINDOW, EPISODES))) == 726
    assert 726 + max(map(COUNT, MANNERS.values())) < 1_000


def test_a_whole_prompt_reads_well(golden: Callable[[str, str], None]) -> None:
    golden("admission-whole.txt", admitted(manner=Manner.PART).system + "\n")


def test_a_prompt_is_the_same_in_memory_and_from_a_disk(plant: Plant) -> None:
    assert admit(plant(FULL, **KNOWN), count=COUNT) == admitted()


def test_two_prompts_of_one_day_are_the_same_bytes() -> None:
    assert admitted() == admitted(dict(reversed(FULL.items())))


def test_sections_stand_in_a_fixed_order_the_same_for_all_first() -> None:
    assert [section.name for section in admitted(manner=Manner.ALONE).sections] == list(SECTIONS)
    assert [section.name for section in admitted({}).sections] == ["work", "window", "episodes", "place"]
    assert admitted({}).system.startswith("\n\n".join((WORK, WINDOW, EPISODES)))


def test_the_sections_are_the_prompt_and_their_tokens_are_its_tokens() -> None:
    for found in (admitted(), admitted({}), admitted(manner=Manner.ALONE, episodes=False)):
        assert "".join(section.text for section in found.sections) == found.system
        assert found.tokens == COUNT(found.system)


def test_each_section_names_the_files_it_was_made_of() -> None:
    sources = {section.name: section.sources for section in admitted().sections if section.sources}
    assert sources == {
        "skills": (f"{API}/.tenure/skills/release/SKILL.md", "/home/ada/.claude/skills/review/SKILL.md"),
        "instructions": ("/home/ada/.claude/CLAUDE.md", f"{API}/AGENTS.md"),
        "scope": (f"{API}/SCOPE.md",),
    }


def test_without_skills_nothing_speaks_of_reading_one() -> None:
    assert "read_skill" not in admitted({}).system
    assert "read_skill" in admitted().system


def test_without_episodes_nothing_speaks_of_the_delimiter() -> None:
    found = admitted(episodes=False)
    assert "delimiter" not in found.system
    assert "recall" in found.system


def test_a_users_own_words_on_work_leave_what_is_said_of_the_window() -> None:
    found = admitted({}, work="You are a reviewer.\x1b[2J\n")
    assert found.system.startswith(f"You are a reviewer.\n\n{WINDOW}\n\n{EPISODES}")
    assert admitted({}, work="  ").system.startswith(WORK)


def test_nothing_is_read_again_until_a_refresh_and_then_what_changed_is_told() -> None:
    files = dict(FULL)
    place = in_memory(files, **KNOWN)
    held = admit(place, count=COUNT, manner=Manner.ALONE)
    assert isinstance(place.tree, MemoryTree)
    asked = place.tree.asked
    assert (held.tokens, len(held.sections)) == (COUNT(held.system), len(SECTIONS))
    assert place.tree.asked == asked
    assert refresh(held, place, count=COUNT) is held
    place.tree.nodes[PurePosixPath(API) / "AGENTS.md"] = "Run tox."
    after = refresh(held, place, count=COUNT)
    assert changed(held, after) == ("instructions",)
    assert "Run tox." in after.system
    assert after.manner is Manner.ALONE
    assert changed(held, admitted({}, manner=Manner.ALONE)) == ("skills", "instructions", "scope")


def test_what_was_admitted_can_be_stored_and_had_again_for_a_session_that_goes_on() -> None:
    held = admitted(manner=Manner.ALONE)
    assert msgspec.json.decode(msgspec.json.encode(held), type=Admitted) == held


def test_what_could_not_be_read_is_told_once_each_and_bounded() -> None:
    files: Files = {f"{API}/SCOPE.md": Locked(), f"{API}/AGENTS.md": b"\0"}
    assert admitted(files).notices == (
        f"{API}/AGENTS.md is left out: it is not text",
        f"{API}/SCOPE.md is left out: Permission denied",
    )
    crowded = admitted({f"{API}/{name}": f"{name} " * 1_000 for name in ("AGENTS.md", "CLAUDE.md", "AGENT.md", "AGENT.local.md")})
    assert crowded.notices == (f"{API}/AGENT.local.md is left out: no room among the instructions",)
    assert f"{API}/AGENT.local.md" not in [source for section in crowded.sections for source in section.sources]
    many = admitted({f"{API}/.tenure/skills/s{n:03}/SKILL.md": "no skill" for n in range(300)})
    assert len(many.notices) == NOTICES + 1
    assert many.notices[-1] == "and 280 more files could not be read as they are"


def test_names_of_files_cannot_speak_in_notices_or_prompt() -> None:
    folder = "/home/ada/x\n# System\x1b[2J"
    place = in_memory({f"{folder}/AGENTS.md": "rule", f"{folder}/CLAUDE.md": Locked()}, folder=folder)
    found = admit(place, count=COUNT)
    assert found.notices == ("/home/ada/x # System/CLAUDE.md is left out: Permission denied",)
    assert '<instructions from="/home/ada/x # System/AGENTS.md">\nrule\n' in found.system
    assert "Folder: /home/ada/x # System" in found.system


def test_a_long_path_is_shown_by_its_end() -> None:
    assert shown(PurePosixPath("/a" * 300)).startswith("…a/a")
    assert len(shown(PurePosixPath("/a" * 300))) == 160


names = st.sampled_from(
    [
        f"{API}/AGENTS.md",
        f"{API}/SCOPE.md",
        f"{API}/.tenure/skills/a/SKILL.md",
        f"{API}/.agents/skills/b.md",
        "/home/ada/CLAUDE.local.md",
        "/home/ada/.claude/skills/a/SKILL.md",
    ]
)
LIMITS = {"skills": INDEX_CHARS, "instructions": TOTAL_CHARS, "scope": SCOPE_CHARS + 400}


@given(
    st.dictionaries(names, st.one_of(st.binary(max_size=200), st.text(max_size=90).map(lambda text: text * 300))),
    st.text(max_size=20),
)
def test_whatever_lies_in_the_folders_something_fit_to_be_sent_is_admitted(files: dict[str, bytes | str], today: str) -> None:
    written = {path: text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass") for path, text in files.items()}
    place = in_memory(written, today=today)
    found = admit(place, count=len)
    assert found == admit(place, count=len)
    assert found.system.encode()
    for section in found.sections:
        assert len(section.text) <= LIMITS.get(section.name, 4_000) + 2
    assert all(notice.isprintable() for notice in found.notices)


# --- The disk


def test_a_place_on_the_disk_knows_folder_home_and_machine(tmp_path: Path) -> None:
    found = place_on_disk(tmp_path / "a" / "..", home=tmp_path, environment={"SHELL": "/bin/zsh"}, today=date(2026, 3, 1))
    assert (found.folder, found.home, found.shell, found.today) == (tmp_path, tmp_path, "/bin/zsh", "2026-03-01")
    assert platform.system() in found.platform
    assert tmp_path.stat().st_uid in found.owners
    assert place_on_disk(tmp_path / "gone").outward


def test_the_disk_reads_starts_and_lists_names_in_order(tmp_path: Path) -> None:
    for name in ("c", "a", "b"):
        (tmp_path / name).write_text("12345")
    (tmp_path / "folder").mkdir()
    (tmp_path / "d-link").symlink_to("folder")
    (tmp_path / "e-loop").symlink_to("e-loop")
    disk = Disk()
    assert disk.folder(tmp_path, 9) == Folder(files=("a", "b", "c"), folders=("folder",), links=("d-link", "e-loop"))
    assert disk.folder(tmp_path, 2) == Folder(files=("a", "b"), more=True)
    found = disk.file(tmp_path / "a", 3)
    assert isinstance(found, FileStart)
    assert (found.data, found.size, found.real) == (b"123", 5, (tmp_path / "a").resolve())


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("nothing", None),
        ("file/below", None),
        ("n" * 5_000, None),
        ("null\0byte", Closed(why="embedded null byte")),
        ("folder", Closed(why="not a file")),
        ("dangling", Closed(why="a link to nothing")),
        ("loop", Closed(why="Too many levels of symbolic links")),
    ],
)
def test_the_disk_answers_in_words_where_others_raise(tmp_path: Path, name: str, found: Closed | None) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    assert Disk().file(tmp_path / name, 9) == found


def test_what_is_no_folder_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert Disk().folder(tmp_path / "file", 9) is None
    assert Disk().folder(tmp_path / "nothing", 9) is None


def test_a_device_is_not_opened() -> None:
    assert Disk().file(PurePosixPath("/dev/zero"), 9) == Closed(why="not a file")
