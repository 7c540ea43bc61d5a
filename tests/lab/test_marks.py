import json
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from msgspec.structs import replace

from chats import chat_file, exchange
from tenure.cli.main import main
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.tokens import o200k
from tenure.engine.policies.cwl import Cwl
from tenure.engine.record.entry import Draft, Role, Text, ToolCall, ToolResult
from tenure.errors import InputError
from tenure.lab.events import CallLine, EntryLine, ReplayLine, SummaryLine
from tenure.lab.loading import load, source
from tenure.lab.marks import marked, marks_in
from tenure.lab.replay import Options, replay
from tenure.lab.source import SessionSource
from tenure.logs.reader import Event, Rewritten

START = {"action": "start", "name": "look", "type": "expl"}
END = {"action": "end", "description": "it lies in a.py"}
ACT = {"action": "start", "name": "mend", "type": "act", "dependencies": ["look"]}


def session_file(path: Path) -> Path:
    messages: list[dict[str, object]] = [{"role": "user", "content": "Mend a.py."}]
    messages += exchange("one", "read", {"path": "a.py"}, "text " * 50)
    messages += exchange("two", "edit", {"path": "a.py"}, "done")
    return chat_file(path, [*messages, {"role": "assistant", "content": "Mended."}])


def mark(session: Path, call: int, /, *calls: dict[str, object], **changes: object) -> str:
    digest = source(str(session)).sha256()
    line = {
        "session": session.stem,
        "sha256": digest,
        "call": call,
        "entry": 10_000,
        "entry_sha256": "0",
        "calls": calls,
        **changes,
    }
    return json.dumps(line)


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return session_file(tmp_path / "shop.json")


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def written(*lines: str) -> Path:
        path = tmp_path / "marks" / "shop.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(line + "\n" for line in lines))
        return path

    return written


def marked_drafts(session: Path, marks: Path) -> list[Draft]:
    (one,) = marks_in([marks]).on([source(str(session))], o200k())
    return [event for event in one.events()[1] if isinstance(event, Draft)]


def test_marks_are_the_agents_own_calls_behind_its_words_and_before_its_other_calls(
    session: Path, write: Callable[..., Path]
) -> None:
    drafts = marked_drafts(session, write(mark(session, 0, START), mark(session, 1, END, ACT)))
    names = [
        [block.name for block in draft.blocks if isinstance(block, ToolCall)] for draft in drafts if draft.role is Role.ASSISTANT
    ]
    assert names == [["delimiter", "read"], ["delimiter", "delimiter", "edit"], []]
    answers = [
        block.text for draft in drafts for block in draft.blocks if isinstance(block, ToolResult) and "mark" in block.call_id
    ]
    assert answers == ["started expl 'look'", "ended expl 'look'", "started act 'mend', building on look"]


def test_a_marked_session_is_a_sound_record_with_episodes(session: Path, write: Callable[..., Path]) -> None:
    (one,) = marks_in([write(mark(session, 0, START), mark(session, 1, END, ACT)).parent]).on([source(str(session))], o200k())
    index = load([one], o200k()).index
    assert [(each.name, each.closed) for each in index.episodes if each.declared] == [("look", True), ("mend", False)]
    *_, summary = replay([one], Options(budget=Budget(ceiling=300, floor=100), policy=Cwl()), o200k())
    assert isinstance(summary, SummaryLine)
    assert summary.violations == ()
    assert summary.recoverable_share == 1.0


def test_the_tool_and_its_calls_are_paid_for(session: Path, write: Callable[..., Path]) -> None:
    plain = source(str(session))
    (one,) = marks_in([write(mark(session, 0, START))]).on([plain], o200k())
    before, after = (list(replay([each], Options(budget=Budget(), policy=Cwl(), head=100), o200k())) for each in (plain, one))
    heads = [line.head_tokens for lines in (before, after) for line in lines if isinstance(line, ReplayLine)]
    assert heads[0] == 100
    assert heads[1] > 300
    usd = [sum(line.usd for line in lines if isinstance(line, CallLine)) for lines in (before, after)]
    outputs = [next(line.output for line in lines if isinstance(line, CallLine)) for lines in (before, after)]
    assert usd[0] < usd[1]
    assert outputs[0] < outputs[1]
    assert sum(isinstance(line, EntryLine) for line in after) == 1 + sum(isinstance(line, EntryLine) for line in before)


