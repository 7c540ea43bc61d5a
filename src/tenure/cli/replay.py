"""`tenure replay`: what the engine does to a recorded session under a budget, and what that costs and saves."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import IO, Annotated, Final

import msgspec
import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tenure.cli import words
from tenure.cli.named_models import KINDS, answering, model_for
from tenure.cli.options import (
    SESSION_HELP,
    STDOUT,
    HeadTokens,
    JsonLines,
    LimitOptions,
    MarkFiles,
    PricedAs,
    Quiet,
    argument,
    flag,
    head_of,
    option,
    output,
)
from tenure.engine.clip.setting import Clip
from tenure.engine.lifecycle.automatic import threshold_of
from tenure.engine.lifecycle.budget import GateRule, parse_tokens
from tenure.engine.meter.tokens import o200k
from tenure.engine.planners.selfgc.setting import SelfGc
from tenure.engine.policies import COMPAT, DEFAULT, PEERS, POLICIES, UNBOUNDED, faithful_named, policy_named
from tenure.engine.view.edit import Insert
from tenure.errors import InputError
from tenure.lab import replay as lab
from tenure.lab.bill import Watched, accounted
from tenure.lab.events import CallLine, CommitLine, PlanLine, ReplayLine, SkippedLine, SummaryLine, UnmetLine
from tenure.lab.loading import source
from tenure.lab.marks import marks_in
from tenure.lab.replay import Options
from tenure.lab.source import SessionSource

COMMITS_SHOWN: Final = 12
WHY_CHARS: Final = 120
_WHY: Final = {"recorded": "", "admission": "clipped", "handoff": "brief"}  # of commits that no limit forced
_NOT_ASKED: Final = "none asked for: nothing that a planner may name could have paid for asking"
_WHOLE: Final = ("fold", "prune")  # kinds of actions that take all of an object
_DECIDES: Final = f"The policy: {', '.join([*POLICIES, UNBOUNDED])}; for comparison {', '.join(PEERS)}."


class HelperTotals(msgspec.Struct, kw_only=True):
    """The plans or the briefs of a replay's models, counted as their lines come."""

    asked: int = 0
    committed: int = 0  # at once
    carried_out: int = 0  # after a wait
    expired: int = 0  # after a wait
    dropped: int = 0  # at once
    waits: bool = False  # one does now
    usd: float = 0.0
    assumed: bool = False  # by another model's price, at least once
    refused: Counter[str] = msgspec.field(default_factory=Counter[str])  # objects of plans, by reason
    why: str = ""  # the first answer that came to nothing, or the first failure

    def note(self, line: PlanLine) -> None:
        """Take in what became of an answer: now, or of the one that waited."""
        if line.asked:
            self.asked, self.usd = self.asked + 1, self.usd + line.usd
            self.assumed = self.assumed or line.assumed
            self.refused = self.refused + Counter(each["why"] for each in line.refused)
            self.committed += line.outcome == "committed"
            self.dropped += line.outcome == "dropped"
            self.waits = self.waits or line.outcome == "pending"
            if line.outcome == "dropped":
                self.why = self.why or line.reason
        elif self.waits:
            self.waits = False
            self.carried_out += line.outcome == "committed"
            self.expired += line.outcome == "dropped"


