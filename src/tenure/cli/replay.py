"""`tenure replay`: what the engine does to a recorded session under a budget, and what that costs and saves."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Final

import msgspec
import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tenure.cli import words
from tenure.cli.asked import SESSION_HELP, STDOUT, Ceiling, Floor, HeadTokens, PricedAs, Quiet, Target, Window, head_of, output
from tenure.cli.asked import budget_of as budget_of
from tenure.cli.helped import Helped, briefs, of_it, plans
from tenure.engine.clip.setting import Clip
from tenure.engine.lifecycle.automatic import threshold_of
from tenure.engine.lifecycle.budget import parse_tokens
from tenure.engine.lifecycle.gate import Rule
from tenure.engine.meter.tokens import o200k
from tenure.engine.policies import COMPAT, DEFAULT, PEERS, POLICIES, UNBOUNDED, faithful_named, policy_named
from tenure.engine.view.edit import Insert
from tenure.errors import InputError
from tenure.lab import replay as evals_replay
from tenure.lab.bill import Watched, accounted
from tenure.lab.events import CallLine, CommitLine, PlanLine, ReplayLine, SkippedLine, SummaryLine, UnmetLine
from tenure.lab.loading import source
from tenure.lab.replay import Options, Source

if TYPE_CHECKING:  # wanted only by those who name a model
    from tenure.models.question import Model

COMMITS_SHOWN: Final = 12
STAND_IN: Final = "stand-in"  # for a planner or a summariser, where no model is at hand
_WHY: Final = {"recorded": "", "admission": "clipped", "handoff": "brief"}  # of commits that no limit forced
_WHOLE: Final = ("fold", "prune")  # kinds of actions that take all of an object
_MODELS: Final = f"{STAND_IN}, openai:NAME or anthropic:NAME"
_DECIDES: Final = f"The policy: {', '.join([*POLICIES, UNBOUNDED])}; for comparison {', '.join(PEERS)}."


class Run(msgspec.Struct, kw_only=True):
    """What a screen keeps of a replay: its ends and its commits, never its entries."""

    names: tuple[str, ...]
    header: ReplayLine | None = None
    summary: SummaryLine | None = None
    commits: list[CommitLine] = []
    windows: list[int] = []  # provider tokens at each call
    skipped: list[SkippedLine] = []
    unmet: UnmetLine | None = None
    plans: Helped = msgspec.field(default_factory=Helped)
    briefs: Helped = msgspec.field(default_factory=Helped)
    entries: int = 0
    record_tokens: int = 0
    recallable: str = ""  # a handle of something that left


def replay(
    sessions: Annotated[list[str], typer.Argument(metavar="SESSION...", help=SESSION_HELP + " - reads standard input.")],
    policy: Annotated[str, typer.Option(metavar="NAME", help=_DECIDES)] = DEFAULT,
    compat: Annotated[
        str, typer.Option(metavar="NAME", help="Follow a published version exactly: " + ", ".join(COMPAT) + ".")
    ] = "",
    target: Target = "",
    ceiling: Ceiling = "",
    floor: Floor = "",
    window: Window = "",
    model: PricedAs = "",
    clip: Annotated[
        str, typer.Option(metavar="TOKENS", help="Clip results larger than this when they are appended, such as 4k.")
    ] = "",
    faithful: Annotated[
        bool, typer.Option("--faithful", help="Follow another tool's rule without Tenure's protection laws.")
    ] = False,
    gate: Annotated[Rule, typer.Option(help="When --target evicts: when it pays, or by the Self-GC paper's rule.")] = Rule.PRICED,
    planner: Annotated[str, typer.Option(metavar="MODEL", help=f"The model that plans what leaves (Self-GC): {_MODELS}.")] = "",
    summariser: Annotated[str, typer.Option(metavar="MODEL", help=f"The model that writes handoff briefs: {_MODELS}.")] = "",
    handoff_at: Annotated[
        str, typer.Option(metavar="LIMIT", help="Hand off above this: a share of the window, or tokens.")
    ] = "85%",
    cache_life: Annotated[
        str, typer.Option(metavar="TIME", help="How long a cached prefix lives, such as 1h. Default: as in the log.")
    ] = "",
    head_tokens: HeadTokens = "",
    json: Annotated[str, typer.Option(metavar="FILE", help="Write every event as JSON lines (- for standard output).")] = "",
    harm: Annotated[
        bool, typer.Option("--harm/--no-harm", help="Find what was needed after it left, and bill its recalls.")
    ] = True,
    each: Annotated[bool, typer.Option("--each", help="Replay each session by itself, not all as one conversation.")] = False,
    quiet: Quiet = False,
) -> None:
    """Replay recorded sessions under a budget: what stays, what leaves, when and why, and the bill.

    Shows what stayed, what left, when and why. Several sessions run one after another in one conversation, as for an agent that never
    restarts. Exit codes: 0 done, 1 a law was broken or a file could not be written, 2 bad input.
    """
    options = Options(
        budget=budget_of(target, ceiling, floor, window, bounded=policy != UNBOUNDED or bool(compat)),
        policy=faithful_named(policy, compat) if faithful else policy_named(policy, compat),
        model=model,
        head=head_of(head_tokens),
        clip=_clip(clip),
        like_pi=compat == "pi-cwl",
        settings={"compat": compat or None, "clip": clip or None, "gate": gate.value, "cache_life": cache_life or None},
        faithful=faithful,
        gate=gate,
        cache_life=cache_life,
        planner=_model("--planner", planner),
        summariser=_model("--summariser", summariser),
        handoff_at=threshold_of(handoff_at),
    )
    console = words.screen(stderr=json == STDOUT, quiet=quiet)
    groups = [[one] for one in sessions] if each else [sessions]
    if each and json and len(groups) > 1:
        raise InputError("--json", "one file for several replays", "--json without --each, or one session at a time")
    done: list[Run] = []
    for group in groups:
        sources = [source(name) for name in group]
        with output(json) as out:
            done.append(play(sources, tuple(group), options, console, out, harm=harm))
    for run in done if len(done) == 1 else ():
        console.print(report(run))
    if len(done) > 1:
        console.print(comparison(done))
        console.print(together(done), style="bold")
        if faithful:
            waived = sum((Counter(run.summary.waived) for run in done if run.summary), Counter[str]())
            console.print(f"faithful: {_waived(waived)}")
        if any(run.summary and run.summary.unmet for run in done):
            console.print(
                "! the limit could not be kept at some call; replay that session alone to see what held it", style="yellow"
            )
    if any(run.summary and run.summary.violations for run in done):
        raise typer.Exit(1)


def _model(option: str, name: str) -> "Model | None":
    """The model of that name, or what stands in for one. Raises InputError for another name, ModelError when there is no key."""
    if not name:
        return None
    if name == STAND_IN:
        from tenure.lab.stand_ins import PLANNER, SUMMARISER

        return PLANNER if option == "--planner" else SUMMARISER
    from tenure.models.model import model_named

    if ":" not in name:
        raise InputError(option, repr(name), _MODELS)
    return model_named(name)


def _clip(above: str) -> Clip | None:
    """Raises InputError for what is no number of tokens."""
    if above.strip() in ("", "0"):
        return None
    size = parse_tokens("--clip", above, of=None)
    return Clip(above=size, room=size)


def play(
    sources: Sequence[Source],
    names: tuple[str, ...],
    options: Options,
    console: Console,
    out: IO[bytes] | None = None,
    *,
    harm: bool = True,
) -> Run:
    """Replay, showing a gauge where there is a terminal, and writing every line to `out`.

    `harm`: what was needed of what left is found too, which takes from a quarter to all of a replay's time again.
    """
    run = Run(names=names)
    encode = msgspec.json.Encoder().encode
    live = (
        Live(console=console, refresh_per_second=12, transient=True)
        if console.is_terminal and not console.quiet
        else nullcontext()
    )
    lines = evals_replay.replay(sources, options, o200k())
    with live as screen:
        for line in accounted(lines) if harm else lines:
            if out is not None:
                out.write(encode(line) + b"\n")
            _note(run, line)
            if screen is not None and isinstance(line, CallLine):
                screen.update(_gauge(run, line), refresh=False)
    return run


def report(run: Run) -> RenderableType:
    """The screen at the end of one replay."""
    header, summary = run.header, run.summary
    assert header is not None
    assert summary is not None
    limit = header.budget.ceiling or header.budget.target or header.budget.window
    parts: list[RenderableType] = ["", *_titles(run, header), "", _facts(run, summary, limit)]
    if run.commits:
        parts += ["", _commits(run)]
    if run.unmet is not None:
        parts += ["", _unmet(run.unmet, summary.unmet)]
    if summary.violations:
        parts += ["", Text("laws broken: " + "; ".join(summary.violations[:5]), style="bold red")]
    return Group(*parts)


def comparison(runs: Sequence[Run]) -> Table:
    """One row for each of several replays."""
    table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
    table.add_column("session", no_wrap=True, overflow="ellipsis", ratio=1)
    columns = {"calls": 5, "recorded": 8, "peak": 4, "commits": 7, "left": 5, "reuse": 5, "bill": 7, "without": 7}
    for name, width in columns.items():
        table.add_column(name, justify="right", no_wrap=True, min_width=width)
    for run, summary in ((run, run.summary) for run in runs if run.summary is not None):
        money = _money(run)
        table.add_row(
            words.plain(Path(run.names[0]).name),
            str(summary.calls),
            words.short(summary.record_tokens),
            words.short(max(run.windows, default=0)) + ("!" if summary.unmet else ""),
            str(summary.commits),
            words.short(summary.evicted_tokens),
            words.share(summary.prefix_reuse),
            money(summary.bill_usd),
            money(summary.usd_uncapped),
        )
    return table


def together(runs: Sequence[Run]) -> str:
    """What several replays come to."""
    done = [run.summary for run in runs if run.summary is not None]
    usd, uncapped = sum(each.bill_usd for each in done), sum(each.usd_uncapped for each in done)
    calls, commits = sum(each.calls for each in done), sum(each.commits for each in done)
    assumed = sum(run.header is not None and run.header.is_assumed for run in runs)
    money = partial(words.money, assumed=assumed > 0)
    bill = f"{money(usd)} against {money(uncapped)} without eviction ({words.change(usd, uncapped)}), simulated"
    if assumed:
        bill += f"; {words.ASSUMED}: in {assumed} of them a mid-size model's price stands in for one that nobody lists"
    return f"{len(done)} sessions, {calls:,} calls, {commits:,} commits: {bill}"


def _money(run: Run) -> Callable[[float], str]:
    """How amounts of a replay are written."""
    return partial(words.money, assumed=run.header is not None and run.header.is_assumed)


def _note(run: Run, line: Watched) -> None:
    match line:
        case ReplayLine():
            run.header = line
        case SummaryLine():
            run.summary = line
        case CommitLine():
            run.recallable = run.recallable or _first_route(line)
            run.commits.append(msgspec.structs.replace(line, edits=()))
        case CallLine():
            run.windows.append(int(line.view_tokens * line.ratio))
            run.entries, run.record_tokens = line.entries, line.record_tokens
        case SkippedLine():
            run.skipped.append(line)
        case PlanLine():
            if "handoff" in line.policy.split("+"):
                run.briefs.note(line)
            elif line.asked or "selfgc" in line.policy.split("+"):
                run.plans.note(line)
        case UnmetLine():
            run.unmet = run.unmet or line
        case _:
            pass


def _first_route(commit: CommitLine) -> str:
    """A handle that the commit's residues name, of a tool call where there is one."""
    routes = [route for edit in commit.edits if isinstance(edit, Insert) for route in edit.routes]
    calls = [route for route in routes if route.partition(":")[0] not in ("episode", "step", "user")]
    return (calls or routes or [""])[0]


