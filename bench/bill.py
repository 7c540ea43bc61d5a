"""How far simulated bills are from what providers reported: `python bench/bill.py FOLDER [--calls SESSION]`, over every session that reports usage.

Nothing leaves in these replays. Money is of prompts, at list prices; answers are billed as reported on both sides and left out.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from tenure.engine.meter.tokens import o200k
from tenure.errors import InputError
from tenure.lab.evidence.corpus import Corpus
from tenure.lab.evidence.measure import CorpusEvents
from tenure.lab.evidence.pages import events_of, sections
from tenure.lab.loading import source
from tenure.lab.measured import Billed
from tenure.lab.report.template import asking
from tenure.lab.source import SessionSource
from tenure.lab.validation import compare, places
from tenure.logs.reader import SubAgent

WORST = 12  # calls shown of one session
CELLS = """c.calls as 'calls|count', c.ratio as 'ratio|decimal', c.head as 'head|count', off_by(prompt(c.simulated), prompt(c.reported)) as 'prompt|error',
    off_by(fresh(c.simulated), fresh(c.reported)) as 'new|error', off_by(c.simulated.cache_read, c.reported.cache_read) as 'read|error', c.reported.usd as 'USD reported|usd',
    c.simulated.usd as 'simulated|usd', off_by(c.simulated.usd, c.reported.usd) as 'error|error', c.off.usd / nullif(c.reported.usd, 0) as 'by call|percent1',
    off_by(c.by_cache.usd, c.reported.usd) as 'cache alone|error', off_by(c.plain.usd, c.reported.usd) as 'no head|error'"""
SESSIONS = f"select c.caching as 'reports|text', c.name as 'session|text', {CELLS} from (select n, compared as c from bills) order by c.caching, n"
SPREAD = """
    select c.caching as 'reports|text', count(*) as 'sessions|count', quantile_disc(abs(off_by(c.simulated.usd, c.reported.usd)), 0.5) as 'half are within|percent1',
        quantile_disc(abs(off_by(c.simulated.usd, c.reported.usd)), 0.9) as 'nine in ten|percent1'
    from (select compared as c from bills) group by c.caching"""
MODELS = """
    select c.model as 'model|text', count(*) as 'sessions|count', sum(c.calls) as 'calls|count', sum(c.reported.usd) as 'USD reported|usd',
        off_by(sum(c.simulated.usd), sum(c.reported.usd)) as 'error|error', off_by(sum(c.by_cache.usd), sum(c.reported.usd)) as 'cache alone|error',
        sum(c.reported.cache_read) / nullif(sum(c.by_cache.cache_read), 0) as 'read of what the rules foresee|percent'
    from (select compared as c from bills) group by c.model order by c.model"""


def main() -> None:
    """Print every session, the errors in total and by model, and what they come from."""
    if sys.argv[1:2] == ["--calls"]:
        for path in sys.argv[2:]:
            show_calls(path)
        return
    compared = (compare(each, o200k()) for each in sources(Path(sys.argv[1] if len(sys.argv) > 1 else "sessions")))
    lines = tuple(Billed(compared=each) for each in compared if each is not None)
    with events_of(CorpusEvents(corpus=Corpus(folder="", members=()), code="", lines=lines)) as events:
        table = asking(events)["table"]
        print("\n\n".join((table(SESSIONS), table(SPREAD), table(MODELS), *(each.text for each in sections(events, ["bill"])))))


def sources(folder: Path) -> Iterator[SessionSource]:
    """Every session of a folder, sub-agents' conversations after the one they belong to."""
    for path in sorted(folder.rglob("*")):
        try:
            found = source(str(path)) if path.is_file() else None
            if found is None:
                continue
            agents = [event.id for event in found.events()[1] if isinstance(event, SubAgent)]
            yield found
            yield from (source(f"{path}#{agent}") for agent in agents)
        except InputError:
            continue


def show_calls(path: str) -> None:
    """The calls of a session whose bill is the farthest off."""
    print(f"\n{path}")
    for place in places(source(path), o200k())[:WORST]:
        reported, simulated, by_cache = place.reported, place.simulated, place.by_cache
        idle = "" if place.idle_s is None else f"{place.idle_s:,.0f} s idle"
        print(
            f"call {place.call:4} {idle:>14} {place.cause:14} read {reported.cache_read:,} of {reported.prompt:,} reported, "
            f"{simulated.cache_read:,} of {simulated.prompt:,} simulated, {by_cache.cache_read:,} by the cache alone; "
            f"USD {simulated.usd - reported.usd:+.3f}"
        )


if __name__ == "__main__":
    main()
