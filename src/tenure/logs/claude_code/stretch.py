"""What Claude Code logged between two compactions, held until it is known which branch of it lives.

A rewind can abandon anything back to the last compaction, so nothing is certain before the next one or the end of the file. Held are
the contents of user and assistant lines and the ids and parents of all others, never `toolUseResult`, progress or snapshots:
about as much as the model's window held at most, however long the file is.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Literal

from msgspec import Struct

from tenure.engine.record.entry import Draft, Origin, Role, ToolCall, ToolResult, Usage
from tenure.logs.anthropic_message import Content, content
from tenure.logs.claude_code.origin import SYNTHETIC, written_by
from tenure.logs.mend import Damaged
from tenure.logs.reader import Event, Rewritten, Skipped
from tenure.logs.tree import branch, nearest

CLEARED: Final = "cleared"

Kind = Literal["user", "assistant", "queued", "cleared"]


class Held(Struct, frozen=True, kw_only=True, gc=False):
    """One line of the conversation, not yet known to live."""

    id: str
    parent: str | None
    line: int
    size: int
    at: str
    harness: bool  # whether the line says itself that no human wrote it
    kind: str = ""
    content: bytes = b""
    message: str = ""  # the API's message id, shared by the lines of one message
    model: str = ""
    usage: Usage | None = None
    cache_life: str = ""
    cleared: tuple[str, ...] = ()


class Stretch:
    """Lines as they come in, and the events of the live branch when they are settled."""

    def __init__(self) -> None:
        self._held: dict[str, Held] = {}
        self._links: dict[str, str | None] = {}  # lines beside the conversation: their parents
        self._before: dict[str, str | None] = {}  # the line before each, for those whose parent is not in the file
        self._unlinked: set[str] = set()
        self._last: str | None = None

    def line_of(self, id_: str | None) -> int | None:
        """The line of a message that is held; None for any other id."""
        held = self._held.get(id_) if id_ is not None else None
        return held and held.line

    def link(self, id_: str, parent: str | None) -> None:
        """Note the place of a line that is not held."""
        self._links.setdefault(id_, parent)

    def hold(self, held: Held, *, linked: bool) -> None:
        """Keep a line; `linked` says whether it names a parent, be it none."""
        self._held[held.id] = held
        self._before[held.id] = self._last
        if not linked:
            self._unlinked.add(held.id)
        self._last = held.id

    def settle(self) -> Iterator[Event]:
        """The events of the live branch; afterwards the stretch is empty."""
        if self._held:
            parents = {id_: self._parent(held) for id_, held in self._held.items()}
            yield from _Settling(self._held, parents).events()
        self.__init__()

    def _parent(self, held: Held) -> str | None:
        if held.id in self._unlinked:
            return self._before[held.id]
        found = nearest(self._links, self._held, held.parent)
        if found is None or found in self._held:
            return found
        return self._before[held.id]  # a parent that is not in the file: cut off, damaged or redacted


class _Settling:
    """Puts the live lines of one stretch in the order in which the model saw them."""

    def __init__(self, held: dict[str, Held], parents: dict[str, str | None]) -> None:
        self.held, self.parents = held, parents
        self.done: set[str] = set()
        self.damaged: list[Skipped] = []
        self.chain = branch(parents, _newest_leaf(held, parents))
        self.live = set(self.chain)
        self.contents = {id_: self._content(line) for id_, line in held.items() if line.kind != CLEARED}
        self.messages = _grouped(held.values(), lambda line: line.message if line.kind == "assistant" else None)
        self.results = self._results()

    def events(self) -> Iterator[Event]:
        for id_ in self.chain:
            if id_ not in self.done:
                yield from self._of(self.held[id_])
        yield from self.damaged
        left = [line for id_, line in self.held.items() if id_ not in self.done]
        if left:
            reason = f"abandoned branch: {len(left)} lines left by a rewind or retry"
            yield Skipped(line=left[0].line, bytes=sum(line.size for line in left), reason=reason)

    def _of(self, line: Held) -> Iterator[Event]:
        match line.kind:
            case "assistant":
                yield from self._exchange(self.messages[line.message])
            case "cleared":
                self.done.add(line.id)
                yield Rewritten(reason="results cleared", line=line.line, at=line.at, cleared=line.cleared)
            case _:
                yield from self._draft((line,))

    def _exchange(self, lines: list[Held]) -> Iterator[Event]:
        """One API message and the results of its calls, wherever in the file they came."""
        for event in self._draft(tuple(lines)):
            yield event
            assert isinstance(event, Draft)
            own = {line.id for line in lines}
            calls = [block.call_id for block in event.blocks if isinstance(block, ToolCall)]
            answers = {answer.id: answer for call in calls if (answer := self._answer(call, own))}
            for answer in sorted(answers.values(), key=lambda answer: answer.line):
                if answer.id not in self.done:
                    yield from self._draft((answer,))

    def _answer(self, call_id: str, own: set[str]) -> Held | None:
        """The line that answers a call: on the live branch, or a sibling of it when several calls ran side by side."""
        waiting = [line for line in self.results.get(call_id, ()) if line.id not in self.done]
        for line in waiting:
            if line.id in self.live:
                return line
        return next((line for line in waiting if self.parents[line.id] in own), None)

    def _draft(self, lines: tuple[Held, ...]) -> Iterator[Draft]:
        self.done.update(line.id for line in lines)
        contents = [found for line in lines if (found := self.contents[line.id]) is not None]
        blocks = tuple(block for found in contents for block in found.blocks)
        if not blocks:
            return
        first, assistant = lines[0], lines[0].kind == "assistant"
        usages = [line.usage for line in lines if line.usage is not None]
        yield Draft(
            role=Role.ASSISTANT if assistant else Role.USER,
            blocks=blocks,
            dialect="anthropic",
            payload=_payload("assistant" if assistant else "user", contents),
            at=first.at,
            model="" if first.model == SYNTHETIC else first.model,
            usage=max(usages, key=lambda usage: usage.output) if usages and first.model != SYNTHETIC else None,
            cache_life=next((line.cache_life for line in lines if line.cache_life), ""),
            line=first.line,
        )

    def _content(self, line: Held) -> Content | None:
        try:
            found = content(line.content, lambda text: _origin(line, text))
            self.damaged += [Skipped(line=line.line, bytes=0, reason=reason) for reason in found.left_out]
            return found
        except Damaged as damage:
            reason = f"damaged content: found {damage.found}, expected text or a list of content parts"
            self.damaged.append(Skipped(line=line.line, bytes=line.size, reason=reason))
            return None

    def _results(self) -> dict[str, list[Held]]:
        results: dict[str, list[Held]] = {}
        for id_, found in self.contents.items():
            for block in found.blocks if found else ():
                if isinstance(block, ToolResult):
                    results.setdefault(block.call_id, []).append(self.held[id_])
        return results


def _origin(line: Held, text: str) -> Origin:
    if line.kind == "assistant":
        return Origin.HARNESS if line.model == SYNTHETIC else Origin.MODEL
    return Origin.HARNESS if line.harness else written_by(text)


def _payload(role: str, contents: list[Content]) -> bytes:
    json = contents[0].json if len(contents) == 1 else b"[" + b",".join(found.parts for found in contents if found.parts) + b"]"
    return b'{"role":"' + role.encode() + b'","content":' + json + b"}"


def _grouped(lines: Iterable[Held], key: Callable[[Held], str | None]) -> dict[str, list[Held]]:
    groups: dict[str, list[Held]] = {}
    for line in lines:
        if (group := key(line)) is not None:
            groups.setdefault(group, []).append(line)
    return groups


def _newest_leaf(held: dict[str, Held], parents: dict[str, str | None]) -> str:
    """Of the lines that nothing follows, the one written last; of all lines when parents run in a circle.

    A line without a time is as old as the one before it.
    """
    followed = set(parents.values())
    leaves = [line for id_, line in held.items() if id_ not in followed] or list(held.values())
    times: dict[str, str] = {}
    at = ""
    for line in held.values():
        times[line.id] = at = line.at or at
    return max(leaves, key=lambda line: (times[line.id], line.line)).id
