"""The transcript: events in, pieces on the screen.

Events change values only; what changed is drawn a few times a second. The number of pieces is bounded; older ones are in the record, and `/context`
shows them.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from textual.containers import VerticalScroll

from tenure.agent import events
from tenure.agent.screens.pieces import CallPiece, Thought, TranscriptPiece, Words, begins, ends, note, said
from tenure.apis.json_text import load
from tenure.engine.meter import figures
from tenure.engine.record.entry import Entry, Origin, Role, Text, ToolCall, ToolResult
from tenure.engine.record.index import NONE, Index
from tenure.errors import InputError

if TYPE_CHECKING:  # loaded behind the first paint
    from tenure.context import Context

MOST: Final = 300  # pieces
FRAME_S: Final = 1 / 20  # between two drawings
ENTRIES: Final = 60  # of an earlier session that are shown
TYPED: Final = 100  # of a person's words, for the history of the prompt
_DELIMITER: Final = "delimiter"  # a tool whose calls are shown as boundaries


class TranscriptView(VerticalScroll):
    """What was said and done, newest last."""

    DEFAULT_CSS = """
    TranscriptView { height: 1fr; padding: 1 1 0 1; background: $background; scrollbar-size-vertical: 1; }
    TranscriptView:focus { scrollbar-color: $primary; }
    """

    def __init__(self) -> None:
        super().__init__(id="transcript")
        self._calls: dict[str, CallPiece] = {}
        self._stale: dict[int, TranscriptPiece] = {}  # by identity
        self._waiting: list[TranscriptPiece] = []  # not yet on the screen
        self._words: Words | None = None
        self._thought: Thought | None = None
        self._reply: list[TranscriptPiece] = []  # of the reply that streams, to be taken back when it is void

    def on_mount(self) -> None:
        self.anchor()
        self.set_interval(FRAME_S, self.flush)

    async def clear(self) -> None:
        """Begin anew, for another session."""
        self._calls.clear()
        self._stale.clear()
        self._waiting.clear()
        self._end_words()
        await self.remove_children()

    def add(self, piece: TranscriptPiece) -> None:
        """One more piece."""
        self._waiting.append(piece)
        self._mark(piece)

    def flush(self) -> None:
        """Draw what changed since the last time."""
        for piece in self._stale.values():
            piece.flush()
        self._stale.clear()
        if self._waiting:
            waiting, self._waiting = self._waiting[-MOST:], []
            over = len(self.children) + len(waiting) - MOST
            if over > 0:
                self.remove_children(self.children[:over])
            self.mount_all(waiting)

    @property
    def is_drawn(self) -> bool:
        """Whether all that came is on the screen."""
        return not self._stale and not self._waiting

    def take(self, event: events.Event) -> None:
        """What an event means for the transcript."""
        match event:
            case events.TextDelta(text=text):
                self._say(text)
            case events.ThinkingDelta(text=text):
                self._think(text)
            case events.CallStarted(call=call, tool=tool):
                if tool != _DELIMITER:
                    self._end_words()
                    self._calls[call] = CallPiece(event)
                    self.add(self._calls[call])
            case events.CallOutput() | events.CallDone() | events.ApprovalAsked() | events.ApprovalGiven() | events.Delegated():
                if (piece := self._calls.get(event.call)) is not None:
                    _feed(piece, event)
                    self._mark(piece)
                if isinstance(event, events.CallDone):
                    self._calls.pop(event.call, None)
            case events.Replied():
                self._end_words()
                self._reply.clear()
            case events.Retrying():
                self._retry(event)
            case events.TurnDone():
                self._end_words()
                self._calls.clear()
                self._turn_done(event)
            case _:
                for piece in _notices(event):
                    self.add(piece)

    def _say(self, text: str) -> None:
        self._thought = None
        while text:
            if self._words is None:
                text = text.lstrip("\n")
                self._words = Words()
                self._reply.append(self._words)
                self.add(self._words)
            piece = self._words
            text = piece.feed(text)
            self._mark(piece)
            if text:
                self._words = None

    def _think(self, text: str) -> None:
        if self._thought is None:
            self._thought = Thought()
            self._reply.append(self._thought)
            self.add(self._thought)
        self._thought.feed(text)
        self._mark(self._thought)

    def _end_words(self) -> None:
        self._words = self._thought = None

    def _retry(self, event: events.Retrying) -> None:
        for piece in self._reply if event.discard else ():
            self._stale.pop(id(piece), None)
            if piece in self._waiting:
                self._waiting.remove(piece)
            elif piece.is_attached:
                piece.remove()
        self._reply.clear()
        self._end_words()
        wait = f" in {event.wait_s:.0f} s" if event.wait_s >= 1 else ""
        self.add(note(f"{event.text}; attempt {event.attempt} of {event.most}{wait}", "warning"))

    def _turn_done(self, event: events.TurnDone) -> None:
        if event.reason not in ("done", "failed"):  # why it failed was told
            self.add(note(f"{event.reason}{f': {event.why}' if event.why else ''}", "warning"))
        calls = f"{event.steps} call{'s' * (event.steps != 1)}"
        self.add(note(f"{calls}, {figures.spent(event.usd, event.unpriced)}, {event.seconds:.1f} s"))

    def _mark(self, piece: TranscriptPiece) -> None:
        if piece.is_stale:
            self._stale[id(piece)] = piece


def _feed(piece: CallPiece, event: events.Event) -> None:
    """What happens to a call; what a sub-agent does is told below the call that it works for."""
    match event:
        case events.CallOutput(text=text):
            piece.feed(text)
        case events.CallDone():
            piece.finish(event)
        case events.ApprovalAsked() | events.Delegated(of=events.ApprovalAsked()):
            piece.ask(True)
        case events.ApprovalGiven() | events.Delegated(of=events.ApprovalGiven()):
            piece.ask(False)
        case events.Delegated(of=events.CallStarted(tool=tool, summary=summary)):
            piece.feed(f"{tool} {summary.removeprefix(tool).lstrip()}\n")
        case events.Delegated(of=events.TurnDone(reason=reason)):
            piece.feed(f"{reason}\n")
        case _:
            pass


def _notices(event: events.Event) -> Iterator[TranscriptPiece]:
    """What is said once, as pieces."""
    match event:
        case events.SessionOpened(resumed=True):
            interrupted = f"; {event.interrupted} calls had been interrupted" if event.interrupted else ""
            yield note(f"session {event.session[:8]} goes on at {event.entries} entries{interrupted}")
        case events.TurnStarted(text=text):
            yield said(text) if text else note("going on where it was interrupted")
        case events.EpisodeStarted():
            on = f" on {', '.join(event.dependencies)}" if event.dependencies else ""
            yield begins(f"{event.type} {event.name}{on}")
        case events.EpisodeEnded():
            how = "cut off" if event.aborted else "ended"
            yield ends(f"{event.name} {how}{f': {event.description}' if event.description else ''}")
        case events.Committed():
            took = f"{figures.short(event.tokens_before)} → {figures.short(event.tokens_after)}"
            yield note(f"window {took}: {len(event.left)} objects left by {event.policy} ({event.reason}); /why, /context")
        case events.LimitUnmet(text=text):
            yield note(text, "warning")
        case events.Noticed(text=text):
            yield note(text)
        case events.TurnFailed(text=text):
            yield note(text, "error")
        case _:
            pass


def earlier(context: "Context") -> Iterator[TranscriptPiece]:
    """The newest entries as pieces."""
    index = context.session.index
    start = max(0, len(index) - ENTRIES)
    if start:
        yield note(f"{start:,} earlier entries: /context shows them")
    calls: dict[int, CallPiece] = {}
    for entry in context.store.entries(context.conversation, start):
        yield from _pieces(index, entry, calls)


def typed(context: "Context") -> list[str]:
    """What the person said lately, oldest first."""
    turns = context.session.index.turns[-TYPED:]
    entries = (context.store.entry(context.conversation, turn.start[0]) for turn in turns)
    return [block.text for entry in entries for block in entry.blocks if block.origin is Origin.HUMAN][-TYPED:]


def _pieces(index: Index, entry: Entry, calls: dict[int, CallPiece]) -> Iterator[TranscriptPiece]:
    for number, block in enumerate(entry.blocks):
        facts = index.block((entry.n, number))
        match block:
            case Text(text=text, origin=Origin.HUMAN):
                yield said(text)
            case Text(text=text, origin=Origin.MODEL) if text.strip():
                yield Words(text)
            case ToolCall(name=name, arguments=arguments) if name == _DELIMITER:
                yield from _boundary(arguments)
            case ToolCall(call_id=call, name=name, arguments=arguments):
                summary = index.spans[facts.span].cue if facts.span != NONE else ""
                calls[facts.span] = CallPiece(events.CallStarted(call=call, tool=name, summary=summary, arguments=arguments))
                yield calls[facts.span]
            case ToolResult(text=text, error=error) if facts.span in calls:
                span, outcome = index.spans[facts.span], "error" if error else "done"
                handle, size = index.handle(span.object, span.call[0]), {"tokens": facts.tokens, "shown": facts.tokens}
                calls[facts.span].finish(
                    events.CallDone(call="", tool=span.tool, text=text, outcome=outcome, handle=handle, **size)
                )
            case Text(text=text) if entry.role is Role.ASSISTANT and text.strip():
                yield note(text)
            case _:
                pass


def _boundary(arguments: str) -> Iterator[TranscriptPiece]:
    """What a delimiter's arguments say."""
    with suppress(InputError):
        match load(arguments):
            case {"action": "start", **rest}:
                yield begins(f"{rest.get('type', '')} {rest.get('name', '')}")
            case {"action": "end", "description": str(description)} if description:
                yield ends(f"ended: {description}")
            case {"action": "end"}:
                yield ends("ended")
            case _:
                pass