class ReplaySummary(msgspec.Struct, kw_only=True):
    """What a screen keeps of a replay: its ends and its commits, never its entries."""

    names: tuple[str, ...]
    header: ReplayLine | None = None
    summary: SummaryLine | None = None
    commits: list[CommitLine] = []
    windows: list[int] = []  # provider tokens at each call
    skipped: list[SkippedLine] = []
    unmet: UnmetLine | None = None
    plans: HelperTotals = msgspec.field(default_factory=HelperTotals)
    briefs: HelperTotals = msgspec.field(default_factory=HelperTotals)
    recallable: str = ""  # a handle of something that left

    def note(self, line: Watched) -> None:
        """Take in the next line."""
        match line:
            case ReplayLine():
                self.header = line
            case SummaryLine():
                self.summary = line
            case CommitLine():
                self.recallable = self.recallable or _first_route(line)
                self.commits.append(msgspec.structs.replace(line, edits=()))
            case CallLine():
                self.windows.append(int(line.view_tokens * line.ratio))
            case SkippedLine():
                self.skipped.append(line)
            case PlanLine():
                makers = line.policy.split("+")
                if "handoff" in makers:
                    self.briefs.note(line)
                elif line.asked or "selfgc" in makers:
                    self.plans.note(line)
            case UnmetLine():
                self.unmet = self.unmet or line
            case _:
                pass

    @property
    def limit(self) -> int:
        """Of the window, in provider tokens."""
        budget = self.head.budget
        return budget.ceiling or budget.target or budget.window or 0

    @property
    def head(self) -> ReplayLine:
        """The first line; there is one."""
        assert self.header is not None
        return self.header

    @property
    def end(self) -> SummaryLine:
        """The last line, of a replay that is over."""
        assert self.summary is not None
        return self.summary

    def money(self, usd: float) -> str:
        """An amount of the replay."""
        return words.money(usd, assumed=self.head.is_assumed)


def replay(
    *,
    sessions: Annotated[list[str], argument("SESSION...", SESSION_HELP + " - reads standard input.")],
    policy: Annotated[str, option("NAME", _DECIDES)] = DEFAULT,
    compat: Annotated[str, option("NAME", "Follow a published version exactly: " + ", ".join(COMPAT) + ".")] = "",
    limits: LimitOptions,
    model: PricedAs = "",
    clip: Annotated[str, option("TOKENS", "Clip results larger than this when they are appended, such as 4k.")] = "",
    faithful: Annotated[bool, flag("--faithful", "Follow another tool's rule without Tenure's protection laws.")] = False,
    gate: Annotated[
        GateRule,
        typer.Option(
            help="When --target evicts: when it pays, when it also loses next to nothing should the session end, or by the Self-GC paper's rule."
        ),
    ] = GateRule.PRICED,
    planner: Annotated[str, option("MODEL", f"The model that plans what leaves (Self-GC): {KINDS}.")] = "",
    ask_always: Annotated[
        bool, flag("--ask-always", "Ask the planner also where nothing that it may name could pay for asking.")
    ] = False,
    summariser: Annotated[str, option("MODEL", f"The model that writes handoff briefs: {KINDS}.")] = "",
    handoff_at: Annotated[str, option("LIMIT", "Hand off above this: a share of the window, or tokens.")] = "85%",
    cache_life: Annotated[str, option("TIME", "How long a cached prefix lives, such as 1h. Default: as in the log.")] = "",
    head_tokens: HeadTokens = "",
    json: JsonLines = "",
    harm: Annotated[bool, flag("--harm/--no-harm", "Find what was needed after it left, and bill its recalls.")] = True,
    marks: MarkFiles = None,
    each: Annotated[bool, flag("--each", "Replay each session by itself, not all as one conversation.")] = False,
    quiet: Quiet = False,
) -> None:
    """Replay recorded sessions under a budget: what stays, what leaves, when and why, and the bill.

    Shows what stayed, what left, when and why. Several sessions run one after another in one conversation, as for an agent that never
    restarts. Exit codes: 0 done, 1 a law was broken or a file could not be written, 2 bad input.
    """
    from tenure.lab.planner import PLANNER, SUMMARISER

    options = Options(
        budget=limits.budget(usual="" if policy == UNBOUNDED and not compat else "ceiling"),
        policy=faithful_named(policy, compat) if faithful else policy_named(policy, compat),
        model=model,
        head=head_of(head_tokens),
        clip=_clip(clip),
        like_pi=compat == "pi-cwl",
        settings={"compat": compat or None, "clip": clip or None, "gate": gate.value, "cache_life": cache_life or None},
        faithful=faithful,
        gate=gate,
        cache_life=cache_life,
        planner=model_for("--planner", planner, PLANNER) if planner else None,
        summariser=model_for("--summariser", summariser, SUMMARISER) if summariser else None,
        selfgc=SelfGc(bounded=not ask_always),
        handoff_at=threshold_of(handoff_at),
    )
    console = words.screen(stderr=json == STDOUT, quiet=quiet)
    groups = [[one] for one in sessions] if each else [sessions]
    if each and json and len(groups) > 1:
        raise InputError("--json", "one file for several replays", "--json without --each, or one session at a time")
    done: list[ReplaySummary] = []
    with answering(console, options.planner, options.summariser):
        for group in groups:
            sources = [source(name) for name in group]
            sources = sources if not marks else marks_in(marks).on(sources, o200k())
            with output(json) as out:
                done.append(play(sources, tuple(group), options, console, out, harm=harm))
    if len(done) == 1:
        console.print(report(done[0]))
    else:
        console.print(_comparison(done))
        console.print(_together(done), style="bold")
        if faithful:
            console.print(f"faithful: {_waived(sum((Counter(run.end.waived) for run in done), Counter[str]()))}")
        if any(run.end.unmet for run in done):
            warning = "! the limit could not be kept at some call; replay that session alone to see what held it"
            console.print(warning, style="yellow")
    if any(run.end.violations for run in done):
        raise typer.Exit(1)


