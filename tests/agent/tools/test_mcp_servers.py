import asyncio
import json
import os
import re
import sys
import threading
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from calling import at_once, here, workspace
from msgspec.structs import replace

from tenure.agent.approval import CallEffect
from tenure.agent.tools.servers import server
from tenure.agent.tools.servers.server import LOG_BYTES, ServerConfig, read_configs
from tenure.agent.tools.servers.start import Servers, start_servers
from tenure.agent.tools.servers.streams import pipe, too_large
from tenure.agent.tools.servers.tool import LONGEST_TOGETHER, MOST, tool_name, tool_schema
from tenure.agent.tools.tool import Here, ToolOutcome
from tenure.agent.workspace import Workspace
from tenure.engine.record.tools import ToolKind

WIRE = ServerConfig(name="wire", command=sys.executable, args=(str(Path(__file__).with_name("wire_server.py")),))


def with_servers(folder: Path, use: Callable[[Servers], Awaitable[None]], *configs: ServerConfig, limit_s: float = 20) -> None:
    """Start servers, use them, and stop them."""

    async def run() -> None:
        servers = await start_servers(configs or (WIRE,), folder=folder, limit_s=limit_s, logs=folder)
        try:
            await use(servers)
        finally:
            await servers.stop()

    asyncio.run(run())


async def called(servers: Servers, name: str, at: Here, **arguments: Any) -> ToolOutcome:
    tool = next(tool for tool in servers.tools if tool.name == name)
    return await tool.run(json.dumps(arguments), at)


def test_tools_are_listed_page_by_page_with_legal_names_and_their_schemas(tmp_path: Path) -> None:
    async def use(servers: Servers) -> None:
        names = [tool.name for tool in servers.tools]
        assert names[:4] == ["wire__die", "wire__echo", "wire__env", "wire__fail"]
        assert len(names) == 9
        assert all(len(name) <= 64 for name in names)
        tools = {tool.name: tool for tool in servers.tools}
        assert tools["wire__echo"].schema == {"type": "object", "properties": {"text": {"type": "string"}}}
        assert tools["wire__echo"].description == "Says it again ␛[31m"
        assert tools["wire__structured"].kind is ToolKind.BULK
        assert tools["wire__echo"].kind is ToolKind.INTERMEDIATE
        (long,) = [tool for tool in servers.tools if "provider" in tool.name]
        assert long.schema == {"type": "object", "properties": {}}
        assert "Its arguments as JSON Schema: {" in long.description
        assert servers.notes == ()

    with_servers(tmp_path, use)
    assert (tmp_path / "mcp-1.log").read_text() == "a word for the log\n"


def test_answers_come_as_text_and_images(tmp_path: Path) -> None:
    at = here(workspace(tmp_path))

    async def use(servers: Servers) -> None:
        assert await called(servers, "wire__echo", at, text="hi") == ToolOutcome(text="hi")
        mixed = await called(servers, "wire__mixed", at)
        assert mixed.text == "red\n[image/tiff, 3 bytes, which cannot be shown]\n[resource doc: file:///doc]\nnoted"
        assert [source.media_type for source in mixed.media] == ["image/png"]
        assert await called(servers, "wire__fail", at) == ToolOutcome(text="it failed", error=True)
        assert await called(servers, "wire__structured", at) == ToolOutcome(text='{"n":1}')
        assert (await called(servers, "wire__junk", at)).text.startswith("wire__junk: wire: no valid answer")
        long = await called(
            servers, "wire__echo", here(at.workspace, limits={"output_bytes": 100}, part=tmp_path / "a.part"), text="x" * 5_000
        )
        assert "\n[left out here: lines 1-1 of 1, 4,900 of 5,000 bytes; the whole output is kept: recall" in long.text
        assert long.spill is not None
        assert (tmp_path / long.spill.sha256).read_text() == "x" * 5_000
        assert "KEY" not in (await called(servers, "wire__env", at)).text

    with_servers(tmp_path, use)


