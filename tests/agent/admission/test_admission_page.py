from pathlib import Path

import pytest

from tenure.agent import tail_notes
from tenure.agent.admission import git_note, git_program, instructions, place, skills
from tenure.agent.admission.prompt import EPISODES, SECTIONS, WINDOW, WORK
from tenure.engine.meter.tokens import o200k
from tenure.engine.view.guard import ACTIVE_SHARE

PAGE = " ".join((Path(__file__).parents[3] / "docs/admission.md").read_text(encoding="utf-8").split())


@pytest.mark.parametrize(
    "words",
    [
        f"under 1,000 tokens together; {o200k()(f'{WORK}{chr(10) * 2}{WINDOW}{chr(10) * 2}{EPISODES}')} now",
        f"{skills.INDEX_CHARS:,} characters, {skills.DESCRIPTION_CHARS} a description",
        f"at most {skills.BODY_CHARS:,} characters",
        f"{instructions.FILE_CHARS:,} characters a file, {instructions.TOTAL_CHARS:,} in all",
        f"| {instructions.SCOPE_CHARS:,} characters |",
        f"the first {git_note.LISTED} files, at most {git_note.NOTE_CHARS:,} characters",
        f"After {git_program.TIMEOUT_S:g} seconds git is stopped",
        f"of {tail_notes.OPEN_CALLS} replies",
        ", ".join(f"`{folder}`" for folder in skills.FOLDERS[:2]) + f" and `{skills.FOLDERS[2]}`",
    ],
)
def test_a_figure_of_the_page_is_the_codes(words: str) -> None:
    assert words in PAGE


def test_the_page_names_every_section_in_order() -> None:
    places = [PAGE.index(f"`{name}`") for name in SECTIONS]
    assert places == sorted(places)


def test_what_the_page_says_in_words_is_so() -> None:
    assert ACTIVE_SHARE == 0.5
    assert all(f"`{suffix}`" in PAGE for suffix in place.MARKDOWN)
    assert all(f"`{folder}`" in PAGE for folder in instructions.IN_HOME)