def _clip(above: str) -> Clip | None:
    """Raises InputError for what is no number of tokens."""
    if above.strip() in ("", "0"):
        return None
    size = parse_tokens("--clip", above, of=None)
    return Clip(above=size, room=size)


def play(
    sources: Sequence[SessionSource],
    names: tuple[str, ...],
    options: Options,
    console: Console,
    out: IO[bytes] | None = None,
    *,
    harm: bool = True,
) -> ReplaySummary:
    """Replay, showing a gauge where there is a terminal, and writing every line to `out`.

    `harm`: what was needed of what left is found too, which takes from a quarter to all of a replay's time again.
    """
    run = ReplaySummary(names=names)
    encode = msgspec.json.Encoder().encode
    is_live = console.is_terminal and not console.quiet
    live = Live(console=console, refresh_per_second=12, transient=True) if is_live else nullcontext()
    lines = lab.replay(sources, options, o200k())
    with live as screen:
        for line in accounted(lines) if harm else lines:
            if out is not None:
                out.write(encode(line) + b"\n")
            run.note(line)
            if screen is not None and isinstance(line, CallLine):
                screen.update(_gauge(run, line), refresh=False)
    return run


def _gauge(run: ReplaySummary, call: CallLine) -> Text:
    used = run.windows[-1]
    text = (
        f" {words.short(used):>5} of {words.short(run.limit)}  call {call.call + 1:,}  recorded {words.short(call.record_tokens)}"
    )
    return words.gauge_bar(used, run.limit) + Text(f"{text}  commits {len(run.commits)}")


def report(run: ReplaySummary) -> RenderableType:
    """The screen at the end of one replay."""
    parts: list[RenderableType] = ["", *_titles(run), "", words.facts(_facts(run))]
    if run.commits:
        parts += ["", _commits(run)]
    if (unmet := run.unmet) is not None:
        held = ", ".join(f"{name.replace('_', ' ')} {words.tokens(count)}" for name, count in unmet.held_by.items() if count)
        where = f"at {words.several(run.end.unmet, 'call')}; first at call {unmet.before_call}"
        text = f"{where}: {words.tokens(unmet.view_tokens)} tokens, held by {held}."
        parts += ["", Text.assemble(("The limit could not be kept ", "bold yellow"), text)]
    if run.end.violations:
        parts += ["", Text("laws broken: " + "; ".join(run.end.violations[:5]), style="bold red")]
    return Group(*parts)


