"""The transcript: events in, pieces on the screen.

Events change values only; what changed is drawn a few times a second. The number of pieces is bounded; older ones are in the record, and `/context`
shows them.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec
from textual.containers import VerticalScroll

from tenure.agent.events import (
    ApprovalAsked,
    ApprovalGiven,
    CallDelta,
    CallDone,
    CallOutput,
    CallStarted,
    Committed,
    Delegated,
    EpisodeEnded,
    EpisodeStarted,
    Event,
    Failed,
    Gauged,
    LimitUnmet,
    Noticed,
    Recalled,
    Replied,
    Requested,
    Retrying,
    SessionOpened,
    TextDelta,
    ThinkingDelta,
    TurnDone,
    TurnStarted,
)
from tenure.agent.screens.pieces import CallPiece, Piece, Thought, Words, begins, ends, note, said
from tenure.engine.meter import figures
from tenure.engine.record.entry import Entry, Origin, Role, Text, ToolCall, ToolResult
from tenure.engine.record.index import NONE, Index

if TYPE_CHECKING:  # loaded behind the first paint
    from tenure.context import Context

MOST: Final = 300  # pieces
FRAME_S: Final = 1 / 20  # between two drawings
_VIRTUAL: Final = frozenset({"delimiter"})  # which is told by its boundary


class TranscriptView(VerticalScroll):
    """What was said and done, newest last."""

    DEFAULT_CSS = """
    TranscriptView { height: 1fr; padding: 1 1 0 1; background: $background; scrollbar-size-vertical: 1; }
    TranscriptView:focus { scrollbar-color: $primary; }
    """

    def __init__(self) -> None:
        super().__init__(id="transcript")
        self._calls: dict[str, CallPiece] = {}
        self._stale: dict[int, Piece] = {}  # by identity
        self._waiting: list[Piece] = []  # not yet on the screen
        self._words: Words | None = None
        self._thought: Thought | None = None
        self._reply: list[Piece] = []  # of the reply that streams, to be taken back when it is void
        self._dropped = 0

    def on_mount(self) -> None:
        """Stay at the end, and draw what comes."""
        self.anchor()
        self.set_interval(FRAME_S, self.flush)

    async def clear(self) -> None:
        """Begin anew, for another session."""
        self._calls.clear()
        self._stale.clear()
        self._waiting.clear()
        self._end_words()
        await self.remove_children()

    def add(self, piece: Piece) -> None:
        """One more piece."""
        self._waiting.append(piece)
        self._mark(piece)

    def flush(self) -> None:
        """Draw what changed since the last time."""
        if not self._stale and not self._waiting:
            return
        for piece in self._stale.values():
            piece.flush()
        self._stale.clear()
        if self._waiting:
            waiting, self._waiting = self._waiting[-MOST:], []
            over = len(self.children) + len(waiting) - MOST
            if over > 0:
                self._dropped += over
                self.remove_children(self.children[:over])
            self.mount_all(waiting)

    @property
    def is_drawn(self) -> bool:
        """Whether all that came is on the screen."""
        return not self._stale and not self._waiting

    def take(self, event: Event) -> None:
        """What an event means for the transcript."""
        match event:
            case TextDelta(text=text):
                self._say(text)
            case ThinkingDelta(text=text):
                self._think(text)
            case CallStarted(tool=tool) if tool not in _VIRTUAL:
                self._end_words()
                piece = self._calls[event.call] = CallPiece(event)
                self.add(piece)
            case CallOutput(call=call, text=text) if call in self._calls:
                self._calls[call].feed(text)
                self._mark(self._calls[call])
            case CallDone(call=call) if call in self._calls:
                piece = self._calls.pop(call)
                piece.finish(event)
                self._mark(piece)
            case ApprovalAsked(call=call) if call in self._calls:
                self._calls[call].ask(True)
                self._mark(self._calls[call])
            case ApprovalGiven(call=call) if call in self._calls:
                self._calls[call].ask(False)
                self._mark(self._calls[call])
            case TurnStarted(text=text):
                self.add(said(text) if text else note("going on where it was interrupted"))
            case Replied():
                self._end_words()
                self._reply.clear()
            case Retrying(discard=discard):
                self._retry(event, discard=discard)
            case TurnDone():
                self._end_words()
                self._turn_done(event)
            case Delegated(of=inner):
                self._delegated(event, inner)
            case (
                CallDelta()
                | CallStarted()
                | CallOutput()
                | CallDone()
                | ApprovalAsked()
                | ApprovalGiven()
                | Requested()
                | Gauged()
                | Recalled()
            ):
                pass
            case _:
                for piece in told(event):
                    self.add(piece)

    def _say(self, text: str) -> None:
        self._thought = None
        rest = text
        while rest:
            if self._words is None:
                rest = rest.lstrip("\n")
                self._words = Words()
                self._reply.append(self._words)
                self.add(self._words)
            piece = self._words
            rest = piece.feed(rest)
            self._mark(piece)
            if rest:
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

    def _retry(self, event: Retrying, *, discard: bool) -> None:
        if discard:
            for piece in self._reply:
                self._stale.pop(id(piece), None)
                if piece in self._waiting:
                    self._waiting.remove(piece)
                elif piece.is_attached:
                    piece.remove()
        self._reply.clear()
        self._end_words()
        wait = f" in {event.wait_s:.0f} s" if event.wait_s >= 1 else ""
        self.add(note(f"{event.text}; attempt {event.attempt} of {event.most}{wait}", "warning"))

    def _turn_done(self, event: TurnDone) -> None:
        self._calls.clear()
        if event.reason not in ("done", "failed"):  # why it failed was told
            why = f": {event.why}" if event.why else ""
            self.add(note(f"{event.reason}{why}", "warning"))
        used = f"{event.steps} call{'s' * (event.steps != 1)}, {figures.spent(event.usd, event.unpriced)}, {event.seconds:.1f} s"
        self.add(note(used))

    def _delegated(self, event: Delegated, inner: Event) -> None:
        """What a sub-agent does is told below the call that it works for."""
        piece = self._calls.get(event.call)
        if piece is None:
            return
        match inner:
            case CallStarted(tool=tool, summary=summary):
                piece.feed(f"{tool} {summary.removeprefix(tool).lstrip()}\n")
            case ApprovalAsked():
                piece.ask(True)
            case ApprovalGiven():
                piece.ask(False)
            case TurnDone(reason=reason):
                piece.feed(f"{reason}\n")
            case _:
                return
        self._mark(piece)

    def _mark(self, piece: Piece) -> None:
        if piece.is_stale:
            self._stale[id(piece)] = piece


def told(event: Event) -> list[Piece]:
    """What is said once, as pieces."""
    match event:
        case SessionOpened():
            interrupted = f"; {event.interrupted} calls had been interrupted" if event.interrupted else ""
            resumed = f"session {event.session[:8]} goes on at {event.entries} entries{interrupted}"
            return [note(resumed)] if event.resumed else []
        case EpisodeStarted():
            on = f" on {', '.join(event.dependencies)}" if event.dependencies else ""
            return [begins(f"{event.type} {event.name}{on}")]
        case EpisodeEnded():
            how = "cut off" if event.aborted else "ended"
            found = f": {event.description}" if event.description else ""
            return [ends(f"{event.name} {how}{found}")]
        case Committed():
            took = f"{figures.short(event.tokens_before)} → {figures.short(event.tokens_after)}"
            return [note(f"window {took}: {len(event.left)} objects left by {event.policy} ({event.reason}); /why, /context")]
        case LimitUnmet(text=text):
            return [note(text, "warning")]
        case Noticed(text=text):
            return [note(text)]
        case Failed(text=text):
            return [note(text, "error")]
        case _:
            return []


ENTRIES: Final = 60  # that are shown
TYPED: Final = 100  # of a person's words, for the history of the prompt


class _Marked(msgspec.Struct):
    """What a delimiter's arguments say."""

    action: str = ""
    name: str = ""
    type: str = ""
    description: str = ""


