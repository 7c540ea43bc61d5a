"""How a turn is told on plain terminals: words as they come, a line for what is done. Pure but for the streams that it is given."""

from typing import Final, TextIO

from tenure.agent.events import (
    CallDone,
    CallStarted,
    Committed,
    Delegated,
    EpisodeEnded,
    EpisodeStarted,
    Event,
    Gauged,
    LimitUnmet,
    Noticed,
    Recalled,
    Replied,
    Retrying,
    SessionOpened,
    TextDelta,
    TurnDone,
    TurnFailed,
)
from tenure.engine.meter.figures import first_line, short, spent
from tenure.engine.record.tools import is_delimiter
from tenure.engine.record.visible import visible

WIDTH: Final = 100  # characters of a line
LONG: Final = 300  # of what went wrong
NOT_DONE: Final = {
    "needs approval": "this needs your approval; run again with --approve edits or --approve all, and --continue",
    "step limit": "the limit of calls is reached; --continue goes on",
    "money limit": "the limit of money is reached; --continue goes on",
    "token limit": "the limit of tokens is reached; --continue goes on",
    "stuck": "no progress",
    "refused": "the model refused",
    "cut short": "the answer was cut short",
    "cancelled": "cancelled; --continue goes on",
    "failed": "failed; --continue goes on once that is mended",
}


class Teller:
    """Writes events as they come. Mutable: it knows where the line stands."""

    def __init__(self, out: TextIO, aside: TextIO, *, quiet: bool, live: bool) -> None:
        """`out` takes the answer, `aside` the rest. `live`: `out` is a person's terminal, where words are written as they come."""
        self._out, self._aside, self._quiet, self._live = out, aside, quiet, live
        self._session = ""
        self._gauge: Gauged | None = None
        self._calls: dict[str, str] = {}  # what those that run are about
        self._at_start = True
        self._told = False  # the newest reply's words stand there already

    def tell(self, event: Event) -> None:
        """Write one event."""
        match event:
            case TextDelta(text=text):
                self._words(text)
            case TurnDone():
                self._end(event)
            case Gauged():
                self._gauge = event
            case SessionOpened(session=session):
                self._session = session
                self._line(_goes_on(event) if event.resumed else "")
            case Replied(calls=calls, text=text):
                if calls and not self._live:
                    self._line(visible(text).strip())
                self._told = self._told and not calls
            case CallStarted(call=call, summary=summary):
                self._calls[call] = summary
            case CallDone(call=call):
                summary = self._calls.pop(call, event.tool)
                self._line("" if is_delimiter(event.tool) and event.outcome == "done" else _call(event, summary))
            case Retrying(discard=discard):
                self._told = self._told and not discard
                self._line(line_of(event))
            case _:
                self._line(line_of(event))

    def _words(self, text: str) -> None:
        if self._live:
            shown = visible(text)
            self._out.write(shown)
            self._out.flush()
            self._at_start, self._told = shown.endswith("\n"), True

    def _line(self, line: str) -> None:
        if self._quiet or not line:
            return
        self._new_line()
        self._aside.write(visible(line) + "\n")
        self._aside.flush()

    def _new_line(self) -> None:
        if not self._at_start:
            self._out.write("\n")
            self._out.flush()
            self._at_start = True

    def _end(self, done: TurnDone) -> None:
        self._new_line()
        if done.text.strip() and not self._told:
            self._out.write(visible(done.text).rstrip() + "\n")
            self._out.flush()
        if why := NOT_DONE.get(done.reason):
            is_told = done.reason == "failed" and not self._quiet  # by `TurnFailed`, in a line of its own
            self._aside.write(f"tenure: {why}" + (f" ({first_line(done.why, LONG)})" if done.why and not is_told else "") + "\n")
        self._line(self._sum(done))
        self._aside.flush()

    def _sum(self, done: TurnDone) -> str:
        used = f"{done.steps} call{'s' * (done.steps != 1)}, {short(done.usage.prompt)} tokens in, {short(done.usage.output)} out"
        paid = f", {spent(done.usd, done.unpriced)}" if done.usd or done.unpriced else ""
        gauge = self._gauge
        full = f", window {short(gauge.tokens)} of {short(gauge.window or gauge.limit)}" if gauge is not None else ""
        return f"· {used}{paid}{full}, {done.seconds:.1f} s · session {self._session[:8]}"


def line_of(event: Event) -> str:
    """What is told of an event in one line; empty for what is told otherwise, or not."""
    match event:
        case CallDone():
            return _call(event, event.tool)
        case Committed():
            return _committed(event)
        case Delegated():
            inner = line_of(event.of)
            return f"  │ {inner}" if inner else ""
        case Retrying():
            return f"… {first_line(event.text, LONG)}; attempt {event.attempt} of {event.most} in {event.wait_s:.0f} s"
        case EpisodeStarted():
            return f"▸ {event.type} {first_line(event.name, 60)}"
        case EpisodeEnded():
            return f"◂ {event.type} {first_line(event.name, 60)}: {first_line(event.description or 'done', WIDTH)}"
        case Recalled():
            return f"↩ {', '.join(event.objects) or 'a search'}: {event.tokens:,} tokens came back"
        case LimitUnmet() | TurnFailed():
            return f"! {first_line(event.text, LONG)}"
        case Noticed():
            return f"· {first_line(event.text, 160)}"
        case _:
            return ""


_MARKS: Final = {"done": "✓", "error": "✗", "declined": "⊘", "interrupted": "◌"}


def _call(event: CallDone, summary: str) -> str:
    shown = f"{event.shown:,} of {event.tokens:,}" if event.shown < event.tokens else f"{event.tokens:,}"
    handle = event.handle.partition("@")[0]
    why = first_line(event.text, 60) if event.outcome != "done" else ""
    facts = ", ".join(filter(None, (handle, f"{shown} tokens", why)))
    return f"{_MARKS[event.outcome]} {first_line(summary, 60)}  ({facts})"


def _committed(event: Committed) -> str:
    left = ", ".join(dict.fromkeys(each.object for each in event.left[:4])) + (" …" if len(event.left) > 4 else "")
    return f"− {event.tokens_before - event.tokens_after:,} tokens left the window: {left} ({first_line(event.reason, 60)})"


def _goes_on(event: SessionOpened) -> str:
    calls = event.interrupted
    interrupted = f"; {calls} call{'s' * (calls != 1)} had been interrupted" if calls else ""
    return f"· goes on with session {event.session[:8]}, {event.entries:,} messages{interrupted}"
