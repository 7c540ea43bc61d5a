"""Sessions with reports of a provider that does what it is told to."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.tokens import o200k
from tenure.engine.record.entry import Draft, Usage
from tenure.lab.events import CallLine
from tenure.lab.replay import Options, replay
from tenure.lab.source import SessionSource
from tenure.logs.reader import Event, Rewritten
from tenure.testing.builders import call, human, reply, result

HEAD = 20_000  # provider tokens that the log leaves out
CLAUDE = "claude-sonnet-4-5"
START = datetime(2026, 1, 2, tzinfo=UTC)

Tell = Callable[[int, Usage], Usage]  # what the provider reports for a call of that number, given what strict caching would


def worked(
    steps: int = 12, *, pauses: dict[int, int] | None = None, models: dict[int, str] | None = None, compacted: int = -1
) -> list[Event]:
    """A file read at each step, a minute apart; longer before the calls of `pauses`."""
    events: list[Event] = [human("Mend the parser.")]
    now, model = START, CLAUDE
    for n in range(steps):
        if n == compacted:
            events += [Rewritten(reason="compaction", drop_before=len(events)), human("The parser is half mended.")]
        now += timedelta(seconds=(pauses or {}).get(n, 60))
        model = (models or {}).get(n, model)
        lines = "\n".join(f"{k}: step {n} of the parser reads a token and {k} more" for k in range(60))
        events += [reply(call("read", f"c{n}", path=f"{n}.py"), at=now.isoformat(), model=model), result(lines, f"c{n}")]
    return events


def views(events: Sequence[Event]) -> list[CallLine]:
    options = Options(budget=Budget(window=10_000_000), policy=None)
    return [line for line in replay([made(events)], options, o200k()) if isinstance(line, CallLine)]


def made(events: Sequence[Event]) -> SessionSource:
    return SessionSource("made", lambda: ("test", iter(events)))


def told(events: Sequence[Event], tell: Tell = lambda _, usage: usage, *, ratio: float = 1.0) -> SessionSource:
    """The same session with reports: prompts of HEAD and what the log holds, at `ratio`, read as far as the call before went."""
    reports: list[Usage] = []
    before = 0
    for view in views(events):
        prompt = HEAD + round(view.view_tokens * ratio)
        usage = Usage(cache_write=prompt - min(before, prompt), cache_read=min(before, prompt), output=40)
        reports.append(tell(view.call, usage))
        before = prompt
    given = iter(reports)
    return made([replace(each, usage=next(given)) if isinstance(each, Draft) and each.model else each for each in events])


def cold(_: int, usage: Usage) -> Usage:
    return Usage(cache_write=usage.prompt, output=usage.output)
