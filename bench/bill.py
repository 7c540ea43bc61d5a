"""How far simulated bills are from what providers reported: `python bench/bill.py FOLDER [--calls SESSION]`, over every session that reports usage.

Nothing leaves in these replays. Money is of prompts, at list prices; answers are billed as reported on both sides and left out.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tenure.engine.meter.tokens import o200k
from tenure.errors import InputError
from tenure.lab.events import Caching, Compared, relative
from tenure.lab.loading import source
from tenure.lab.replay import Source
from tenure.lab.validation import CAUSES, compare, places, together
from tenure.logs.reader import Agent

GROUPS: dict[Caching, str] = {
    Caching.WRITES: "report what is written (Anthropic)",
    Caching.READS: "report only what is read (OpenAI, Gemini)",
    Caching.NONE: "report no caching at all",
}
WORST = 12  # calls shown of one session


def main() -> None:
    """Print a table per way of reporting, the errors in total, and what they come from."""
    if sys.argv[1:2] == ["--calls"]:
        for path in sys.argv[2:]:
            show_calls(path)
        return
    tokenizer = o200k()
    found: list[Compared] = []
    for each in sources(Path(sys.argv[1] if len(sys.argv) > 1 else "sessions")):
        compared = compare(each, tokenizer)
        if compared is not None:
            found.append(compared)
    for caching, said in GROUPS.items():
        group = [each for each in found if each.caching == caching]
        if group:
            print(f"\n## {len(group)} sessions that {said}\n")
            print("\n".join((*table(group), "", spread(group), "", *causes(together("", group)))))
    print("\n".join(("\n## By model\n", *models(found))))


def sources(folder: Path) -> Iterator[Source]:
    """Every session of a folder, sub-agents' conversations after the one they belong to."""
    for path in sorted(folder.rglob("*")):
        try:
            found = source(str(path)) if path.is_file() else None
            if found is None:
                continue
            agents = [event.id for event in found.events()[1] if isinstance(event, Agent)]
            yield found
            yield from (source(f"{path}#{agent}") for agent in agents)
        except InputError:
            continue


def table(group: Sequence[Compared]) -> Iterator[str]:
    """A row per session and the sum of all, as Markdown."""
    yield "| session | calls | ratio | head | prompt | new | read | USD reported | simulated | error | by call | cache alone | no head |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    for each in (*group, together(f"**{len(group)} sessions**", group)):
        reported, simulated = each.reported, each.simulated
        cells = (
            short(each.name),
            f"{each.calls:,}" + (f" (+{each.unreported})" if each.unreported else ""),
            f"{each.ratio:.2f}" if each.ratio else "",
            f"{each.head:,}" if each.ratio else "",
            f"{relative(simulated.prompt, reported.prompt):+.1%}",
            f"{relative(simulated.new, reported.new):+.1%}",
            f"{relative(simulated.cache_read, reported.cache_read):+.1%}",
            f"{reported.usd:.2f}",
            f"{simulated.usd:.2f}",
            f"{each.error:+.1%}",
            f"{each.off.usd / reported.usd:.1%}" if reported.usd else "",
            f"{relative(each.by_cache.usd, reported.usd):+.1%}",
            f"{relative(each.plain.usd, reported.usd):+.1%}",
        )
        yield f"| {' | '.join(cells)} |"


def short(name: str) -> str:
    """A session's name without its folder and endings."""
    path, _, agent = name.partition("#")
    return Path(path).name.split(".", 1)[0] + (f"#{agent[:8]}" if agent else "")


def spread(group: Sequence[Compared]) -> str:
    """How far off single sessions are."""
    errors = sorted(abs(each.error) for each in group)
    half, most = errors[len(errors) // 2], errors[int(len(errors) * 0.9)]
    return f"Of the sessions half are within {half:.1%}, nine in ten within {most:.1%}."


def models(found: Sequence[Compared]) -> Iterator[str]:
    """A row per model. The last column: of what the rules would have read of the reported prompts, what was read."""
    yield "| model | sessions | calls | USD reported | error | cache alone | read of what the rules foresee |"
    yield "|---|---|---|---|---|---|---|"
    for model in sorted({each.model for each in found}):
        one = together(model, [each for each in found if each.model == model])
        read = f"{one.reported.cache_read / one.by_cache.cache_read:.1%}" if one.by_cache.cache_read else ""
        alone = f"{relative(one.by_cache.usd, one.reported.usd):+.1%}"
        yield f"| {model} | {one.sessions} | {one.calls:,} | {one.reported.usd:.2f} | {one.error:+.1%} | {alone} | {read} |"


def causes(whole: Compared) -> Iterator[str]:
    """What the errors come from, in money."""
    yield "| cause | calls | USD | of what was reported | |"
    yield "|---|---|---|---|---|"
    for cause, said in CAUSES.items():
        if cause in whole.causes:
            usd = whole.causes[cause]
            yield f"| {cause} | {whole.times.get(cause, '')} | {usd:+.2f} | {usd / (whole.reported.usd or 1):+.1%} | {said} |"


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
