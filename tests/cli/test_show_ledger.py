"""What `tenure show` prints of a conversation in a store of our own."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from chats import drawn
from tenure.cli.main import main
from tenure.cli.show import summary
from tenure.engine.meter.ledger import Ledger, Spent, opened
from tenure.engine.meter.price import Prices
from tenure.engine.meter.tokens import o200k
from tenure.engine.record.chain import Chain
from tenure.engine.record.entry import Draft, Origin, Role, Text, Usage
from tenure.lab.loading import load, source
from tenure.store.records import Conversation
from tenure.store.store import Store

PRICES = Prices(uncached=3e-6, write=3.75e-6, read=3e-7, output=1.5e-5)


def store_file(path: Path, *, calls: bool = True) -> str:
    """A store of two conversations, the newer one with a call of its agent and one of a planner."""
    with Store(f"sqlite:///{path}", now=iter(("2026-01-01", "2026-01-02")).__next__) as store:
        for name in ("older", "newer"):
            chain = Chain()
            store.create(Conversation(id=name, model="gpt-5"))
            said = (Draft(role=Role.USER, blocks=(Text(text="Go.", origin=Origin.HUMAN),)),)
            replied = (Draft(role=Role.ASSISTANT, blocks=(Text(text="Gone.", origin=Origin.MODEL),)),)
            store.append(name, [chain.place(draft, (5,)) for draft in (*said, *replied)])
        if calls:
            store.observe("newer", 1, Usage(uncached=2_000, output=9), "gpt-5", "2026-01-02T00:00:00Z", 0.01)
            store.note("newer", Spent(role="planner", model="gpt-5-\x1b[2J", usage=Usage(cache_read=700), usd=0.002))
    return str(path)


def test_show_prints_the_ledger_of_a_stored_conversation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = store_file(tmp_path / "agent.db")
    assert main(["show", path]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    rows = {line.split()[0]: line.split() for line in shown.splitlines() if line.strip()}
    assert rows["agent"] == ["agent", "gpt-5", "1", "2.0k", "0", "0", "9", "$0.010"]
    assert rows["planner"][2:] == ["1", "0", "0", "700", "0", "$0.002"]
    assert rows["all"] == ["all", "2", "2.0k", "0", "700", "9", "$0.012"]
    assert main(["show", f"{path}#older"]) == 0
    assert "uncached" not in capsys.readouterr().out


def test_a_store_of_an_older_version_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = store_file(tmp_path / "agent.db")
    with sqlite3.connect(path) as old:
        old.executescript(
            "DROP TABLE client_link; DROP TABLE store_key; DROP TABLE aside; ALTER TABLE usage DROP COLUMN usd; ALTER TABLE conversation DROP COLUMN terms;"
            "ALTER TABLE commit_log DROP COLUMN id; UPDATE tenure_version SET version = 1;"
        )
    assert main(["show", path]) == 0
    assert "gpt-5" in capsys.readouterr().out


def long_ledger() -> Ledger:
    """Everything that a ledger can say."""
    ledger = opened(60_000)
    for n in range(40):
        prompt = Usage(uncached=20, cache_write=900 + n, cache_read=20_000, output=310)
        spent = Spent(model="claude-sonnet-4-5-20250929", usage=prompt, usd=PRICES.cost_usd(prompt))
        ledger = ledger.after_call(spent, shown=20_000, whole=20_000 + 1_800 * n, prices=PRICES, fetching=n == 20)
        ledger = ledger.after_commit(1_000) if n == 10 else ledger.after_answer(2_400) if n == 20 else ledger
    ledger = ledger.after_helper_call(
        Spent(role="planner", model="claude-sonnet-4-5", usage=Usage(cache_read=20_000, output=900), usd=0.0195)
    )
    return ledger.after_helper_call(Spent(role="digest", model="a-model-of-our-own", usage=Usage(uncached=9_000, output=200)))


@pytest.mark.parametrize("width", [80, 160])
def test_a_ledger_reads_well(width: int, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    loaded = load([source(store_file(tmp_path / "agent.db", calls=False))], o200k())
    golden(f"show-ledger-{width}.txt", drawn(width, summary("agent.db", loaded, 5, width, [long_ledger()])))
