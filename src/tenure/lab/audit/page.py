"""The page that `tenure audit --html` writes: one file that works offline.

It asks for nothing from anywhere: styles and script stand in it and are allowed by their hashes alone. Tables and drawings are there without a
script; with one they can be sorted, searched, pointed at and linked into (`#session/policy/need`). The same audits give the same bytes.
"""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final, cast

from markupsafe import Markup
from msgspec import Struct

from tenure.engine.meter.figures import ASSUMED, several
from tenure.engine.policies import UNBOUNDED
from tenure.lab.audit import text
from tenure.lab.audit.drawing import FINE, HEIGHT, RAIL, Stacks, drawing, stacks_of, taken
from tenure.lab.audit.island import VERDICTS, Detail, detail_for, island, named_needs, session_data
from tenure.lab.audit.report import Audit, CommitSummary, PolicyRun, PolicyTotal, UnreadSession, total
from tenure.lab.events import Bill, BudgetLine, Part
from tenure.lab.report.template import environment

# The parts of a bill: their names, their fields and their colours. A part that helpers took is in none.
PARTS: Final = (
    ("uncached", "uncached", "b-uncached"),
    ("cache write", "cache_write", "b-write"),
    ("cache read", "cache_read", "b-read"),
    ("output", "output", "b-output"),
    ("recall", "recall", "b-recall"),
)
# Where a window went: the table, what its rows are, what it counts, and what a row without a name stands for.
TABLES: Final = (
    ("by_kind", "kind", "blocks", ""),
    ("by_tool", "tool", "calls", "outside of tools"),
    ("by_path", "path", "calls", "without a path"),
    ("by_turn", "turn", "messages", "before the first turn"),
)
WASTES: Final = {
    "stale": "its file was changed since",
    "superseded": "its lines were read again since",
    "duplicate": "the same bytes were shown again since",
}
WORDS: Final = {
    "commit": "What takes something out of the window: a batch of edits, appended to the conversation's log, with its reason.",
    "left": "Tokens that commits took, net of what they show in their stead (the residue).",
    "visible, routed, lost": "A need of what had left is visible when the window still shows it elsewhere; routed when a residue shows a handle and a cue, so that one recall brings it back; lost when neither is so.",
    "as recorded": "The window that the recorded agent had, its own compactions included. It is the dashed outline in every drawing.",
    "paid tokens": "Tokens times the calls that carried them.",
    "tokens": "o200k tokens, of what was said and of what left; of requests, drawings, limits, commits and bills the provider's own, as learned from what the log reports.",
}  # fmt: skip
_FOLDED: Final = 12  # rows that are shown at first where a script can show the rest


class Sheet(Struct, frozen=True, kw_only=True):
    """One session in the page: its name in links, those of its policies, and the level of its heading."""

    audit: Audit
    id: str
    policies: tuple[str, ...]
    level: int
    detail: Detail
    stacks: Stacks

    @property
    def verdict(self) -> str:
        """What the session cost, and what would have been saved."""
        return verdict([self.audit])

    def usd(self, amount: float) -> str:
        """An amount of the session."""
        return text.usd(amount, assumed=self.audit.session.is_assumed)

    def drawing(self, number: int) -> dict[str, Any]:
        """The drawing of a run."""
        return drawing(self.audit.runs[number], self.stacks.runs[number], self.stacks)

    def needs(self, run: PolicyRun) -> list[tuple[str, Any]]:
        """The needs that are listed, the worst first."""
        return sorted(named_needs(run, self.detail.listed), key=lambda named: VERDICTS.index(named[1].line.verdict))

    def commits(self, run: PolicyRun) -> list[CommitSummary]:
        """The largest, in order."""
        return sorted(sorted(run.commits, key=taken, reverse=True)[: self.detail.commits], key=lambda commit: commit.commit)


def page(audits: Sequence[Audit], unread: Sequence[UnreadSession] = ()) -> str:
    """The reports as one page of HTML, and what could not be read with its reason."""
    names = {"overview", "data", "panel"}
    ids = [text.slug(title_of(audit).split(".")[0], names) for audit in audits]
    detail = detail_for(len(audits), max((len(audit.runs) for audit in audits), default=0))
    sheets = [
        Sheet(
            audit=audit,
            id=id_,
            policies=_names(audit.runs),
            level=1 if len(audits) == 1 else 2,
            detail=detail,
            stacks=stacks_of(audit, detail.points),
        )
        for audit, id_ in zip(audits, ids, strict=True)
    ]
    style, script = _asset("page.css"), f"'use strict';\n(() => {{\n{_asset('page.js')}}})();\n"
    made = _template().render(
        sheets=sheets,
        sums=_sums(audits),
        verdict=verdict(audits),
        unread=unread,
        data=island([session_data(each.audit, each.id, each.policies, each.stacks, detail) for each in sheets]),
        style=Markup(style),  # noqa: S704 - our own
        script=Markup(script),  # noqa: S704 - our own
        hashes={"style": _hash(style), "script": _hash(script)},
    )
    return f"{made.strip()}\n"


