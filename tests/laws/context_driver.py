"""Drives `Context` through random conversations: messages, calls, marks, recalls, pins, restores, undos, forks, restarts, planners, reports.

Everything a request must be is checked on its plain JSON (`wire_checks.py`). A run follows from its seed.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import UUID

from wire_checks import bare, faults, messages_of, texts, turns

from tenure import Budget, Context
from tenure.errors import ModelError
from tenure.testing.model import ScriptedModel

DIALECTS: Final = {
    "anthropic": ("claude-opus-4-5", "claude-fable-5-1"),
    "openai-chat": ("gpt-5", "gemini-2.5-flash", "deepseek-chat"),
    "openai-responses": ("gpt-5",),
}
TOOLS: Final = ("read", "grep", "bash", "edit", "write", "ls")
WORDS: Final = "parser token cache index store entry block turn budget ledger gauge handle commit view record".split()


class Broken(AssertionError):
    """A law does not hold. Its text says which, and how to see it again."""


class Drive:
    """One random conversation. `requests` counts those that were checked."""

    def __init__(self, seed: int, folder: Path, policy: str, dialect: str, *, compat: str = "") -> None:
        self.random = Random(f"{seed} {policy} {dialect} {compat}")
        self.name = f"seed {seed}, policy {policy}{compat and ' ' + compat}, {dialect}"
        self.file = f"{seed}.db"
        self.dialect = dialect
        self.model = self.random.choice(DIALECTS[dialect])
        self.folder, self.policy, self.compat = folder, policy, compat
        self.size = self.random.choice([600, 1_500, 4_000, 12_000])
        self.budget = self.random.choice(
            [Budget(ceiling=self.size), Budget(target=self.size), Budget(ceiling=self.size, floor=self.size // 3)]
        )
        self.clip = self.random.choice([0, 200, 4_000])
        self.reused_ids = dialect == "openai-chat" and self.random.random() < 0.3  # some hosts count calls anew in every message
        self.context = self._open("")
        self.human: list[str] = []
        self.results: dict[str, str] = {}  # by call id, of this conversation
        self.calls = self.requests = self.commits = self.said = 0
        self.before: tuple[int, list[Any], int] | None = None  # commits, messages, size
        self.last: dict[str, Any] = {}

    def run(self, steps: int) -> "Drive":
        """So many exchanges, each with a request."""
        try:
            self._say()
            for _ in range(steps):
                self._exchange()
                for act in self.random.choices(self._acts(), k=1):
                    act()
        finally:
            self.context.close()
        return self

    # --- What happens

    def _exchange(self) -> None:
        body = self._request()
        reply = self._reply()
        if self.random.random() < 0.5:
            reply = self._with_usage(reply, body)
        self.context.append(reply)
        if self.asked:
            self._answer()
        else:
            self._say()

    def _say(self) -> None:
        self.said += 1
        words = f"HUMAN-{self.said}: {self._text(self.random.choice([3, 8, 40]))}"
        self.human.append(words)
        role = {"role": "user", "content": words}
        if self.dialect == "anthropic" and self.random.random() < 0.5:
            role["content"] = [{"type": "text", "text": words}]  # type: ignore[assignment]
        self.context.extend([role])

    def _reply(self) -> dict[str, Any]:
        """A response of the API with words, calls, or both."""
        self.asked: list[dict[str, Any]] = []
        count = self.random.choice([0, 1, 1, 1, 2, 3])
        if count == 0:
            return _reply_of(self.dialect, self._text(12), [])
        for n in range(count):
            self.calls += 1
            id_ = f"call_{n}" if self.reused_ids else f"call_{self.calls}"
            self.asked.append({"id": id_, **self._call()})
        said = self._text(6) if self.random.random() < 0.6 else ""
        return _reply_of(self.dialect, said, self.asked)

    def _call(self) -> dict[str, Any]:
        offered = {_tool_name(tool) for tool in self.last.get("tools", ())}
        choice = self.random.random()
        if "delimiter" in offered and choice < 0.35:
            return {"name": "delimiter", "arguments": self._mark()}
        if "recall" in offered and choice < 0.45:
            return {
                "name": "recall",
                "arguments": self.random.choice([{"handle": "read:1"}, {"words": "parser"}, {"path": "src/a.py"}]),
            }
        path = f"src/{self.random.choice('abcde')}.py"
        return {"name": self.random.choice(TOOLS), "arguments": {"path": path, "n": self.random.randrange(9)}}

    def _mark(self) -> dict[str, Any]:
        name = f"part-{self.random.randrange(12)}"
        kinds: list[Callable[[], dict[str, Any]]] = [
            lambda: {"action": "start", "name": name, "type": "expl"},
            lambda: {"action": "end", "description": self._text(8)},
            lambda: {"action": "start", "name": name, "type": "act", "dependencies": [f"part-{self.random.randrange(12)}"]},
            lambda: {"action": "end"},
        ]
        return self.random.choice(kinds)()

    def _answer(self) -> None:
        answers: list[dict[str, Any]] = []
        for call in self.asked:
            given = _call_of(self.dialect, call)
            answer = self.context.call(given)
            if answer is None:
                text = self._text(self.random.choice([2, 30, 200, 700]), lines=True)
                if not self.reused_ids:
                    self.results[call["id"]] = text
                answer = _result_of(self.dialect, call["id"], text)
            answers.append(answer)
        if self.dialect != "anthropic":
            self.context.extend(answers)
            return
        content: list[dict[str, Any]] = list(answers)
        if self.random.random() < 0.2:  # words beside results
            self.said += 1
            self.human.append(f"HUMAN-{self.said}: {self._text(5)}")
            content.append({"type": "text", "text": self.human[-1]})
        self.context.extend([{"role": "user", "content": content}])

    def _with_usage(self, reply: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        true = len(json.dumps(body)) // 4
        prompt = self.random.choice([true, true, true, 10, 0, true * 1_000])
        output = 50
        names = ("prompt_tokens", "completion_tokens") if self.dialect == "openai-chat" else ("input_tokens", "output_tokens")
        return reply | {"usage": {names[0]: prompt, names[1]: output}}

    def _acts(self) -> list[Callable[[], None]]:
        idle = [lambda: None] * 12
        return [*idle, self._pin, self._restore, self._undo, self._recall, self._reopen, self._fork, self._settle, self._ask]

    def _pin(self) -> None:
        spans = [span.object for span in self.context.session.index.spans]
        if spans:
            self.context.pin(self.random.choice(spans))
            if self.random.random() < 0.7:
                for hold in self.context.session.holds:
                    self.context.unpin(hold.object)

    def _restore(self) -> None:
        spans = [span.object for span in self.context.session.index.spans]
        if spans and self.context.restore(self.random.choice(spans)) is not None:
            self.before = None  # on the user's word: may be larger

    def _undo(self) -> None:
        if len(self.context.session.commits):
            self.context.undo(self.random.randrange(len(self.context.session.commits)))
            self.before = None

    def _recall(self) -> None:
        for span in self.context.session.index.spans[-40:]:
            if span.result is None:
                continue
            entry = self.context.store.entry(self.context.conversation, span.result[0])
            block = entry.blocks[span.result[1]]
            shown = self.context.recall(span.object)
            if block.text not in shown:
                raise Broken(f"{self.name}: recall of {span.object} does not give what it returned")
        for id_, text in self.results.items():
            if not any(
                text in self.context.store.entry(self.context.conversation, span.result[0]).blocks[span.result[1]].text
                for span in self.context.session.index.spans
                if span.result is not None
            ):
                raise Broken(f"{self.name}: what call {id_} returned is not in the record")

    def _reopen(self) -> None:
        messages, commits = messages_of(self._request(), self.dialect), len(self.context.session.commits)
        conversation = self.context.conversation
        self.context.close()
        self.context = self._open(conversation)
        again = messages_of(self._plain_request(), self.dialect)
        if len(self.context.session.commits) == commits and bare(messages) != bare(again):
            raise Broken(f"{self.name}: a request after a restart is another one")

    def _fork(self) -> None:
        """Go on in a fork, from here or from an earlier word of the user's."""
        store, new = self.context.store, str(UUID(int=self.random.getrandbits(128)))
        turns_ = self.context.session.index.turns
        at = self.context.session.length
        if self.random.random() < 0.5 and len(turns_) > 1:
            at = turns_[self.random.randrange(1, len(turns_))].start[0] + 1
        store.fork(self.context.conversation, at, new)
        kept = " ".join(block.text for n in range(at) for block in store.entry(new, n).blocks)
        self.human = [words for words in self.human if words in kept]
        self.results = {id_: text for id_, text in self.results.items() if text in kept}
        self.context.close()
        self.context = self._open(new)
        self.before = None

    def _settle(self) -> None:
        self.context.settle(self.random.choice(["turn-end", "task-boundary", "idle"]))

    def _ask(self) -> None:
        reply = self.random.choice(
            [
                json.dumps(
                    {"gc_plan": {"fold": [{"target": "bash:1", "summary": "s"}], "mask": [], "prune": [{"target": "read:1"}]}}
                ),
                "no plan at all",
                '{"gc_plan": {"fold": [',
            ]
        )
        with suppress(ModelError):
            self.context.collect(ScriptedModel(reply, then="rubbish"))

    # --- What is checked

    def _request(self) -> dict[str, Any]:
        body = self._plain_request()
        self.requests += 1
        for fault in faults(body, self.dialect, alternates=self.context.rules.alternation):
            raise Broken(f"{self.name}, request {self.requests}: {fault}")
        shown = turns(body, self.dialect)
        said, at = texts(shown), 0
        for words in self.human:
            found = said.find(words, at)
            if found < 0:
                raise Broken(f"{self.name}, request {self.requests}: human words are missing or out of order: {words[:60]!r}")
            at = found + len(words)
        self._stands(body)
        return body

    def _stands(self, body: dict[str, Any]) -> None:
        """Absent a commit, the messages of the request before come first in this one, as they were."""
        commits = sum(commit.moment != "admission" for commit in self.context.session.commits)
        messages = [bare(message) for message in messages_of(body, self.dialect)]
        if self.before is not None and self.before[0] == commits:
            for n, (was, now) in enumerate(zip(self.before[1], messages, strict=False)):
                if was != now and not _grew(was, now):
                    raise Broken(f"{self.name}, request {self.requests}: message {n} changed without a commit")
            if len(messages) < len(self.before[1]):
                raise Broken(f"{self.name}, request {self.requests}: messages left without a commit")
        self.before = (commits, messages, 0)

    def _plain_request(self) -> dict[str, Any]:
        tools = [_tool_of(self.dialect, name) for name in TOOLS]
        self.last = self.context.request(model=self.model, tools=tools)
        return json.loads(json.dumps(self.last))

    def _open(self, conversation: str) -> Context:
        return Context(
            dialect=self.dialect,
            budget=self.budget,
            policy=self.policy if self.policy != "none" else None,
            compat=self.compat,
            store=f"sqlite:///{self.folder / self.file}",
            conversation=conversation,
            model=self.model,
            clip=self.clip,
        )

    def _text(self, words: int, *, lines: bool = False) -> str:
        chosen = [f"{self.random.choice(WORDS)}_{self.random.randrange(1_000)}" for _ in range(words)]
        return ("\n" if lines else " ").join(chosen)