def test_malformed_arguments_never_reach_a_server(tmp_path: Path) -> None:
    at = here(workspace(tmp_path))

    async def use(servers: Servers) -> None:
        (tool,) = [tool for tool in servers.tools if tool.name == "wire__echo"]
        outcome = await tool.run("nonsense", at)
        assert outcome == ToolOutcome(
            text="wire__echo: arguments: found 'nonsense', expected one JSON object with text", error=True
        )

    with_servers(tmp_path, use)


def test_a_silent_server_is_left_after_a_while_and_can_be_called_again(tmp_path: Path) -> None:
    at = here(workspace(tmp_path), wait=at_once(), limits={"server_call_s": 9})
    impatient = here(at.workspace)
    impatient.cancel.set()

    async def use(servers: Servers) -> None:
        assert await called(servers, "wire__hang", at) == ToolOutcome(text="wire__hang: no answer within 9 s", error=True)
        assert (await called(servers, "wire__hang", impatient)).text == "wire__hang: it was stopped by the user"
        assert (await called(servers, "wire__echo", here(at.workspace), text="still here")).text == "still here"

    with_servers(tmp_path, use)


def test_a_dead_server_is_an_error_and_is_started_once_more(tmp_path: Path) -> None:
    at = here(workspace(tmp_path))

    async def use(servers: Servers) -> None:
        died = await called(servers, "wire__die", at)
        assert died.error
        assert died.text.endswith("the server ended during the call; it was started again, so the call can be repeated")
        assert (await called(servers, "wire__echo", at, text="back")).text == "back"
        again = await called(servers, "wire__die", at)
        assert "not for the first time: it is left alone for this session" in again.text
        after = await called(servers, "wire__echo", at, text="gone")
        assert after.error
        assert "the server has ended" in after.text

    with_servers(tmp_path, use)


def test_servers_that_do_not_come_up_are_named_and_hold_up_nobody(tmp_path: Path) -> None:
    async def use(servers: Servers) -> None:
        assert servers.tools == ()
        assert [note.partition(":")[0] for note in servers.notes] == [
            f"MCP server {name}" for name in ("missing", "quits", "web", "silent")
        ]
        assert "cannot be reached" in servers.notes[0]
        assert "not ready within 1.5 s" in servers.notes[3]

    with_servers(
        tmp_path,
        use,
        ServerConfig(name="missing", command="/no/such/program"),
        ServerConfig(name="quits", command="true"),
        ServerConfig(name="web", url="http://127.0.0.1:9/mcp"),
        ServerConfig(name="silent", command="sh", args=("-c", "cat > /dev/null")),
        limit_s=1.5,
    )


def test_the_official_server_is_spoken_to_over_http(tmp_path: Path) -> None:
    import uvicorn
    from mcp.server.mcpserver import MCPServer

    official = MCPServer("official")

    @official.tool()
    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    async def run() -> None:
        config = uvicorn.Config(
            official.streamable_http_app(), host="127.0.0.1", port=0, log_level="critical", lifespan="on", ws="none"
        )
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        url = f"http://127.0.0.1:{port}/mcp"
        servers = await start_servers([ServerConfig(name="web", url=url, headers={"X-Key": "k"})], folder=tmp_path, limit_s=20)
        at = here(workspace(tmp_path))
        assert servers.notes == ()
        assert (await called(servers, "web__add", at, a=2, b=3)).text == "5"
        wrong = await called(servers, "web__add", at, a="two")
        assert wrong.error
        assert "validation error" in wrong.text
        await servers.stop()
        server.should_exit = True
        await serving

    asyncio.run(run())


