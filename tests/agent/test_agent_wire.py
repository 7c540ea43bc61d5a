"""What goes over the wire, through the official SDKs, to a provider that refuses what the real ones refuse."""

import asyncio
import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from holding import Outside, Turn, call, end, folder, heard, of, says

from tenure.agent.approval import Mode
from tenure.agent.events import Committed, Event, Requested, Retrying
from tenure.agent.session import Agent
from tenure.agent.settings import Settings
from tenure.engine.lifecycle.budget import Budget
from tenure.models.speaker import SdkSpeaker, Silence
from tenure.testing.provider import FakeProvider, Seen, serve
from tenure.testing.script import Broken, Fault, Script

KEY = "sk-test-0123456789abcdef"
MODELS = {
    "openai-chat": "gpt-5-mini",
    "openai-responses": "gpt-5-mini",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-3-flash",
}
every = pytest.mark.parametrize("dialect", MODELS)
LINES = "\n".join(f"{n}: a line that says something about number {n}" for n in range(60))


@contextmanager
def provided(*turns: Turn) -> Iterator[tuple[FakeProvider, str]]:
    provider = FakeProvider(Script(replies=turns), clock=lambda: 0.0)
    with serve(provider.app) as url:
        yield provider, url


def asked(
    outside: Outside,
    dialect: str,
    url: str,
    *texts: str,
    model: str = "",
    silence: Silence | None = None,
    on: Callable[[Agent, Event], object] = lambda *_: None,
    **settings: Any,
) -> list[Event]:
    """All events of a session that speaks this API over its SDK; `on` is told of each as it comes."""

    async def play() -> list[Event]:
        name = model or MODELS[dialect]
        base = f"{url}/v1" if dialect.startswith("openai") else url
        world = outside.world(speaker=lambda _: SdkSpeaker(name, dialect, base_url=base, api_key=KEY, silence=silence))
        usual: dict[str, Any] = {"folder": outside.where, "model": f"{dialect}:{name}", "base_url": base, "mode": Mode.ALL}
        agent = await Agent.open(Settings(**(usual | settings)), world)
        try:
            return [event for text in texts for event in await heard(agent, text, on=partial(on, agent))]
        finally:
            await agent.close()

    return asyncio.run(play())


def unmarked(body: bytes) -> bytes:
    """A body without its cache markers, and with content as a list wherever a marker may have made it one."""

    def bare(value: Any) -> Any:
        match value:
            case dict():
                return {key: bare(inner) for key, inner in value.items() if key != "cache_control"}
            case list():
                return [bare(inner) for inner in value]
            case _:
                return value

    fields = bare(json.loads(body))
    if "contents" in fields:  # which Google's SDK writes first
        fields["contents"] = fields.pop("contents")
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def bytes_of(seen: Seen) -> bytes:
    """A request as it was sent; without markers, and with its messages last."""
    return unmarked(seen.body) if b"cache_control" in seen.body or seen.dialect == "gemini" else seen.body


def without_notes(seen: Seen) -> bytes:
    """The bytes of a request up to its notes: all but the end of its list when it has none."""
    plain = bytes_of(seen)
    assert any(key in plain for key in (b'"messages":[', b'"input":[', b'"contents":['))
    starts = (b'{"role":"user","content":"', b'{"role":"user","content":[{"type":"text","text":"', b'{"text":"')
    at = next((at for start in starts if (at := plain.find(start + b"[git status")) >= 0), -1)
    return plain[: at - 1] if at >= 0 else plain[: -len(b"]}]}" if seen.dialect == "gemini" else b"]}")]


def working() -> Sequence[Turn]:
    return (
        says("I look.", call("read", path="a.py"), call("grep", pattern="line"), thinking="where is it?"),
        says("I change.", call("write", path="b.py", content="é ü \u2028 \\ud83d"), thinking="so it is"),
        says("I check.", call("bash", command="printf 'a\\001b\\377'"), call("read", path="b.py")),
        says("Done."),
        says("", call("ls")),
        says("Nothing more."),
    )


@every
def test_every_request_is_valid_and_begins_with_the_bytes_of_the_one_before_up_to_its_notes(dialect: str, tmp_path: Path) -> None:
    where = folder(tmp_path, a_py=LINES)
    repository(where)
    with provided(*working()) as (provider, url):
        events = asked(Outside(where), dialect, url, "Go.", "And now?")
    assert end(events).reason == "done"
    assert [seen.violations for seen in provider.seen] == [()] * 6
    assert all(b"git status now" in seen.body for seen in provider.seen)
    for before, after in pairwise(provider.seen):
        assert bytes_of(after).startswith(without_notes(before))


@every
def test_what_was_sent_before_is_read_from_the_cache(dialect: str, tmp_path: Path) -> None:
    where = folder(tmp_path, a_py=LINES)
    repository(where)
    with provided(*working()) as (provider, url):
        asked(Outside(where), dialect, url, "Go.", "And now?")
    for before, after in pairwise(provider.seen):
        assert before.usage
        assert after.usage
        assert after.usage.cache_read >= before.usage.prompt - 60  # the notes, which are no part of the past


