"""One conversation over several gateways without affinity: the same bytes from each, and no harm from a kill, a restart of the database or a cut cable."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from cluster import PORT, TOKEN, Cluster, cluster, until

from tenure.store.store import Store
from tenure.testing.provider import FakeProvider, Seen, serve
from tenure.testing.script import Call, Reply

pytestmark = pytest.mark.long

READ = {
    "name": "read",
    "description": "Read a file.",
    "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
}


def reply_to(body: Mapping[str, Any]) -> Reply:
    """The next step, as it follows from the history, however often it is asked for."""
    return Reply(text="Next.", calls=(Call(name="read", arguments=json.dumps({"path": f"file_{len(body['messages'])}.py"})),))


class Talk:
    """An agent that sends its whole history each time, over a new connection."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": "Go through all files."}]
        self.retries = 0

    def ask(self, url: str = "") -> dict[str, Any]:
        body = {
            "model": "claude-sonnet-4-5",
            "max_tokens": 500,
            "tools": [READ],
            "system": "You read files.",
            "messages": self.messages,
        }
        headers = {"x-tenure-token": TOKEN, "x-api-key": "sk-of-the-team"}
        for _ in range(40):
            try:
                answer = httpx.post(f"{url or self.url}/v1/messages", json=body, headers=headers, timeout=30)
                if answer.status_code == 200:
                    return answer.json()
                assert answer.status_code >= 500, answer.text
            except httpx.TransportError:
                pass
            self.retries += 1
            time.sleep(0.25)
        raise AssertionError("no reply")

    def step(self) -> None:
        reply = self.ask()
        self.messages.append({"role": "assistant", "content": reply["content"]})
        results = [
            {
                "type": "tool_result",
                "tool_use_id": call["id"],
                "content": "\n".join(f"line {n} of {call['id']}: {n * n}" for n in range(150)),
            }
            for call in reply["content"]
            if call["type"] == "tool_use"
        ]
        self.messages.append({"role": "user", "content": results})


def bad(provider: FakeProvider) -> list[Seen]:
    return [seen for seen in provider.seen if seen.violations]


def commits(cluster: Cluster) -> int:
    store = Store(cluster.postgres.url, read_only=True)
    try:
        return max((each.commits for each in store.conversations("team")), default=0)
    finally:
        store.close()


def same_bytes(talk: Talk, cluster: Cluster, provider: FakeProvider) -> None:
    """The same request to each replica, one after another, gives the same bytes."""
    start = len(provider.seen)
    for replica in cluster.replicas:
        talk.ask(f"http://{replica.host}:{PORT}")
    sent = {seen.body for seen in provider.seen[start:]}
    assert len(provider.seen) - start == len(cluster.replicas)
    assert len(sent) == 1


def test_a_conversation_over_three_replicas(tmp_path: Path) -> None:
    provider = FakeProvider(reply_to)
    with serve(provider.app) as url, cluster(tmp_path, url, "--mode", "on", "--ceiling", "12k") as hosts:
        talk = Talk(hosts.url)
        for _ in range(15):
            talk.step()
        assert talk.retries == 0
        assert commits(hosts) > 0
        assert all(len(seen.body) < 60_000 for seen in provider.seen), "every replica knows what had left"
        same_bytes(talk, hosts, provider)

        hosts.replicas[0].kill()  # in the middle of a conversation
        for _ in range(4):
            talk.step()
        hosts.replicas[0].start(
            hosts.store_of(hosts.replicas[0]), f"http://{hosts.replicas[0].here}:{int(url.rpartition(':')[2]) + 1}"
        )
        same_bytes(talk, hosts, provider)

        hosts.postgres.stop()  # requests pass, unmanaged at worst
        before = len(provider.seen)
        talk.ask(f"http://{hosts.replicas[1].host}:{PORT}")
        assert len(provider.seen) > before
        hosts.postgres.start()
        until(lambda: _is_ready(hosts))
        for _ in range(4):
            talk.step()
        same_bytes(talk, hosts, provider)

        hosts.replicas[2].cut(off=True)  # its cable, so that nothing is answered at all
        for _ in range(4):
            talk.step()
        hosts.replicas[2].cut(off=False)
        until(lambda: _is_ready(hosts))
        talk.step()
        same_bytes(talk, hosts, provider)

        assert hosts.replicas[1].end() == 0, "it drains and ends by itself"
        talk.step()
        assert [seen.violations for seen in bad(provider)] == []


def _is_ready(hosts: Cluster) -> bool:
    try:
        return all(httpx.get(f"http://{each.host}:{PORT}/readyz", timeout=3).status_code == 200 for each in hosts.replicas)
    except httpx.HTTPError:
        return False