def _gauge(run: Run, call: CallLine) -> Text:
    header = run.header
    assert header is not None
    limit = header.budget.ceiling or header.budget.target or header.budget.window
    used = int(call.view_tokens * call.ratio)
    said = f" {words.short(used):>5} of {words.short(limit)}  call {call.call + 1:,}  recorded {words.short(call.record_tokens)}"
    return words.gauge_bar(used, limit) + Text(f"{said}  commits {len(run.commits)}")


def _titles(run: Run, header: ReplayLine) -> Iterator[Text]:
    names = ", ".join(Path(name).name for name in run.names[:3]) + (
        f" and {len(run.names) - 3} more" if len(run.names) > 3 else ""
    )
    formats = ", ".join(dict.fromkeys(file.format for file in header.sources))
    model = header.model if header.model_known else f"priced as {header.model}"
    yield Text.assemble((names, "bold"), words.plain(f"  {formats} · {model}"))
    budget = header.budget
    named = [("ceiling", budget.ceiling), ("target", budget.target), ("floor", budget.floor), ("window", budget.window)]
    limits = ", ".join(f"{name} {words.tokens(value)}" for name, value in named if value is not None)
    asked = "".join(f", {role} {name}" for role in ("planner", "summariser") if (name := header.settings.get(role)))
    yield Text(f"policy {header.policy}{words.plain(asked)}, {limits} tokens", style="dim")


