"""What the ledger takes for cached, held against a provider's strict prefix cache, call by call."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from test_histories import reads
from wire_client import Client, Upstream

from tenure import Budget, Context
from tenure.apis import APIS
from tenure.context.exchange import Management
from tenure.context.histories import Histories
from tenure.engine.meter.tokens import o200k
from tenure.testing.prefix import PrefixCache
from tenure.testing.store import MemoryStore

TEXT = " ".join(f"the value of item {n} is {n * 7919};" for n in range(150))  # nothing in it is escaped, so that both count alike
MARK = {"cache_control": {"type": "ephemeral"}}


@dataclass
class CachingUpstream(Upstream):
    """Has a strict prefix cache, and reports the prompt alone."""

    cache: PrefixCache | None = field(default_factory=lambda: PrefixCache(o200k()))

    def whole(self, raw: bytes) -> dict[str, Any]:
        reply = super().whole(raw)
        said = {"input_tokens": self.usages[-1].prompt, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
        return reply | {"usage": reply["usage"] | said}


@dataclass
class MarkingClient(Client):
    """Marks `own` parts of its system prompt, and its newest message, as Claude Code does."""

    own: int = 2

    def body(self, history: Sequence[Any], *, tools: bool = True) -> bytes:
        body: Any = json.loads(super().body(history, tools=tools))
        rules = [{"type": "text", "text": f"Rule {n}. {TEXT}"} for n in range(3)]
        body["system"] = [part | (MARK if n >= len(rules) - self.own else {}) for n, part in enumerate(rules)]
        return json.dumps(body).encode()


@pytest.mark.parametrize("model", ["claude-opus-5", "claude-sonnet-4-5"])
@pytest.mark.parametrize("reminder", [False, True], ids=["plain", "system message"])
@pytest.mark.parametrize("own", [1, 2])
def test_the_ledger_takes_as_cached_what_a_strict_prefix_cache_reports(own: int, reminder: bool, model: str) -> None:
    store = MemoryStore()
    upstream = CachingUpstream(APIS["anthropic"], model, reads(99))
    client = MarkingClient(
        Histories(store, Management(budget=Budget(ceiling=24_000), gate="priced")), upstream, mark=True, own=own
    )
    first = [client.user(f"please do it\n{TEXT}")]
    if reminder and upstream.rules.system_messages:
        first.append({"role": "system", "content": [{"type": "text", "text": f"Mind this.\n{TEXT}"}]})
    simulated, commits = [0], [0]
    calls = client.turn(*first)
    for _ in range(26):
        (sheet,) = store.conversations()
        with Context(store=store, conversation=sheet.id) as again:  # what is stored says the same as what was seen
            simulated.append(again.ledger.compared.sent.usage.cache_read)
        commits.append(sheet.commits)
        calls = client.turn(*client.results(calls, lambda call: f"{call.arguments}\n{TEXT}"))
    reported = [usage.cache_read for usage in upstream.usages]
    expected = [after - before for before, after in pairwise(simulated)]
    for n, (ours, theirs) in enumerate(zip(expected, reported, strict=False)):
        before = upstream.usages[max(0, n - 1)].prompt  # what left of it is converted by the measured ratio, to within 5 %
        assert ours == pytest.approx(theirs, abs=0.05 * before), (n, ours, theirs)
    assert commits[-1] > 2
    edits = [n for n, (before, after) in enumerate(pairwise(commits)) if after > before]
    assert reported[edits[0]] == 0, "a tool is offered from then on: the head is another"
    prologue = o200k()(TEXT) * (len(first) + 3)  # its prompt, and what came before the first reply
    assert all(reported[n] > prologue for n in edits[1:]), "all that stands in front of what left is found again after each edit"