def earlier(context: "Context") -> Iterator[Piece]:
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


def _pieces(index: Index, entry: Entry, calls: dict[int, CallPiece]) -> Iterator[Piece]:
    for number, block in enumerate(entry.blocks):
        span = index.block((entry.n, number)).span
        match block:
            case Text(text=text, origin=Origin.HUMAN):
                yield said(text)
            case Text(text=text, origin=Origin.MODEL) if text.strip():
                yield Words(text)
            case ToolCall(name="delimiter", arguments=arguments):
                yield from _boundary(arguments)
            case ToolCall(call_id=call, name=name, arguments=arguments):
                summary = index.spans[span].cue if span != NONE else ""
                calls[span] = CallPiece(CallStarted(call=call, tool=name, summary=summary, arguments=arguments))
                yield calls[span]
            case ToolResult(text=text, error=error) if span in calls:
                made = index.spans[span]
                tokens = index.block((entry.n, number)).tokens
                handle = index.handle(made.object, made.call[0])
                outcome = "error" if error else "done"
                calls[span].finish(
                    CallDone(call="", tool=made.tool, text=text, outcome=outcome, handle=handle, tokens=tokens, shown=tokens)
                )
            case Text(text=text) if entry.role is Role.ASSISTANT and text.strip():
                yield note(text)
            case _:
                pass


def _boundary(arguments: str) -> Iterator[Piece]:
    try:
        marked = msgspec.json.decode(arguments, type=_Marked)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return
    if marked.action == "start":
        yield begins(f"{marked.type} {marked.name}")
    elif marked.action == "end":
        yield ends(f"ended: {marked.description}" if marked.description else "ended")