def _facts(run: Run, summary: SummaryLine, limit: int) -> Table:
    peak = max(run.windows, default=0)
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    table.add_row(
        "recorded", f"{summary.calls:,} calls, {summary.entries:,} messages, {words.tokens(summary.record_tokens)} tokens"
    )
    if run.header is not None and (head := words.head(run.header.head)):
        table.add_row("head", head)
    table.add_row("window", words.sparkline(run.windows, max(peak, limit)))
    table.add_row(
        "peak", f"{words.tokens(peak)} of {words.tokens(limit)} tokens, in {summary.commits} commit{_s(summary.commits)}"
    )
    table.add_row("left", f"{words.tokens(summary.evicted_tokens)} tokens: {words.kinds(summary.evicted_by_kind)}")
    table.add_row("recoverable", f"{words.share(summary.recoverable_share)} of what left, read again and hash-equal")
    table.add_row("stayed", words.kinds(summary.stayed_by_kind))
    for name, told in (("plans", plans(run.plans)), ("briefs", briefs(run.briefs))):
        if told:
            table.add_row(name, told)
    if run.header is not None and run.header.settings.get("faithful"):
        table.add_row("faithful", _waived(summary.waived))
    table.add_row(
        "cache",
        f"{words.share(summary.prefix_reuse)} of prompt tokens read from it, {words.share(summary.prefix_reuse_uncapped)} without eviction",
    )
    if needs := sum(summary.needs.values()):
        table.add_row("needed later", _needed(summary, needs, _money(run)))
    cheaper = words.change(summary.bill_usd, summary.usd_uncapped)
    money = _money(run)
    bill = f"{money(summary.bill_usd)} against {money(summary.usd_uncapped)} without eviction ({cheaper}), simulated"
    table.add_row("bill", bill + of_it(run.plans, run.briefs))
    if run.header is not None and run.header.is_assumed:
        table.add_row("", words.plain(words.assumption(run.header.model)))
    if run.skipped:
        table.add_row("left out", _skipped(run.skipped))
    return table


