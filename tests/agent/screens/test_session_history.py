import json
from base64 import b64encode
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pictures import png
from tenure.agent.screens.build import Picks, build, chosen
from tenure.agent.screens.contents import Segment, lifetime, lists
from tenure.agent.screens.details import object_content, parts
from tenure.agent.screens.history import History, of_address, of_records
from tenure.apis.rules import rules_for
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.session import Setup
from tenure.engine.meter.tokens import o200k
from tenure.engine.record.entry import Role
from tenure.engine.view.edit import Commit, Drop, Insert, Replace
from tenure.lab.events import EntryLine
from tenure.lab.loading import load, source
from tenure.lab.replay import Options, replay
from tenure.testing.builders import by_words, call, human, reply, result, session, system
from tenure.testing.store import MemoryStore


def history_of(turns: int, commits: tuple[Commit, ...] = ()) -> History:
    """Turns of two entries each, behind a system prompt: a person's words, a call, its result."""
    made = session(Setup(budget=Budget(), rules=rules_for("", "", ""), policy=None), system("be brief"))
    entries = []
    for n in range(turns):
        for draft in (
            human(f"task {n}"),
            reply(call("read", f"c{n}", path=f"{n}.py")),
            result("one two three four five", f"c{n}"),
        ):
            entries += made.append(draft).entries
    first = made_system()
    every = [first, *entries]
    return History(
        title="made",
        format="made",
        model="",
        index=made.index,
        read=lambda n: every[n],
        commits=commits,
        usages={},
    )


def made_system():
    alone = session(Setup(budget=Budget(), rules=rules_for("", "", ""), policy=None))
    return alone.append(system("be brief")).entries[0]


def commit(n: int, entries: int, *edits: Drop | Replace | Insert) -> Commit:
    return Commit(n=n, entries=entries, policy="by hand", moment="manual", reason="to see", edits=edits)


@st.composite
def histories(draw: st.DrawFn) -> History:
    turns = draw(st.integers(1, 6))
    length = 1 + 3 * turns
    made: list[Commit] = []
    gone: set[int] = set()
    at = 1
    for n in range(draw(st.integers(0, 4))):
        at = draw(st.integers(at, length))
        entry = draw(st.integers(0, at - 1))
        if entry in gone:
            continue
        gone.add(entry)
        edit = draw(st.sampled_from([Drop(entry=entry, block=0), Replace(entry=entry, block=0, text="less", tokens=1)]))
        made.append(commit(len(made), at, edit))
        del n
    return history_of(turns, tuple(made))


@given(histories())
def test_what_a_block_was_carried_for_is_the_sum_over_what_every_call_saw(history: History) -> None:
    life = lifetime(history.index, history.commits)
    calls: dict[tuple[int, int], int] = {}
    tokens: dict[tuple[int, int], int] = {}
    for number in range(history.calls):
        view = history.view_at(number)
        assert view.tokens == life.calls[number].tokens
        for line in view.lines:
            assert not isinstance(line, Insert)
            replaced = dict(line.replaced)
            for block in line.blocks:
                at = (line.entry, block)
                weight = replaced[block].tokens if block in replaced else history.index.block(at).tokens
                calls[at] = calls.get(at, 0) + 1
                tokens[at] = tokens.get(at, 0) + weight
    for at, carried in life.blocks.items():
        assert (carried.calls, carried.tokens) == (calls.get(at, 0), tokens.get(at, 0))


@given(histories())
def test_a_window_is_what_it_was_and_what_came_less_what_left(history: History) -> None:
    before = 0
    for seen_ in lifetime(history.index, history.commits).calls:
        assert seen_.tokens == before + seen_.came - seen_.left
        before = seen_.tokens


@given(histories(), st.data())
def test_any_turns_build_a_record_that_holds_exactly_them_in_order(history: History, data: st.DataObject) -> None:
    turns = data.draw(st.sets(st.integers(0, len(history.index.turns)), min_size=1))
    store = MemoryStore()
    made = lists(history)
    sheet = build(history, Picks(turns=frozenset(turns)), made.segments, store=store, folder=Path("/home/kit"), count=by_words)
    built = of_records(store, sheet.id)
    wanted = [n for n in range(len(history.index)) if history.index.entries[n].turn in turns]
    assert [built.read(n).blocks for n in range(len(built.index))] == [history.read(n).blocks for n in wanted]
    assert not built.index.waiting
    assert store.verify(sheet.id) is None


def test_a_brief_and_the_turns_it_stands_for_exclude_each_other() -> None:
    segments = (
        Segment(start=0, stop=7, title="brief", tokens=9, shown=0, key="p0", text="what was", turns=(1, 2)),
        Segment(start=7, stop=10, title="live tail", tokens=9, shown=9, turns=(3,)),
    )
    picks = Picks().turn(1, segments).turn(3, segments)
    assert picks.brief(segments[0]) == Picks(turns=frozenset({3}), briefs=frozenset({"p0"}))
    assert picks.brief(segments[0]).turn(2, segments) == Picks(turns=frozenset({2, 3}))