def test_a_server_asks_unless_it_is_trusted_and_says_that_it_only_reads(tmp_path: Path, ws: Workspace) -> None:

    async def use(servers: Servers) -> None:
        needs = {tool.name: tool.needs('{"a":1}', ws) for tool in servers.tools}
        echo = needs["wire__echo"]
        assert echo is not None
        assert (echo.act, echo.exact, echo.broad) == (CallEffect.SERVER, 'wire__echo {"a":1}', ("wire__echo",))
        assert needs["wire__mixed"] is not None
        assert needs["safe__mixed"] is None
        assert needs["safe__echo"] is not None

    trusted = ServerConfig(name="safe", command=WIRE.command, args=WIRE.args, trusted=True)
    with_servers(tmp_path, use, WIRE, trusted)


def test_a_server_of_many_tools_leaves_room_for_others_and_what_is_left_out_is_said(tmp_path: Path) -> None:
    async def use(servers: Servers) -> None:
        names = [tool.name for tool in servers.tools]
        assert len(names) == MOST
        assert sum(name.startswith("wire__") for name in names) == 9
        assert servers.notes == (f"MCP server many: only {MOST - 9} of its 509 tools are taken: there is no room for more",)
        assert sum(tool.weight for tool in servers.tools) <= LONGEST_TOGETHER

    with_servers(tmp_path, use, ServerConfig(name="many", command=WIRE.command, args=WIRE.args, env={"MANY": "500"}), WIRE)


def test_rubbish_that_a_server_prints_between_its_answers_is_passed_over(tmp_path: Path) -> None:
    at = here(workspace(tmp_path))

    async def use(servers: Servers) -> None:
        assert (await called(servers, "noisy__echo", at, text="hi")).text == "hi"

    with_servers(tmp_path, use, ServerConfig(name="noisy", command=WIRE.command, args=WIRE.args, env={"RUBBISH": "1"}))


def test_what_a_server_complains_of_fills_no_disk(tmp_path: Path) -> None:
    at = here(workspace(tmp_path))

    async def use(servers: Servers) -> None:
        assert (await called(servers, "loud__echo", at, text="hi")).text == "hi"

    with_servers(tmp_path, use, ServerConfig(name="loud", command=WIRE.command, args=WIRE.args, env={"LOUD": str(3 * LOG_BYTES)}))
    assert (tmp_path / "mcp-1.log").stat().st_size == LOG_BYTES


@pytest.mark.parametrize(
    "given",
    [
        {"type": "array"},
        {},
        {"type": "object", "properties": {"a": {"type": "strnig"}}},
        {"type": "object", "properties": []},
        {"type": "object", "required": "a"},
        {"type": "object", "properties": {"a": {"items": [{"type": "string"}]}}},
        {"type": "object", "description": "d" * 50_000},
    ],
    ids=["no object", "nothing", "no type", "no fields", "no list", "an old draft", "a book"],
)
def test_a_schema_that_providers_refuse_is_told_in_words(given: dict[str, Any]) -> None:
    found = tool_schema(given)
    assert found.schema == {"type": "object", "properties": {}}
    assert found.words.startswith("Its arguments as JSON Schema: {")
    assert len(found.words) < 2_000


def test_fields_whose_names_providers_refuse_go_by_others_and_reach_the_server_by_their_own() -> None:
    given = {
        "type": "object",
        "properties": {"filter[id]": {"type": "string"}, "filter_id_": {"type": "string"}, "n" * 70: {}, "é": {}},
        "required": ["filter[id]", "filter_id_"],
        "anyOf": [{"required": ["é"]}],
        "$schema": "http://json-schema.org/draft-07/schema#",
    }
    found = tool_schema(given)
    names = list(found.schema["properties"])
    assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name) for name in names)
    assert len(set(names)) == 4
    assert found.schema["required"] == [names[0], "filter_id_"]
    assert [found.own.get(name, name) for name in names] == list(given["properties"])
    assert not found.schema.keys() & {"anyOf", "$schema"}
    assert '"anyOf"' in found.words


def test_a_field_by_another_name_is_sent_by_its_own(tmp_path: Path) -> None:
    at = here(workspace(tmp_path))

    async def use(servers: Servers) -> None:
        (tool,) = [tool for tool in servers.tools if tool.name == "odd__odd"]
        (name,) = tool.schema["properties"]
        assert (await called(servers, "odd__odd", at, **{name: "x"})).text == '{"filter[id]": "x"}'

    with_servers(tmp_path, use, ServerConfig(name="odd", command=WIRE.command, args=WIRE.args, env={"ODD": "1"}))


