"""Many sessions at once through one gateway, by counts and bounds."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep
from typing import Any

from sdk_clients import STEPS, results, user
from test_gateway import LONG, READ, becomes_idle, between

from tenure.context.exchange import Management
from tenure.engine.lifecycle.budget import Budget
from tenure.gateway.server import FAULTS
from tenure.store.store import Store
from tenure.testing.provider import FakeProvider
from tenure.testing.script import Reply

SESSIONS, TURNS, LIVE = 30, 4, 8


def test_thirty_streamed_sessions_at_once_stay_apart_are_let_go_when_idle_and_go_on_out_of_the_store(tmp_path: Path) -> None:
    provider = FakeProvider(lambda body: Reply(text=f"look {len(body['messages'])}", calls=(READ,)), clock=lambda: 0.0)
    histories: dict[int, list[Any]] = {n: [user(f"task {n}")] for n in range(SESSIONS)}

    def work(n: int, turns: int) -> None:
        with STEPS["anthropic"](url, stream=True) as step:
            for _ in range(turns):
                history, calls = step(histories[n])
                histories[n] = history + results("anthropic", calls, f"{n}\n{LONG}")

    management = Management(budget=Budget(ceiling=3_000), live=LIVE, inline_bytes=10**9)
    with (
        Store(f"sqlite:///{tmp_path}/a.db") as store,
        between(provider, store=store, management=management, idle_s=0.5) as (url, gateway),
    ):
        with ThreadPoolExecutor(SESSIONS) as people:
            list(people.map(work, range(SESSIONS), [TURNS] * SESSIONS))
            assert becomes_idle(gateway)
            assert gateway.histories.live <= LIVE
            while gateway.histories.live:  # without any request
                sleep(0.05)
            list(people.map(work, range(SESSIONS), [1] * SESSIONS))
        assert becomes_idle(gateway)
        sheets = store.conversations()
        firsts = {next(store.entries(sheet.id)).payload.decode() for sheet in sheets}
    assert (gateway.counts["leads"], gateway.counts["asides"]) == (SESSIONS * (TURNS + 1), 0)
    assert [fault for fault in FAULTS if gateway.counts[fault]] == []
    assert (len(sheets), len(firsts)) == (SESSIONS, SESSIONS)
    assert {sheet.length for sheet in sheets} == {2 * (TURNS + 1)}
    assert all(sheet.commits for sheet in sheets)


LOADED = """
import sys
from tenure.context.exchange import Management
from tenure.gateway.warming import warm
warm(Management())
before = set(sys.modules)
warm(Management())
print(len(set(sys.modules) - before), "tiktoken" in before, "genai_prices" in before)
"""


def test_what_a_process_loads_once_is_loaded_before_the_first_conversation() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True)
    assert done.stdout.split() == ["0", "True", "True"], done.stderr
