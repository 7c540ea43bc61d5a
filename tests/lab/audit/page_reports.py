"""Reports made by hand for the page: small, and every text in them is what the test says."""

from tenure.lab.audit.report import (
    Audit,
    AuditWindow,
    CommitSummary,
    Gone,
    Harm,
    Harms,
    OwnCompaction,
    Point,
    PolicyRun,
    Reread,
    Series,
    SessionFacts,
    Skips,
    Wasted,
    WindowRow,
    WindowTable,
)
from tenure.lab.events import Bill, BudgetLine, Category, HarmLine, Part, PricesLine, Verdict

PRICES = PricesLine(uncached=3e-6, write=3.75e-6, read=3e-7, output=1.5e-5, ttl_s=300, min_cache=1024)
BUDGET = BudgetLine(target=None, ceiling=400, floor=240, window=100_000)
READ, EDITS = "results of intermediate tools", "calls of durable tools"


def need(text: str, call: int = 3, *, verdict: Verdict = "lost", step: str = "", held: str = "", commit: int = 0) -> Harm:
    """A need of `text`, which the step and what held it say, unless they say something else."""
    line = HarmLine(
        call=call,
        entry=2 * call,
        block=0,
        part="call",
        tool="Edit",
        field="old_string",
        kind="verbatim",
        form="target",
        text=text,
        more=2,
        held=((1, 0), (3, 0)),
        objects=("read:1", "read:2"),
        verdict=verdict,
        category=Category.VERBATIM,
        rule="is a line of a source",
        route="read:2@3fa9" if verdict == "routed" else "",
        commit=commit,
    )
    return Harm(
        line=line, at=41, step=step or f"replace {text} now", held_at=12, held=held or f"1: {text}", held_handle="read:2@3fa9"
    )


def removal(
    number: int, before_call: int, took: int, *, moment: str = "before-call", why: str = "over the ceiling"
) -> CommitSummary:
    """A commit that took so many tokens of one object."""
    return CommitSummary(
        commit=number,
        before_call=before_call,
        entries=2 * before_call,
        policy="cwl",
        moment=moment,
        why=why,
        forced=True,
        ratio=2.0,
        tokens_before=took + 50,
        tokens_after=50,
        actions={"strip": 1},
        objects=(Gone(object="read:2", kind="strip", level="bulk", tokens=took),),
        more=3,
    )


def series(*steps: tuple[int, ...], kinds: tuple[str, ...] = (READ, EDITS), ratio: float = 2.0) -> Series:
    """A call for each step: tokens by kind."""
    points = tuple(Point(call=call, at="2026-02-01T10:00:00Z", ratio=ratio, tokens=step) for call, step in enumerate(steps))
    return Series(kinds=kinds, points=points)


def run(
    policy: str,
    drawn: Series,
    *needs: Harm,
    commits: tuple[CommitSummary, ...] = (),
    usd: float = 1.0,
    left: int = 0,
    settings: str = "on",
) -> PolicyRun:
    """A run with these needs and commits."""
    verdicts = [harm.line.verdict for harm in needs]
    counts = {verdict: verdicts.count(verdict) for verdict in ("visible", "routed", "lost")}
    return PolicyRun(
        policy=policy,
        settings={"settings": settings, "batch": True, "lines": 3, "none": None},
        budget=BUDGET,
        bill=Bill(
            calls=4,
            uncached=Part(tokens=10, usd=0.1 * usd),
            cache_write=Part(tokens=200, usd=0.2 * usd),
            cache_read=Part(tokens=3_000, usd=0.3 * usd),
            output=Part(tokens=40, usd=0.4 * usd),
            recalls=counts["routed"],
        ),
        commits=commits,
        commits_made=sum(commit.moment != "recorded" for commit in commits),
        series=drawn,
        harms=Harms(
            visible=counts["visible"],
            routed=counts["routed"],
            lost=counts["lost"],
            by_kind={"verbatim": counts},
            by_category={"verbatim-source": counts},
            listed=needs,
        ),
        peak=400,
        left=left,
        evicted={READ: left},
        unmet=1,
        unmet_held_by={"human_text": 300},
        violations=("a call without its result",),
    )


def audit(text: str = "x", *runs: PolicyRun, drawn: Series | None = None) -> Audit:
    """A report in which every text that a session or a user gives is `text`, or ends with it where some words have a meaning."""
    recorded = drawn or series((100, 20), (180, 30), (190, 40), (200, 50), kinds=(f"kind {text}", EDITS))
    row = WindowRow(name=text, label=text, objects=3, tokens=120, paid=900, usd=0.4, share=0.75)
    table = WindowTable(
        rows=(row,), merged=2, rest=WindowRow(name="(others)", objects=2, tokens=40, paid=300, usd=0.1, share=0.25)
    )
    told = runs or (
        run("none", recorded),
        run(
            f"policy {text}",
            recorded,
            need(text),
            need(text, verdict="routed"),
            need(text, verdict="visible"),
            commits=(removal(0, 2, 60, why=text),),
            left=60,
            settings=text,
        ),
    )
    return Audit(
        session=SessionFacts(
            path=text,
            format=text,
            sha256=text,
            model=text,
            model_known=False,
            calls=4,
            entries=8,
            turns=1,
            tokens=250,
            started=text,
            ended=text,
            skipped=(Skips(reason=text, count=1, bytes=20, line=4),),
            prices=PRICES,
            reported=Part(tokens=3_000, usd=0.5),
        ),
        window=AuditWindow(
            by_kind=table,
            by_tool=table,
            by_path=table,
            by_turn=table,
            head=WindowRow(name="head", tokens=30, paid=120, usd=0.01),
            wasted=(Wasted(how="stale", objects=1, tokens=60, paid=120, usd=0.02),),
            rereads=(
                Reread(
                    how="stale",
                    object=text,
                    handle=text,
                    path=text,
                    entry=3,
                    tokens=60,
                    of=90,
                    by=text,
                    by_entry=5,
                    before_call=2,
                    calls=2,
                    paid=120,
                    usd=0.02,
                ),
            ),
            series=recorded,
            compactions=(OwnCompaction(before_call=3, entries=6, reason=text, tokens_before=300, tokens_after=100),),
        ),
        runs=told,
    )