def test_a_brief_stands_where_the_entries_it_stands_for_were() -> None:
    insert = Insert(before_entry=7, order=0, key="p0", role=Role.USER, text="what was", tokens=3, stands_for="history")
    history = history_of(3, (commit(0, 8, *[Drop(entry=n, block=0) for n in range(1, 7)], insert),))
    segments = lists(history).segments
    assert [(segment.start, segment.stop, segment.key, segment.turns) for segment in segments] == [
        (0, 7, "p0", (1, 2)),
        (7, 10, "", (3,)),
    ]
    picks = Picks(turns=frozenset({0, 3}), briefs=frozenset({"p0"}))
    assert [each.draft.blocks[0].text[:8] for each in chosen(history, picks, segments)][:3] == ["be brief", "what was", "task 2"]


def test_an_object_says_how_much_of_it_is_left_and_who_took_it() -> None:
    history = history_of(
        2, (commit(0, 7, Drop(entry=2, block=0), Drop(entry=3, block=0), Replace(entry=6, block=0, text="x", tokens=1)),)
    )
    states = {each.object: each.state for each in lists(history).objects}
    assert states == {"read:1": "gone", "read:2": "smaller"}


def test_a_skill_is_listed_with_what_its_last_load_weighs_and_how_much_of_it_is_left() -> None:
    made = session(Setup(budget=Budget(), rules=rules_for("", "", ""), policy=None))
    entries = [
        entry
        for draft in (
            human("release it"),
            reply(call("read_skill", "c0", name="release")),
            result("an older text", "c0"),
            reply(call("read_skill", "c1", name="release")),
            result("one two three four five", "c1"),
            reply(call("read", "c2", path="a.py")),
            result("a b c", "c2"),
        )
        for entry in made.append(draft).entries
    ]
    left = (commit(0, 7, Replace(entry=4, block=0, text="x", tokens=1)),)
    history = History(title="made", format="made", model="", index=made.index, read=entries.__getitem__, commits=left, usages={})
    (skill,) = [each for each in lists(history).objects if each.object.startswith("skill:")]
    assert (skill.object, skill.state) == ("skill:release", "smaller")
    assert skill.about == "loaded 2 times, last by read_skill:2"
    assert skill.tokens == made.index.block((3, 0)).tokens + made.index.block((4, 0)).tokens
    assert skill.shown == made.index.block((3, 0)).tokens + 1
    assert skill.carried.calls == 1
    assert "one two three four five" in object_content(history, "skill:release").plain
    assert "older" not in object_content(history, "skill:release").plain


def test_the_difference_of_two_calls_names_what_came_went_and_changed() -> None:
    history = history_of(2, (commit(0, 5, Drop(entry=1, block=0), Replace(entry=3, block=0, text="less", tokens=1)),))
    listed = parts(history, history.view_at(1), history.view_at(0))
    changes = [(part.change, *part.words(history)) for part in listed if part.change]
    assert changes == [
        ("gone", "person", "task 0"),
        ("come", "read:1 call", 'read {"path":"0.py"}'),
        ("come", "read:1 result", "less"),
        ("come", "person", "task 1"),
    ]


def test_the_compactions_of_a_recorded_agent_are_segments(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_text("\n".join(map(json.dumps, _claude_lines())), encoding="utf-8")
    history = of_address(str(path), by_words)
    assert [commit.moment for commit in history.commits] == ["recorded"]
    made = lists(history)
    assert len(made.segments) == 2
    assert made.segments[0].shown == 0
    assert made.life.calls[-1].tokens < history.index.tokens


def _claude_lines() -> list[dict[str, object]]:
    def line(n: int, kind: str, content: object, **more: object) -> dict[str, object]:
        parent = f"u{n - 1}" if n else None
        message = {
            "role": kind,
            "content": content,
            **({"model": "claude-sonnet-4-5", "id": f"m{n}"} if kind == "assistant" else {}),
        }
        return {"type": kind, "uuid": f"u{n}", "parentUuid": parent, "sessionId": "s", "message": message, **more}

    boundary = {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "u2",
        "parentUuid": None,
        "logicalParentUuid": "u1",
        "sessionId": "s",
        "content": "Conversation compacted",
        "compactMetadata": {"trigger": "auto", "preTokens": 9},
    }
    return [
        line(0, "user", "one two three"),
        line(1, "assistant", [{"type": "text", "text": "four five six"}]),
        boundary,
        line(3, "user", "what came before", isCompactSummary=True),
        line(4, "assistant", [{"type": "text", "text": "seven"}]),
    ]


def test_pictures_weigh_in_the_viewer_what_they_weigh_in_a_replay(tmp_path: Path) -> None:
    picture = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": b64encode(png(1_500, 900)).decode()},
    }
    lines = [
        {
            "type": "user",
            "uuid": "a",
            "parentUuid": None,
            "message": {"role": "user", "content": [picture, {"type": "text", "text": "What is this?"}]},
        },
        {
            "type": "assistant",
            "uuid": "b",
            "parentUuid": "a",
            "message": {"role": "assistant", "model": "gpt-4o-mini", "content": "A square."},
        },
    ]
    path = tmp_path / "session.jsonl"
    path.write_text("\n".join(json.dumps({"sessionId": "s", **line}) for line in lines), encoding="utf-8")
    entries = [
        line
        for line in replay([source(str(path))], Options(budget=Budget(), policy=None), o200k())
        if isinstance(line, EntryLine)
    ]
    weighed = sum(block.tokens or 0 for entry in entries for block in entry.blocks)
    assert weighed > 500
    assert of_address(str(path), o200k()).index.tokens == load([source(str(path))], o200k()).index.tokens == weighed