def test_results_of_a_users_message_stay_together() -> None:
    asked = Draft(role=Role.ASSISTANT, blocks=(ToolCall(call_id="1", name="read", arguments="{}"),))
    given = Draft(role=Role.USER, blocks=(ToolResult(call_id="1", text="x"),))
    drafts = list(marked(told(asked, given), [a_mark(0)], o200k()).events()[1])
    assert [len(draft.blocks) for draft in drafts if isinstance(draft, Draft)] == [2, 2]


def test_compactions_count_the_messages_that_marks_added() -> None:
    said = [Draft(role=Role.ASSISTANT, blocks=(Text(text=str(n), origin="model"),)) for n in range(3)]  # pyright: ignore[reportArgumentType]
    events = list(marked(told(*said, Rewritten(reason="compacted", drop_before=2, kept=(1,))), [a_mark(0)], o200k()).events()[1])
    (rewritten,) = (event for event in events if isinstance(event, Rewritten))
    assert (rewritten.drop_before, rewritten.kept) == (3, (2,))


def told(*events: Event) -> SessionSource:
    def again() -> tuple[str, Iterator[Event]]:
        return "test", iter(events)

    return SessionSource("shop.json", again, lambda: "abc")


def a_mark(call: int) -> object:
    from tenure.lab.marks import Mark

    return Mark(session="shop", sha256="abc", call=call, entry=9_999, entry_sha256="", calls=(START,), where="marks:1")


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"sha256": "beef"}, "marks of shop with sha256 beef"),
        ({"call": 9}, "a mark for call 9"),
        ({"entry": 1, "entry_sha256": "beef"}, "entry 1 with hash beef"),
        ({"session": "other", "sha256": "beef"}, "marks of other"),
    ],
)
def test_marks_that_do_not_match_are_refused(
    session: Path, write: Callable[..., Path], changes: dict[str, object], found: str
) -> None:
    with pytest.raises(InputError, match=found):
        marked_drafts(session, write(mark(session, 0, START, **changes)))


def test_an_entry_that_still_has_its_hash_is_accepted(session: Path, write: Callable[..., Path]) -> None:
    first = next(event for event in source(str(session)).events()[1] if isinstance(event, Draft) and event.role is Role.ASSISTANT)
    known = mark(session, 0, START, entry=1, entry_sha256=sha256(first.payload).hexdigest())
    assert len(marked_drafts(session, write(known))) == 7


@pytest.mark.parametrize("line", ["{", "[]", '{"session":"x"}', '{"session":"x","sha256":"","call":"0"}'])
def test_a_line_that_is_no_mark_is_refused_with_its_place(line: str, session: Path, write: Callable[..., Path]) -> None:
    with pytest.raises(InputError, match=r"shop\.jsonl:1: no mark"):
        marked_drafts(session, write(line))


def test_a_call_that_is_marked_twice_is_refused(session: Path, write: Callable[..., Path]) -> None:
    with pytest.raises(InputError, match="call 0 is marked twice"):
        marks_in([write(mark(session, 0, START), mark(session, 0, END))])


def test_replay_and_audit_read_marks(
    session: Path, write: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    marks = str(write(mark(session, 0, START), mark(session, 1, END, ACT)))
    for command in ("replay", "audit"):
        assert (
            main([command, str(session), "--marks", marks, "--policy", "cwl", "--json", str(tmp_path / "out.jsonl"), "--quiet"])
            == 0
        )
        assert b'"delimiter"' in (tmp_path / "out.jsonl").read_bytes()
    assert main(["replay", str(session), "--marks", str(tmp_path / "none")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_a_mark_is_a_value() -> None:
    assert replace(a_mark(0), call=1) != a_mark(0)  # pyright: ignore[reportArgumentType, reportUnknownVariableType]
