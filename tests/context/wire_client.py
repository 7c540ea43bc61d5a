"""A client that sends its whole history with each request, and a provider that checks each, without a network."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tenure.apis import APIS
from tenure.apis.api import Api
from tenure.apis.json_text import dump, load
from tenure.apis.rules import rules_for
from tenure.apis.server import Reply
from tenure.context.exchange import Exchange
from tenure.context.histories import Histories
from tenure.engine.record.entry import ToolCall, Usage
from tenure.engine.view.rules import Rules
from tenure.testing.prefix import PrefixCache
from tenure.testing.script import wire
from tenure.testing.validity import violations

MODELS: Final = {
    "anthropic": ("claude-opus-5", "claude-fable-5-1", "claude-3-5-haiku"),
    "openai-chat": ("gpt-5",),
    "openai-responses": ("gpt-5",),
    "gemini": ("gemini-3-pro",),
}
CASES: Final = [(name, model) for name, models in MODELS.items() for model in models]


@dataclass
class Upstream:
    """Answers by `script`, which is told the names of the tools that a request offers. Everything is kept in `seen`."""

    api: Api
    model: str
    script: Callable[[Sequence[str]], Reply]
    seen: list[dict[str, Any]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    cache: PrefixCache | None = None  # what reports what was read and written; without one all is uncached
    usages: list[Usage] = field(default_factory=list)

    @property
    def rules(self) -> Rules:
        return rules_for(self.api.server().provider, self.model, self.api.name)

    def whole(self, raw: bytes) -> dict[str, Any]:
        body: dict[str, Any] = load(raw.decode())  # type: ignore[assignment]
        self.seen.append(body)
        self.bodies.append(raw)
        server = self.api.server()
        path = server.paths[0].format(version="v1beta", call=f"{self.model}:generateContent")
        read = server.read({**body}, path)
        assert violations(read, self.rules) == (), dump(body)
        tools = [each.get("function", each).get("name", "") for each in self.api.declarations(body.get("tools") or [])]
        now = float(len(self.seen))
        usage = Usage(uncached=len(raw) // 4, output=5) if self.cache is None else self.cache.usage(read, self.rules, now, 5)
        self.usages.append(usage)
        return wire(self.script(tools), len(self.seen), read, self.rules, usage)

    def events(self, whole: dict[str, Any]) -> list[bytes]:
        return list(self.api.server().events(whole, include_usage=True))


@dataclass
class Client:
    """One agent. `history` is what it knows."""

    histories: Histories
    upstream: Upstream
    stream: bool = True
    tools: bool = True
    history: list[Any] = field(default_factory=list)
    echo: Callable[[Any], Any] = lambda message: message
    mark: bool = False
    chunk: int = 7

    @property
    def api(self) -> Api:
        return self.upstream.api

    def body(self, history: Sequence[Any], *, tools: bool = True) -> bytes:
        api = self.api
        head: dict[str, Any] = {"model": self.upstream.model, "x-unknown": {"a": 1}}
        system = "be brief"
        match api.name:
            case "anthropic":
                marker = {"cache_control": {"type": "ephemeral"}} if self.mark else {}
                head |= {"max_tokens": 99, "system": [{"type": "text", "text": system, **marker}]}
            case "gemini":
                head = {"x-unknown": {"a": 1}, "systemInstruction": {"parts": [{"text": system}]}}
            case "openai-responses":
                head |= {"instructions": system, "store": False}
            case _:
                history = [{"role": "system", "content": system}, *history]
        if self.stream and api.name != "gemini":
            head["stream"] = True
        if tools and self.tools:
            head["tools"] = api.tools(
                [api.tool("read", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})]
            )
        messages = list(history)
        if self.mark and api.name == "anthropic":
            messages[-1] = marked(messages[-1])
        return json.dumps({**head, api.body_key: messages}, ensure_ascii=False).encode()

    def ask(self, raw: bytes, **options: Any) -> tuple[bytes, Exchange]:
        """The whole reply that the client gets, and the exchange."""
        exchange = self.histories.exchange(self.api, raw, model=self.upstream.model, **options)
        try:
            got = self.api.reply()
            while True:
                reply = self.upstream.whole(exchange.body)
                if not self.stream:
                    shown = exchange.whole(dump(reply).encode())
                    if shown is None:
                        continue
                    return shown, exchange
                out = b""
                data = b"".join(self.upstream.events(reply))
                for start in range(0, len(data), self.chunk * 40):
                    out += exchange.take(data[start : start + self.chunk * 40])
                rest = exchange.end()
                for event in (out + (rest or b"")).split(b"\n\n"):
                    text = event.partition(b"data: ")[2].strip()
                    if text.startswith(b"{"):
                        for _ in got.take(load(text.decode())):
                            pass
                if rest is not None:
                    whole = got.whole()
                    assert whole is not None, out
                    return whole.reply, exchange
        finally:
            exchange.close()

    def turn(self, *messages: Any, **options: Any) -> list[ToolCall]:
        """Say these, take the reply into the history, and give its calls."""
        self.history += messages
        reply, self.last = self.ask(self.body(self.history), **options)
        return self.hear(reply)

    def hear(self, reply: bytes) -> list[ToolCall]:
        draft = self.api.parse_reply(reply)
        said: Any = load(draft.payload.decode())
        self.history += [self.echo(item) for item in (said if isinstance(said, list) else [said])]
        return [block for block in draft.blocks if isinstance(block, ToolCall)]

    def results(self, calls: Sequence[ToolCall], text: Callable[[ToolCall], str]) -> list[Any]:
        return self.api.results([self.api.result(call, text(call)) for call in calls])

    def user(self, text: str) -> Any:
        return self.api.user(text)


def marked(message: Any) -> Any:
    """The message with a cache marker on its last part."""
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    return message | {"content": [*parts[:-1], parts[-1] | {"cache_control": {"type": "ephemeral"}}]}


def upstream(name: str, model: str, script: Callable[[Sequence[str]], Reply]) -> Upstream:
    return Upstream(APIS[name], model, script)