def _needed(summary: SummaryLine, needs: int, money: Callable[[float], str]) -> str:
    """What became of what the session itself needed of what had left."""
    visible, routed, lost = (summary.needs[verdict] for verdict in ("visible", "routed", "lost"))
    recalls = f" (recalls {money(summary.recalls_usd)})" if routed else ""
    return f"{needs:,} need{_s(needs)}: {visible:,} visible, {routed:,} routed{recalls}, {lost:,} lost"


def _waived(counts: Mapping[str, int]) -> str:
    """What a rule changed that any rule of ours would have left alone."""
    changed = ", ".join(f"{count:,} of {why}" for why, count in counts.items())
    return f"protection was waived: {changed} changed" if changed else "protection was waived, and nothing protected was changed"


def _skipped(lines: Sequence[SkippedLine]) -> str:
    """What the reader left out: the first few, the rest counted."""
    first = "; ".join(f"{f'line {line.line}: ' if line.line else ''}{line.reason}" for line in lines[:3])
    return words.plain(first) + (f"; and {len(lines) - 3} more (--json has all)" if len(lines) > 3 else "")


def _commits(run: Run) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", show_edge=False, expand=True)
    for name in ("at call", "before", "after", "over by"):
        table.add_column(name, justify="right", no_wrap=True, min_width=len(name))
    table.add_column("what left", no_wrap=True, overflow="ellipsis", ratio=1)
    shown = run.commits if len(run.commits) <= COMMITS_SHOWN else [*run.commits[: COMMITS_SHOWN - 3], *run.commits[-2:]]
    for number, commit in enumerate(shown):
        if len(shown) < len(run.commits) and number == len(shown) - 2:
            table.add_row("…", "", "", "", f"{len(run.commits) - len(shown)} more commits (--json has all)", style="dim")
        before, after = (int(tokens * commit.ratio) for tokens in (commit.tokens_before, commit.tokens_after))
        over = _WHY.get(commit.policy) or (commit.reason.split(" ", 1)[0] if commit.forced else _WHY.get(commit.moment, "pays"))
        table.add_row(f"{commit.before_call:,}", words.short(before), words.short(after), over, _what(commit))
    return table