@every
def test_a_request_is_valid_and_smaller_after_a_commit(dialect: str, tmp_path: Path) -> None:
    where = folder(tmp_path, a_py="\n".join([LINES] * 20))
    reads = [says("", call("read", path="a.py", offset=1 + 60 * n, limit=60), thinking=f"part {n}") for n in range(16)]
    with provided(*reads, says("Done.")) as (provider, url):
        events = asked(Outside(where), dialect, url, "Go.", policy="cwl", budget=Budget(ceiling=9_000, window=12_000))
    assert end(events).reason == "done"
    assert of(events, Committed)
    assert not any(seen.violations for seen in provider.seen)
    lengths = [len(seen.body) for seen in provider.seen]
    assert any(after < before for before, after in pairwise(lengths))


def test_reasoning_that_is_bound_to_what_was_before_it_stays_valid_though_there_are_notes(tmp_path: Path) -> None:
    where = folder(tmp_path, a_py=LINES)
    repository(where)
    with provided(*working()) as (provider, url):
        events = asked(Outside(where), "anthropic", url, "Go.", "And now?", model="claude-fable-5-1")
    assert end(events).reason == "done"
    assert [seen.violations for seen in provider.seen] == [()] * 6


@every
def test_a_turn_that_was_cut_off_can_be_gone_on_with(dialect: str, tmp_path: Path) -> None:
    opens = call("delimiter", action="start", name="find", type="expl")
    turns = (says("I look.", opens, call("read", path="a.py"), thinking="hm"), says("", call("ls"), thinking="so"), says("On."))
    with provided(*turns) as (provider, url):

        def stop(agent: Agent, event: Event) -> None:
            if isinstance(event, Requested) and event.step == 2 and not provider.seen[1:]:
                agent.cancel()

        events = asked(Outside(folder(tmp_path, a_py=LINES)), dialect, url, "Go.", "Go on.", on=stop)
    assert end(events).reason == "done"
    assert not any(seen.violations for seen in provider.seen)
    assert b"interrupted by the user" in provider.seen[-1].body


@every
def test_faults_are_waited_out_and_the_same_request_is_made_again(dialect: str, tmp_path: Path) -> None:
    after = 2 if dialect == "gemini" else 3  # events, of which Gemini's stream has the fewest
    faults: tuple[Turn, ...] = (
        Fault(status=429, retry_after_s=7),
        Fault(status=529 if dialect == "anthropic" else 503),
        Broken(reply=says("lost words"), how="cut", after=after),
        Broken(reply=says("lost words"), how="end", after=after),
        Broken(reply=says("lost words"), how="malformed", after=after),
        Broken(reply=says("lost words"), how="error", after=after),
    )
    outside = Outside(folder(tmp_path))
    with provided(*faults, says("Here.")) as (provider, url):
        events = asked(outside, dialect, url, "Go.")
    assert end(events).text == "Here."
    assert len(of(events, Retrying)) == 6
    assert outside.waits[0] == 8.0  # as long as the provider wants, and a moment more
    assert {seen.body for seen in provider.seen} == {provider.seen[0].body}
    assert KEY not in "".join(map(repr, events))


def test_a_provider_that_falls_silent_is_asked_again(tmp_path: Path) -> None:
    with provided(Broken(reply=says("lost words"), how="stall", after=3), says("Here.")) as (_, url):
        events = asked(Outside(folder(tmp_path)), "anthropic", url, "Go.", silence=Silence(read_s=0.5))
    assert end(events).text == "Here."
    assert [each.discard for each in of(events, Retrying)] == [True]


@every
def test_a_request_that_is_too_long_for_the_provider_is_evicted_and_made_once_more(dialect: str, tmp_path: Path) -> None:
    where = folder(tmp_path, a_py="\n".join([LINES] * 20))
    reads = [says("", call("read", path="a.py", offset=1 + 60 * n, limit=60)) for n in range(12)]
    words = {
        "anthropic": "prompt is too long: 16000 tokens > 12000 maximum",
        "gemini": "The input token count (16000) exceeds the maximum number of tokens allowed (12000).",
        "openai-chat": "This model's maximum context length is 12000 tokens. However, your messages resulted in 16000 tokens.",
        "openai-responses": "Your input exceeds the context window of this model.",
    }
    fault = Fault(status=400, message=words[dialect], code="context_length_exceeded" if dialect.startswith("openai") else "")
    with provided(*reads, fault, says("Done.")) as (provider, url):
        events = asked(Outside(where), dialect, url, "Go.", policy="cwl", output=1_000)
    assert end(events).text == "Done."
    assert [each.kind for each in of(events, Retrying)] == ["too long"]
    assert len(of(events, Committed)) == 1
    assert len(provider.seen[-1].body) < 0.8 * len(provider.seen[-2].body)
    assert not any(seen.violations for seen in provider.seen)


def test_the_port_of_a_local_server_is_no_window(tmp_path: Path) -> None:
    where = folder(tmp_path, a_py="\n".join([LINES] * 20))
    reads = [says("", call("read", path="a.py", offset=1 + 60 * n, limit=60)) for n in range(12)]
    fault = Fault(status=400, message="the request exceeds the available context size; see http://127.0.0.1:8765/props")
    with provided(*reads, fault, says("Done.")) as (provider, url):
        events = asked(Outside(where), "openai-chat", url, "Go.", policy="cwl", output=1_000)
    assert end(events).text == "Done."
    refused, again = provider.seen[-2:]
    assert 0.4 * len(refused.body) < len(again.body) < len(refused.body)


def repository(where: Path) -> None:
    subprocess.run(
        ["git", "init", "-q", str(where)], check=True, env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(where)}
    )
