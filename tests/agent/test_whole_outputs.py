"""What a tool hands over goes into the record whole: the clip is made of all of it, and recall has it, also of what is kept in a file."""

import asyncio
import json
import resource
import signal
from pathlib import Path

import pytest
from holding import Outside, call, end, folder, of, open_agent, played, recorded, results, says
from holding import heard as run
from test_agent_kill import stopped

from tenure.agent.events import CallDone
from tenure.agent.loop import INTERRUPTED
from tenure.cli.main import main
from tenure.engine.record.entry import Spill, ToolResult
from tenure.errors import InputError
from tenure.store.spills import Spills
from tenure.store.store import Store
from tenure.testing.store import MemoryStore

LOG = r"""for i in $(seq 1 4128); do
  if [ $i = 2000 ]; then echo "ERROR: src/billing.py:41: the invoice has no address"
  elif [ $i = 3001 ]; then echo "ERROR: src/orders.py:7: timed out after 30 s"
  else echo "2026-01-01T00:00:00 INFO step $i of the build was done, and it was a step as any other"; fi
done"""


def spill_of(outside: Outside) -> Spill:
    """The newest spill of the record."""
    found = [
        block.spill for entry in recorded(outside) for block in entry.blocks if isinstance(block, ToolResult) and block.spill
    ]
    assert isinstance(found[-1], Spill)
    return found[-1]


def with_spills(outside: Outside, tmp_path: Path) -> Outside:
    outside.store = MemoryStore(spills=Spills(tmp_path / "spills"))
    return outside


def test_a_long_log_is_recorded_whole_its_errors_are_shown_and_recall_finds_what_is_not(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), says("Run.", call("bash", command=LOG)), says("Done."))

    async def play() -> tuple[str, str, str]:
        agent = await open_agent(outside)
        events = await run(agent, "go")
        body = agent.context.wire().decode()
        handle = of(events, CallDone)[0].handle
        found = agent.context.recall(pattern="step 3999 of")
        whole = agent.context.recall(handle)
        await agent.close()
        return body, found, whole

    body, found, whole = asyncio.run(play())
    (text,) = results(outside)
    assert text.count("\n") == 4_128
    assert "left out" not in text
    assert "the invoice has no address" in body
    assert "timed out after 30 s" in body
    assert "step 3999 of" not in body
    assert "line 3999" in found
    assert "step 2345 of" in whole


FLOOD = "seq 1 200000; echo 'panic: the reactor is dry'; seq 200002 700000"  # 4.7 MB


def test_an_output_too_large_for_the_record_is_recalled_by_line_and_by_pattern_until_its_file_is_missing(tmp_path: Path) -> None:
    outside = with_spills(Outside(folder(tmp_path), says("Run.", call("bash", command=FLOOD)), says("Done.")), tmp_path)

    async def play() -> dict[str, str]:
        agent = await open_agent(outside)
        await run(agent, "go")
        context, handle = agent.context, spill_of(outside).handle
        first, last = spill_of(outside).left
        told = {
            "body": context.wire().decode(),
            "pattern": context.recall(pattern="reactor"),
            "within": context.recall(handle, pattern="^3500"),
            "from": context.recall(handle, pattern="^3500", lines="350050-"),
            "lines": context.recall(handle, lines=f"{first}-{first + 2}"),
            "end": context.recall(handle, lines=f"{last}-"),
            "start": context.recall(handle, cap=300),
        }
        (path,) = (tmp_path / "spills").iterdir()
        assert path.name == spill_of(outside).sha256
        path.unlink()
        with pytest.raises(InputError, match="there is no such file"):
            context.recall(handle)
        assert context.recall("bash:1", lines="1") == "1"  # nothing else is lost
        await agent.close()
        return told

    told = asyncio.run(play())
    spill = spill_of(outside)
    assert (spill.lines, spill.of_lines) == (700_000, 700_000)
    first, last = spill.left
    assert "is intact" not in told["body"]
    assert f"its lines {first}-{last} left out: recall {spill.handle} returns all 700,000 lines" in told["body"]
    if first <= 200_001 <= last:
        assert told["pattern"].split("\n")[1] == f"{spill.handle} line 200001: panic: the reactor is dry"
    assert f"{spill.handle} line 350050: 350050" in told["within"] + told["from"]
    assert told["from"].split("\n")[1] == f"{spill.handle} line 350050: 350050"
    assert told["lines"] == f"{first}\n{first + 1}\n{first + 2}"
    assert told["end"].startswith(f"{last}\n")
    assert "Go on with: recall handle=" in told["start"]


def test_nothing_stays_beside_the_store_of_outputs_that_the_record_holds(tmp_path: Path) -> None:
    outside = with_spills(Outside(folder(tmp_path), says("Run.", call("bash", command="seq 1 9")), says("Done.")), tmp_path)
    end(played(outside, "go"))
    assert list((tmp_path / "spills").iterdir()) == []


