"""A session goes on with the model it was held with, where that was, and never at a host that is only guessed."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from holding import Outside, call, folder, heard, open_agent, says

from tenure.agent.access import UnusableModel
from tenure.agent.catalogue import ModelChoice
from tenure.agent.helper import helper_named
from tenure.agent.session import Agent
from tenure.agent.settings import Settings, World
from tenure.cli.main import main
from tenure.engine.lifecycle.terms import Terms
from tenure.models.hosts import is_whole, public_url
from tenure.models.scripted import Playing, ScriptedSpeaker
from tenure.models.scripted import Script as Playbook
from tenure.store.records import Conversation
from tenure.store.store import Store
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Reply, Script

Held = tuple[str, str, str, str]
OLLAMA = "http://127.0.0.1:11434/v1"


def facts(choice: ModelChoice) -> Held:
    return choice.name, choice.api, choice.host, choice.provider


class Opened:
    """Opens sessions of one folder, each of one turn, and keeps the model that each was opened with."""

    def __init__(self, tmp_path: Path, **world: Any) -> None:
        self.outside = Outside(folder(tmp_path))
        self.choices: list[ModelChoice] = []
        self._world = world

    def __call__(self, **settings: Any) -> Agent:
        async def play() -> Agent:
            agent = await open_agent(self.outside, {"speaker": self.speaker, **self._world}, **settings)
            await heard(agent, "Go on.")
            await agent.close()
            return agent

        return asyncio.run(play())

    def speaker(self, choice: ModelChoice) -> ScriptedSpeaker:
        """A model of this name and API that is done."""
        self.choices.append(choice)
        playing = Playing(dialect=choice.api or "openai-chat", model=choice.name)
        return ScriptedSpeaker(Playbook(replies=[says("Done.")] * 9, playing=playing), now=lambda: 0.0, tokens=len)

    @property
    def newest(self) -> Held:
        return facts(self.choices[-1])


@pytest.mark.parametrize(
    ("model", "base_url"),
    [
        ("ollama:qwen3", ""),
        ("groq:llama-3.3-70b", ""),
        ("openai:gpt-5", ""),
        ("openai-chat:gpt-5", ""),
        ("anthropic:claude-opus-4-5", ""),
        ("anthropic:claude-opus-4-5", "https://claude.example.org"),
        ("openai:local", "https://llm.example.org:8443/v1"),
    ],
)
def test_a_session_goes_on_at_the_host_it_was_held_at(model: str, base_url: str, tmp_path: Path) -> None:
    opened = Opened(tmp_path)
    first = opened(model=model, base_url=base_url)
    begun = opened.newest
    opened(newest=True, model="")
    assert opened.newest == begun
    opened(resume=first.id, model="")
    assert opened.newest == begun


def test_a_session_goes_on_at_its_host_through_the_sdk_and_sends_nothing_elsewhere(tmp_path: Path) -> None:
    own, other = FakeProvider(Script(replies=[Reply(text="One."), Reply(text="Two.")])), FakeProvider(Script(replies=()))
    where = folder(tmp_path)

    async def turn(settings: Settings, world: World) -> None:
        agent = await Agent.open(settings, world)
        await heard(agent, "A private matter.")
        await agent.close()

    with serve(own.app) as url, serve(other.app) as elsewhere:
        environment = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{elsewhere}/v1", "XDG_STATE_HOME": str(tmp_path / "state")}
        world = World(environment=environment, home=tmp_path / "home", today=None, tokens=len)
        asyncio.run(turn(Settings(folder=where, model="openai:qwen3", base_url=f"{url}/v1"), world))
        asyncio.run(turn(Settings(folder=where, newest=True), world))
    assert [each.status for each in own.seen] == [200, 200]
    assert other.seen == []


def test_a_base_url_of_the_environment_is_kept_like_one_that_was_given(tmp_path: Path) -> None:
    opened = Opened(tmp_path, environment={"ANTHROPIC_BASE_URL": "https://proxy.example.org"})
    opened(model="anthropic:claude-opus-4-5")
    again = Opened(tmp_path)
    again.outside.store = opened.outside.store
    again(newest=True, model="")
    assert again.choices[-1].host == opened.choices[-1].host == "proxy.example.org"


def test_another_model_that_is_named_is_used_and_kept(tmp_path: Path) -> None:
    opened = Opened(tmp_path)
    opened(model="ollama:qwen3")
    opened(newest=True, model="groq:llama-3.3-70b")
    opened(newest=True, model="")
    assert opened.newest == ("llama-3.3-70b", "openai-chat", "api.groq.com", "groq")
    opened(newest=True, model="", base_url="http://127.0.0.1:9/v1")
    opened(newest=True, model="")
    assert opened.newest == ("llama-3.3-70b", "openai-chat", "127.0.0.1:9", "")
    assert opened.choices[-1].spec == "openai-chat:llama-3.3-70b"


def test_a_script_goes_on_as_that_script(tmp_path: Path) -> None:
    opened = Opened(tmp_path)
    opened(model="scripted:my script?.json")
    opened(newest=True, model="")
    assert opened.choices[-1].spec == f"scripted:{(opened.outside.where / 'my script?.json').resolve()}"


def test_a_session_of_an_older_store_asks_for_the_model_rather_than_guess(tmp_path: Path) -> None:
    opened = Opened(tmp_path)
    agent = opened(model="ollama:qwen3")
    store = opened.outside.store
    sheet = store.conversation(agent.id)
    store.hold_to(Conversation(id=sheet.id, dialect="openai-chat", model="qwen3", budget=sheet.budget))
    with pytest.raises(UnusableModel, match=r"was held with qwen3, and the store does not say where: .*--model MODEL \(-m\)"):
        opened(newest=True, model="")
    assert len(opened.choices) == 1
    opened(newest=True, model="ollama:qwen3")
    opened(newest=True, model="")
    assert opened.choices[-1].host == "127.0.0.1:11434"


def test_what_may_be_secret_in_a_url_is_not_kept_and_asked_for_again(tmp_path: Path) -> None:
    opened = Opened(tmp_path)
    agent = opened(model="openai:m", base_url="https://ann:hunter2@llm.example.org/v1?key=hunter2")
    assert "hunter2" not in opened.outside.store.conversation(agent.id).terms
    with pytest.raises(
        UnusableModel, match=r"at https://\*\*\*@llm\.example\.org/v1\?\*\*\*, .* give all of it with --base-url URL"
    ):
        opened(newest=True, model="")


def test_the_url_of_a_store_that_was_named_is_followed_only_to_hosts_that_are_known(tmp_path: Path) -> None:
    """Whoever made the file would get the key that is meant for another server."""
    file = tmp_path / "given.db"
    opened = Opened(tmp_path, store=None)
    opened(model="openai:m", base_url="https://llm.example.org/v1", store=str(file))
    with pytest.raises(
        UnusableModel, match=r"at https://llm\.example\.org/v1, says the store: .* --base-url https://llm\.example\.org/v1"
    ):
        opened(newest=True, model="", store=str(file))
    opened(newest=True, model="", store=str(file), base_url="https://llm.example.org/v1")
    opened(newest=True, model="ollama:qwen3", store=str(file))
    opened(newest=True, model="", store=str(file))
    assert opened.choices[-1].host == "127.0.0.1:11434"


def test_a_part_is_done_and_kept_where_the_session_is(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), says("", call("task", task="Look.")), says("Seen."), says("Done."))
    choices: list[ModelChoice] = []

    def speaker(choice: ModelChoice) -> Any:
        choices.append(choice)
        outside.speaker.name = choice.name
        return outside.speaker

    async def play() -> None:
        agent = await open_agent(outside, {"speaker": speaker}, model="ollama:qwen3")
        await heard(agent, "Go.")
        await agent.close()

    asyncio.run(play())
    sheets = outside.store.conversations(None)
    assert sorted(sheet.is_part for sheet in sheets) == [False, True]
    assert {(sheet.model, Terms.stored(sheet.terms).base_url) for sheet in sheets} == {("qwen3", OLLAMA)}
    assert len(choices) == 1


@pytest.mark.parametrize("helper", ["openai:small", "openai-chat:small"])
def test_a_helper_of_the_same_kind_is_asked_where_the_session_goes_on(helper: str, tmp_path: Path) -> None:
    opened = Opened(tmp_path)
    opened(model="openai:large", base_url="https://llm.example.org/v1")
    agent = opened(newest=True, model="")
    parts = agent.parts
    helper_named(helper, parts.choice, parts.settings, parts.world)
    assert opened.choices[-1].host == "llm.example.org"


def test_another_model_of_the_same_session_moves_to_its_own_host(tmp_path: Path) -> None:
    opened = Opened(tmp_path)
    opened(model="ollama:qwen3")

    async def play() -> None:
        agent = await open_agent(opened.outside, {"speaker": opened.speaker}, newest=True, model="")
        await agent.use("anthropic:claude-opus-4-5")
        await agent.close()

    asyncio.run(play())
    opened(newest=True, model="")
    assert opened.choices[-1].host == "api.anthropic.com"


def test_a_model_of_the_environment_is_for_new_sessions_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in (("HOME", tmp_path), ("XDG_STATE_HOME", tmp_path / "state"), ("XDG_CONFIG_HOME", tmp_path / "config")):
        monkeypatch.setenv(name, str(value))
    where = folder(tmp_path)
    monkeypatch.chdir(where)
    (tmp_path / "state" / "tenure").mkdir(parents=True)
    with Store(f"sqlite:///{tmp_path}/state/tenure/sessions.db") as store:
        sheet = Conversation(id="old", tenant=str(where.resolve()), dialect="openai-chat", model="qwen3")
        context = store.create(sheet)
        from tenure.engine.record.chain import Chain
        from tenure.engine.record.entry import Draft, Origin, Role, Text

        draft = Draft(role=Role.USER, blocks=(Text(text="A private matter.", origin=Origin.HUMAN),))
        store.append(context.id, [Chain(sheet.tenant).place(draft, (4,))])
    monkeypatch.setenv("TENURE_MODEL", "openai:gpt-5")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    for option in (("--continue",), ("--resume", "old")):
        assert main(["run", "Go on.", *option]) == 2
        assert "the store does not say where" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://h/v1", "https://h/v1"),
        ("https://u:p@h:8/v1", "https://***@h:8/v1"),
        ("https://h/v1?api-version=1#x", "https://h/v1?***"),
    ],
)
def test_a_url_is_kept_without_what_may_be_secret(url: str, kept: str) -> None:
    assert public_url(url) == kept
    assert is_whole(kept) == (url == kept)
