"""`tenure show`: what a session is made of, as objects that can be named, pinned and recalled."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tenure.cli import words
from tenure.cli.options import SESSION_HELP, argument, flag
from tenure.engine.meter import statement
from tenure.engine.meter.ledger import Ledger
from tenure.engine.meter.tokens import o200k
from tenure.engine.record.entry import Origin
from tenure.engine.record.episodes import Episode
from tenure.engine.record.index import Index, Span
from tenure.engine.record.tools import is_delimiter
from tenure.errors import InputError
from tenure.lab.loading import Loaded, kept_ledger, load, source
from tenure.lab.recorded import ReportedUsage

ROWS: Final = 12
_LEAST: Final = 20  # characters of a text that stands last in a row, at least


def show(
    sessions: Annotated[list[str], argument("SESSION...", SESSION_HELP)],
    every: Annotated[bool, flag("--all", "List every object, not only the largest.")] = False,
) -> None:
    """Print a session's turns, episodes and tool calls with their handles."""
    loaded = load([source(name) for name in sessions], o200k())
    console = words.screen()
    ledgers: list[Ledger] = []
    for name in sessions:
        try:
            ledgers += filter(None, (kept_ledger(name, o200k()),))
        except InputError as error:  # of a damaged store; what was read of it is shown
            words.complain(f"tenure: no bill: {error}", "yellow")
    title = ", ".join(Path(name).name for name in sessions)
    console.print(summary(title, loaded, None if every else ROWS, console.width, ledgers))


def summary(name: str, loaded: Loaded, rows: int | None, width: int, ledgers: Sequence[Ledger] = ()) -> RenderableType:
    """The whole screen; `rows` bounds each table. `ledgers` are of the sessions that have one."""
    index = loaded.index
    facts = f"{len(index):,} messages, {len(index.turns):,} human turns, {len(index.steps):,} replies, {index.tokens:,} tokens"
    title = Text.assemble((name, "bold"), "  ", words.plain(" · ".join([*dict.fromkeys(loaded.formats), *loaded.models[:3]])))
    parts: list[RenderableType] = [title, Text(facts, style="dim")]
    for part in _parts(loaded, rows, width, ledgers):
        parts += ["", part]
    return Group("", *parts)


def _parts(loaded: Loaded, rows: int | None, width: int, ledgers: Sequence[Ledger]) -> Iterator[RenderableType]:
    index = loaded.index
    yield _turns(loaded, rows, width)
    if declared := [episode for episode in index.episodes if episode.declared]:
        yield _episodes(index, declared, rows, width)
    yield _tools(index)
    yield _largest(index, rows, width)
    if loaded.reported and not any(ledger.compared.touched for ledger in ledgers):  # whose prompts were not the record
        yield words.facts(_reported(loaded.reported, index))
    for ledger in ledgers:
        if ledger.accounts:
            yield _bill(ledger, width)
    if loaded.agents:
        agents = (
            (words.first_line("#" + agent.id, 40), f"{agent.messages:,}", _line(agent.task, width - 50))
            for agent in loaded.agents[:rows]
        )
        yield _table(("sub-agent", ">messages", "its task; tenure show SESSION#ID opens it"), agents, rows, len(loaded.agents))
    if loaded.rewritten:
        times = words.several(len(loaded.rewritten), "time")
        yield Text(f"the agent rewrote its own window {times} (compacted or cleared)", style="dim")
    if loaded.skipped:
        first = "; ".join(f"{f'line {each.line}: ' if each.line else ''}{each.reason}" for each in loaded.skipped[:5])
        more = f"; and {len(loaded.skipped) - 5} more" if len(loaded.skipped) > 5 else ""
        yield Text.assemble(("left out: ", "yellow"), words.plain(first + more))


def _reported(reported: ReportedUsage, index: Index) -> Iterator[tuple[str, str]]:
    """What the provider said of the prompts, beside what we would have said."""
    prompts = reported.uncached + reported.cache_write + reported.cache_read
    parts = (("cache read", reported.cache_read), ("cache write", reported.cache_write), ("uncached", reported.uncached))
    shares = ", ".join(f"{name} {words.share(tokens / prompts)}" for name, tokens in parts)
    yield (
        "reported",
        f"{words.short(prompts)} tokens in the prompts of {reported.calls:,} of {len(index.steps):,} calls ({shares}), "
        f"{words.short(reported.output)} written; largest prompt {words.tokens(reported.largest_prompt)}",
    )
    learned = (
        f"{reported.ratio:.2f} provider tokens to one of o200k, and {words.tokens(reported.head)} in what the log leaves out "
        "(system prompt, tools)"
    )
    if reported.errors:
        half, most = words.percent(reported.error_at(0.5)), words.percent(reported.error_at(0.9))
        learned += f"; prompts foretold by that are off by {half} (median) and at most {most} (9 of 10)"
    yield "learned", learned


