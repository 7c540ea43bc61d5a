"""Drives `Context` through random conversations: everything that hosts, models, helpers and people do, in every dialect and under every policy.

What a request must be is checked on its plain JSON (`wire_checks.py`), against what the driver itself remembers of the conversation. A run follows
from its seed.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import UUID

from api_speech import (
    Json,
    body_of,
    call_of,
    image_of,
    prefix_of,
    reply_of,
    result_of,
    results_of,
    seal,
    tool_names,
    tool_of,
    usage_of,
    words_of,
)
from wire_checks import Turn, bare, faults, messages_of, texts, turns

from tenure import Budget, Context, Unmet
from tenure.engine.meter.tokens import o200k
from tenure.engine.planners.handoff.sections import SECTIONS
from tenure.engine.record.entry import Draft, Origin, Role, Text
from tenure.engine.view.guard import HoldKind
from tenure.errors import InputError, ModelError
from tenure.models.question import Answer, Question
from tenure.store.store import Store

DIALECTS: Final = {
    "anthropic": ("claude-opus-4-5", "claude-fable-5-1", "claude-3-7-sonnet", "claude-opus-4-8", "gemini-2.5-pro"),
    "gemini": ("gemini-3-pro", "gemini-2.5-flash"),
    "openai-chat": ("gpt-5", "gemini-2.5-flash", "deepseek-chat", "llama-4"),
    "openai-responses": ("gpt-5", "o4-mini"),
}
TOOLS: Final = ("read", "grep", "bash", "edit", "write", "ls")
WORDS: Final = "parser token cache index store entry block turn budget ledger gauge handle commit view record".split()
ODD: Final = (
    "\u202eright to left\u202c",
    "e\u0301\u0327\u0328",
    "👩‍👩‍👧‍👦",
    "\ud83d half a pair",
    "<|endoftext|>",
    "\x00\x07\x1b[31m",
    "\u2028line\u2029",
    "```json\n{",
    'tab\tquote"back\\slash',
    "中文字符",
    "\ufeff",
)
OURS: Final = ("delimiter", "recall", "notes")
BRIEF: Final = "\n\n".join(f"## {each.title}\nThe parser is read." for each in SECTIONS) + "\n[end of brief]"
_HANDLE: Final = re.compile(r"(?<![\w@./:-])([A-Za-z_][\w-]*:[\w.-]*\w)@([0-9a-f]{4,64})\b")
_OBJECT: Final = re.compile(r"\b(?:read|grep|bash|edit|write|ls|user):\d+")


class Broken(AssertionError):
    """A law does not hold. Its text says which, and how to see it again."""


@dataclass(slots=True)
class Call:
    """A call that the model made."""

    id: str
    name: str
    number: int  # among the calls of its tool
    arguments: Json
    extra: Json = field(default_factory=dict[str, Any])
    result: str | None = None
    answered: int = -1  # by which message of the record
    note: str = ""  # the agent's notes, as the answer to this call has them


@dataclass(slots=True)
class Said:
    """A message of the record, as the driver remembers it."""

    role: str
    human: tuple[str, ...] = ()
    system: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    references: tuple[str, ...] = ()
    seal: str = ""


@cache
def weight(text: str) -> int:
    """O200k tokens of a text."""
    return o200k()(text)


def sendable(text: str) -> str:
    """The text as JSON of UTF-8 can carry it: half of a surrogate pair is U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class Drive:
    """One random conversation. `requests` counts those that were checked."""

    def __init__(self, seed: int, folder: Path, policy: str, dialect: str, *, compat: str = "") -> None:
        self.random = Random(f"{seed} {policy} {dialect} {compat}")
        self.name = f"seed {seed}, policy {policy}{compat and ' ' + compat}, {dialect}"
        self.dialect = dialect
        self.policy, self.compat = policy, compat
        choice, chance = self.random.choice, self._chance
        self.model = choice(DIALECTS[dialect])
        self.budget = self._budget()
        self.settings: dict[str, Any] = {
            "clip": choice([0, 200, 4_000]),
            "notes": chance(0.25),
            "gate": choice(["", "", "", "selfgc-paper"]),
            "cache_life": choice(["", "", "1h"]),
            "recall_cap": choice([300, 8_000]),
            "handoff_at": choice(["85%", "40%", 0]),
            "digest_above": 150,
            "planner": self._planner if chance(0.2) else None,
            "summariser": self._summariser if chance(0.2) else None,
            "digest": self._digest if chance(0.15) else None,
            "markers": chance(0.9),
            "instructions": choice([None, {"AGENTS.md": "Keep the parser."}]),
        }
        self.reused_ids = dialect == "openai-chat" and chance(0.2)  # some hosts count calls anew in every message
        self.thinks = chance(0.6)
        self.annotate = chance(0.9)
        self.switched = False
        self.own = [*TOOLS, *(name for name in OURS if chance(0.06))]
        self.head = self._fields()
        self.file = f"{seed}.db"
        self.url = f"sqlite:///{folder / self.file}"
        self.store = None if chance(0.15) else Store("sqlite://")  # in memory it outlives a context
        self.serial = Counter[str]()
        self.requests = 0
        self.body: Json = {}
        self.haystack, self.log_length, self.rewrites = "", 0, 0  # of the newest request
        self.results: dict[str, str] = {}
        self.others: list[tuple[str, list[Said]]] = []  # conversations that were forked
        self._begin([])
        self.context = self._open("")

    def run(self, steps: int) -> "Drive":
        """So many exchanges, each with a request."""
        try:
            self._open_up()
            for _ in range(steps):
                self._exchange()
                self._any_act()
            self._at_the_end()
        except Broken:
            raise
        except Exception as error:
            raise Broken(f"{self.name}, request {self.requests}: {type(error).__name__}: {error}") from error
        finally:
            self.context.close()
            if self.store is not None:
                self.store.close()
        return self

    # --- What the driver remembers

    def _begin(self, log: list[Said]) -> None:
        """Remember this conversation, of which no request was seen."""
        self.log = log
        self.pins: dict[tuple[str, str], tuple[str, ...]] = {}  # by object and kind, what it showed
        self.resolved: set[str] = set()
        self.asked_since = False  # whether a request was made since the newest reply
        self._forget()

    def _forget(self) -> None:
        """What comes next may differ from what was sent."""
        self.before: tuple[int, list[Any]] | None = None  # commits and messages of the request before
        self.size: int | None = None  # what the next request may weigh
        self.steps = 0  # what the provider's own steps weighed in the newest

    def _calls(self) -> Iterator[Call]:
        return (call for said in self.log for call in said.calls)

    def _newest(self) -> int:
        """Where the newest reply stands."""
        return next((n for n in range(len(self.log) - 1, -1, -1) if self.log[n].role == "assistant"), 0)

    def _open_calls(self) -> list[Call]:
        """Of the newest reply."""
        return [call for call in self.log[self._newest()].calls if call.result is None] if self.log else []

    def _extend(self, messages: list[Any], said: list[Said]) -> None:
        self.context.extend(messages)
        ends = [str(message.get("role")) for message in self.body.get("messages", ())][-1:]
        if ends == ["system"] or any(each.role == "system" for each in self.log[self._newest() :]):
            self.before = None  # that message goes behind these words
        self.log += said
        if self.context.session.length != len(self.log):
            raise Broken(f"{self.name}: {self.context.session.length} entries of {len(self.log)} messages")

    def _weigh(self, *added: str) -> None:
        if self.size is not None:
            self.size += sum(map(weight, added)) + 12 * len(added)

    # --- What happens

    def _chance(self, share: float) -> bool:
        return self.random.random() < share

    def _budget(self) -> Budget:
        size = self.random.choice([150, 600, 1_500, 1_500, 4_000, 4_000, 12_000, 150_000])
        return self.random.choice(
            [
                Budget(ceiling=size),
                Budget(target=size),
                Budget(ceiling=size, floor=size // 3),
                Budget(target=size, ceiling=size + size // 2, window=size * 3),
                Budget(window=size),
                Budget(target=size, floor=size),
            ]
        )

    def _fields(self) -> Json:
        fields: Json = {"model": self.model} if self._chance(0.8) else {}
        if self._chance(0.5):
            match self.dialect:
                case "anthropic":
                    marked = {"type": "text", "text": "You help.", "cache_control": {"type": "ephemeral"}}
                    fields["system"] = self.random.choice(
                        ["You help.", [marked], [marked, marked], [{**marked, "text": "Be brief."}]]
                    )
                    if self._chance(0.2):
                        fields["cache_control"] = {"type": "ephemeral"}
                case "openai-responses":
                    fields["instructions"] = "You help."
                case "gemini":
                    fields["config"] = self.random.choice([{"system_instruction": "You help."}, {"temperature": 0}])
                case _:
                    fields["temperature"] = 0
        return fields

    def _open(self, conversation: str) -> Context:
        return Context(
            dialect=self.dialect,
            budget=self.budget,
            policy=self.policy if self.policy != "none" else None,
            compat=self.compat,
            store=self.url if self.store is None else self.store,
            conversation=conversation,
            model=self.model,
            clock=lambda: "2030-01-01T00:00:00.000000Z",
            **self.settings,
        )

    def _open_up(self) -> None:
        """The first messages: prompts, a word of a person, at times a harness's first."""
        if self._chance(0.4):
            self._instruct()
        self._say()

    def _exchange(self) -> None:
        if self.log[-1].role == "assistant":
            self._answer() if self._open_calls() else self._say()
        self._request()
        if self._chance(0.06):
            self._pin_text()
        if self._chance(0.04):
            self._again()
        if self._chance(0.04):  # the model was never heard
            self._say()
            return
        self._reply()
        if self._open_calls() and self._chance(0.94):
            self._answer()
        else:
            self._say()

    def _any_act(self) -> None:
        if self._chance(0.6):
            return
        acts: list[Callable[[], None]] = [
            self._pin,
            self._pin,
            self._pin_anything,
            self._hold,
            self._unpin,
            self._unpin,
            self._restore,
            self._undo,
            self._recall,
            self._search,
            self._reopen,
            self._fork,
            self._settle,
            self._settle,
            self._collect,
            self._hand_off,
            self._instruct,
            self._orphan,
            self._late,
            self._queue,
            self._look_back,
        ]
        self.random.choice(acts)()

    def _say(self) -> None:
        """One or more messages of a person, some in several parts."""
        for _ in range(self.random.choice([1, 1, 1, 1, 2])):
            parts = [self._human() for _ in range(self.random.choice([1, 1, 1, 2, 3]))]
            image, listed = self._chance(0.05), self._chance(0.5)
            texts_ = [*parts, ""] if self._chance(0.03) else parts  # an empty part
            message = words_of(self.dialect, texts_, listed=listed or len(texts_) > 1, image=image)
            is_marked = self.dialect == "anthropic" and self.settings["markers"] and self._chance(0.1)
            if is_marked and isinstance(message["content"], list):
                message["content"][0]["cache_control"] = {"type": "ephemeral", "ttl": "1h"}
            if self.dialect == "openai-chat" and self._chance(0.05):
                message["name"] = self.random.choice(["ann", "bob"])
            if self._chance(0.05):
                message = Draft(role=Role.USER, blocks=tuple(Text(text=text, origin=Origin.HUMAN) for text in parts))
            self._extend([message], [Said("user", human=tuple(map(sendable, parts)))])
            self._weigh(*parts)
            if self._interrupts():
                self._forget()
        self._weigh("the call was interrupted" * 10)

    def _interrupts(self) -> bool:
        """Whether a call's result is still to come, and a request went out without it."""
        return self.asked_since and bool(self._open_calls())

    def _instruct(self) -> None:
        """A host's instruction: a message of a system, between the others too."""
        self.serial["system"] += 1
        words = f"SYSTEM-{self.serial['system']}: {self._text(4)}"
        if self.log and self.log[-1].role == "assistant" and self._open_calls():
            return
        role = "developer" if self.dialect == "openai-responses" else "system"
        content = {"parts": [{"text": words}]} if self.dialect == "gemini" else {"content": words}
        self._extend([{"role": role, **content}], [Said("system", system=(sendable(words),))])
        self._weigh(words, "system-reminder what stood here has left the context")
        self.before = None  # it may wait for the user's words

    def _reply(self) -> None:
        """A response of the API with words, calls, or both."""
        calls: list[Call] = []
        for _ in range(self.random.choice([0, 1, 1, 1, 2, 3])):
            calls.append(self._call(calls))
        said = self._text(6) if self._chance(0.6) or (not calls and self._chance(0.95)) else ""
        thought, seal_ = self._thought(calls)
        reply = reply_of(
            self.dialect,
            said,
            [{"id": call.id, "name": call.name, "arguments": call.arguments, "extra": call.extra} for call in calls],
            thought,
        )
        if not said and not calls and thought is not None:
            thought = None  # it led to nothing
            reply = reply_of(self.dialect, "", [])
        if self.dialect == "openai-responses" and thought is not None:
            for n, item in enumerate(reply["output"][1:]):
                item["id"] = f"{'msg' if item['type'] == 'message' else 'fc'}_{seal_}_{n}"
        if self.dialect == "anthropic" and self._chance(0.05):  # a tool that the provider runs itself
            at, id_ = self.random.randint(bool(thought), len(reply["content"]) - len(calls)), f"srvtoolu_{self.serial['thought']}"
            hits = [{"type": "web_search_result", "title": "parser", "url": "https://x/y", "encrypted_content": self._text(30)}]
            reply["content"][at:at] = [
                {"type": "server_tool_use", "id": id_, "name": "web_search", "input": {"query": "parser"}},
                {"type": "web_search_tool_result", "tool_use_id": id_, "content": hits},
            ]
        if self._chance(0.6):
            reply["usageMetadata" if self.dialect == "gemini" else "usage"] = self._usage()
        self.context.append(json.dumps(reply).encode() if self._chance(0.2) else reply)
        self.log.append(Said("assistant", calls=tuple(calls), seal=seal_))
        self.asked_since = False
        if not said and not calls:
            self.before = None  # it is not sent back, so an instruction before it goes behind the words that follow
        self._weigh(said, self._thinking, *(json.dumps(call.arguments) + call.name for call in calls))

    def _call(self, before: list[Call]) -> Call:
        offered = [name for name in tool_names(self.body.get("tools", ())) if name not in self.own]
        name, arguments = (
            self.random.choice(self.own),
            {"path": f"src/{self.random.choice('abcde')}.py", "n": self.serial["call"]},
        )
        if offered and self._chance(0.4):
            name = self.random.choice(offered)
            arguments = self._for_ours(next(each for each in OURS if each in name))
        self.serial["call"] += 1
        number = 1 + sum(call.name == name for call in (*self._calls(), *before))
        id_ = f"call_{len(before)}" if self.reused_ids and self.dialect == "openai-chat" else f"call_{self.serial['call']}"
        return Call(id_, name, number, arguments)

    def _for_ours(self, tool: str) -> Json:
        name = f"part-{self.random.randrange(12)}"
        kinds: dict[str, list[Json]] = {
            "delimiter": [
                {"action": "start", "name": name, "type": "expl"},
                {"action": "end", "description": self._text(8)},
                {"action": "start", "name": name, "type": "act", "dependencies": [f"part-{self.random.randrange(12)}"]},
                {"action": "end"},
                {"action": "go"},
            ],
            "recall": [
                {"handle": f"read:{self.random.randrange(1, 9)}"},
                {"words": "parser"},
                {"path": "src/a.py"},
                {"pattern": "("},
            ],
            "notes": [
                {"add": self._text(5)},
                {"replace": self._text(9)},
                {"replace": self._text(9)},
                {},
                {"replace": ""},
                {"add": 7},
            ],
        }
        return self.random.choice(kinds[tool])

    def _thought(self, calls: list[Call]) -> tuple[Json | None, str]:
        """Reasoning of the reply, as the API holds it, and what it is known by."""
        self._thinking = ""
        self.serial["thought"] += 1
        n = self.serial["thought"]
        if "deepseek" in self.model and (calls or self.thinks):
            self._thinking = sendable(self._text(10))
            return {"reasoning_content": self._thinking}, ""
        if "gemini" in self.model and self.dialect == "openai-chat":
            for call in calls:
                call.extra = {"extra_content": {"google": {"thought_signature": f"sig-{n}"}}}
            return None, ""
        if self.dialect == "gemini":
            for call in calls[:1]:
                call.extra = {"thoughtSignature": f"c2lnbmF0dXJl{n:04}"}
            self._thinking = sendable(self._text(10)) if self.thinks else ""
            return ({"text": self._thinking, "thought": True} if self._thinking else None), ""
        if not self.thinks or self._chance(0.3) or self.dialect == "openai-chat" or "gemini" in self.model:
            return None, ""
        self._thinking = sendable(self._text(10))
        if self.dialect == "openai-responses":
            summary = [{"type": "summary_text", "text": self._thinking}]
            return {"type": "reasoning", "id": f"rs_{n}", "encrypted_content": f"enc {n}", "summary": summary}, str(n)
        if not self._is_bound() and self._chance(0.1):
            data = f"redacted {n}"
            return {"type": "redacted_thinking", "data": data}, data
        bound = prefix_of(self.body["messages"]) if self._is_bound() else ""
        signature = seal(f"{n} {self._thinking}", bound)
        return {"type": "thinking", "thinking": self._thinking, "signature": signature}, signature

    def _is_bound(self) -> bool:
        return "fable-5-1" in self.model

    def _answer(self) -> None:
        """The results of the newest reply's calls; at times not of all, at times with words before or beside them."""
        calls = self._open_calls()
        if self.asked_since:
            self._forget()
        if self._chance(0.05):
            calls = self.random.sample(calls, self.random.randint(0, len(calls)))
        if self._chance(0.1):
            self.random.shuffle(calls)
        said = [self._result(call) for call in calls]
        before, behind = self._chance(0.08), self._chance(0.15) or not calls
        words = [self._human() for _ in range(before + behind)]
        self._weigh(*words)
        if self.dialect in ("anthropic", "gemini") and self._chance(0.85):
            parts: list[Json] = [result for result, _, _ in said]
            kind = {"type": "text"} if self.dialect == "anthropic" else {}
            first = [{**kind, "text": text} for text in words[:before]]
            last = [{**kind, "text": text} for text in words[before:]]
            self._mark_answers(said, len(self.log))
            references = tuple(name for _, _, names in said for name in names)
            self._extend(
                [results_of(self.dialect, [*first, *parts, *last])],
                [Said("user", tuple(map(sendable, words)), references=references)],
            )
            return
        at = len(self.log) + before
        messages = (
            [results_of(self.dialect, [each]) for each, _, _ in said]
            if self.dialect in ("anthropic", "gemini")
            else [r for r, _, _ in said]
        )
        for n, each in enumerate(said):
            self._mark_answers([each], at + n)
        spoken = [words_of(self.dialect, [text], listed=self._chance(0.5)) for text in words]
        logs = [Said("user", human=(sendable(text),)) for text in words]
        results = [Said("user", references=names) for _, _, names in said]
        self._extend([*spoken[:before], *messages, *spoken[before:]], [*logs[:before], *results, *logs[before:]])

    def _mark_answers(self, said: list[tuple[Json, Call, tuple[str, ...]]], at: int) -> None:
        for _, call, _ in said:
            call.answered = at

    def _result(self, call: Call) -> tuple[Json, Call, tuple[str, ...]]:
        """What a call returned: the engine's answer to its own tools, else a text, at times a declaration of tools."""
        made = {"id": call.id, "name": call.name, "arguments": call.arguments}
        answer = self.context.call(call_of(self.dialect, made))
        if (answer is None) != (call.name in self.own):
            raise Broken(f"{self.name}: a call of {call.name} was {'not ' * (answer is None)}answered by the context")
        if answer is not None:
            text = str(answer.get("content", answer.get("output")))
            if self.dialect == "gemini":
                (text,) = answer["functionResponse"]["response"].values()
            call.result = ""
            if "notes" in call.name and not text.startswith(("notes: ", "notes refused")):
                call.note = text
            self._weigh(text)
            return answer, call, ()
        if self.dialect == "anthropic" and self._chance(0.01):
            call.result = ""
            self.serial["reference"] += 1
            name = f"found_{self.serial['reference']}"
            content = [{"type": "tool_reference", "tool_name": name}]
            self._weigh(name * 4)
            return {"type": "tool_result", "tool_use_id": call.id, "content": content}, call, (name,)
        text = self._text(self.random.choice([2, 20, 20, 80, 300]), lines=True)
        if self._chance(0.12) and (known := [each.result for each in self._calls() if each.result]):
            text = self.random.choice(known)  # the same again
        if self._chance(0.02):
            text = self.random.choice(["", " ", self._text(2_500, lines=True), self._text(1_200)])
        call.result = text
        self._weigh(text, "admission clips name what they leave out, in a line")
        result = result_of(self.dialect, call.id, text, listed=bool(text) and self._chance(0.2), name=call.name)
        if self.dialect == "anthropic" and self._chance(0.1):
            result["is_error"] = True
        if self.dialect == "gemini" and self._chance(0.04):
            result["functionResponse"]["parts"] = [image_of(self.dialect)]
        elif self.dialect != "openai-chat" and text.strip() and self._chance(0.04):
            words = {"type": "text" if self.dialect == "anthropic" else "input_text", "text": text}
            result["content" if self.dialect == "anthropic" else "output"] = [words, image_of(self.dialect)]
        return result, call, ()

    def _orphan(self) -> None:
        """A result that answers no call."""
        if self.reused_ids or self.log[-1].role == "assistant":
            return
        self.serial["orphan"] += 1
        result = result_of(self.dialect, f"orphan_{self.serial['orphan']}", self._text(20))
        self._extend([self._sole(result)], [Said("user")])

    def _sole(self, result: Json) -> Json:
        """A message of one result."""
        return results_of(self.dialect, [result]) if self.dialect in ("anthropic", "gemini") else result

    def _late(self) -> None:
        """A result of a call that was interrupted, after the model has gone on."""
        if self.reused_ids or self.log[-1].role == "assistant":
            return
        waiting = [
            call for said in self.log[: self._newest()] for call in said.calls if call.result is None and call.name in self.own
        ]
        if waiting:
            call = self.random.choice(waiting)
            call.result, call.answered = self._text(20), len(self.log)
            result = result_of(self.dialect, call.id, call.result, name=call.name)
            self._weigh(call.result, "late result of it")
            self._extend([self._sole(result)], [Said("user")])

    def _usage(self) -> Json:
        true = weight_of(self.body) if self._chance(0.7) else 1
        prompt = self.random.choice([true, true, true, true, true * 5 // 4, 10, 0, true * 1_000])
        return usage_of(self.dialect, prompt, self.random.choice([50, 0, 4_000]))

    def _pin(self) -> None:
        """Pin a call; what it showed whole has to stay."""
        calls = [call for call in self._calls() if call.result and call.name in TOOLS]
        if calls:
            self._held(self.random.choice(calls), self.context.pin)

    def _pin_anything(self) -> None:
        """Pin an entry, a block, a turn; what stands there stays or goes by its own rules, and nothing else breaks."""
        n = self.random.randrange(len(self.log))
        with suppress(InputError):
            self.context.pin(self.random.choice([f"entry:{n}", f"entry:{n}/0", "user:1", f"step:{n % 9}", "episode:part-1"]))

    def _hold(self) -> None:
        """A hold of another kind; releasing it lets go of nothing else."""
        calls = [call for call in self._calls() if call.result and call.name in TOOLS]
        if calls:
            call = self.random.choice(calls)
            kind: HoldKind = self.random.choice(("approval", "handle"))
            self._held(call, lambda name: self.context.hold(name, kind), kind)
            if self._chance(0.5):
                self.context.release(f"{call.name}:{call.number}", kind)
                self.pins.pop((f"{call.name}:{call.number}", kind), None)

    def _held(self, call: Call, hold: Callable[[str], object], kind: str = "pin") -> None:
        name = f"{call.name}:{call.number}"
        text = sendable(call.result or "").strip()
        seen = bool(text) and not self.reused_ids and text in self.results.get(call.id, "")  # in the newest request,
        seen = seen and self.log_length > call.answered and self.context.session.rewrites == self.rewrites  # as it still stands
        hold(name)
        if seen:
            self.serial["pinned"] += 1
            self.pins[name, kind] = (text,)

    def _pin_text(self) -> None:
        """Pin words that the newest request shows."""
        shown = [
            item for _, items in turns(self.body, self.dialect) for item in items if item[0] in ("text", "result") and item[-1]
        ]
        if not shown or "notes" in self.last_fields:
            return
        item = self.random.choice(shown)
        start = self.random.randrange(len(item[-1]))
        text = item[-1][start : start + self.random.choice([12, 30, 90])]
        self.serial["pins asked"] += 1
        try:
            name = self.context.pin(text=text)
        except InputError as error:
            if item[0] == "result" and not item[-1].startswith("[no result"):  # what stands in a result is a block's
                raise Broken(f"{self.name}, request {self.requests}: {text!r} is shown and cannot be pinned: {error}") from error
            return
        self.serial["pins by text"] += 1
        self.pins[name, "pin"] = (*self.pins.get((name, "pin"), ()), text)

    def _unpin(self) -> None:
        for hold in self.context.session.holds:
            self.context.release(hold.object, hold.kind)
        self.pins.clear()

    def _restore(self) -> None:
        calls = [call for call in self._calls() if call.result is not None and call.name in TOOLS]
        if calls:
            call = self.random.choice(calls)
            if self.context.restore(f"{call.name}:{call.number}") is not None:
                self._by_hand()

    def _undo(self) -> None:
        if count := len(self.context.session.commits):
            self.context.undo(self.random.choice([self.random.randrange(count), count - 1]))
            self._by_hand()

    def _by_hand(self) -> None:
        """On the user's word a view may be larger, and what is held otherwise."""
        self._forget()
        self.pins.clear()

    def _recall(self) -> None:
        """Bring results back: each comes byte for byte."""
        calls = [call for call in self._calls() if call.result and call.name in TOOLS]
        for call in self.random.sample(calls, min(8, len(calls))):
            self._comes_back(f"{self.random.choice(['', 'function:'])}{call.name}:{call.number}", call)
        n = self.random.randrange(len(self.log))
        answer = sendable(self.context.recall(f"entry:{n}")) if self.log[n].human else ""
        if lost := [words for words in self.log[n].human if words not in answer]:
            raise Broken(f"{self.name}, request {self.requests}: recall of entry:{n} does not give {lost[0][:60]!r}")

    def _comes_back(self, name: str, call: Call | None) -> None:
        try:
            answer = self.context.recall(name)
        except InputError as error:
            raise Broken(f"{self.name}, request {self.requests}: {name} does not come back: {error}") from error
        if call is not None and call.result is not None and sendable(call.result) not in sendable(answer):
            raise Broken(f"{self.name}, request {self.requests}: recall of {name} does not give what it returned")

    def _search(self) -> None:
        with suppress(InputError):
            queries: list[dict[str, Any]] = [{"path": "src/a.py"}, {"words": "parser token"}, {"pattern": r"parser_\d"}]
            self.context.recall(**self.random.choice(queries))

    def _reopen(self) -> None:
        """A restart; the next request is the same, unless the budget is another."""
        if self.log[-1].role == "assistant":
            return
        messages, commits = messages_of(self._request(), self.dialect), len(self.context.session.commits)
        changed = self._chance(0.3)
        if changed:
            self.budget = self._budget()
        if self._chance(0.15):
            self._switch()
            return
        self._enter(self.context.conversation)
        again = messages_of(self._request(fields=self.last_fields), self.dialect)
        if not changed and len(self.context.session.commits) == commits and messages != again and bare(messages) != bare(again):
            raise Broken(f"{self.name}, request {self.requests}: a request after a restart is another one")

    def _switch(self) -> None:
        """Go on with another model, perhaps by another API."""
        self.dialect = self.random.choice([*DIALECTS])
        self.model = self.random.choice(DIALECTS[self.dialect])
        self.head = self._fields()
        self.switched = True
        self._enter(self.context.conversation)
        self._forget()
        self.resolved.clear()

    def _enter(self, conversation: str) -> None:
        if self.store is None:
            self.context.close()
        self.context = self._open(conversation)

    def _fork(self) -> None:
        """Go on in a fork, from any entry on; or in a conversation that was left at a fork."""
        if self.others and self._chance(0.2):
            conversation, log = self.others.pop(self.random.randrange(len(self.others)))
            self.others.append((self.context.conversation, self.log))
        else:
            conversation = str(UUID(int=self.random.getrandbits(128)))
            length = len(self.log)
            at = self.random.choice([length, self.random.randint(1, length), self.random.randint(max(1, length - 6), length)])
            self.context.store.fork(self.context.conversation, at, conversation)
            self.others.append((self.context.conversation, self.log))
            log = [self._copied(said, at) for said in self.log[:at]]
        self._enter(conversation)
        self._begin(log)
        if self.log[-1].role == "system":
            self._say()

    def _copied(self, said: Said, at: int) -> Said:
        """A message as it was before entry `at`."""
        calls = tuple(
            call
            if call.answered < at and call.result is not None
            else Call(call.id, call.name, call.number, call.arguments, call.extra)
            for call in said.calls
        )
        return Said(said.role, said.human, said.system, calls, said.references, said.seal)

    def _settle(self) -> None:
        self.context.settle(self.random.choice(["turn-end", "task-boundary", "idle", "before-call"]))

    def _queue(self) -> None:
        self.context.queued = not self.context.queued

    def _look_back(self) -> None:
        steps = len(self.context.session.index.steps)
        if steps > 1:
            self.context.diff(self.random.randrange(steps), self.random.randrange(steps))

    def _collect(self) -> None:
        with suppress(ModelError):
            self.context.collect(self._planner, aim=self.random.choice([0, 500]))

    def _hand_off(self) -> None:
        with suppress(ModelError):
            self.context.handoff(self._summariser, focus=self.random.choice(["", "the parser"]))

    # --- Helpers, good and bad

    def _planner(self, question: Question, *, cancel: object = None) -> Answer:
        names = list(dict.fromkeys(_OBJECT.findall("\n".join(str(each) for each in question.messages))))
        self.random.shuffle(names)
        third = len(names) // 3
        folds = [{"target": name, "summary": "what it was"} for name in names[:third]]
        good = {
            "gc_plan": {
                "fold": folds,
                "mask": [{"target": name} for name in names[third : 2 * third]],
                "prune": [{"target": name} for name in names[2 * third :]],
            }
        }
        return self._helper(json.dumps(good), "no plan at all", '{"gc_plan": {"fold": [')

    def _summariser(self, question: Question, *, cancel: object = None) -> Answer:
        return self._helper(BRIEF, BRIEF[:100], "Sure! Shall I go on?")

    def _digest(self, question: Question, *, cancel: object = None) -> Answer:
        return self._helper("It lists names of the parser.", "", "\x00" * 40)

    def _helper(self, good: str, *bad: str) -> Answer:
        if self._chance(0.6):
            return Answer(text=good)
        if self._chance(0.5):
            return Answer(text=self.random.choice(bad))
        if self._chance(0.3):
            return self.random.choice([None, "text", 7])  # type: ignore[return-value]
        raise self.random.choice([RuntimeError("broken"), ValueError(""), KeyError("x"), OSError(5, "gone"), TimeoutError()])

    # --- What is checked

    def _request(self, fields: Json | None = None) -> Json:
        """The next request, checked."""
        if fields is None:
            fields = {**self.head, "annotate": self.annotate}
            if self._chance(0.1) and not self._is_bound():
                fields["notes"] = self._text(6)
        self.last_fields = fields
        tools = [tool_of(self.dialect, name) for name in self.own]
        if self.dialect == "anthropic" and self.serial["marked tools"] % 7 == 3:
            tools[-1]["cache_control"] = {"type": "ephemeral"}
        if self._chance(0.5):
            body = json.loads(self.context.wire(tools=tools, **fields))
        else:
            body = body_of(self.context.request(tools=tools, **fields))
        self.body = body
        self.requests += 1
        self.asked_since = True
        self._check(body)
        return body

    def _again(self) -> None:
        """The same request as the other kind: as bytes, as arguments."""
        commits = len(self.context.session.commits)
        fields = self.last_fields
        tools = [tool_of(self.dialect, name) for name in self.own]
        arguments = body_of(self.context.request(tools=tools, **fields))
        wired = json.loads(self.context.wire(tools=tools, **fields))
        if len(self.context.session.commits) == commits and arguments != wired:
            raise Broken(f"{self.name}, request {self.requests}: the arguments of a request are not its bytes")
        self.body = wired
        self._check(wired)

    def _check(self, body: Json) -> None:
        where = f"{self.name}, request {self.requests}"
        shown = turns(body, self.dialect)
        rules = self.context.rules
        for fault in faults(
            body,
            self.dialect,
            turns(body, self.dialect),
            alternates=rules.alternation,
            keeps_reasoning=rules.call_reasoning and not self.switched,
        ):
            raise Broken(f"{where}: {fault}")
        self.results = {item[1]: item[2] for _, items in shown for item in items if item[0] == "result"}
        said = ("text", "result", "call")
        prompt = body.get("system") or body.get("systemInstruction", {}).get("parts") or ""
        prompts = [prompt] if isinstance(prompt, str) else [part["text"] for part in prompt]
        self.haystack = "\x01".join([*prompts, *(item[-1] for _, items in shown for item in items if item[0] in said)])
        self.log_length, self.rewrites = len(self.log), self.context.session.rewrites
        for wrong in (*self._missing(shown), *self._reasoning(body), *self._too_large(shown), *self._unstable(body)):
            raise Broken(f"{where}: {wrong}")
        for name, code in set(_HANDLE.findall(self.haystack)):
            if f"{name}@{code}" not in self.resolved or self._chance(0.01):
                self.resolved.add(f"{name}@{code}")
                self._comes_back(f"{name}@{code}", self._named(name))

    def _named(self, name: str) -> Call | None:
        """The call that an object is, where it has a result of the driver's."""
        tool, _, number = name.removeprefix("function:").rpartition(":")
        if tool not in TOOLS or not number.isdigit():
            return None
        return next((call for call in self._calls() if (call.name, call.number) == (tool, int(number))), None)

    def _missing(self, shown: list[Turn]) -> Iterator[str]:
        """Human words, prompts, pins and declared tools, as far as they are not there."""
        said, at = texts(shown), 0
        for words in (words for each in self.log for words in each.human):
            found = said.find(words, at)
            if found < 0:
                yield f"human words are missing or out of order: {words[:60]!r}"
                return
            at = found + len(words)
        everything = None
        for each in self.log:
            for words in (*each.system, *each.references):
                everything = everything or json.dumps(
                    [self.body.get("system"), self.body.get("systemInstruction"), messages_of(self.body, self.dialect)],
                    ensure_ascii=False,
                )
                if json.dumps(words, ensure_ascii=False)[1:-1] not in everything:
                    yield f"what the host said is missing: {words[:60]!r}"
        noted = next((call.note for call in reversed(list(self._calls())) if call.note), "")
        if noted and sendable(noted) not in self.haystack:
            yield f"the agent's notes are missing: {noted[:60]!r}"
        native = "\x01".join(
            item[-1] for _, items in shown for item in items if item[0] == "other"
        )  # a step is words to other APIs
        compact = self.haystack.replace('": ', '":').replace(
            ', "', ',"'
        )  # a call's arguments are values to some APIs, spaced as they like
        for (name, kind), kept in self.pins.items():
            for text in kept:
                if text not in self.haystack and text not in native and text not in compact:
                    yield f"{name} has a {kind} and does not show {text[:60]!r}"

    def _reasoning(self, body: Json) -> Iterator[str]:
        messages = messages_of(body, self.dialect)
        if self.dialect == "openai-chat" and "gemini" in self.model and not self.reused_ids:
            signed = {call.id: call.extra.get("extra_content") for call in self._calls()}  # none where another API made the call
            for message in messages:
                for call in message.get("tool_calls") or ():
                    if call.get("extra_content") != signed.get(call["id"]):
                        yield f"call {call['id']} lost its signature"
        if self.dialect == "gemini" and not self.reused_ids:
            yield from self._signatures(messages)
        if self.dialect != "anthropic" or not self.thinks or self.switched:
            return
        loop = max((n for n, each in enumerate(messages) if each["role"] == "user" and not _holds_results(each)), default=-1)
        seals = {call.id: said.seal for said in self.log for call in said.calls}
        for n, message in enumerate(messages):
            parts = message["content"] if isinstance(message["content"], list) else ()
            thoughts = {part.get("signature") or part.get("data") for part in parts if part["type"].endswith("thinking")}
            if self._is_bound():
                for m, part in enumerate(parts):
                    if part["type"] == "thinking" and not part["signature"].endswith((prefix_of(messages, (n, m)), "free")):
                        yield f"message {n} holds thinking of another prefix"
            elif n > loop and message["role"] == "assistant" and self.context.rules.thinking == "open_loop":
                lost = [
                    part["id"]
                    for part in parts
                    if part["type"] == "tool_use" and seals.get(part["id"], "") not in {*thoughts, ""}
                ]
                yield from (f"call {id_} of the open loop lost its thinking" for id_ in lost)

    def _signatures(self, contents: list[Json]) -> Iterator[str]:
        """Each call that came with a signature has it, and the first of a content any, where the model wants one."""
        signed = {call.id: call.extra.get("thoughtSignature") for call in self._calls()}
        for n, content in enumerate(contents):
            calls = [part for part in content["parts"] if "functionCall" in part]
            for part in calls:
                had = signed.get(part["functionCall"]["id"])
                if had and part.get("thoughtSignature") != had:
                    yield f"call {part['functionCall']['id']} lost its signature"
            if calls and self.model.startswith("gemini-3") and "thoughtSignature" not in calls[0]:
                yield f"the first call of content {n} has no signature"

    def _too_large(self, shown: list[Turn]) -> Iterator[str]:
        size = sum(weight(part) for _, items in shown for item in items for part in _weighed(item))
        steps = sum(weight(item[2]) for _, items in shown for item in items if item[0] == "other" and len(item) > 2)
        if self.size is not None and size > self.size + 150 + max(
            0, self.steps - steps
        ):  # what came in place of the provider's own steps
            yield f"it weighs {size}, at most {self.size} were expected"
        self.steps = steps
        decision, limit = self.context.decision, self.budget.ceiling or self.budget.window
        if not isinstance(decision, Unmet) and self.compat != "pi-cwl" and size * self.context.session.ratio > limit:
            yield f"it weighs {size * self.context.session.ratio:.0f}, the limit is {limit}, and nothing is said: {decision}"
        self.size = size

    def _unstable(self, body: Json) -> Iterator[str]:
        """Absent a commit, the messages of the request before come first in this one, as they were."""
        commits = sum(commit.moment != "admission" for commit in self.context.session.commits)
        messages = messages_of(body, self.dialect)
        if "notes" in self.last_fields:  # its last message is, or ends in, what holds for it alone
            messages = messages[: max(n for n, each in enumerate(messages) if each.get("role") == "user")]
        if self.before is not None and self.before[0] == commits:
            for n, (was, now) in enumerate(zip(self.before[1], messages, strict=False)):
                if was != now and bare(was) != bare(now) and not _grew(bare(was), bare(now)):
                    yield f"message {n} changed without a commit: {_difference(bare(was), bare(now))}"
                    return
            if len(messages) < len(self.before[1]) - ("notes" in self.last_fields):
                yield "messages left without a commit"
        self.before = (commits, messages)

    def _at_the_end(self) -> None:
        store = self.context.store
        for conversation, log in [(self.context.conversation, self.log), *self.others]:
            if wrong := store.verify(conversation):
                raise Broken(f"{self.name}: {wrong}")
            if store.conversation(conversation).length != len(log):
                raise Broken(f"{self.name}: the record is not as long as the conversation")

    # --- Texts

    def _human(self) -> str:
        self.serial["human"] += 1
        words = f"HUMAN-{self.serial['human']}: {self._text(self.random.choice([3, 3, 8, 40]))}"
        return sendable(words) if self._chance(0.5) else words

    def _text(self, words: int, *, lines: bool = False) -> str:
        chosen = [f"{self.random.choice(WORDS)}_{self.random.randrange(1_000)}" for _ in range(words)]
        if self._chance(0.06):
            chosen.insert(self.random.randrange(words), self.random.choice(ODD))
        return ("\n" if lines else " ").join(chosen)


def drives(folder: Path, policy: str, dialect: str, *, compat: str = "", requests: int, first: int = 0) -> Iterator[Drive]:
    """Conversations until so many requests were checked."""
    seed, made = first, 0
    while made < requests:
        drive = Drive(seed, folder, policy, dialect, compat=compat).run(40)
        made, seed = made + drive.requests, seed + 1
        yield drive


def weight_of(body: Json) -> int:
    """About what a provider would count."""
    return len(json.dumps(body)) // 4


def _weighed(item: tuple[str, ...]) -> tuple[str, ...]:
    match item[0]:
        case "call":
            return item[2:]
        case "other":
            return ()
        case _:
            return item[-1:] if item[0] == "result" else item[1:2]


def _holds_results(message: Json) -> bool:
    content = message["content"]
    return isinstance(content, list) and any(part["type"] == "tool_result" for part in content)


def _difference(was: Any, now: Any) -> str:
    old, new = json.dumps(was), json.dumps(now)
    at = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    return f"{old[max(0, at - 60) : at + 160]} / {new[max(0, at - 60) : at + 360]}"


def _grew(was: Any, now: Any) -> bool:
    """Whether a message took in more: results or words of the same turn."""
    if "parts" in was:
        return was["role"] == now["role"] and now["parts"][: len(was["parts"])] == was["parts"]
    return was.get("role") == now.get("role") and _flat(now.get("content")).startswith(_flat(was.get("content")))


def _flat(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n\n".join(part["text"] if part["type"] == "text" else json.dumps(part) for part in content or ())
