"""How the demo tells a session."""

import asyncio
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console

from tenure.agent.events import (
    CallDone,
    CallStarted,
    Committed,
    EpisodeEnded,
    EpisodeStarted,
    Event,
    Gauged,
    Recalled,
    Replied,
    Requested,
    TurnDone,
    TurnFailed,
)
from tenure.apis.rules import rules_for
from tenure.cli.demo_screen import DemoScreen, Pace
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.decision import Propose
from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.meter.gauge import severity
from tenure.engine.meter.price import prices_for
from tenure.engine.record.entry import Usage
from tenure.engine.record.episodes import EpisodeType
from tenure.testing.builders import call, end_act, end_expl, human, reply, result, session, start_act, start_expl

LIMIT = 1_000
FILE = "".join(f"line {n} of the library\n" for n in range(1, 41))
READ = "\n".join(f"{n}\tline {n} of the library" for n in range(1, 41))


def gauged(tokens: int, usd: float) -> Gauged:
    return Gauged(tokens=tokens, limit=LIMIT, severity=severity(100 * tokens / LIMIT), estimated=False, usd=usd)


def evicted() -> Session:
    """A session of which a finished exploration, and what was done with it, have just left."""
    drafts = [human("Find it, and mend it."), reply(start_expl("locate")), result("started")]
    for n in range(6):
        drafts += [reply(call("read", path=f"{n}.py")), result("word " * 120)]
    drafts += [reply(end_expl("it is in a.py")), result("ended")]
    drafts += [reply(start_act("mend", "locate")), result("started"), reply(call("edit", path="a.py")), result("done")]
    drafts += [reply(end_act()), result("ended"), reply("Mended."), human("And the report?"), reply(start_expl("report"))]
    drafts += [result("started")]
    for n in range(3):
        drafts += [reply(call("read", path=f"r{n}.py")), result("word " * 110)]
    budget = Budget(ceiling=LIMIT, floor=400)
    setup = Setup(budget=budget, rules=rules_for("", "claude-sonnet-4-5", "anthropic"), prices=prices_for("claude-sonnet-4-5"))
    told = session(setup, *drafts)
    decision = told.decide()
    assert isinstance(decision, Propose)
    told.commit(decision.commit)
    return told


def calls(n: int, tool: str, arguments: str, text: str, *, handle: str = "", tokens: int = 20, shown: int = 0) -> Iterator[Event]:
    cue = json.loads(arguments).get("path", "")
    yield CallStarted(call=f"c{n}", tool=tool, summary=f"{tool} {cue}", arguments=arguments)
    yield CallDone(call=f"c{n}", tool=tool, text=text, handle=handle, tokens=tokens, shown=shown or tokens)


def story() -> list[Event]:
    usage = Usage(cache_write=700, cache_read=200)
    explored = (
        "It is in library.py: forty lines, of which the last but one says where, and which is longer than a terminal is wide"
    )
    back = f"[read:1@3fa9: call of read]\n{{}}\n\n[result]\n{READ}"
    return [
        Requested(step=1, tokens=300),
        Replied(entry=2, text="I look for what reads it, and then at how; \x1b[2Jthat takes two calls.", calls=3, usage=usage),
        EpisodeStarted(name="locate", type=EpisodeType.EXPL),
        gauged(310, 0.0123),
        *calls(1, "delimiter", '{"action":"start"}', "started expl 'locate'"),
        *calls(2, "grep", '{"pattern":"class (One|Another)","path":"."}', "a.py:1:class One", tokens=1_200, shown=400),
        *calls(3, "read", '{"path":"library.py","offset":1,"limit":40}', READ, handle="read:1@3fa9", tokens=240),
        gauged(712, 0.0123),
        Requested(step=2, tokens=712),
        Replied(entry=4, text="", calls=1, usage=usage),
        *calls(4, "bash", '{"command":"python3 -m unittest"}', "-----\nRan 2 tests\n\nOK\n[exit code 0, 0.3 s]"),
        gauged(1_210, 0.034),
        Committed(n=0, policy="cwl", reason="over", account="cwl", tokens_before=1_000, tokens_after=300),
        gauged(420, 0.034),
        Requested(step=3, tokens=420),
        Replied(entry=6, text="That is it.", calls=2, usage=usage),
        EpisodeEnded(name="locate", type=EpisodeType.EXPL, description=explored),
        EpisodeStarted(name="mend", type=EpisodeType.ACT, dependencies=("locate",)),
        gauged(431, 0.041),
        *calls(5, "edit", '{"path":"a.py"}', "Edited a.py: line 8."),
        *calls(6, "delimiter", "{}", "ended"),
        EpisodeEnded(name="mend", type=EpisodeType.ACT),
        *calls(7, "recall", '{"words":"where is it"}', "2 texts, best first:\nread:1@3fa9 line 39: line 39 of the library\n"),
        Recalled(tokens=30),
        *calls(8, "recall", '{"handle":"read:1"}', back, tokens=250),
        Recalled(objects=("read:1",), tokens=250),
        gauged(700, 0.052),
        Requested(step=4, tokens=700),
        Replied(entry=8, text="Mended, and tested.", usage=usage),
        gauged(703, 0.055),
        TurnDone(reason="done", text="Mended, and tested.", steps=4),
    ]


