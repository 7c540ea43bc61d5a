"""What `tenure judge` shows of its verdicts, as far as one screen holds it; --json has all."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tenure.cli import words
from tenure.engine.meter.price import prices_for
from tenure.lab.intervals import Share
from tenure.lab.judges.figures import Figures, Row
from tenure.lab.judges.running import Book, Forecast, JudgeCost
from tenure.lab.judges.stand_in import NAME as STAND_IN

DISAGREEMENTS_SHOWN: Final = 6
WHAT_CHARS: Final = 70


class JudgeScope(Struct, frozen=True, kw_only=True):
    """What is to be judged."""

    model: str
    sessions: tuple[str, ...]
    cuts: int
    prune: float
    room: int


def report(found: Figures, asked: JudgeScope, unread: Sequence[str], book: Book) -> RenderableType:
    """The screen at the end."""
    parts: list[RenderableType] = ["", *_titles(asked), "", _rates(found), "", words.facts(_facts(found, asked, book))]
    if found.disagreements:
        parts += ["", *_disagreements(found.disagreements)]
    parts += [Text(words.plain(f"could not be read: {error}"), style="red") for error in unread]
    return Group(*parts)


def forecast(asked: JudgeScope, made: Iterable[Forecast], unread: Sequence[str]) -> RenderableType:
    """What would be asked. `unread` is looked at when all has been made."""
    waiting = tokens = held = 0
    for each in made:
        held += each.remembered
        waiting += not each.remembered
        tokens += 0 if each.remembered else each.tokens
    listed = prices_for(asked.model.partition(":")[2])
    price = f", about {words.money(tokens * listed.uncached)} for the prompts at list price" if listed.known else ""
    known = f"; {held} more have a verdict already" if held else ""
    lines = [
        Text(f"{waiting} question{words.s(waiting)} to {words.plain(asked.model)}, {words.short(tokens)} tokens{price}{known}")
    ]
    lines.append(Text("Answers come on top, and two questions for each pair that an A/B judge compares.", style="dim"))
    return Group(*lines, *(Text(words.plain(f"could not be read: {error}"), style="red") for error in unread))


def _titles(asked: JudgeScope) -> Iterator[Text]:
    names = (words.plain(words.names(asked.sessions)), "bold")
    yield Text.assemble(names, f"  cut {asked.cuts} times, {words.share(asked.prune)} to leave")
    rule = " (a rule, no model: the mechanical detector on what its question shows)" if asked.model == STAND_IN else ""
    yield Text(f"judged by {words.plain(asked.model)}{rule}, questions of at most {words.short(asked.room)} tokens", style="dim")


def _rates(found: Figures) -> Table:
    """A row for each policy; a column for failures only where there are any, so that 80 columns are enough."""
    fails = any(row["failed"] + row["not_asked"] for row in found.rows)
    table = words.table()
    table.add_column("policy", no_wrap=True, overflow="ellipsis", max_width=13 if fails else 20)
    for name in ("pruned", "no impact", "", "95 %", "unsure", *(("failed",) if fails else ()), "detector"):
        table.add_column(name, justify="right", no_wrap=True, min_width=len(name))
    for row in found.rows:
        failed = Text(str(row["failed"] + row["not_asked"]), style="yellow")
        table.add_row(
            row["policy"],
            words.percent(row["pruned"]),
            f"{row['no_impact']['hits']:g} of {row['no_impact']['of']}",
            _share(row["no_impact"]),
            _interval(row["no_impact"]),
            str(row["uncertain"]),
            *((failed,) if fails else ()),
            _share(row["detector"]),
        )
    return table


def _facts(found: Figures, asked: JudgeScope, book: Book) -> Iterator[tuple[str, RenderableType]]:
    losses = "; ".join(
        f"{row['policy']}: " + ", ".join(f"{kind} {count}" for kind, count in row["categories"].items())
        for row in found.rows
        if row["categories"]
    )
    if losses:
        yield "worst loss", losses
    yield "agreement", _agreement(found)
    sensitivity = found.sensitivity
    if sensitivity["caught"]["of"] or sensitivity["alarmed"]["of"] or sensitivity["set_aside"]:
        yield "controls", _controls(found)
    if found.against is not None:
        yield "compared", _compared(found.against)
        yield "calibrated", _calibrated(found.against)
    if found.bias["pairs"]:
        yield "orders", _orders(found)
    yield "cost", _cost(found, book)
    if found.failures:
        first, count = next(iter(found.failures.items()))
        more = len(found.failures) - 1
        text = f"{count} × {words.first_line(first, 160)}" + (
            f"; and {more} other reason{words.s(more)} (--json has all)" if more else ""
        )
        yield "failed", Text(text, style="yellow")
    if (skipped := sum(row["not_asked"] for row in found.rows)) > 0:
        yield (
            "not asked",
            Text(f"{skipped} case{words.s(skipped)}, after failures in a row; run it again to go on", style="yellow"),
        )
    if asked.cuts > 1:
        yield "", Text("Cuts of one session are not independent: intervals over few sessions are too narrow.", style="dim")


def _agreement(found: Figures) -> str:
    each = found.agreement
    cases = sum(each[name] for name in ("both", "judge_only", "detector_only", "neither"))
    kappa = f", kappa {each['kappa']:.2f}" if each["kappa"] is not None else ""
    hidden = f"; {found.hidden} lost need{words.s(found.hidden)} that no question had room to show" if found.hidden else ""
    return (
        f"with the detector on {each['both'] + each['neither']} of {cases}{kappa}: impact by both {each['both']}, by the judge alone "
        f"{each['judge_only']}, by the detector alone {each['detector_only']}, by neither {each['neither']}{hidden}"
    )


def _controls(found: Figures) -> str:
    each = found.sensitivity
    aside = f"; {each['set_aside']} set aside, which its question had no room to show" if each["set_aside"] else ""
    preferred = ""
    if each["preferred"]["of"]:
        preferred = (
            f"; of two such plans the right one is preferred in {_of(each['preferred'])}, the wrong one in {each['reversed']}"
        )
    return f"needed and removed: {_of(each['caught'])} caught; never used: {_of(each['alarmed'])} said to have an impact{aside}{preferred}"


def _compared(each: Row) -> str:
    left = f", {each['not_compared']} without a verdict" if each["not_compared"] else ""
    return (
        f"no impact by {each['first']} alone {each['only_first']}, by {each['second']} alone {each['only_second']} of {each['cuts']} cuts (p {_p(each['p'])}); "
        f"of these the A/B judge prefers {each['first']} in {each['preferred']}, {each['second']} in {each['rejected']}, ties {each['ties']}{left} "
        f"(p {_p(each['preferred_p'])})"
    )


def _calibrated(each: Row) -> str:
    first, second = each["calibrated"]
    return f"{each['first']} {_share(first)} ({_interval(first)}), {each['second']} {_share(second)} ({_interval(second)}); a tie counts half"


def _orders(found: Figures) -> str:
    bias = found.bias
    return (
        f"{bias['pairs']} pair{words.s(bias['pairs'])} asked both ways: {bias['flipped']} flipped with the order, {bias['unsteady']} a tie in one order only; of replies that "
        f"prefer anything {_of(bias['first'])} prefer what comes first (p {_p(bias['p'])})"
    )


def _cost(found: Figures, book: Book) -> str:
    text = _spent(found.spent)
    if found.remembered.questions:
        text += f"; {found.remembered.questions} answer{words.s(found.remembered.questions)} remembered, {words.spent(found.remembered.usd, found.remembered.unpriced)} when asked for"
    if found.repaired:
        text += f"; {found.repaired} asked again because the first reply could not be read"
    if book.unread:
        text += f"; left out of {words.plain(book.path)}: {book.unread} line{words.s(book.unread)} that can be no verdict"
    return text


def _spent(spent: JudgeCost) -> str:
    if not spent.questions:
        return "nothing was asked"
    usage = spent.usage
    text = f"{spent.questions} question{words.s(spent.questions)}, {words.short(usage.prompt)} tokens in, {words.short(usage.output)} out, {words.spent(spent.usd, spent.unpriced)}"
    unknown = [
        f"{count} without {what}"
        for count, what in ((spent.unreported, "reported usage"), (spent.unpriced, "a known price"))
        if count
    ]
    return text + (f" ({', '.join(unknown)})" if unknown else "")


def _disagreements(found: Sequence[Row]) -> Iterator[RenderableType]:
    """The first few, judge's and detector's in turn, each with its place."""
    yield Text("where judge and detector differ, by who finds an impact; for somebody to look at", style="dim")
    judges = [each for each in found if each["by"] == "judge"]
    detectors = [each for each in found if each["by"] == "detector"]
    turns = [each for pair in zip(judges, detectors, strict=False) for each in pair]
    shorter = min(len(judges), len(detectors))
    shown = [*turns, *judges[shorter:], *detectors[shorter:]][:DISAGREEMENTS_SHOWN]
    for each in shown:
        yield Text(f"{each['by']} alone, {each['facts']['policy']}: {_place(each)}", no_wrap=True, overflow="ellipsis")
        yield Text(f"    {_what(each)}", no_wrap=True, overflow="ellipsis", style="dim")
    if len(found) > len(shown):
        yield Text(f"{len(found) - len(shown)} more (--json has all)", style="dim")


def _place(each: Row) -> str:
    name = words.first_line(Path(each["facts"]["source"]).name, 40)
    line = each["line"] or each["facts"]["line"]
    return f"{name}{f':{line}' if line else ''}, cut at call {each['facts']['before_call']}"


def _what(each: Row) -> str:
    used = f", used by {words.first_line(each['used_by'], 20)}" if each["used_by"] else ""
    return f'{each["category"]} in {words.first_line(each["object"], 24)}{used}: "{words.first_line(each["what"], WHAT_CHARS)}"'


def _share(share: Row) -> str:
    value = Share(**share).value
    return "–" if value is None else words.percent(value)


def _interval(share: Row) -> str:
    if not share["of"]:
        return "–"
    interval = Share(**share).interval
    return f"{interval.low * 100:.1f} – {interval.high * 100:.1f}"


def _of(share: Row) -> str:
    """`8 of 9 (88.9 %, 56.5 – 98.0)`."""
    return f"{share['hits']:g} of {share['of']}" + (f" ({_share(share)}, {_interval(share)})" if share["of"] else "")


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
