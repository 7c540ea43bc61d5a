"""What holds of the detector whatever the session: nothing removed, nothing missed; more removed, never fewer misses."""

from hypothesis import given
from hypothesis import strategies as st
from scenes import commit_line, drops, entry_lines, replayed, session

from tenure.engine.record.entry import Draft
from tenure.engine.view.edit import Restore
from tenure.lab.events import HarmLine
from tenure.lab.harm.watch import after_cut, watched
from tenure.testing.builders import call, human, reply, result, thinking

WORDS = st.sampled_from(
    "src/a/one.py src/a/two.py parse_row nextRow 48213 run-2931-77ab https://example.org/x the_quick_brown = fox(over) plain words".split()
)
TEXT = st.lists(WORDS, min_size=1, max_size=6).map(" ".join) | st.lists(
    st.lists(WORDS, min_size=4, max_size=6).map(" ".join), min_size=1, max_size=3
).map("\n".join)


@st.composite
def exchanges(draw: st.DrawFn) -> list[Draft]:
    drafts: list[Draft] = [human("go")]
    for _ in range(draw(st.integers(2, 7))):
        match draw(st.sampled_from(["read", "edit", "say", "think"])):
            case "read":
                drafts += [reply(call("read", file_path=draw(WORDS))), result(draw(TEXT))]
            case "edit":
                drafts += [
                    reply(call("edit", file_path="src/a/one.py", old_string=draw(TEXT), new_string=draw(TEXT))),
                    result("done"),
                ]
            case "say":
                drafts.append(reply(draw(TEXT)))
            case _:
                drafts.append(reply(thinking(draw(TEXT)), draw(TEXT)))
    return drafts


@st.composite
def cuts(draw: st.DrawFn) -> tuple[list[Draft], int, list[tuple[int, int]], list[tuple[int, int]]]:
    """A session, a cut, what is removed there, and more than that."""
    drafts = draw(exchanges())
    entries = draw(st.integers(1, len(drafts)))
    places = [(entry, block) for entry, draft in enumerate(drafts[:entries]) for block in range(len(draft.blocks))]
    more = draw(st.lists(st.sampled_from(places), unique=True))
    return drafts, entries, [place for place in more if draw(st.booleans())], more


def keys(harms: list[HarmLine]) -> set[tuple[int, int, str, str]]:
    return {(harm.entry, harm.block, harm.part, harm.field + harm.form) for harm in harms if harm.verdict != "visible"}


def misses(drafts: list[Draft], entries: int, removed: list[tuple[int, int]]) -> list[HarmLine]:
    return [harm for harm in after_cut(session(*drafts), entries, removed) if harm.verdict != "visible"]


@given(exchanges(), st.integers(0, 8))
def test_where_nothing_is_removed_nothing_is_needed(drafts: list[Draft], entries: int) -> None:
    assert list(after_cut(session(*drafts), entries, [])) == []
    assert not [line for line in watched(entry_lines(*drafts)) if isinstance(line, HarmLine)]


@given(cuts())
def test_where_all_is_restored_nothing_is_missed(cut: tuple) -> None:
    drafts, entries, removed, _ = cut
    back = tuple(Restore(entry=entry, block=block) for entry, block in removed)
    assert replayed(drafts, [commit_line(0, entries, *drops(*removed)), commit_line(1, entries, *back)]) == []


@given(cuts())
def test_more_removed_is_never_fewer_misses(cut: tuple) -> None:
    drafts, entries, removed, more = cut
    assert keys(misses(drafts, entries, removed)) <= keys(misses(drafts, entries, more))
    assert len(misses(drafts, entries, removed)) <= len(misses(drafts, entries, more))


@given(cuts())
def test_a_cut_and_a_replay_with_the_same_removal_say_the_same(cut: tuple) -> None:
    drafts, entries, removed, _ = cut
    assert list(after_cut(session(*drafts), entries, removed)) == replayed(drafts, [commit_line(0, entries, *drops(*removed))])


@given(cuts())
def test_every_miss_names_places_that_held_it_and_the_removal(cut: tuple) -> None:
    drafts, entries, removed, _ = cut
    for harm in misses(drafts, entries, removed):
        assert harm.held
        assert set(harm.held) & set(removed)
        assert harm.entry >= entries
