"""What a context does when it is awaited, and when threads meet in it."""

import asyncio
from threading import Event, Thread
from typing import get_args

import pytest

from tenure import Budget, Context
from tenure.apis import APIS, DialectName
from tenure.engine.lifecycle.decision import Decision
from tenure.engine.policies import PEERS, POLICIES, UNBOUNDED, PolicyName, policy_named
from tenure.errors import InputError
from tenure.testing.store import MemoryStore


def test_type_checkers_know_every_dialect_and_policy() -> None:
    assert set(get_args(DialectName)) == set(APIS)
    names = set(get_args(PolicyName))
    assert names >= {*POLICIES, *PEERS, UNBOUNDED}
    for name in names:
        policy_named(name)


def test_a_second_thread_in_a_context_is_refused_and_changes_nothing() -> None:
    inside, leave = Event(), Event()

    def wait(_: Decision) -> None:
        inside.set()
        leave.wait(20)

    context = Context(store=MemoryStore(), budget=Budget(ceiling=20_000), on_decision=wait)
    context.extend([{"role": "user", "content": "one"}])
    thread = Thread(target=lambda: context.request(model="claude-opus-4-5"))
    thread.start()
    assert inside.wait(20)
    try:
        for enter in (lambda: context.extend([{"role": "user", "content": "two"}]), context.request, context.settle):
            with pytest.raises(InputError, match="another thread at work in this context"):
                enter()
        assert context.session.length == 1
    finally:
        leave.set()
        thread.join()
    context.extend([{"role": "user", "content": "two"}])
    assert context.session.length == 2


def test_a_request_that_waits_leaves_the_loop_free() -> None:
    asked, leave = Event(), Event()

    def wait(_: Decision) -> None:
        asked.set()
        leave.wait(20)

    async def scene() -> None:
        context = Context(store=MemoryStore(), on_decision=wait)
        await context.aextend([{"role": "user", "content": "one"}])
        request = asyncio.create_task(context.arequest(model="claude-opus-4-5", tools=[]))
        while not asked.is_set():
            await asyncio.sleep(0)
        leave.set()
        assert (await request)["messages"][0]["role"] == "user"
        await context.aappend({"role": "assistant", "content": [{"type": "text", "text": "hm"}]})
        await context.asettle("idle")
        assert context.session.length == 2

    asyncio.run(scene())