def _comparison(runs: Sequence[ReplaySummary]) -> Table:
    """One row for each of several replays."""
    table = words.table(expand=True)
    table.add_column("session", no_wrap=True, overflow="ellipsis", ratio=1)
    columns = {"calls": 5, "recorded": 8, "peak": 4, "commits": 7, "left": 5, "reuse": 5, "bill": 7, "without": 7}
    for name, width in columns.items():
        table.add_column(name, justify="right", no_wrap=True, min_width=width)
    for run in runs:
        end = run.end
        table.add_row(
            words.plain(Path(run.names[0]).name),
            str(end.calls),
            words.short(end.record_tokens),
            words.short(max(run.windows, default=0)) + ("!" if end.unmet else ""),
            str(end.commits),
            words.short(end.evicted_tokens),
            words.share(end.prefix_reuse),
            run.money(end.bill_usd),
            run.money(end.usd_uncapped),
        )
    return table


def _together(runs: Sequence[ReplaySummary]) -> str:
    """What several replays come to."""
    ends = [run.end for run in runs]
    calls, commits = sum(each.calls for each in ends), sum(each.commits for each in ends)
    assumed = sum(run.head.is_assumed for run in runs)
    bill = _bill(
        sum(each.bill_usd for each in ends),
        sum(each.usd_uncapped for each in ends),
        partial(words.money, assumed=assumed > 0),
    )
    if assumed:
        bill += f"; {words.ASSUMED}: in {assumed} of them a mid-size model's price stands in for one that nobody lists"
    return f"{len(runs)} sessions, {calls:,} calls, {commits:,} commits: {bill}"


def _bill(usd: float, uncapped: float, money: Callable[[float], str]) -> str:
    return f"{money(usd)} against {money(uncapped)} without eviction ({words.change(usd, uncapped)}), simulated"


def _first_route(commit: CommitLine) -> str:
    """A handle that the commit's residues name, of a tool call where there is one."""
    routes = [route for edit in commit.edits if isinstance(edit, Insert) for route in edit.routes]
    calls = [route for route in routes if route.partition(":")[0] not in ("episode", "step", "user")]
    return (calls or routes or [""])[0]


def _titles(run: ReplaySummary) -> Iterator[Text]:
    header, budget = run.head, run.head.budget
    formats = ", ".join(dict.fromkeys(file.format for file in header.sources))
    model = header.model if header.model_known else f"priced as {header.model}"
    yield Text.assemble((words.names(run.names), "bold"), words.plain(f"  {formats} · {model}"))
    named = [("ceiling", budget.ceiling), ("target", budget.target), ("floor", budget.floor), ("window", budget.window)]
    limits = ", ".join(f"{name} {words.tokens(value)}" for name, value in named if value is not None)
    helpers = "".join(f", {role} {name}" for role in ("planner", "summariser") if (name := header.settings.get(role)))
    yield Text(f"policy {header.policy}{words.plain(helpers)}, {limits} tokens", style="dim")