def verdict(audits: Sequence[Audit]) -> str:
    """What was paid, what of it was needless, and what the cheapest policy would have saved and lost: two or three sentences."""
    audits = [audit for audit in audits if audit.runs and audit.session.calls]
    if not audits:
        return ""
    assumed = any(audit.session.is_assumed for audit in audits)
    paid = sum(audit.runs[0].bill.total_usd for audit in audits)
    rows = [row for audit in audits for row in (audit.window.head, *audit.window.by_kind.rows, audit.window.by_kind.rest) if row]
    sent = sum(row.paid for row in rows)
    needless = sum(waste.paid for audit in audits for waste in audit.window.wasted)
    what = "This session" if len(audits) == 1 else f"These {len(audits):,} sessions"
    said = f"{what} cost {text.usd(paid, assumed=assumed)}, simulated."
    if sent:
        share = text.percent(needless / sent) if needless else "None"
        said += (
            f" {share} of the tokens sent had no use there any more: results of files changed since, read again, or shown twice."
        )
    every = [each for each in _sums(audits) if each.run.policy != UNBOUNDED and each.sessions == len(audits)]
    if not every:
        return said
    best = min((each.run for each in every), key=lambda run: (run.bill.total_usd, run.lost))
    usd = best.bill.total_usd
    if usd >= paid:
        return f"{said} No policy tried would have cost less."
    counts = ((best.lost, "lost"), (best.routed, "one recall away"))
    missed = [f"{count:,} {'is' if count == 1 else 'are'} {how}" for count, how in counts if count]
    needs = (
        f"; of the strings that later steps used, {' and '.join(missed)}" if missed else " and lost nothing that later steps used"
    )
    budget = next(run.budget for run in audits[0].runs if run.policy == best.policy)
    limit, saved = _limit(budget), text.percent(1 - usd / paid)
    return f"{said} The cheapest policy tried, {text.line(best.policy, 60)} under {limit}, would have saved {saved}{needs}."


def title_of(audit: Audit) -> str:
    """The file's name, without the folders it is in."""
    path = audit.session.path
    return text.line(path.rstrip("/\\").replace("\\", "/").rpartition("/")[2] or path or "session", 100)


@cache
def _template() -> Any:
    found = environment("tenure.lab.audit", html=True)
    found.finalize = text.shown
    filters = cast("dict[str, Any]", found.filters)  # pyright: ignore[reportUnknownMemberType]
    filters |= {name: getattr(text, name) for name in ("line", "shortened", "tokens", "rounded", "percent")}
    filters |= {"parts": _parts, "name": _policy_name}
    values: dict[str, Any] = {
        "ASSUMED": ASSUMED, "PARTS": PARTS, "TABLES": TABLES, "UNBOUNDED": UNBOUNDED, "VERDICTS": VERDICTS, "WASTES": WASTES,
        "WORDS": WORDS, "HEIGHT": HEIGHT, "FINE": FINE, "RAIL": RAIL, "FOLDED": _FOLDED, "several": several, "change": text.change,
        "usd": text.usd, "taken": taken, "title_of": title_of, "when": _when, "counted": _counted,
        "column": _column, "run_of": _run_of, "whole": round, "bill_columns": [_column(name, "n", "", class_) for name, _, class_ in PARTS],
    }  # fmt: skip
    cast("dict[str, Any]", found.globals).update(values)  # pyright: ignore[reportUnknownMemberType]
    return found.get_template("page.html")


def _parts(bill: Bill) -> list[tuple[str, Part]]:
    return [(class_, getattr(bill, field)) for _, field, class_ in PARTS]


def _policy_name(policy: str) -> str:
    return "as recorded" if policy == UNBOUNDED else text.line(policy, 60)


def _names(runs: Sequence[PolicyRun]) -> tuple[str, ...]:
    names: set[str] = set()
    return tuple(text.slug(run.policy, names) for run in runs)


class PolicySum(Struct, frozen=True, kw_only=True):
    """A policy over the sessions that have it, and the bill of the same sessions as they were recorded."""

    run: PolicyTotal
    recorded: float  # USD
    sessions: int


def _sums(audits: Sequence[Audit]) -> list[PolicySum]:
    found: list[PolicySum] = []
    for policy in dict.fromkeys(run.policy for audit in audits for run in audit.runs):
        every = total(audit for audit in audits if _run_of(audit, policy) is not None)
        runs = {run.policy: run for run in every.runs}
        recorded = runs[UNBOUNDED].bill.total_usd if UNBOUNDED in runs else 0.0
        found.append(PolicySum(run=runs[policy], recorded=recorded, sessions=every.sessions))
    return found


def _run_of(audit: Audit, policy: str) -> PolicyRun | None:
    return next((run for run in audit.runs if run.policy == policy), None)


def _limit(budget: BudgetLine) -> str:
    limits = (("ceiling", budget.ceiling), ("target", budget.target), ("window", budget.window))
    return next(f"a {name} of {text.rounded(value)}" for name, value in limits if value is not None)


def _when(started: str, ended: str) -> str:
    """From when to when; nothing where the log has no times."""
    try:
        start, end = datetime.fromisoformat(started), datetime.fromisoformat(ended)
        lasted = int((end - start).total_seconds())
    except (ValueError, TypeError):  # one of them may have a zone, and the other none
        return ""
    length = (
        f"{lasted // 86400} d {lasted % 86400 // 3600} h" if lasted >= 86400 else f"{lasted // 3600} h {lasted % 3600 // 60} min"
    )
    return f"{start:%Y-%m-%d %H:%M}, {length}"


def _counted(needs: dict[str, dict[str, int]]) -> Iterator[tuple[str, list[int]]]:
    """Needs by name, those with most that are lost first."""
    for name, by in sorted(needs.items(), key=lambda item: (-item[1].get("lost", 0), -item[1].get("routed", 0), item[0])):
        yield name.replace("-", " "), [by.get(verdict, 0) for verdict in VERDICTS]


def _column(name: str, class_: str = "", sort: str = "", swatch: str = "") -> dict[str, str]:
    """A column's heading: how its cells are set, how the rows stand to begin with, what its figures are drawn as."""
    return {"name": name, "class_": class_, "sort": sort, "swatch": swatch}


def _asset(name: str) -> str:
    return files("tenure.lab.audit").joinpath("templates", name).read_text("utf-8")


def _hash(content: str) -> str:
    return f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"
