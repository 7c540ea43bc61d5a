"""What connections do to a reply, over real sockets and the official SDKs: nothing of it may reach the record, and the person is told."""

import socket
from pathlib import Path

import pytest
from holding import Outside, call, end, folder, of, recorded, results, says
from raw_server import Answer, Then, answering, said, spoken, streamed
from test_agent_wire import MODELS, asked, every

from tenure.agent.events import CallDone, Retrying, TurnDone, TurnFailed
from tenure.engine.record.entry import Role
from tenure.errors import Failure
from tenure.models.speaker import Silence
from tenure.testing.script import Reply

LOST = says("lost wörds, and more of them", thinking="lost as well")


def cut_at(data: bytes) -> Answer:
    return streamed(data, whole=False), Then.RESET


def in_an_event(dialect: str) -> Answer:
    events = spoken(LOST, dialect)
    return cut_at(b"".join(events[:-2]) + events[-2][: len(events[-2]) // 2])


def in_a_letter(dialect: str) -> Answer:
    data = b"".join(spoken(LOST, dialect))
    return cut_at(data[: data.rindex("ö".encode()) + 1])


WAYS = {
    "the connection is reset before anything came": lambda _: (b"", Then.RESET),
    "it is closed before anything came": lambda _: (b"", Then.CLOSE),
    "it is reset within the head": lambda _: (b"HTTP/1.1 200 OK\r\ncontent-ty", Then.RESET),
    "the body is empty": lambda _: (streamed(b""), Then.CLOSE),
    "it is cut within an event": in_an_event,
    "it is cut within a letter": in_a_letter,
    "the bytes are no UTF-8": lambda dialect: (
        streamed(b"".join(spoken(LOST, dialect)).replace("ö".encode(), b"\xff\xfe")),
        Then.CLOSE,
    ),
    "a proxy's page comes": lambda _: (streamed(b"<html>Bad gateway</html>", kind="text/html"), Then.CLOSE),
    "a proxy's page comes as an error": lambda _: (
        streamed(b"<html>Bad gateway</html>", kind="text/html", status="502 Bad Gateway"),
        Then.CLOSE,
    ),
    "what is no HTTP comes": lambda _: (b"SSH-2.0-OpenSSH_9.6\r\n", Then.CLOSE),
}


# Gemini's calls come whole and mostly without ids, and its SDK keeps a silent connection until it is collected.
in_pieces = pytest.mark.parametrize("dialect", [dialect for dialect in MODELS if dialect != "gemini"])


@every
def test_a_broken_reply_is_asked_for_again_and_leaves_nothing(dialect: str, tmp_path: Path) -> None:
    ways = [way for way in WAYS if way != "the bytes are no UTF-8"]
    outside = Outside(folder(tmp_path))
    answers = [each for n, way in enumerate(ways) for each in (WAYS[way](dialect), said(says("Here."), dialect, n))]
    with answering(*answers) as server:
        events = asked(outside, dialect, server.url, *ways)
    assert [each.text for each in of(events, TurnDone)] == ["Here."] * len(ways)
    retrying = of(events, Retrying)
    assert len(retrying) == len(ways)
    assert {each.kind for each in retrying} <= {Failure.UNAVAILABLE, Failure.CUT_SHORT, Failure.BAD_REPLY}
    for way, first, second in zip(ways, server.bodies[::2], server.bodies[1::2], strict=True):
        assert first == second, way
    assert [entry.role for entry in recorded(outside)] == [Role.SYSTEM, *[Role.USER, Role.ASSISTANT] * len(ways)]
    assert "lost" not in "".join(block.text for entry in recorded(outside)[1:] for block in entry.blocks)


@every
def test_a_reply_that_is_no_utf8_is_asked_for_again_or_taken_with_the_damage_shown(dialect: str, tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path))
    with answering(WAYS["the bytes are no UTF-8"](dialect), said(says("Here."), dialect)) as server:
        events = asked(outside, dialect, server.url, "Go.")
    assert end(events).reason == "done"
    assert end(events).text == "Here." or "\ufffd" in end(events).text
    assert not any(server.violations)


@in_pieces
def test_a_provider_that_never_begins_is_given_up_after_its_silence(dialect: str, tmp_path: Path) -> None:
    with answering((b"", Then.STALL), said(says("Here."), dialect)) as server:
        events = asked(Outside(folder(tmp_path)), dialect, server.url, "Go.", silence=Silence(read_s=0.3))
        assert server.left.wait(5)
    assert end(events).text == "Here."
    assert of(events, Retrying)[0].kind is Failure.UNAVAILABLE


@every
def test_a_limit_without_a_time_is_waited_out_with_ours(dialect: str, tmp_path: Path) -> None:
    limited = streamed(b'{"error": {"type": "rate_limit_error", "message": "slow"}}', kind="application/json", status="429 No")
    outside = Outside(folder(tmp_path))
    with answering((limited, Then.CLOSE), (limited, Then.CLOSE), said(says("Here."), dialect)) as server:
        events = asked(outside, dialect, server.url, "Go.")
    assert end(events).text == "Here."
    assert outside.waits == [2.0, 4.0]


@in_pieces
def test_calls_of_one_id_get_their_own_results(dialect: str, tmp_path: Path) -> None:
    """Some servers begin to count anew in every reply, and some do not count at all."""
    names = {"openai-chat": "call_0_0 call_0_1", "openai-responses": "call_0_1 call_0_2", "anthropic": "toolu_0_0 toolu_0_1"}
    first, second = names[dialect].split()
    twice = said(says("Both.", call("read", path="a.py"), call("read", path="b.py")), dialect)
    twice = twice[0].replace(second.encode(), first.encode()), twice[1]
    again = said(says("Once more.", call("ls")), dialect, 0 if dialect == "openai-chat" else 1)
    outside = Outside(folder(tmp_path, a_py="alpha\n", b_py="beta\n"))
    with answering(twice, again, said(says("Done."), dialect, 5)) as server:
        events = asked(outside, dialect, server.url, "Go.")
    assert end(events).text == "Done."
    assert [text.split("\t")[-1] for text in results(outside)[:2]] == ["alpha", "beta"]
    assert server.violations == [(), (), ()]


@every
def test_a_refusal_behind_a_call_leaves_no_call_without_a_result(dialect: str, tmp_path: Path) -> None:
    refused = said(Reply(text="I read.", calls=(call("read", path="a.py"),), stop="filter"), dialect)
    outside = Outside(folder(tmp_path, a_py="alpha\n"))
    with answering(refused, said(says("Well."), dialect, 1)) as server:
        events = asked(outside, dialect, server.url, "Go.", "And now?")
    assert end(events).text == "Well."
    assert server.violations == [(), ()]


@in_pieces
def test_a_call_whose_arguments_break_off_at_the_output_limit_is_not_run(dialect: str, tmp_path: Path) -> None:
    whole = said(Reply(text="I write.", calls=(call("write", path="a.py", content="def"),), stop="length"), dialect)
    body = whole[0].partition(b"\r\n\r\n")[2].partition(b"\r\n")[2].removesuffix(b"\r\n0\r\n\r\n")
    cut = body.replace(rb"\"def\"}", rb"\"de")
    assert cut != body
    where = folder(tmp_path)
    outside = Outside(where)
    with answering((streamed(cut), Then.CLOSE), said(says("Done."), dialect, 1)) as server:
        events = asked(outside, dialect, server.url, "Go.")
    assert end(events).text == "Done."
    assert not (where / "a.py").exists()
    assert "reached its output limit" in results(outside)[0]
    assert server.violations == [(), ()]


@every
def test_a_call_of_a_tool_that_is_not_there_is_answered(dialect: str, tmp_path: Path) -> None:
    turns = (said(says("", call("frobnicate", x=1), call("rd", path="a.py")), dialect), said(says("Done."), dialect, 1))
    with answering(*turns) as server:
        events = asked(Outside(folder(tmp_path)), dialect, server.url, "Go.")
    assert [each.outcome for each in of(events, CallDone)] == ["error", "error"]
    assert server.violations == [(), ()]


@every
def test_a_server_that_never_gets_it_right_is_given_up_with_its_words(dialect: str, tmp_path: Path) -> None:
    broken = (streamed(b"<html>\x1b[31mBad</html>", kind="text/html"), Then.CLOSE)
    outside = Outside(folder(tmp_path))
    with answering(*[broken] * 12) as server:
        events = asked(outside, dialect, server.url, "Go.")
    assert end(events).reason == "failed"
    assert of(events, TurnFailed)
    assert len(server.bodies) < 12
    assert [entry.role for entry in recorded(outside)] == [Role.SYSTEM, Role.USER]


@every
def test_a_local_port_that_nobody_listens_at_is_said_at_once(dialect: str, tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    events = asked(outside, dialect, url, "Go.")
    assert not of(events, Retrying)
    assert not outside.waits
    (failed,) = of(events, TurnFailed)
    assert failed.kind is Failure.NO_SERVER
    assert "no server runs there" in failed.text
