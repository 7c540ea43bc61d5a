import string
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.engine.planners.handoff.sections import END, MOST, SECTIONS, NoBrief, Refusal, Sections, read, settled

BODIES = {
    "goal": "Make the login test stable.",
    "state": "Edited tests/test_login.py: test_login() uses clock.now().\nRan pytest: 1 failed.",
    "in_progress": "clock is not defined.",
    "dead_ends": "Sleeping longer: slower, still flaky.",
    "next_steps": "1. Use the fixture `frozen`.\n2. Run pytest.",
    "constraints": "- Never add a dependency.",
}
GOOD = Sections(**BODIES)


def written(heading: str = "## {}\n", end: str = END, **bodies: str) -> str:
    told = {**BODIES, **bodies}
    return "\n\n".join(heading.format(section.title) + told[section.key] for section in SECTIONS) + f"\n\n{end}"


def reason(reply: str, **options: object) -> NoBrief | None:
    answer = read(reply, **options)  # type: ignore[arg-type]
    return answer.reason if isinstance(answer, Refusal) else None


def test_a_brief_is_read_into_its_sections() -> None:
    assert read(written()) == GOOD


@pytest.mark.parametrize(
    "heading",
    [
        "# {}\n", "### {}\n", "###{}\n", "## {}:\n", "## {} ##\n", "**{}**\n", "**{}:** ", "**{}**: ", "__{}__\n", "{}:\n", "{}: ", "{}\n",
        "## **{}**\n", "## 1. {}\n", "1. **{}**\n", "2) {}\n", "## {} (as of now)\n", "  ## {}  \n", "## 🎯 {}\n", "<{}>\n",
    ],
)  # fmt: skip
def test_headings_may_have_any_form(heading: str) -> None:
    assert read(written(heading)) == GOOD


def test_headings_may_have_other_case_and_other_words() -> None:
    text = (
        written().upper().replace("AND PREFERENCES", "& preferences").replace("STATE AND WORK DONE", "State & What\u2019s Done")
    )
    assert isinstance(read(text), Sections)
    tagged = "\n".join(f"<{section.key}>\n{BODIES[section.key]}\n</{section.key}>" for section in SECTIONS)
    assert read(tagged) == GOOD


@pytest.mark.parametrize(
    "wrapped",
    [
        "```markdown\n{}\n```", "```\n{}\n```", "<brief>\n{}\n</brief>", "<think>hmm, what now?</think>\n{}", "Here is the brief:\n\n{}",
        "Here is the brief:\n```md\n{}\n```",
    ],
)  # fmt: skip
def test_what_is_around_a_brief_is_dropped(wrapped: str) -> None:
    assert read(wrapped.format(written())) == GOOD
    assert read(wrapped.format(written(end="").strip()) + f"\n\n{END}") == GOOD


@pytest.mark.parametrize("end", ["**[End of brief]**", "[END OF BRIEF].", "end of brief"])
def test_the_last_line_may_be_dressed_up(end: str) -> None:
    assert read(written(end=end)) == GOOD


@pytest.mark.parametrize(
    "farewell", ["Let me know how you'd like to proceed!", "Shall I go on?", "If you\u2019d like, I can start now."]
)
def test_a_farewell_after_the_sections_is_dropped(farewell: str) -> None:
    assert read(written(end=farewell)) == GOOD


def test_sections_may_come_in_another_order_and_in_pieces() -> None:
    parts = written(end="").split("\n\n")
    assert read("\n\n".join([*reversed(parts), END])) == GOOD
    again = read("\n\n".join([*parts, "## Next steps\n3. Commit.", END]))
    assert isinstance(again, Sections)
    assert again.next_steps == BODIES["next_steps"] + "\n\n3. Commit."


def test_headings_of_other_names_and_fences_stay_in_their_section() -> None:
    state = "### Files\nauth.py\n```python\n# goal\nx = 1\n```\n- **Next steps** are below.\n3. Constraints: kept."
    told = read(written(state=state))
    assert isinstance(told, Sections)
    assert told.state == state


def test_no_line_of_a_section_is_a_heading_of_the_brief() -> None:
    told = read(written(state="a\n## Files touched\nb"))
    assert isinstance(told, Sections)
    assert told.state == "a\n ## Files touched\nb"
    assert settled(told.state) == told.state


@pytest.mark.parametrize("nothing", ["none", "None.", "N/A", "- none", "(none)", "nothing yet"])
def test_a_section_with_nothing_to_tell_says_none(nothing: str) -> None:
    told = read(written(dead_ends=nothing))
    assert isinstance(told, Sections)
    assert told.dead_ends == "none"


@pytest.mark.parametrize("blank", ["", " \n\t\n", "\0" * 0, END, f"```\n\n```\n{END}", "<think>nothing"])
def test_a_blank_reply_is_refused(blank: str) -> None:
    assert reason(blank) is NoBrief.BLANK


