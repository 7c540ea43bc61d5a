"""mini-swe-agent's trajectories: one document of chat messages.

Version 1 puts commands into fences of the assistant's text and observations into user messages, and the model saw them so; version 2
uses tool calls. The raw API response, repeated in `extra`, gives the model's name and usage and nothing else.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Raw, Struct
from msgspec.structs import replace

from tenure.engine.record.entry import Block, Draft, Origin, Role, Text
from tenure.logs.json_files import Element, decoded, document, elements
from tenure.logs.parts import Tokens, chat_message
from tenure.logs.reader import Event, Skipped
from tenure.logs.shape import keys
from tenure.logs.transcript import utc

ALLOWED: Final = "a mini-swe-agent trajectory: an object with `info` and `messages`"

SENT: Final = ("role", "name", "content", "tool_calls", "tool_call_id")  # the fields of a message that go to the model

_FORMAT: Final = re.compile(rb'"trajectory_format"\s*:\s*"mini-swe-agent')
_FINISHED: Final = re.compile(rb'\s*\{\s*"info"\s*:\s*\{\s*"exit_status"\s*:[^{}\[\]]*"submission"\s*:')


class _MiniResponse(Struct, frozen=True, gc=False):
    model: str | None = None
    created: float | None = None
    usage: Tokens | None = None


class _MiniExtra(Struct, frozen=True, gc=False):
    response: _MiniResponse | None = None
    timestamp: float | str | None = None


class _MiniAbout(Struct, frozen=True, gc=False):
    role: str = ""
    timestamp: float | str | None = None
    extra: _MiniExtra | None = None


class _MiniTrajectory(Struct, frozen=True, gc=False):
    messages: list[Raw]


class MiniSweAgent:
    """Reads mini-swe-agent's trajectories."""

    name = "mini-swe-agent"

    def recognises(self, head: bytes) -> bool:
        """Whether the document says so, or opens with the info that only this agent writes."""
        if _FORMAT.search(head) or (keys(head)[:1] == ("info",) and b'"mini_version"' in head):
            return True
        return _FINISHED.match(head) is not None or head.lstrip().startswith(b'{"info":{"exit_status"')

    def read(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        """One draft per message, in order."""
        trajectory = document(chunks, _MiniTrajectory, ALLOWED)
        asked = False
        for item in decoded(elements(trajectory.value.messages, trajectory.source, trajectory.faithful), _MiniAbout, "message"):
            event = item if isinstance(item, Skipped) else _event(*item, asked)
            asked = asked or (isinstance(event, Draft) and event.role is Role.USER)
            yield event
        yield from trajectory.skipped


def _event(element: Element, about: _MiniAbout, asked: bool) -> Event:
    if about.role == "exit":
        return Skipped(line=element.line, bytes=len(element.faithful), reason="exit message: written after the last call")
    draft = chat_message(element, SENT)
    if isinstance(draft, Skipped):
        return draft
    extra = about.extra or _MiniExtra()
    response = extra.response or _MiniResponse()
    return replace(
        draft,
        blocks=tuple(_by(block, asked) if draft.role is Role.USER else block for block in draft.blocks),
        at=utc(about.timestamp or extra.timestamp or response.created),
        line=element.line,
        model=response.model or "",
        usage=response.usage and response.usage.usage,
    )


def _by(block: Block, asked: bool) -> Block:
    """In the user's role only the first message is the human's; then it is what the commands printed."""
    return replace(block, origin=Origin.TOOL) if asked and isinstance(block, Text) else block
