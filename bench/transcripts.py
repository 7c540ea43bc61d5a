"""The transcripts that benchmarks measure on: the same messages for our engine and for its peers.

Shaped as in the measurements of the CWL paper's public implementation: 5 messages an episode, `expl` and `act` in turn, every `act`
depending on the `expl` before it, about 43 tokens (characters / 4) a message. Run as a script, it prints its own figures.
"""

import json
from collections.abc import Iterable, Iterator

from tenure.engine.record.entry import Block, Draft, Origin, Role, Text, Thinking, ToolCall, ToolResult

MESSAGES_PER_EPISODE = 5
SIZES = (1_000, 10_000, 50_000)


def episodes(messages: int) -> Iterator[Draft]:
    """As many whole episodes as fit into `messages`: a human's words, start and work, results, end, result."""
    for n in range(messages // MESSAGES_PER_EPISODE):
        yield from _act(n) if n % 2 else _expl(n)


def tokens(drafts: Iterable[Draft]) -> int:
    """Characters / 4 of all blocks, names of tools not counted."""
    return sum(len(block.text) for draft in drafts for block in draft.blocks) // 4


def _expl(n: int) -> Iterator[Draft]:
    module = f"src/service_{n % 97}/module_{n}.py"
    hits = "\n".join(f"{module}:{n % 89 + 31 * line}:    return self.registry_{n}.lookup(key_{line})" for line in range(7))
    return _episode(
        n,
        ask=f"Look at module {n}.",
        thinking=f"The registry of module {n} must be found before anything else is decided.",
        start={"action": "start", "name": f"locate-{n}", "type": "expl"},
        work=("grep", {"pattern": f"registry_{n}", "path": "src"}, hits),
        end={"action": "end", "description": f"registry_{n} is used at seven places, all of them in {module}"},
    )


def _act(n: int) -> Iterator[Draft]:
    lines = "\n".join(f"tests/test_module_{n}.py::test_lookup_of_key_{line} PASSED  [{line}/8]" for line in range(1, 9))
    return _episode(
        n,
        ask=f"Now test module {n - 1}.",
        thinking=f"What was found about registry_{n - 1} is enough to run its tests.",
        start={"action": "start", "name": f"change-{n}", "type": "act", "dependencies": [f"locate-{n - 1}"]},
        work=("bash", {"command": f"python -m pytest tests/test_module_{n}.py"}, lines),
        end={"action": "end"},
    )


def _episode(
    n: int,
    *,
    ask: str,
    thinking: str,
    start: dict[str, object],
    work: tuple[str, dict[str, object], str],
    end: dict[str, object],
) -> Iterator[Draft]:
    tool, arguments, output = work
    begin = _call(f"start_{n}", "delimiter", start)
    yield _draft(Role.USER, Text(text=ask, origin=Origin.HUMAN))
    yield _draft(Role.ASSISTANT, Thinking(text=thinking), begin, _call(f"work_{n}", tool, arguments))
    yield _draft(Role.TOOL, _result(f"start_{n}", f"started {start['type']} {start['name']!r}"), _result(f"work_{n}", output))
    yield _draft(Role.ASSISTANT, _call(f"end_{n}", "delimiter", end))
    yield _draft(Role.TOOL, _result(f"end_{n}", f"ended {start['type']} {start['name']!r}"))


def _draft(role: Role, *blocks: Block) -> Draft:
    return Draft(role=role, blocks=blocks)


def _call(call_id: str, name: str, arguments: dict[str, object]) -> ToolCall:
    return ToolCall(call_id=call_id, name=name, arguments=json.dumps(arguments))


def _result(call_id: str, text: str) -> ToolResult:
    return ToolResult(call_id=call_id, text=text)


if __name__ == "__main__":
    for size in SIZES:
        total = tokens(episodes(size))
        print(f"{size:>7,} messages  {total:>9,} tokens  {total / size:.1f} a message")