def test_a_description_that_is_cut_says_how_much_of_it_is_left_out(tmp_path: Path) -> None:
    async def use(servers: Servers) -> None:
        (tool,) = [tool for tool in servers.tools if tool.name == "wire__wordy"]
        assert tool.description == "w" * 2_000 + "\n[left out: the other 500 of 2,500 characters of this description]"

    with_servers(tmp_path, use, ServerConfig(name="wire", command=WIRE.command, args=WIRE.args, env={"WORDY": "1"}))


def test_data_that_the_text_beside_it_does_not_say_is_kept(tmp_path: Path) -> None:
    at = here(workspace(tmp_path))
    rows: list[tuple[list[str], dict[str, object], str]] = [
        (["2 files changed"], {"files": ["a", "b"]}, '2 files changed\n{"files":["a","b"]}'),
        (['{"n": 1}'], {"n": 1}, '{"n": 1}'),
        (["one", "two"], {"result": ["one", "two"]}, "one\ntwo"),
        (['{"a":1}', "2"], {"result": [{"a": 1}, 2]}, '{"a":1}\n2'),
        (["7"], {"result": 7}, "7"),
        (["text"], {"result": "other"}, 'text\n{"result":"other"}'),
    ]

    async def use(servers: Servers) -> None:
        for texts, data, expected in rows:
            assert (await called(servers, "wire__structured", at, texts=texts, data=data)).text == expected

    with_servers(tmp_path, use)


def test_names_are_made_legal_and_stay_apart() -> None:
    assert tool_name("my server!", "do.it") == "my_server__do_it"
    assert tool_name("é", "ü") == "server__tool".replace("tool", "_")
    one, other = tool_name("s" * 70, "a"), tool_name("s" * 70, "b")
    assert one != other
    assert len(one) == len(other) == 64


