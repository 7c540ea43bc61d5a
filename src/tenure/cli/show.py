"""`tenure show`: what a session is made of, as objects that can be named, pinned and recalled."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tenure.cli import words
from tenure.cli.asked import SESSION_HELP
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


def show(
    sessions: Annotated[list[str], typer.Argument(metavar="SESSION...", help=SESSION_HELP)],
    every: Annotated[bool, typer.Option("--all", help="List every object, not only the largest.")] = False,
) -> None:
    """Print a session's turns, episodes and tool calls with their handles."""
    loaded = load([source(name) for name in sessions], o200k())
    console = words.screen()
    title = ", ".join(Path(name).name for name in sessions)
    ledgers: list[Ledger] = []
    for name in sessions:
        try:
            ledgers += filter(None, (kept_ledger(name, o200k()),))
        except InputError as error:  # of a damaged store; what was read of it is shown
            words.screen(stderr=True, wrap=False).print(words.plain(f"tenure: no bill: {error}"), style="yellow")
    console.print(summary(title, loaded, None if every else ROWS, console.width, ledgers))


def summary(name: str, loaded: Loaded, rows: int | None, width: int, ledgers: Sequence[Ledger] = ()) -> RenderableType:
    """The whole screen; `rows` bounds each table. `ledgers` are of the sessions that have one."""
    index = loaded.index
    facts = f"{len(index):,} messages, {len(index.turns):,} human turns, {len(index.steps):,} replies, {index.tokens:,} tokens"
    parts: list[RenderableType] = [
        "",
        Text.assemble((name, "bold"), "  ", words.plain(" · ".join([*dict.fromkeys(loaded.formats), *loaded.models[:3]]))),
        Text(facts, style="dim"),
        "",
        _turns(loaded, rows, width),
    ]
    if declared := [episode for episode in index.episodes if episode.declared]:
        parts += ["", _episodes(index, declared, rows, width)]
    parts += ["", _tools(index), "", _largest(index, rows, width)]
    if loaded.reported and not any(ledger.compared.touched for ledger in ledgers):  # whose prompts were not the record
        parts += ["", _reported(loaded.reported, loaded.index)]
    for ledger in ledgers:
        if ledger.accounts:
            parts += ["", _bill(ledger, width)]
    if loaded.agents:
        parts += ["", _agents(loaded, rows, width)]
    if loaded.rewritten:
        times = f"{len(loaded.rewritten)} time{'s' * (len(loaded.rewritten) > 1)}"
        parts += ["", Text(f"the agent rewrote its own window {times} (compacted or cleared)", style="dim")]
    if loaded.skipped:
        parts += ["", _skipped(loaded)]
    return Group(*parts)


def _reported(reported: ReportedUsage, index: Index) -> RenderableType:
    """What the provider said of the prompts, beside what we would have said."""
    prompts = reported.uncached + reported.cache_write + reported.cache_read
    parts = (("cache read", reported.cache_read), ("cache write", reported.cache_write), ("uncached", reported.uncached))
    shares = ", ".join(f"{name} {words.share(tokens / prompts)}" for name, tokens in parts)
    said = (
        f"{words.short(prompts)} tokens in the prompts of {reported.calls:,} of {len(index.steps):,} calls ({shares}), "
        f"{words.short(reported.output)} written; largest prompt {words.tokens(reported.largest_prompt)}"
    )
    learned = (
        f"{reported.ratio:.2f} provider tokens to one of o200k, and {words.tokens(reported.head)} in what the log leaves out "
        "(system prompt, tools)"
    )
    if reported.errors:
        half, most = words.percent(reported.error_at(0.5)), words.percent(reported.error_at(0.9))
        learned += f"; prompts foretold by that are off by {half} (median) and at most {most} (9 of 10)"
    table = Table.grid(padding=(0, 2))
    table.add_row(Text("reported", style="dim"), said)
    table.add_row(Text("learned", style="dim"), learned)
    return table


def _bill(ledger: Ledger, width: int) -> RenderableType:
    """What the calls cost, by role and model, and what eviction saved."""
    head, *accounts = statement.table(ledger, width).split("\n")
    said = Table.grid(padding=(0, 2))
    for note in statement.notes(ledger):
        said.add_row(Text(note.label, style="dim"), note.text)
    table = [Text(head, style="dim", no_wrap=True), *(Text(account, no_wrap=True) for account in accounts)]
    return Group(*table, *([said] if said.row_count else []))