def _facts(run: ReplaySummary) -> Iterator[tuple[str, str]]:
    header, end, peak = run.head, run.end, max(run.windows, default=0)
    yield "recorded", f"{end.calls:,} calls, {end.entries:,} messages, {words.tokens(end.record_tokens)} tokens"
    if head := words.head(header.head):
        yield "head", head
    yield "window", words.sparkline(run.windows, max(peak, run.limit))
    commits = f"{end.commits} commit{words.s(end.commits)}"
    yield "peak", f"{words.tokens(peak)} of {words.tokens(run.limit)} tokens, in {commits}"
    yield "left", f"{words.tokens(end.evicted_tokens)} tokens: {words.kinds(end.evicted_by_kind)}"
    yield "recoverable", f"{words.share(end.recoverable_share)} of what left, read again and hash-equal"
    yield "stayed", words.kinds(end.stayed_by_kind)
    if text := plans(run.plans) or (_NOT_ASKED if header.settings.get("planner") else ""):
        yield "plans", text
    if text := briefs(run.briefs):
        yield "briefs", text
    if header.settings.get("faithful"):
        yield "faithful", _waived(end.waived)
    reuse = f"{words.share(end.prefix_reuse)} of prompt tokens read from it"
    yield "cache", f"{reuse}, {words.share(end.prefix_reuse_uncapped)} without eviction"
    if needs := sum(end.needs.values()):
        visible, routed, lost = (end.needs[verdict] for verdict in ("visible", "routed", "lost"))
        recalls = f" (recalls {run.money(end.recalls_usd)})" if routed else ""
        yield "needed later", f"{words.several(needs, 'need')}: {visible:,} visible, {routed:,} routed{recalls}, {lost:,} lost"
    yield "bill", _bill(end.bill_usd, end.usd_uncapped, run.money) + helpers_bill(run.plans, run.briefs)
    if header.is_assumed:
        yield "", words.plain(words.assumption(header.model))
    if run.skipped:
        first = "; ".join(f"{f'line {line.line}: ' if line.line else ''}{line.reason}" for line in run.skipped[:3])
        more = f"; and {len(run.skipped) - 3} more (--json has all)" if len(run.skipped) > 3 else ""
        yield "left out", words.plain(first) + more


def plans(made: HelperTotals) -> str:
    """How many plans were asked for, and what became of them; empty when no planner was asked."""
    counts = (
        (made.committed, "committed at once"),
        (made.carried_out, "committed after a wait"),
        (int(made.waits), "waiting"),
        (made.expired, "given up after a wait"),
        (made.dropped, "dropped"),
    )
    text = _answers(made, counts)
    if not made.refused:
        return text
    total = made.refused.total()
    why, count = made.refused.most_common(1)[0]
    every = "" if count == total else f", {count} of them"
    return f'{text}; {total} object{"s" * (total > 1)} refused{every} as "{words.first_line(why, WHY_CHARS)}"'


def briefs(made: HelperTotals) -> str:
    """How many briefs were asked for, and what became of them; empty when no summariser was asked."""
    return _answers(made, ((made.committed, "committed"), (made.dropped, "dropped")))


def _answers(made: HelperTotals, counts: Iterable[tuple[int, str]]) -> str:
    if not made.asked:
        return ""
    why = f" ({words.first_line(made.why, WHY_CHARS)})" if made.why else ""
    return f"{made.asked} asked for: {', '.join(f'{count} {what}' for count, what in counts if count)}{why}"


def helpers_bill(*made: HelperTotals) -> str:
    """What of a bill was for asking."""
    asked = [each for each in made if each.asked]
    if not asked:
        return ""
    amount = words.money(sum(each.usd for each in asked), assumed=any(each.assumed for each in asked))
    return f"; {amount} of it for asking models"


def _waived(counts: Mapping[str, int]) -> str:
    """What a rule changed that any rule of ours would have left alone."""
    changed = ", ".join(f"{count:,} of {why}" for why, count in counts.items())
    return f"protection was waived: {changed} changed" if changed else "protection was waived, and nothing protected was changed"


def _commits(run: ReplaySummary) -> Table:
    table = words.table(expand=True)
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
    return " and ".join(prefix + _objects(each) for each, prefix in ((whole, ""), (parts, "parts of ")) if each)


def _objects(objects: Iterable[str]) -> str:
    """`3 episodes (change-json … locate-json)`, `27 steps (26 … 71)`, or the one there is."""
    by_kind: dict[str, list[str]] = {}
    for each in objects:
        kind, _, name = each.partition(":")
        by_kind.setdefault(kind, []).append(name)
    return ", ".join(
        f"{kind}:{words.first_line(names[0], 28)}"
        if len(names) == 1
        else f"{len(names)} {kind}s ({words.first_line(names[0], 20)} … {words.first_line(names[-1], 20)})"
        for kind, names in by_kind.items()
    )