def test_settings_are_read_with_their_variables_and_wrong_ones_named() -> None:
    text = json.dumps(
        {
            "mcpServers": {
                "a": {"command": "npx", "args": ["-y", "${PKG}"], "env": {"T": "${TOKEN:-none}"}, "type": "stdio"},
                "b": {"type": "http", "url": "https://${HOST}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}, "note": 1},
                "off": {"command": "x", "disabled": True},
                "both": {"command": "x", "url": "y"},
                "none": {},
                "old": {"url": "x", "type": "sse"},
                "odd": "x",
                "wrong": {"command": ["x"]},
            }
        }
    )
    found, notes = read_configs(text, {"PKG": "server", "HOST": "example.org", "TOKEN": "t"})
    assert [config.name for config in found] == ["a", "b"]
    assert found[0].args == ("-y", "server")
    assert found[0].env == {"T": "t"}
    assert found[1].url == "https://example.org/mcp"
    assert found[1].headers == {"Authorization": "Bearer t"}
    assert [note.split(": ")[1] for note in notes] == ["both", "none", "old", "odd", "wrong"]


@pytest.mark.parametrize("text", ["", "[", "[]", "3", '{"mcpServers": []}'])
def test_settings_that_are_none_are_said_to_be(text: str) -> None:
    found, notes = read_configs(text, {}, "settings.json")
    assert found == ()
    assert notes[0].startswith("settings.json: ")


def test_one_tool_with_a_bad_schema_costs_that_tool_and_not_the_server(tmp_path: Path) -> None:
    async def use(servers: Servers) -> None:
        names = {tool.name for tool in servers.tools}
        assert "wire__echo" in names
        assert "wire__good" in names
        assert len(names) == 10
        (note,) = servers.notes
        assert note.startswith("MCP server wire: left out, since no model could call it: ")
        for name in ("no schema", "schema of words", "one without a name"):
            assert name in note
        at = here(workspace(tmp_path))
        assert (await called(servers, "wire__echo", at, text="hi")).text == "hi"

    with_servers(tmp_path, use, replace(WIRE, env={"BAD": "1"}))


def saying(folder: Path, **messages: str) -> ServerConfig:
    """A server that answers a method with these words; `ID` is the call's."""
    for method, text in messages.items():
        (folder / method.replace("_", "-")).write_text(text)
    return replace(WIRE, env={"SAYS": str(folder)})


GOOD = '{"name": "good", "inputSchema": {"type": "object"}}'
CALLED = '{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "text", "text": "hi"}]%s}}'
LISTED = '{"jsonrpc": "2.0", "id": ID, "result": {"tools": [%s]}}'


@pytest.mark.parametrize(
    ("bad", "is_kept"),
    [
        ('{"name": "bad", "inputSchema": {"type": "object", "required": [[{}]]}}', False),
        ('{"name": "bad", "inputSchema": {"type": "object", "properties": []}}', False),
        (
            '{"name": "bad", "inputSchema": {"type": "object", "properties": {"a": %s}}}'
            % ('{"items":' * 3_000 + "{}" + "}" * 3_000),
            True,
        ),
        ('{"name": "bad", "inputSchema": {"type": "object", "properties": {"a": {"allOf": [%s{}]}}}}' % ("{}," * 9_000), True),
        ('{"name": "bad", "inputSchema": {"type": "object"}, "description": "\\ud800"}', True),
        ("[" * 3_000 + "]" * 3_000, False),
        ("7", False),
    ],
)
def test_one_tool_that_the_protocols_own_reader_refuses_costs_that_tool_and_not_the_list(
    tmp_path: Path, bad: str, is_kept: bool
) -> None:
    async def use(servers: Servers) -> None:
        assert [tool.name for tool in servers.tools] == ["wire__bad"] * is_kept + ["wire__good"]
        assert len(servers.notes) == (not is_kept)
        assert (await called(servers, "wire__good", here(workspace(tmp_path)))).text == "hi"

    with_servers(tmp_path, use, saying(tmp_path, tools_list=LISTED % f"{bad}, {GOOD}", tools_call=CALLED % ""))


def test_more_tools_than_there_is_room_for_are_counted_and_not_looked_at(tmp_path: Path) -> None:
    many = ", ".join(GOOD.replace("good", f"t{n:05}") for n in range(5_000))

    async def use(servers: Servers) -> None:
        assert len(servers.tools) == MOST
        assert "the other 4,000 of 5,000 tools" in "".join(servers.notes)

    with_servers(tmp_path, use, saying(tmp_path, tools_list=LISTED % many))


def test_an_answer_is_not_matched_with_the_patterns_of_a_strangers_schema(tmp_path: Path) -> None:
    tool = '{"name": "good", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object", "properties": {"a": {"pattern": "^(a+)+$"}}}}'

    async def use(servers: Servers) -> None:
        assert (await called(servers, "wire__good", here(workspace(tmp_path)))).text == 'hi\n{"a":"%s!"}' % ("a" * 60)

    data = ', "structuredContent": {"a": "%s!"}' % ("a" * 60)
    with_servers(tmp_path, use, saying(tmp_path, tools_list=LISTED % tool, tools_call=CALLED % data))


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        # A code that the SDK has for a connection that was closed.
        ('{"jsonrpc": "2.0", "id": ID, "error": {"code": -32000, "message": "no \\u001b[31mquota"}}', "wire: no ␛[31mquota"),
        ('{"jsonrpc": "2.0", "id": ID, "error": {"code": 1, "message": "%s"}}' % ("e" * 9_000), "wire: " + "e" * 1_000),
        ('{"jsonrpc": "2.0", "id": ID, "result": "words"}', "wire: its answer is no message of the protocol"),
    ],
)
def test_an_error_of_a_server_is_one_of_its_call_in_few_words(tmp_path: Path, answer: str, text: str) -> None:
    async def use(servers: Servers) -> None:
        for _ in range(3):  # it is neither started again nor left alone
            outcome = await called(servers, "wire__good", here(workspace(tmp_path)))
            assert (outcome.text, outcome.error) == (f"wire__good: {text}", True)

    with_servers(tmp_path, use, saying(tmp_path, tools_list=LISTED % GOOD, tools_call=answer))