def _what(commit: CommitLine) -> str:
    """The objects of a commit in a few words: what left whole, and how many were only stripped."""
    if not commit.actions:
        return "what the agent's own compaction took" if commit.moment == "recorded" else str(commit.moment)
    if commit.policy == "handoff":
        return f"what came before {commit.actions[0].object}, now told in a brief"
    whole = dict.fromkeys(act.object for act in commit.actions if act.level == "episode" or act.kind in _WHOLE)
    parts = dict.fromkeys(act.object for act in commit.actions if act.object not in whole)
    said = [_objects(each, prefix) for each, prefix in ((whole, ""), (parts, "parts of ")) if each]
    return " and ".join(said)


def _objects(objects: Iterable[str], prefix: str) -> str:
    """`3 episodes (change-json … locate-json)`, `27 steps (26 … 71)`, or the one there is."""
    by_kind: dict[str, list[str]] = {}
    for each in objects:
        by_kind.setdefault(each.partition(":")[0], []).append(each.partition(":")[2])
    said = [
        f"{kind}:{words.first_line(names[0], 28)}"
        if len(names) == 1
        else f"{len(names)} {kind}s ({words.first_line(names[0], 20)} … {words.first_line(names[-1], 20)})"
        for kind, names in by_kind.items()
    ]
    return prefix + ", ".join(said)


def _unmet(line: UnmetLine, times: int) -> Text:
    held = ", ".join(f"{name.replace('_', ' ')} {words.tokens(count)}" for name, count in line.held_by.items() if count)
    return Text.assemble(
        ("The limit could not be kept ", "bold yellow"),
        f"at {times} call{_s(times)}; first at call {line.before_call}: {words.tokens(line.view_tokens)} tokens, held by {held}.",
    )


def _s(count: int) -> str:
    return "" if count == 1 else "s"
