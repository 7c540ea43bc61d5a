"""An agent that works for long, as the cases of other tools' users need it: tasks in episodes, parallel calls, a person between them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tenure import Budget, Context
from tenure.apis.rules import rules_for
from tenure.engine.policies import COMPAT, PEERS, POLICIES, chain
from tenure.engine.policies.policy import Policy
from tenure.engine.record.entry import Entry
from tenure.testing.store import MemoryStore
from tenure.testing.validity import violations

Body = dict[str, Any]
CHAINED: Final = chain(POLICIES["tiered"], POLICIES["cwl"])
EVERY: Final[Mapping[str, Policy]] = {**POLICIES, **PEERS, **COMPAT, "chained": CHAINED}
MODEL: Final = "claude-sonnet-4-5"
CEILING: Final = 110_000
FIRST: Final = "Mend the parser, and never push to main."


def by_character(text: str) -> int:
    """One token a character: the thresholds that others publish are passed by a short session."""
    return len(text)


def content(n: int, lines: int = 80) -> str:
    """What the `n`-th read returns: as long as a source file, and unlike any other."""
    return f"# part {n}\n" + "\n".join(f"value_{n}_{line} = compute({line})" for line in range(lines))


def use(tool: str, call_id: str, **arguments: Any) -> Body:
    return {"type": "tool_use", "id": call_id, "name": tool, "input": arguments}


def returned(call_id: str, text: str) -> Body:
    return {"type": "tool_result", "tool_use_id": call_id, "content": text}


def said(role: str, *parts: str | Body) -> Body:
    return {"role": role, "content": [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]}


@dataclass
class Agent:
    """One conversation of Anthropic's dialect. `bodies` are the requests, `files` what every read returned."""

    policy: Policy | None
    budget: Budget = field(default_factory=lambda: Budget(ceiling=CEILING))
    store: MemoryStore = field(default_factory=MemoryStore)
    bodies: list[Body] = field(default_factory=list[Body])
    files: dict[str, str] = field(default_factory=dict[str, str])
    calls: int = 0
    clip: int = 0
    lines: int = 80  # of every file

    def __post_init__(self) -> None:
        self.context = self.opened()

    def opened(self, conversation: str = "") -> Context:
        """The conversation, new or as after a restart."""
        return Context(
            budget=self.budget,
            policy=self.policy,
            model=MODEL,
            provider="anthropic",
            store=self.store,
            conversation=conversation,
            tokenizer=by_character,
            clip=self.clip,
        )

    def restart(self) -> None:
        """Go on as another process would."""
        self.context = self.opened(self.context.conversation)

    def ask(self) -> Body:
        """The next request."""
        self.bodies.append(self.context.request(model=MODEL, max_tokens=100))
        return self.bodies[-1]

    def step(self, *calls: Body, words: str = "Next.") -> None:
        """A request, a reply that makes these calls, and their results."""
        self.ask()
        self.context.extend([said("assistant", words, *calls)])
        self.context.extend([said("user", *(self.context.call(call) or self._done(call) for call in calls))])

    def reads(self, parallel: int = 1) -> None:
        """A step that reads files nobody read before."""
        made: list[Body] = []
        for _ in range(parallel):
            self.calls += 1
            made.append(use("read", f"t{self.calls}", path=f"src/part_{self.calls}.py"))
        self.step(*made)

    def mark(self, *marks: Mapping[str, Any]) -> None:
        """A step of delimiters alone."""
        self.step(*(use("delimiter", f"d{len(self.bodies)}_{n}", **each) for n, each in enumerate(marks)))

    def task(self, n: int, *, reads: int = 4, parallel: int = 2) -> None:
        """What a person asks, explored, done and answered."""
        self.context.extend([said("user", FIRST if n == 0 else f"Task {n}: change part {n}.")])
        self.mark({"action": "start", "name": f"find-{n}", "type": "expl"})
        for _ in range(reads):
            self.reads(parallel)
        self.mark(
            {"action": "end", "description": f"part {n} is in src/part_{n}.py"},
            {"action": "start", "name": f"change-{n}", "type": "act", "dependencies": [f"find-{n}"]},
        )
        self.reads()
        self.mark({"action": "end"})
        self.ask()
        self.context.extend([said("assistant", f"Task {n} is done.")])

    def lived(self, tasks: int = 9) -> "Agent":
        """The agent after so many tasks, and asked for one more thing."""
        for n in range(tasks):
            self.task(n)
        self.context.extend([said("user", "What is left?")])
        self.ask()
        return self

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All that the store has."""
        return tuple(self.store.entries(self.context.conversation))

    def _done(self, call: Body) -> Body:
        self.files[call["input"]["path"]] = text = content(int(call["id"][1:]), self.lines)
        return returned(call["id"], text)


def faults(bodies: list[Body]) -> list[str]:
    """What Anthropic would refuse of these requests."""
    rules = rules_for("anthropic", MODEL, "anthropic")
    return [f"request {n}: {wrong}" for n, body in enumerate(bodies) for wrong in violations(body, rules)]


def unmarked(message: Body) -> Body:
    """A message without its cache markers, which move from request to request."""
    return message | {"content": [{key: part[key] for key in part if key != "cache_control"} for part in message["content"]]}


def shown(body: Body) -> list[Body]:
    """The messages of a request without cache markers, which tell a provider what it may know already."""
    messages = [said(each["role"], each["content"]) if isinstance(each["content"], str) else each for each in body["messages"]]
    return [unmarked(each) for each in messages]


def texts(body: Body) -> Iterator[str]:
    """All words of a request's messages."""
    for message in body["messages"]:
        for part in [message["content"]] if isinstance(message["content"], str) else message["content"]:
            yield part if isinstance(part, str) else str(part.get("text") or part.get("content") or json.dumps(part.get("input")))