@pytest.mark.parametrize(
    ("parts", "count"),
    [
        (['{"type": "text", "text": "x"}'] * 20_000, 10_000),
        (['{"type": "image", "mimeType": "image/png", "data": "no base64!"}'], 0),
        (['{"type": "image", "mimeType": "image/png", "data": "AAAA"}'], 0),
    ],
)
def test_parts_of_an_answer_that_no_provider_would_take_are_named(tmp_path: Path, parts: list[str], count: int) -> None:
    async def use(servers: Servers) -> None:
        outcome = await called(servers, "wire__good", here(workspace(tmp_path)))
        *lines, last = outcome.text.splitlines()
        assert lines == ["x"] * count
        assert not outcome.media
        assert "left out: the other 10,000 of 20,000 parts" in last or "which cannot be shown" in last

    answer = CALLED.replace('{"type": "text", "text": "hi"}', ", ".join(parts)) % ""
    with_servers(tmp_path, use, saying(tmp_path, tools_list=LISTED % GOOD, tools_call=answer))


@pytest.mark.parametrize(
    "words",
    [
        '{"jsonrpc": "2.0", "id": "s%d", "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}',
        '{"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": %d}}',
        '{"jsonrpc": "2.0", "id": %d, "result": {}}',
        "Loading %d",
    ],
)
def test_a_flood_of_what_nobody_asked_for_starts_nothing_and_the_answer_behind_it_comes(tmp_path: Path, words: str) -> None:
    async def use(servers: Servers) -> None:
        assert (await called(servers, "wire__good", here(workspace(tmp_path)))).text == "hi"
        assert len(asyncio.all_tasks()) < 50

    flood = "\n".join(words % (10**6 + n) for n in range(5_000))
    with_servers(tmp_path, use, saying(tmp_path, tools_list=LISTED % GOOD, tools_call=flood + "\n" + CALLED % ""))


def test_a_server_that_is_slow_to_start_keeps_its_chance(tmp_path: Path) -> None:
    gate = tmp_path / "gate"

    async def use(servers: Servers) -> None:
        assert servers.tools == ()
        assert servers.notes == ("MCP server wire: not ready within 0.2 s; its tools are offered once it is",)
        assert servers.come() == ()
        gate.touch()
        new = servers.come()
        while servers.waiting:
            await asyncio.sleep(0.01)
            new = servers.come()
        assert "wire__echo" in {tool.name for tool in new}
        assert servers.notes == ()
        assert (await called(servers, "wire__echo", here(workspace(tmp_path)), text="hi")).text == "hi"

    with_servers(tmp_path, use, replace(WIRE, env={"GATE": str(gate)}), limit_s=0.2)


def test_a_server_that_is_slow_and_then_fails_is_reported_and_one_that_never_comes_is_ended(tmp_path: Path) -> None:
    pid = tmp_path / "pid"

    async def use(servers: Servers) -> None:
        while "dies" in servers.waiting:
            await asyncio.sleep(0.01)
            servers.come()
        assert [note.partition(":")[0] for note in servers.notes] == ["MCP server dies"]
        assert servers.waiting == ("silent",)

    with_servers(
        tmp_path,
        use,
        ServerConfig(name="dies", command="sh", args=("-c", "sleep 0.5; exit 3")),
        ServerConfig(name="silent", command="sh", args=("-c", f"echo $$ > {pid}; cat > /dev/null; sleep 63.5")),
        limit_s=0.3,
    )
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


