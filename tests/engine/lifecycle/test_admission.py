"""How large results are shown from their birth."""

from tenure.engine.clip.setting import Clip
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.lifecycle.undo import undone
from tenure.engine.meter.tokens import o200k
from tenure.engine.record.entry import Draft
from tenure.engine.view.edit import Replace
from tenure.engine.view.rules import Rules
from tenure.testing.builders import call, human, picture, reply, result, results, returned

COUNT = o200k()
LONG = "\n".join(f"line {n} of what was printed" for n in range(300))
SMALL = Clip(above=200, room=200)
RULES = Rules(provider="t", dialect="openai-chat")


def opened(*drafts: Draft, clip: Clip | None = SMALL) -> Session:
    setup = Setup(budget=Budget(ceiling=100_000), rules=RULES, clip=clip)
    session = Session(setup, weigh=lambda blocks: tuple(COUNT(block.text) + 4 for block in blocks), count=COUNT)
    for draft in drafts:
        session.append(draft)
    return session


def clipped(session: Session) -> list[tuple[str, int]]:
    return [
        (act.object, edit.entry)
        for commit in session.commits
        for act, edit in zip(commit.actions, commit.edits, strict=True)
        if commit.moment == "admission" and isinstance(edit, Replace)
    ]


def test_a_large_result_is_clipped_in_the_append_that_brings_it() -> None:
    session = opened(human("Go."), reply(call("bash", "c1", command="make")))
    placed = session.propose([result(LONG, "c1")])
    (commit,) = placed.commits
    assert (commit.moment, commit.price, commit.entries) == ("admission", None, 3)
    session.accept(placed)
    assert session.view.tokens == commit.tokens_after < commit.tokens_before
    assert session.index.tokens == commit.tokens_before


def test_a_history_taken_in_at_once_is_clipped_with_the_right_handles() -> None:
    session = opened()
    drafts = [human("Go.")]
    for n in range(3):
        drafts += [reply(call("read", f"c{n}", path=f"{n}.py")), result(LONG if n else "short", f"c{n}")]
    session.accept(session.propose(drafts))
    assert clipped(session) == [("read:2", 4), ("read:3", 6)]
    edits = [edit for edit in session.commits[0].edits if isinstance(edit, Replace)]
    assert edits[0].routes == (session.index.handle("read:2", 3),)


def test_recalls_skills_delimiters_and_images_come_whole() -> None:
    image = returned(LONG, "c4", media=(picture(),))
    session = opened(
        human("Go."),
        reply(
            call("recall", "c1", handle="read:1"),
            call("skill", "c2", name="x"),
            call("delimiter", "c3", action="end"),
            call("look", "c4"),
        ),
        results(returned(LONG, "c1"), returned(LONG, "c2"), returned(LONG, "c3"), image),
    )
    assert clipped(session) == []


def test_recall_output_is_not_clipped_again_and_neither_is_anything_without_a_clip() -> None:
    drafts = (human("Go."), reply(call("bash", "c1")), result(LONG, "c1"))
    assert clipped(opened(*drafts)) == [("bash:1", 2)]
    assert clipped(opened(*drafts, clip=None)) == []


def test_undoing_a_clip_shows_the_result_whole() -> None:
    session = opened(human("Go."), reply(call("bash", "c1")), result(LONG, "c1"))
    session.commit(undone(session, 0))
    assert session.view.weight(2, 0) == COUNT(LONG) + 4
