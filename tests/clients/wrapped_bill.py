"""What agents cost behind the gateway beside themselves alone, for sessions of every length: `python tests/clients/wrapped_bill.py [AGENT ...] [--calls 300]`.

A real agent (`make clients`) is driven once through a session of `--calls` calls of its model against the scripted provider. What it sent is then sent once more for each
limit, through the conversations of a gateway that acts; the provider's strict prefix cache bills both. A session that had ended after any of the calls would have cost what
both had cost until then: so one run shows every length, and the table has the worst of them.
"""

import argparse
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace
from real_agents import AGENTS, DONE, Agent, Desk, Director

from tenure import Budget
from tenure.apis import APIS
from tenure.apis.json_text import dump, load, object_of
from tenure.apis.rules import rules_for
from tenure.context.exchange import Management
from tenure.context.histories import Histories
from tenure.engine.meter.price import prices_for
from tenure.gateway.headers import is_aside, session_named
from tenure.store.store import Store
from tenure.testing.prefix import PrefixCache
from tenure.testing.provider import FakeProvider, serve, violations
from tenure.testing.script import Reply, Turn, events, output_text, wire

SHAPES: Final = ("claude", "codex", "opencode")
LIMITS: Final = (
    {"target": 80_000},
    {"target": 60_000},
    {"target": 40_000},
    {"ceiling": 80_000},
    {"ceiling": 40_000},
    {"ceiling": 24_000},
)
LENGTHS: Final = (10, 30, 100, 300)
SOURCES: Final = Path(__file__).parents[2] / "src"


class Sent(Struct, frozen=True, kw_only=True):
    """A request that an agent made, and what a scripted model answered."""

    dialect: str
    body: bytes
    headers: Mapping[str, str]
    turn: Reply


class Course(Struct, frozen=True, kw_only=True):
    """A session as it was billed."""

    usd: tuple[float, ...]  # after each call
    peak: int  # tokens of the largest prompt
    refused: int  # requests that are not valid
    commits: int = 0
    forced: int = 0  # of them


def work(agent: Agent, calls: int) -> Iterator[Turn]:
    """A session at this package's own sources: files read, searches, listings, tests that print; most results of some kilobytes, a few of twenty."""
    chance = random.Random(11)
    files = sorted(str(path.relative_to(SOURCES.parent)) for path in SOURCES.rglob("*.py") if path.stat().st_size > 3_000)
    for n in range(calls - 1):
        path, size = chance.choice(files), min(20_000, int(chance.lognormvariate(7.3, 0.9)) + 60)
        command = chance.choices(
            (
                f"head -c {size} {path}",
                f"grep -rn 'def {chance.choice('abcdefgmprstw')}' {Path(path).parent} | head -c {size}",
                f"wc -l {Path(path).parent}/*.py | head -c {size}",
                f"for n in $(seq {size // 60}); do echo tests/test_$n.py::test_{chance.randrange(999)} PASSED; done; echo '1 failed: {path}'",
            ),
            (5, 2, 1, 2),
        )[0]
        yield Reply(text=f"Step {n}: {path} is next.", calls=(agent.call(command),))
    yield Reply(text=DONE)


def recorded(name: str, calls: int) -> list[Sent]:
    """What a real agent sends in a session of so many calls."""
    turns: list[Turn] = []
    with tempfile.TemporaryDirectory() as where:
        desk = Desk(name, Path(where) / "home")
        shutil.copytree(SOURCES, desk.work / "src", ignore=shutil.ignore_patterns("__pycache__"))
        director = Director(list(work(desk.agent, calls)))

        def turn(body: Mapping[str, Any]) -> Turn:
            turns.append(director(body))
            return turns[-1]

        provider = FakeProvider(turn)
        with serve(provider.app) as url:
            done = desk.run(url, timeout_s=3600)
        shutil.rmtree(desk.private, ignore_errors=True)
    assert not director.steps, f"{len(director.steps)} steps are left: {(done.stdout + done.stderr)[-2000:]}"
    seen = [each for each in provider.seen if each.status == 200]
    return [
        Sent(dialect=s.dialect, body=s.body, headers=s.headers, turn=t)
        for s, t in zip(seen, turns, strict=True)
        if isinstance(t, Reply)
    ]