def _bill(ledger: Ledger, width: int) -> RenderableType:
    """What the calls cost, by role and model, and what eviction saved."""
    head, *accounts = statement.table(ledger, width).split("\n")
    notes = [(note.label, note.text) for note in statement.notes(ledger)]
    lines = [Text(head, style="dim", no_wrap=True), *(Text(account, no_wrap=True) for account in accounts)]
    return Group(*lines, *([words.facts(notes)] if notes else []))


def _turns(loaded: Loaded, rows: int | None, width: int) -> Table:
    index = loaded.index
    weights: dict[int, int] = defaultdict(int)
    replies: dict[int, int] = defaultdict(int)
    for facts in index.entries:
        replies[facts.turn] += facts.role == "assistant"
        for block in facts.blocks:
            weights[block.turn] += block.tokens

    def shown() -> Iterator[tuple[str | Text, ...]]:
        for turn in index.turns[:rows]:
            blocks = loaded.read(turn.start[0]).blocks[turn.start[1] :]
            text = next((block.text for block in blocks if block.origin is Origin.HUMAN), "")
            handle = index.handle(f"user:{turn.number}", turn.start[0])
            yield handle, words.tokens(weights[turn.number]), str(replies[turn.number]), _line(text, width - 40)

    return _table(("turn", ">tokens", ">replies", "the human said"), shown(), rows, len(index.turns))


def _episodes(index: Index, episodes: Sequence[Episode], rows: int | None, width: int) -> Table:
    weights: dict[int, int] = defaultdict(int)
    for facts in index.entries:
        for block in facts.blocks:
            weights[block.episode] += block.tokens

    def shown() -> Iterator[tuple[str | Text, ...]]:
        for episode in episodes[:rows]:
            named = ", ".join(index.episodes[each].name for each in episode.dependencies)
            about = episode.description or (f"on {named}" if named else "" if episode.closed else "still open")
            handle = index.handle(episode.object, episode.start[0])
            yield handle, str(episode.type), words.tokens(weights[episode.ordinal]), _line(about, width - 60)

    return _table(("episode", "type", ">tokens", "builds on, or learned"), shown(), rows, len(episodes))


def _tools(index: Index) -> Table:
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for span in index.spans:
        for at, value in enumerate((1, _weight(index, span), span.error)):
            sums[span.tool][at] += value
    rows = (
        (words.first_line(tool, 48), str(index.kinds.of(tool)), f"{calls:,}", str(failed or ""), words.tokens(weight))
        for tool, (calls, weight, failed) in sorted(sums.items(), key=lambda item: -item[1][1])
    )
    return _table(("tool", "kind", ">calls", ">failed", ">tokens"), rows)


def _largest(index: Index, rows: int | None, width: int) -> Table:
    spans = [span for span in index.spans if not is_delimiter(span.tool)]
    if rows is not None:
        spans.sort(key=lambda span: -_weight(index, span))
    shown = (
        (index.handle(span.object, span.call[0]), words.tokens(_weight(index, span)), _line(span.cue, width - 44))
        for span in spans[:rows]
    )
    return _table(("largest objects" if rows else "objects", ">tokens", "about"), shown, rows, len(spans))


def _weight(index: Index, span: Span) -> int:
    """What a call and its result weigh."""
    return index.block(span.call).tokens + (index.block(span.result).tokens if span.result else 0)


def _line(text: str, width: int) -> Text:
    return Text(words.first_line(text, max(_LEAST, width)))


def _table(columns: Sequence[str], shown: Iterable[Sequence[str | Text]], rows: int | None = None, total: int = 0) -> Table:
    """A table of at most `rows` of `total` rows."""
    table = words.table(*columns)
    for row in shown:
        table.add_row(*row)
    if rows is not None and total > rows:
        table.add_row(Text(f"… {total - rows} more (--all)", style="dim"))
    return table