@pytest.mark.parametrize("last", [False, True])
def test_a_huge_answer_is_bounded_while_it_comes_and_the_server_goes_on(tmp_path: Path, last: bool) -> None:
    from mcp import StdioServerParameters
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCError

    most = 100_000
    answer = (
        '{"jsonrpc": "2.0", "id": 7, "result": {"x": "%s"}}'
        if not last
        else '{"result": {"id": 3, "x": "%s"}, "jsonrpc": "2.0", "id": 7}'
    )
    script = (
        f"import sys\nhead, tail = {answer!r}.split('%s')\nsys.stdout.write(head)\n"
        "for _ in range(3_000):\n    sys.stdout.write('y' * 10_000)\nsys.stdout.write(tail + '\\n')\n"
        'sys.stdout.write(\'{"jsonrpc": "2.0", "id": 8, "result": {}}\\n\')\n'
    )

    async def run() -> None:
        parameters = StdioServerParameters(command=sys.executable, args=["-c", script], cwd=tmp_path)
        with Path(os.devnull).open("w") as errors:
            async with pipe(parameters, errors, most) as (read, _):
                first = await anext(aiter(read))
                assert isinstance(first, SessionMessage)
                assert isinstance(first.message, JSONRPCError)
                assert (first.message.id, first.message.error.message) == (7, too_large(most))
                held = tracemalloc.get_traced_memory()[1]
                second = await anext(aiter(read))
                assert isinstance(second, SessionMessage)
                assert getattr(second.message, "id", None) == 8
                assert held < 20 * most  # of the 30,000,000 bytes

    tracemalloc.start()
    try:
        asyncio.run(run())
    finally:
        tracemalloc.stop()


def test_an_answer_that_is_too_large_is_an_error_of_its_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "pipe", partial(pipe, most=100_000))
    at = here(workspace(tmp_path))

    async def use(servers: Servers) -> None:
        huge = await called(servers, "wire__echo", at, text="x" * 200_000)
        assert huge.error
        assert huge.text == "wire__echo: wire: its answer is larger than 0 MB, and was left where it was"
        assert (await called(servers, "wire__echo", at, text="hi")).text == "hi"

    with_servers(tmp_path, use)


def serving(handler: type[BaseHTTPRequestHandler]) -> Generator[int]:
    """A server on this machine, and its port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_to_another_address_is_not_followed_and_no_token_goes_there(tmp_path: Path, status: int) -> None:
    reached: list[str] = []
    asked: list[str] = []

    class Private(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            reached.append(self.headers.get("Authorization", ""))
            self.send_error(500)

        do_GET = do_DELETE = do_POST  # noqa: N815 - http.server's names

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
            pass

    with contextmanager(serving)(Private) as private:

        class Public(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked.append(self.headers["Authorization"])
                self.rfile.read(int(self.headers.get("Content-Length", "0")))
                self.send_response(status)
                self.send_header("Location", f"http://127.0.0.1:{private}/latest/meta-data")
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_GET = do_DELETE = do_POST  # noqa: N815 - http.server's names

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
                pass

        async def use(servers: Servers) -> None:
            assert servers.tools == ()
            assert "cannot be reached" in servers.notes[0]

        with contextmanager(serving)(Public) as public:
            config = ServerConfig(name="web", url=f"http://localhost:{public}/mcp", headers={"Authorization": "Bearer CANARY"})
            with_servers(tmp_path, use, config)
    assert set(asked) == {"Bearer CANARY"}
    assert reached == []


def test_an_answer_over_http_is_bounded_while_it_comes() -> None:
    import httpx2

    from tenure.agent.tools.servers.streams import bound

    sent: list[int] = []

    async def body() -> AsyncIterator[bytes]:
        for n in range(1_000):
            sent.append(n)
            yield b"x" * 1_000

    async def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "application/json"}, content=body())

    async def run() -> None:
        hooks = {"response": [lambda response: bound(response, 10_000)]}
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer), event_hooks=hooks) as client:
            with pytest.raises(httpx2.StreamError, match="larger than"):
                await client.get("http://server/")

    asyncio.run(run())
    assert len(sent) == 11
