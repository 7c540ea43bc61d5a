import asyncio
import json
from pathlib import Path

import pytest

from tenure.apis.reply import Delta, WholeReply
from tenure.errors import Failure, InputError, ModelError
from tenure.models.scripted import Playing, ScriptedSpeaker, parse_script, read_script
from tenure.testing.script import Broken, Call, Fault, Reply

BODIES = {
    "openai-chat": {"model": "m", "messages": [{"role": "user", "content": "Go."}]},
    "openai-responses": {"model": "m", "input": [{"role": "user", "content": "Go."}]},
    "anthropic": {"model": "m", "messages": [{"role": "user", "content": "Go."}]},
}


def heard(speaker: ScriptedSpeaker) -> tuple[list[Delta], WholeReply]:
    async def hear() -> list[Delta | WholeReply]:
        return [piece async for piece in speaker.speak(json.dumps(BODIES[speaker.dialect]).encode())]

    *pieces, whole = asyncio.run(hear())
    assert isinstance(whole, WholeReply)
    return [piece for piece in pieces if isinstance(piece, Delta)], whole


def test_a_script_is_one_object_or_a_reply_a_line() -> None:
    one = parse_script('{"model": "gpt-5", "pace_s": 0.5, "replies": [{"text": "a"}, {"status": 429, "retry_after_s": 2}]}')
    assert one.replies == (Reply(text="a"), Fault(status=429, retry_after_s=2))
    assert one.playing == Playing(model="gpt-5", pace_s=0.5)
    lines = parse_script(
        '{"text": "a", "calls": [{"name": "ls", "arguments": {"path": "."}}]}\n\n{"reply": {"text": "b"}, "how": "end"}\n'
    )
    assert lines.replies == (
        Reply(text="a", calls=(Call(name="ls", arguments='{"path":"."}'),)),
        Broken(reply=Reply(text="b"), how="end"),
    )
    assert parse_script('[{"text": "a"}]') == parse_script('{"text": "a"}') == parse_script('{"replies": [{"text": "a"}]}')


def test_a_script_may_be_yaml_and_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(
        "model: gpt-5\nreplies:\n- text: a\n  calls: [{name: ls, arguments: {path: .}}]\n- {reply: {text: b}, how: end}\n"
    )
    same = {
        "model": "gpt-5",
        "replies": [{"text": "a", "calls": [{"name": "ls", "arguments": {"path": "."}}]}, {"reply": {"text": "b"}, "how": "end"}],
    }
    assert read_script(path) == parse_script(json.dumps(same))
    path.write_text("replies: [}")
    with pytest.raises(InputError, match="no YAML"):
        read_script(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "script:1"),
        ('{"replies": 3}', "no list of replies"),
        ('{"replies": [{"text": 3}]}', "reply 1"),
        ('{"replies": [{"text": "a"}, 3]}', "reply 2"),
        ('{"dialect": "bard", "replies": []}', "dialect 'bard'"),
        ('{"replies": [{"reply": {"status": 500}}]}', "a fault in a broken reply"),
        ('{"replies": [{"reply": {"text": "a"}, "how": "oddly"}]}', "reply 1"),
        ("[" * 100_000, "script"),
    ],
)
def test_what_is_no_script_is_said_with_its_place(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse_script(text)


@pytest.mark.parametrize("dialect", BODIES)
def test_a_reply_comes_in_pieces_and_whole_and_is_billed(dialect: str) -> None:
    script = parse_script(
        json.dumps({"dialect": dialect, "replies": [{"text": "Hello, you.", "thinking": "hm", "calls": [{"name": "ls"}]}]})
    )
    pieces, whole = heard(ScriptedSpeaker(script, now=lambda: 0.0, tokens=len))
    assert "".join(piece.text for piece in pieces if piece.kind == "text") == whole.text == "Hello, you."
    assert "".join(piece.text for piece in pieces if piece.kind == "thinking") == "hm"
    assert [made.tool for made in whole.calls] == ["ls"]
    assert whole.usage is not None
    assert (whole.usage.prompt > 0, whole.usage.output) == (True, len("hmHello, you.ls{}"))


def test_a_pace_spreads_a_reply_over_time() -> None:
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    script = parse_script(json.dumps({"pace_s": 0.25, "replies": [{"text": "word " * 20}]}))
    pieces, whole = heard(ScriptedSpeaker(script, now=lambda: 0.0, tokens=len, wait=wait))
    assert "".join(piece.text for piece in pieces) == whole.text
    assert set(waits) == {0.25}
    assert len(waits) >= 4


@pytest.mark.parametrize(
    ("turn", "kind", "said"),
    [
        ({"status": 429, "retry_after_s": 3}, Failure.RATE_LIMITED, ""),
        ({"status": 529}, Failure.UNAVAILABLE, ""),
        ({"status": 400, "message": "prompt is too long"}, Failure.TOO_LONG, ""),
        ({"status": 401}, Failure.NOT_ACCEPTED, ""),
        ({"reply": {"text": "half and half"}, "how": "cut", "after": 2}, Failure.CUT_SHORT, "half a"),
        ({"reply": {"text": "half and half"}, "how": "malformed", "after": 2}, Failure.BAD_REPLY, "half a"),
    ],
)
def test_troubles_are_those_of_a_provider(turn: dict[str, object], kind: Failure, said: str) -> None:
    speaker = ScriptedSpeaker(parse_script(json.dumps({"replies": [turn, {"text": "Here."}]})), now=lambda: 0.0, tokens=len)
    with pytest.raises(ModelError) as caught:
        heard(speaker)
    assert (caught.value.kind, caught.value.said, caught.value.retry_after_s) == (kind, said, turn.get("retry_after_s"))
    assert heard(speaker)[1].text == "Here."


def test_a_script_that_is_over_says_so_and_one_that_goes_on_begins_behind_what_was_heard() -> None:
    script = parse_script('{"replies": [{"status": 500}, {"text": "a"}, {"status": 500}, {"text": "b"}]}')
    speaker = ScriptedSpeaker(script, done=2, tokens=len)
    with pytest.raises(ModelError, match="no more than 4 replies"):
        heard(speaker)
    again = ScriptedSpeaker(script, done=1, tokens=len)
    with pytest.raises(ModelError):
        heard(again)
    assert heard(again)[1].text == "b"


@pytest.mark.parametrize(
    "text",
    ["a0: &a0 [x, x]\n" + "".join(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]\n" for n in range(40)), "&a [*a]"],
    ids=["billion-laughs", "holds-itself"],
)
def test_yaml_whose_aliases_unfold_without_end_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"aliases .* that unfold to more than 1,000,000 values"):
        read_script(path)
