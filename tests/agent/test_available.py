"""Which models are found on a machine: keys in the environment and in the file, and servers that answer on local ports."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from msgspec.structs import replace

from tenure.agent.access import SHOWN, Available, UnusableModel, available
from tenure.agent.session import Agent
from tenure.agent.settings import Settings, World
from tenure.models.hosts import NAMED, Service
from tenure.testing.store import MemoryStore

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def answering(body: bytes) -> Answer:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        assert request.startswith(b"GET /v1/models HTTP/1.0\r\n")
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + body)
        writer.close()

    return answer


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()  # until whoever asks has had enough
    writer.close()


def models(*names: str) -> Answer:
    return answering(json.dumps({"object": "list", "data": [{"id": name, "object": "model"} for name in names]}).encode())


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def found(home: Path, servers: Sequence[tuple[str, Answer | None]], **environment: str) -> tuple[Available, ...]:
    """What is found with these servers, by the name of their service; None: nobody listens."""

    async def look() -> tuple[Available, ...]:
        local: list[Service] = []
        async with AsyncExitStack() as stack:
            for name, answer in servers:
                port = free_port()
                if answer is not None:
                    server = await asyncio.start_server(answer, "127.0.0.1", 0)
                    await stack.enter_async_context(server)
                    port = server.sockets[0].getsockname()[1]
                local.append(replace(NAMED[name], url=f"http://127.0.0.1:{port}/v1"))
            return await available(environment, home, local)

    return asyncio.run(look())


def test_a_local_server_that_answers_is_found_with_its_models(tmp_path: Path) -> None:
    each = found(tmp_path, [("ollama", models("qwen3", "llama4")), ("vllm", None)])
    assert [one.spec for one in each] == ["ollama:qwen3", "ollama:llama4"]
    assert each[0].why.startswith("Ollama answers at 127.0.0.1:")


def test_of_a_server_with_many_models_some_are_named_and_the_rest_counted(tmp_path: Path) -> None:
    each = found(tmp_path, [("lmstudio", models(*(f"m{n}" for n in range(SHOWN + 4))))])
    assert len(each) == SHOWN
    assert each[0].why.endswith("with 4 more models")


@pytest.mark.parametrize(
    "answer",
    [silent, answering(b"<html>a site of my own</html>"), answering(b'{"data": 3}'), answering(b"[]"), answering(b"")],
    ids=["never answers", "is a web site", "has no list", "is a list", "is empty"],
)
def test_what_answers_on_a_port_and_is_no_model_server_is_passed_over(answer: Answer, tmp_path: Path) -> None:
    each = found(tmp_path, [("llamacpp", answer), ("ollama", models("qwen3"))])
    assert [one.spec for one in each] == ["ollama:qwen3"]


def test_a_key_in_the_environment_or_in_the_file_is_found(tmp_path: Path) -> None:
    folder = tmp_path / ".config" / "tenure"
    folder.mkdir(parents=True)
    (folder / "keys.toml").write_text('groq = "gsk-in-the-file"\n', encoding="utf-8")
    (folder / "keys.toml").chmod(0o600)
    each = found(tmp_path, [], ANTHROPIC_API_KEY="sk-ant-in-the-environment")
    assert [(one.spec, one.why) for one in each] == [
        ("anthropic:claude-opus-4-5", "ANTHROPIC_API_KEY is set"),
        ("groq:NAME", f"its key is in {folder / 'keys.toml'}"),
    ]


@pytest.mark.parametrize(
    ("model", "problem"),
    [("", "no model was named"), ("openai:gpt-5", "there is no key for openai:gpt-5: set OPENAI_API_KEY")],
)
def test_without_a_model_or_its_key_no_session_begins_and_what_works_is_listed(model: str, problem: str, tmp_path: Path) -> None:
    store = MemoryStore()
    world = World(environment={"ANTHROPIC_API_KEY": "sk-ant"}, home=tmp_path, store=store, local=())
    with pytest.raises(UnusableModel, match=problem) as caught:
        asyncio.run(Agent.open(Settings(folder=tmp_path, model=model), world))
    assert str(caught.value).splitlines()[1:] == ["Found here:", "  -m anthropic:claude-opus-4-5  ANTHROPIC_API_KEY is set"]
    assert not list(store.conversations(str(tmp_path)))


def test_where_nothing_works_it_is_said_what_would(tmp_path: Path) -> None:
    world = World(environment={}, home=tmp_path, store=MemoryStore(), local=())
    with pytest.raises(UnusableModel) as caught:
        asyncio.run(Agent.open(Settings(folder=tmp_path), world))
    said = str(caught.value)
    for word in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "Ollama 11434", "LM Studio 1234", "llama.cpp 8080", "vLLM 8000"):
        assert word in said