def told(
    width: int, folder: Path, events: list[Event], *, pace: Pace | None = None, terminal: bool = False
) -> tuple[str, DemoScreen]:
    out = io.StringIO()
    console = Console(
        file=out, width=width, highlight=False, markup=False, emoji=False, force_terminal=terminal, color_system=None
    )
    (folder / "library.py").write_text(FILE, encoding="utf-8")
    after = evicted()
    screen = DemoScreen(console, pace or Pace(), folder, lambda: after)

    async def tell() -> None:
        await screen.task(1, 6, "Find where it is read, and mend it, but look first, since nobody has for a year; and test it.")
        for event in events:
            await screen.tell(event)

    asyncio.run(tell())
    return out.getvalue(), screen


@pytest.mark.parametrize("width", [80, 160])
def test_the_story_reads_well(width: int, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    shown, screen = told(width, tmp_path, story())
    golden(f"demo-{width}.txt", shown)
    assert not screen.seen.troubles
    assert (screen.seen.calls, screen.seen.commits, screen.seen.largest, len(screen.seen.returned)) == (4, 1, 900, 1)


def test_a_narrow_terminal_breaks_nothing(tmp_path: Path) -> None:
    shown, _ = told(40, tmp_path, story())
    assert max(map(len, shown.splitlines())) <= 40


def test_on_a_terminal_the_bar_falls_before_the_eyes_and_words_come_one_by_one(tmp_path: Path) -> None:
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    pace = Pace(word=0.01, line=0.1, moment=1.0, wait=wait)
    live, _ = told(80, tmp_path, story(), pace=pace, terminal=True)
    piped, _ = told(80, tmp_path, story())
    settled = "\n".join(line.rpartition("\r")[2] for line in live.split("\n"))
    assert settled == piped, "in the end the same stands there"
    assert live.count("\r") > 10
    assert waited.count(0.01) >= 20
    assert 5 < sum(waited) < 12


def test_what_goes_wrong_is_said_and_kept(tmp_path: Path) -> None:
    (tmp_path / "library.py").touch()
    events = [
        *story()[:8],
        CallStarted(call="c9", tool="read", summary="read b.py", arguments="{}"),
        CallDone(call="c9", tool="read", text="read: b.py: there is no such file", outcome="error"),
        *calls(8, "recall", '{"handle":"read:1"}', READ.replace("line 7", "line seven")),
        Recalled(objects=("read:1",), tokens=250),
        TurnFailed(text="the provider \x1b[31mdoes not answer"),
        TurnDone(reason="failed", why="no answer"),
    ]
    shown, screen = told(80, tmp_path, events)
    assert len(screen.seen.troubles) == 4
    assert "✗ read" in shown
    assert "! read:1 did not come back as it was read" in shown
    assert "\x1b" not in shown
