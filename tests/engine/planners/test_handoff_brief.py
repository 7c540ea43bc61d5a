from hypothesis import given
from hypothesis import strategies as st

from tenure.engine.planners.handoff.brief import HandoffBrief, brief, parsed
from tenure.engine.planners.handoff.facts import FailedCall, HandoffFacts, Quoted, Touched
from tenure.engine.planners.handoff.sections import SECTIONS, Sections, settled
from tenure.engine.planners.handoff.transcript import OPENING
from tenure.engine.record.quotation import without_marks

TOLD = Sections(goal="Fix it.", state="Done half.", next_steps="The other half.")

lines = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["## Goal", "## Rules (verbatim)", "## x", "```", "````", "- a (edited 1)", OPENING, "none", " ", "a · b", "# y"]
    ),
)
bodies = st.lists(lines, max_size=5).map("\n".join)
labels = st.from_regex(r"[a-z:@]{1,9}( [a-z·()]{1,6}){0,3}", fullmatch=True)
paths = st.from_regex(r"[a-z/.()]{1,12}( \([a-z]{1,4} [0-9]\))?", fullmatch=True)
counts = st.dictionaries(st.sampled_from(["edited", "written", "created"]), st.integers(1, 99), min_size=1).map(
    lambda found: tuple(sorted(found.items()))
)
quoted = st.builds(Quoted, label=labels, text=bodies)
facts = st.builds(
    HandoffFacts,
    files=st.lists(st.builds(Touched, path=paths, counts=counts), min_size=1, max_size=4).map(tuple),
    unlisted=st.integers(0, 9),
    failures=st.lists(
        st.builds(FailedCall, handle=st.just("bash:4@3fa9"), target=labels, text=bodies), max_size=3
    ).map(tuple),
    rules=st.lists(quoted, max_size=3).map(tuple),
)  # fmt: skip
sections = st.builds(Sections, **{section.key: bodies.map(settled) for section in SECTIONS})


def test_a_brief_opens_by_saying_that_history_was_handed_off_and_what_it_is() -> None:
    text = brief(TOLD, HandoffFacts())
    assert text.startswith(OPENING)
    assert "handed off" in OPENING
    assert "source of truth" in OPENING


def test_what_code_has_nothing_to_say_about_is_left_out() -> None:
    assert [line for line in brief(TOLD, HandoffFacts()).split("\n") if line.startswith("## ")] == [
        f"## {s.title}" for s in SECTIONS
    ]


def test_rules_and_errors_stand_in_it_word_for_word() -> None:
    text = "line one\n```\n## Goal\n  spaced\n````"
    for known in (
        HandoffFacts(rules=(Quoted(label="AGENTS.md", text=text),)),
        HandoffFacts(failures=(FailedCall(handle="bash:1@0a0a", target="make", text=text),)),
    ):
        assert f"\n`````\n{text}\n`````" in brief(TOLD, known)


def unmarked(told: Sections) -> Sections:
    """Sections in which nothing passes for the beginning of a note of ours."""
    return Sections(**{key: without_marks(getattr(told, key)) for key in Sections.__struct_fields__})


@given(told=sections, known=facts)
def test_a_brief_reads_back_into_what_it_was_made_of(told: Sections, known: HandoffFacts) -> None:
    assert parsed(brief(told, known)) == HandoffBrief(sections=unmarked(told), facts=known)
    assert brief(told, known) == brief(told, known)


def test_other_texts_are_no_briefs() -> None:
    assert parsed("") is None
    assert parsed("please read: " + OPENING) is None
    assert parsed("[handoff]") is None


@given(
    parts=st.lists(
        st.one_of(bodies, st.text(), st.just("## Rules (verbatim)"), st.just("## Files touched (recorded by program)"))
    )
)
def test_a_damaged_brief_raises_nothing(parts: list[str]) -> None:
    assert parsed(OPENING + "\n".join(parts)) is not None