def test_a_store_without_a_folder_says_that_the_rest_of_an_output_is_not_kept(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), says("Run.", call("bash", command=FLOOD)), says("Done."))
    played(outside, "go")
    (text,) = results(outside)
    assert "bytes; that is not kept: this store has no folder for it]" in text


def test_the_limit_of_what_is_kept_is_a_setting_and_what_is_lost_is_counted(tmp_path: Path) -> None:
    outside = with_spills(Outside(folder(tmp_path), says("Run.", call("bash", command=FLOOD)), says("Done.")), tmp_path)

    async def play() -> tuple[str, str]:
        agent = await open_agent(outside, spill=1_000_000)
        await run(agent, "go")
        body, part = agent.context.wire().decode(), agent.context.recall(spill_of(outside).handle, cap=300)
        await agent.close()
        return body, part

    body, part = asyncio.run(play())
    (text,) = results(outside)
    spill = spill_of(outside)
    assert (spill.size, spill.of_size) == (1_000_000, len(_flood()))
    assert "of the output the first 1,000,000 bytes are kept (the limit is 1,000,000)" in text
    assert f"returns the first {spill.lines:,} of {spill.of_lines:,} lines; no more was kept" in body
    assert part.startswith(
        f"[{spill.handle}: the first 1,000,000 bytes ({spill.lines:,} lines) of an output of {spill.of_size:,} bytes;"
    )


def _flood() -> bytes:
    numbers = [f"{n}\n" for n in range(1, 700_001)]
    numbers[200_000] = "panic: the reactor is dry\n"
    return "".join(numbers).encode()


def test_a_kill_while_a_command_runs_leaves_what_it_had_said_to_the_session_that_goes_on(tmp_path: Path) -> None:
    where, path = folder(tmp_path), tmp_path / "sessions.db"
    script = tmp_path / "script.json"
    command = "seq 1 900000; echo so' 'far; sleep 60"
    replies = [{"text": "I run.", "calls": [{"name": "bash", "arguments": {"command": command}}]}, {"text": "On."}]
    script.write_text(json.dumps({"replies": replies}), encoding="utf-8")
    stopped(where, path, script, "so far", signal.SIGKILL)
    (part,) = Path(f"{path}.spills").iterdir()
    assert part.suffix == ".part"
    assert part.read_bytes().endswith(b"900000\nso far\n")

    async def again() -> tuple[str, str]:
        outside = Outside(where)
        world = {"store": None, "speaker": None}
        agent = await open_agent(outside, world, newest=True, store=str(path), model=f"scripted:{script}", alone=True)
        await run(agent, "Go on.")
        found = agent.context.recall(pattern="^450000$")
        conversation = agent.id
        await agent.close()
        return conversation, found

    conversation, found = asyncio.run(again())
    with Store(f"sqlite:///{path}") as store:
        entries = list(store.entries(conversation))
        assert store.verify(conversation) is None
    (result,) = [block for entry in entries for block in entry.blocks if isinstance(block, ToolResult)]
    assert result.text.startswith("1\n2\n3\n")
    assert result.text.endswith(f"so far\n{INTERRUPTED}")
    assert isinstance(result.spill, Spill)
    assert f"{result.spill.handle} line 450000: 450000" in found
    assert [each.name for each in Path(f"{path}.spills").iterdir()] == [result.spill.sha256]


def test_the_command_line_recalls_what_is_kept_in_a_file(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    outside, path = (
        Outside(folder(tmp_path), says("I run.", call("bash", command=FLOOD)), says("Done.")),
        tmp_path / "sessions.db",
    )
    end(played(outside, "Go.", world={"store": None}, store=str(path)))
    (kept,) = Path(f"{path}.spills").iterdir()

    def recalled(*arguments: str) -> bytes:
        assert main(["recall", str(path), f"spill:{kept.name[:12]}", *arguments]) == 0
        return capfdbinary.readouterr().out

    assert recalled("--raw") == _flood()
    assert recalled("--lines", "200001").decode().strip() == "panic: the reactor is dry"
    assert b"line 200001: panic" in recalled("--pattern", "reactor")


def test_memory_does_not_grow_with_the_output(tmp_path: Path) -> None:
    outside = with_spills(
        Outside(folder(tmp_path), says("Run.", call("bash", command="yes | head -c 256M")), says("Done.")), tmp_path
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    played(outside, "go", spill=50_000_000)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    spill = spill_of(outside)
    assert (spill.size, spill.of_size, spill.of_lines) == (50_000_000, 2**28, 2**27)
    assert grown < 200_000, f"{grown:,} KB"  # of which the clip and the counts of 4 MB take most


def test_the_answer_of_a_sub_agent_is_recorded_whole(tmp_path: Path) -> None:
    long = "\n".join(f"finding {n}" for n in range(5_000))
    outside = Outside(folder(tmp_path), says("Hand on.", call("task", task="look")), says(long), says("Done."))
    played(outside, "go")
    (text,) = results(outside)
    assert text.startswith(long)
