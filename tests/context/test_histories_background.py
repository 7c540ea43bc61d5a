"""What histories leave to another thread, and what they keep in memory."""

from collections.abc import Callable

from test_histories import LONG, reads
from wire_client import Client, upstream

from tenure.context.client_context import ClientContext
from tenure.context.exchange import Management
from tenure.context.histories import Histories
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.record.entry import ToolCall
from tenure.store.records import utc_now
from tenure.testing.store import MemoryStore
from work import steps

# Of what no limit forces this rule does what takes a large share, so that a short session shows it.
SHARED = Management(budget=Budget(target=2_000), gate="selfgc-paper")


def play(client: Client, steps: int) -> list[ToolCall]:
    calls = client.turn(client.user("please do it"))
    for _ in range(steps):
        calls = client.turn(*client.results(calls, lambda call: f"{call.arguments}\n{LONG}"))
    return calls


def test_what_no_limit_forces_is_decided_behind_a_reply_and_not_while_a_request_waits() -> None:
    later: list[Callable[[], None]] = []
    histories = Histories(MemoryStore(), SHARED, background=later.append)
    client = Client(histories, upstream("anthropic", "claude-opus-5", reads(99)))
    calls = play(client, 6)
    (sheet,) = histories.store.conversations()
    assert not sheet.commits
    assert len(later) == 7, "once behind each reply"
    later[-1]()
    (sheet,) = histories.store.conversations()
    assert sheet.commits
    before = len(client.upstream.bodies[-1])
    client.turn(*client.results(calls, lambda _: "short"))
    assert len(client.upstream.bodies[-1]) < before
    (after,) = histories.store.conversations()
    assert after.commits == sheet.commits


def test_a_decision_that_comes_too_late_leaves_the_request_alone() -> None:
    later: list[Callable[[], None]] = []
    histories = Histories(MemoryStore(), SHARED, background=later.append)
    client = Client(histories, upstream("anthropic", "claude-opus-5", reads(99)))
    calls = play(client, 6)
    waiting = histories.exchange(client.api, client.body([*client.history, *client.results(calls, lambda _: "x")]))
    later[-1]()
    (sheet,) = histories.store.conversations()
    assert not sheet.commits, "the next reply's turn"
    waiting.close()


def test_conversations_are_let_go_of_by_their_bytes_and_found_again() -> None:
    histories = Histories(MemoryStore(), Management(live_bytes=30_000))
    clients = [Client(histories, upstream("anthropic", "claude-opus-5", reads(99))) for _ in range(4)]
    calls = [client.turn(client.user(f"task {n}: " + "words " * 2_000)) for n, client in enumerate(clients)]
    assert histories.live == 2, "each is of about 12,000 bytes"
    for client, made in zip(clients, calls, strict=True):
        client.turn(*client.results(made, lambda _: "short"))
    assert [sheet.length for sheet in histories.store.conversations()] == [4] * 4
    small = Histories(MemoryStore(), Management(live_bytes=1))
    play(Client(small, upstream("anthropic", "claude-opus-5", reads(99))), 3)
    assert small.live == 1, "the one in use stays"


def test_a_request_whose_history_is_being_taken_in_does_not_wait_for_the_first_commit() -> None:
    later: list[Callable[[], None]] = []
    reasons: list[str] = []

    def clock() -> str:
        if later == []:  # it is asked while the history is taken in, and for the first commit
            reasons.append(histories.exchange(client.api, body).reason)
        return utc_now()

    writer = Client(Histories(MemoryStore()), upstream("anthropic", "claude-opus-5", reads(99)))
    calls = play(writer, 4)
    management = Management(budget=Budget(ceiling=500), inline_bytes=1)
    histories = Histories(MemoryStore(), management, background=later.append, clock=clock)
    client = Client(histories, writer.upstream)
    body = client.body([*writer.history, *writer.results(calls, lambda _: "short")])
    assert histories.exchange(client.api, body).reason == "it is being taken in"
    later.pop()()
    assert set(reasons) == {"it is being taken in"}
    later.append(print)
    assert histories.exchange(client.api, body).reason == ""


def test_tools_that_a_client_sends_again_are_not_read_again_and_others_are() -> None:
    context = ClientContext(store=MemoryStore(), dialect="anthropic")
    tools = [{"name": f"t{n}", "description": "x", "input_schema": {"type": "object", "properties": {}}} for n in range(40)]
    first, again = (steps(lambda: context.decide({"tools": [dict(tool) for tool in tools]}, offer=True)) for _ in range(2))
    assert again * 4 < first
    own = {"name": "recall", "description": "the client's own", "input_schema": {"type": "object"}}
    assert [tool["name"] for tool in context.decide({"tools": tools}, offer=True)] == ["recall"]
    assert "recall" not in [tool["name"] for tool in context.decide({"tools": [*tools, own]}, offer=True)]