def _agents(loaded: Loaded, rows: int | None, width: int) -> Table:
    table = _table(("sub-agent", "left"), ("messages", "right"), ("its task; tenure show SESSION#ID opens it", "left"))
    for agent in loaded.agents[:rows]:
        table.add_row(
            words.first_line("#" + agent.id, 40), f"{agent.messages:,}", Text(words.first_line(agent.task, max(20, width - 50)))
        )
    return _more(table, len(loaded.agents), rows)


def _turns(loaded: Loaded, rows: int | None, width: int) -> Table:
    index = loaded.index
    weights: dict[int, int] = defaultdict(int)
    replies: dict[int, int] = defaultdict(int)
    for facts in index.entries:
        replies[facts.turn] += facts.role == "assistant"
        for block in facts.blocks:
            weights[block.turn] += block.tokens
    table = _table(("turn", "left"), ("tokens", "right"), ("replies", "right"), ("the human said", "left"))
    for turn in index.turns[:rows]:
        entry = loaded.read(turn.start[0])
        said = next((block.text for block in entry.blocks[turn.start[1] :] if block.origin is Origin.HUMAN), "")
        handle = index.handle(f"user:{turn.number}", turn.start[0])
        table.add_row(
            handle,
            words.tokens(weights[turn.number]),
            str(replies[turn.number]),
            Text(words.first_line(said, max(20, width - 40))),
        )
    return _more(table, len(index.turns), rows)


def _episodes(index: Index, episodes: Sequence[Episode], rows: int | None, width: int) -> Table:
    weights: dict[int, int] = defaultdict(int)
    for facts in index.entries:
        for block in facts.blocks:
            weights[block.episode] += block.tokens
    table = _table(("episode", "left"), ("type", "left"), ("tokens", "right"), ("builds on, or learned", "left"))
    for episode in episodes[:rows]:
        builds_on = "on " + ", ".join(index.episodes[each].name for each in episode.dependencies) if episode.dependencies else ""
        about = episode.description or builds_on or ("" if episode.closed else "still open")
        handle = index.handle(episode.object, episode.start[0])
        table.add_row(
            handle, str(episode.type), words.tokens(weights[episode.ordinal]), Text(words.first_line(about, max(20, width - 60)))
        )
    return _more(table, len(episodes), rows)


def _tools(index: Index) -> Table:
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for span in index.spans:
        row = sums[span.tool]
        row[0] += 1
        row[1] += span_tokens(index, span)
        row[2] += span.error
    table = _table(("tool", "left"), ("kind", "left"), ("calls", "right"), ("failed", "right"), ("tokens", "right"))
    for tool, (calls, weight, failed) in sorted(sums.items(), key=lambda item: -item[1][1]):
        table.add_row(
            words.first_line(tool, 48), str(index.kinds.of(tool)), f"{calls:,}", str(failed or ""), words.tokens(weight)
        )
    return table


def _largest(index: Index, rows: int | None, width: int) -> Table:
    spans = [span for span in index.spans if not is_delimiter(span.tool)]
    if rows is not None:
        spans.sort(key=lambda span: -span_tokens(index, span))
    table = _table(("largest objects" if rows else "objects", "left"), ("tokens", "right"), ("about", "left"))
    for span in spans[:rows]:
        about = Text(words.first_line(span.cue, max(20, width - 44)))
        table.add_row(index.handle(span.object, span.call[0]), words.tokens(span_tokens(index, span)), about)
    return _more(table, len(spans), rows)


def span_tokens(index: Index, span: Span) -> int:
    """What a call and its result weigh."""
    return index.block(span.call).tokens + (index.block(span.result).tokens if span.result else 0)


def _skipped(loaded: Loaded) -> Text:
    first = "; ".join(f"{f'line {each.line}: ' if each.line else ''}{each.reason}" for each in loaded.skipped[:5])
    more = f"; and {len(loaded.skipped) - 5} more" if len(loaded.skipped) > 5 else ""
    return Text.assemble(("left out: ", "yellow"), words.plain(first + more))


def _table(*columns: tuple[str, str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name, justify in columns:
        table.add_column(name, justify=justify, no_wrap=justify == "right", overflow="fold")  # a handle that is cut is none  # pyright: ignore[reportArgumentType]
    return table


def _more(table: Table, total: int, rows: int | None) -> Table:
    if rows is not None and total > rows:
        table.add_row(Text(f"… {total - rows} more (--all)", style="dim"))
    return table