def played(sent: Sequence[Sent], budget: Budget) -> Course:
    """A session sent once more, through conversations that are managed."""
    with tempfile.TemporaryDirectory() as where, Store(f"sqlite:///{where}/bill.db") as store:
        histories = Histories(store, Management(budget=budget), background=lambda task: task())

        def managed(each: Sent, answer: Callable[[bytes], dict[str, Any]]) -> None:
            api = APIS[each.dialect]
            exchange = histories.exchange(
                api, each.body, provider=api.server().provider, aside=is_aside(each.headers), hint=session_named(each.headers)
            )
            whole = answer(exchange.body)
            if object_of(load(each.body.decode(), "body"), "body").get("stream"):
                for event in events(whole, each.dialect):
                    exchange.take(event)
                exchange.end()
            else:
                exchange.whole(dump(whole).encode())
            exchange.close()

        course = billed(sent, managed)
        commits = [commit for sheet in store.conversations(None) for commit in store.commits(sheet.id)]
    return replace(course, commits=len(commits), forced=sum(commit.forced for commit in commits))


def billed(sent: Sequence[Sent], send: Callable[[Sent, Callable[[bytes], dict[str, Any]]], None]) -> Course:
    """The bill of a session, call by call; `send` is handed each request and what answers the bytes that it makes of it."""
    cache = PrefixCache(lambda text: len(text) // 4 + 1)
    costs, sizes, refused = list[float](), list[int](), list[str]()

    for n, each in enumerate(sent):

        def answer(raw: bytes, n: int = n, each: Sent = each) -> dict[str, Any]:
            body: dict[str, Any] = dict(object_of(load(raw.decode(), "body"), "body"))
            server = APIS[each.dialect].server()
            rules = rules_for(server.provider, str(body["model"]), each.dialect)
            refused.extend(violations(body, rules)[:1])
            usage = cache.usage(body, rules, float(n), len(output_text(each.turn)) // 4 + 1)
            costs.append(prices_for(str(body["model"]), server.provider).cost_usd(usage))
            sizes.append(usage.prompt)
            return wire(each.turn, n, body, rules, usage)

        send(each, answer)
    return Course(usd=tuple(accumulate(costs)), peak=max(sizes), refused=len(refused))


def alone(sent: Sequence[Sent]) -> Course:
    """A session as the agent sent it."""

    def as_it_is(each: Sent, answer: Callable[[bytes], dict[str, Any]]) -> None:
        answer(each.body)

    return billed(sent, as_it_is)


def row(limit: Mapping[str, int], on: Course, off: Course) -> str:
    """One line of the table."""
    shares = [a / b - 1 for a, b in zip(on.usd, off.usd, strict=True)]
    worst = max(range(len(shares)), key=lambda n: shares[n])
    at = " | ".join(f"{shares[min(n, len(shares)) - 1]:+.1%}" for n in LENGTHS)
    name, tokens = next(iter(limit.items()))
    return f"{name} {tokens // 1000}k | {on.peak:,} | {on.commits} ({on.forced}) | {at} | {shares[worst]:+.1%} at {worst + 1} | {on.refused}"


def main() -> None:
    """Print a table for each agent."""
    parser = argparse.ArgumentParser()
    parser.add_argument("agents", nargs="*", default=SHAPES, help=f"of {', '.join(AGENTS)}")
    parser.add_argument("--calls", type=int, default=LENGTHS[-1])
    options = parser.parse_args()
    for name in options.agents:
        sent = recorded(name, options.calls)
        off = alone(sent)
        titles = ("limit", "largest", "commits (forced)", *(f"{n} calls" for n in LENGTHS), "worst at any length", "refused")
        say(f"\n{name}: {len(sent)} requests, ${off.usd[-1]:.2f} alone, the largest {off.peak:,} tokens")
        say(" | ".join(titles))
        for limit in LIMITS:
            say(row(limit, played(sent, Budget(**limit)), off))


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)  # noqa: T201 - what the script is for


if __name__ == "__main__":
    main()