@pytest.mark.parametrize(
    "chat",
    [
        "Sure, here is a summary of our conversation so far: we fixed the login test.",
        "Let me know how you'd like to proceed!",
        "I have fixed the test.\n\nLet me know if you need anything else.",
        "I\u2019ll now edit the file.",
        "Great! The tests pass.",
    ],
)
def test_a_chat_reply_is_refused(chat: str) -> None:
    assert reason(chat) is NoBrief.CHAT


@pytest.mark.parametrize("question", ["Which file do you mean?", "I see the test.\nShould I fix it?", "どのファイルですか\uff1f"])
def test_a_question_is_refused(question: str) -> None:
    assert reason(question) is NoBrief.QUESTION


def test_a_chat_reply_dressed_as_a_brief_is_refused() -> None:
    assert reason(written(goal="Sure, I can help you with that!")) is NoBrief.CHAT
    assert reason("I read all of it. " * 40 + "\n\n" + written()) is NoBrief.CHAT


@pytest.mark.parametrize("key", [section.key for section in SECTIONS][:-1])
def test_a_brief_without_one_of_its_sections_is_refused_by_name(key: str) -> None:
    title = next(section.title for section in SECTIONS if section.key == key)
    answer = read(written().replace(f"## {title}\n{BODIES[key]}\n\n", ""))
    assert isinstance(answer, Refusal)
    assert answer.reason is NoBrief.MISSING
    assert title in answer.detail


def test_a_section_without_a_word_is_refused() -> None:
    assert reason(written(next_steps="")) is NoBrief.EMPTY
    assert reason(written(goal="none")) is NoBrief.EMPTY
    assert reason(written(state="N/A")) is NoBrief.EMPTY


def cut_short() -> Iterator[str]:
    whole = written(end="")
    yield whole[: whole.index("## Next")]
    yield whole.replace("- Never add a dependency.", "```\nmake te")


@pytest.mark.parametrize("part", tuple(cut_short()))
def test_a_brief_that_was_cut_short_is_refused(part: str) -> None:
    assert reason(part) is NoBrief.CUT_SHORT


def test_the_last_line_may_be_missing() -> None:
    assert read(written(end="")) == GOOD
    assert isinstance(read(written(constraints="- no dependency", end="")), Sections)


def test_a_copy_of_the_transcript_is_refused() -> None:
    lines = [f"the tool returned the line number {n} of a long file" for n in range(40)]
    transcript = "§§ user:1\nfix it\n§§ result of bash:1\n" + "\n".join(lines)
    assert reason(written(state="\n".join(lines)), transcript=transcript) is NoBrief.COPY
    assert reason(written(state="§§ user:1\na\n§§ assistant\nb\n§§ call read:1")) is NoBrief.COPY
    assert reason("§§ user:1\na\n§§ assistant\nb\n§§ call read:1") is NoBrief.COPY
    assert read(written(state="\n".join(f"- {line}" for line in lines[:3])), transcript=transcript) != Refusal(
        reason=NoBrief.COPY
    )


def test_a_brief_has_a_size() -> None:
    assert reason(written(state="x " * 7_000)) is NoBrief.TOO_LONG
    assert reason(written(state="x " * 5_500, next_steps="x " * 5_500, goal="x " * 5_500)) is NoBrief.TOO_LONG
    assert reason("a" * 10 * MOST) is NoBrief.TOO_LONG
    assert (
        reason(written(goal="a", state="b", in_progress="c", dead_ends="d", next_steps="e", constraints="f")) is NoBrief.TOO_SHORT
    )


PIECES = st.one_of(
    st.text(),
    st.text(alphabet=st.characters(categories=("Cs", "Cc", "Lu", "Zs"))),
    st.sampled_from([
        *(f"## {section.title}\n" for section in SECTIONS), *BODIES.values(), END, "```", "```\n", "<think>", "<goal>", "</goal>", "**",
        "Sure, here is", "§§ user:1\n", ": ", "\n", "\r\n", "?", "1. ", "none", "\0", "\ud800",
    ]),
)  # fmt: skip


@given(pieces=st.lists(PIECES, max_size=24), transcript=st.text())
def test_no_reply_raises(pieces: list[str], transcript: str) -> None:
    answer = read("".join(pieces), transcript=transcript)
    if isinstance(answer, Sections):
        for section in SECTIONS:
            body = getattr(answer, section.key)
            assert body.strip()
            assert body.encode()  # valid Unicode
            assert settled(body) == body
    else:
        assert answer.reason in NoBrief


@pytest.mark.parametrize(
    "bomb", ["(" * 90_000, "*" * 90_000, "<" * 90_000, "#" * 90_000, "**a" * 30_000, "` " * 45_000, "\n" * 90_000, "##\n" * 30_000,
             "Goal:" * 18_000, "## Goal\n" * 11_000, "a " * 45_000, "```\n" * 22_000, string.printable * 900]
)  # fmt: skip
def test_a_hostile_reply_is_harmless(bomb: str) -> None:
    assert isinstance(read(bomb), Refusal)
    assert isinstance(read(written(state=bomb)), Refusal | Sections)