def drives(folder: Path, policy: str, dialect: str, *, compat: str = "", requests: int, first: int = 0) -> Iterator[Drive]:
    """Conversations until so many requests were checked."""
    seed, made = first, 0
    while made < requests:
        drive = Drive(seed, folder, policy, dialect, compat=compat).run(40)
        made, seed = made + drive.requests, seed + 1
        yield drive


def _grew(was: Any, now: Any) -> bool:
    """Whether a message of results took in more of them."""
    content = was.get("content"), now.get("content")
    return all(isinstance(each, list) for each in content) and content[1][: len(content[0])] == content[0]


def _tool_name(tool: dict[str, Any]) -> str:
    return str(tool.get("name") or tool["function"]["name"])


def _tool_of(dialect: str, name: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    match dialect:
        case "anthropic":
            return {"name": name, "description": name, "input_schema": schema}
        case "openai-chat":
            return {"type": "function", "function": {"name": name, "description": name, "parameters": schema}}
        case _:
            return {"type": "function", "name": name, "description": name, "parameters": schema}


def _call_of(dialect: str, call: dict[str, Any]) -> dict[str, Any]:
    match dialect:
        case "anthropic":
            return {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["arguments"]}
        case "openai-chat":
            return {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])},
            }
        case _:
            return {
                "type": "function_call",
                "call_id": call["id"],
                "name": call["name"],
                "arguments": json.dumps(call["arguments"]),
            }


def _reply_of(dialect: str, said: str, calls: list[dict[str, Any]]) -> dict[str, Any]:
    made = [_call_of(dialect, call) for call in calls]
    match dialect:
        case "anthropic":
            words = [{"type": "text", "text": said}] if said else []
            return {"role": "assistant", "content": [*words, *made], "model": "m", "stop_reason": "end_turn"}
        case "openai-chat":
            message = {"role": "assistant", "content": said or None} | ({"tool_calls": made} if made else {})
            return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "model": "m"}
        case _:
            words = [
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said, "annotations": []}]}
            ]
            return {"object": "response", "output": [*(words if said else []), *made], "model": "m"}


def _result_of(dialect: str, id_: str, text: str) -> dict[str, Any]:
    match dialect:
        case "anthropic":
            return {"type": "tool_result", "tool_use_id": id_, "content": text}
        case "openai-chat":
            return {"role": "tool", "tool_call_id": id_, "content": text}
        case _:
            return {"type": "function_call_output", "call_id": id_, "output": text}
