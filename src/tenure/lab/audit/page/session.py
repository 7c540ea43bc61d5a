"""One session's page: what it was, what each policy would have cost, what it took and what was needed of it."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from tenure.engine.meter.figures import ASSUMED
from tenure.engine.policies import UNBOUNDED
from tenure.lab.audit.page.figures import bar, change, count, tokens, usd
from tenure.lab.audit.page.markup import Html, el, join, line
from tenure.lab.audit.page.tables import Cell, Column, figure, table
from tenure.lab.audit.report import Audit, Run, Session
from tenure.lab.events import Bill, Part


class Place(Struct, frozen=True, kw_only=True):
    """Where a session stands in the page: its name in links, its policies' names there, and the level of its headings."""

    id: str
    policies: tuple[str, ...]
    level: int
    assumed: bool = False  # its money is by another model's price

    def usd(self, amount: float) -> str:
        """An amount of the session."""
        return usd(amount, assumed=self.assumed)

    def heading(self, text: str, depth: int = 1, name: str | None = None) -> Html:
        """A heading `depth` below the session's own."""
        return el(f"h{min(6, self.level + depth)}", text, id=name)


PARTS: Final[tuple[tuple[str, str], ...]] = (
    ("uncached", "b-uncached"),
    ("cache write", "b-write"),
    ("cache read", "b-read"),
    ("output", "b-output"),
    ("recall", "b-recall"),
)


def parts_of(bill: Bill) -> tuple[Part, ...]:
    """A bill's parts in the order of PARTS; a part that helpers took is in none."""
    return bill.uncached, bill.cache_write, bill.cache_read, bill.output, bill.recall


def title_of(session: Session) -> str:
    """The file's name, without the folders it is in."""
    return line(session.path.rstrip("/\\").replace("\\", "/").rpartition("/")[2] or session.path or "session", 100)


def name_of(policy: str) -> str:
    """What a policy is called."""
    return "as recorded" if policy == UNBOUNDED else line(policy, 60)


def masthead(audit: Audit, place: Place, back: Html | None) -> Html:
    """What the session was."""
    facts = [el("div", el("dt", name), el("dd", value)) for name, value in _facts(audit)]
    return el(
        "header",
        back,
        el(f"h{place.level}", title_of(audit.session)),
        el("p", line(audit.session.path, 300), class_="path mono"),
        el("dl", *facts, class_="facts"),
    )


def bill_section(audit: Audit, place: Place) -> Html:
    """The bill by policy."""
    runs = audit.runs
    whole = max((run.bill.total_usd for run in runs), default=0.0)
    helped = any(run.bill.helpers_usd for run in runs)
    columns = [
        Column(name="policy", class_="policy"),
        Column(name="bill", class_="wide"),
        Column(name="in all", class_="n"),
        Column(name="change", class_="n"),
        *(Column(name=name, class_="n", swatch=class_) for name, class_ in PARTS),
        *([Column(name="planners", class_="n")] if helped else []),
    ]
    none = runs[0].bill.total_usd if runs else 0.0
    rows = [
        [
            *_bill_row(run, place, number, whole, none),
            *([figure(place.usd(run.bill.helpers_usd), run.bill.helpers_usd)] if helped else []),
        ]
        for number, run in enumerate(runs)
    ]
    return join(
        [
            place.heading("The bill"),
            el("p", *_bill_words(audit), class_="lead"),
            table("What the session would have cost under each policy", columns, rows, fold=False),
        ]
    )


def outcome_section(audit: Audit, place: Place) -> Html:
    """What each policy took, and what was needed of it."""
    most = max((run.harms.lost + run.harms.routed + run.harms.visible for run in audit.runs), default=0)
    columns = [
        Column(name="policy", class_="policy"),
        Column(name="commits", class_="n"),
        Column(name="tokens that left", class_="n"),
        Column(name="largest request", class_="n"),
        Column(name="needs", class_="wide"),
        Column(name="lost", class_="n", swatch="v-lost"),
        Column(name="routed", class_="n", swatch="v-routed"),
        Column(name="visible", class_="n", swatch="v-visible"),
        Column(name="to fetch the lost again", class_="n"),
    ]
    rows = [_outcome_row(run, place, number, most) for number, run in enumerate(audit.runs)]
    return join(
        [
            place.heading("What left, and what was needed of it"),
            el(
                "p",
                "A need is an exact string that a later step used: a path, an id, a line, a name. Of what had left, some is still ",
                el("b", "visible"),
                " elsewhere in the window; some is ",
                el("b", "routed"),
                ", which means that a handle and a cue are shown and one recall brings it back; the rest is ",
                el("b", "lost"),
                " until it is read or run again. The recorded window itself is not judged.",
                class_="lead",
            ),
            table("What each policy took, and what was needed of it", columns, rows, fold=False),
        ]
    )


def policy_link(run: Run, place: Place, number: int) -> Cell:
    """A policy's name, which leads to it."""
    return Cell(shown=el("a", name_of(run.policy), href=f"#{place.id}/{place.policies[number]}"), value="", is_name=True)


def _facts(audit: Audit) -> Iterator[tuple[str, str]]:
    session = audit.session
    yield "format", line(session.format, 60)
    yield ("model" if session.model_known else "priced as"), line(session.model, 60)
    yield "calls", f"{session.calls:,}"
    yield "turns", f"{session.turns:,}"
    yield "messages", f"{session.entries:,}"
    yield "tokens in all", tokens(session.tokens)
    if audit.runs:
        yield "largest request", tokens(audit.runs[0].peak)
    if when := _when(session):
        yield "when", when


def _when(session: Session) -> str:
    """From when to when; nothing where the log has no times."""
    try:
        start, end = datetime.fromisoformat(session.started), datetime.fromisoformat(session.ended)
        lasted = int((end - start).total_seconds())
    except (ValueError, TypeError):  # one of them may have a zone, and the other none
        return ""
    length = (
        f"{lasted // 86400} d {lasted % 86400 // 3600} h" if lasted >= 86400 else f"{lasted // 3600} h {lasted % 3600 // 60} min"
    )
    return f"{start:%Y-%m-%d %H:%M}, {length}"


def _bill_words(audit: Audit) -> Iterator[str]:
    yield "Simulated from the requests' own bytes with strict prefix caching. "
    if not audit.session.model_known:
        yield f"The log names no model, so it is priced as {line(audit.session.model, 60)}. "
    if audit.session.is_assumed:
        yield f"No price is listed for {line(audit.session.model, 60)}: amounts with {ASSUMED} are by a mid-size model's. "
    if audit.session.reported.tokens and audit.runs:
        bill = audit.runs[0].bill
        prompt = bill.uncached.tokens + bill.cache_write.tokens + bill.cache_read.tokens
        reported = audit.session.reported.tokens
        yield f"As recorded, {tokens(prompt)} prompt tokens are billed here; the log itself reports {tokens(reported)}, so ours are {change(prompt, reported)}. "
    yield "A recall is billed with its extra call and for as long as it is carried."


def _bill_row(run: Run, place: Place, number: int, whole: float, none: float) -> Sequence[Cell]:
    parts = parts_of(run.bill)
    total = run.bill.total_usd
    drawn = bar([(class_, part.usd) for (_, class_), part in zip(PARTS, parts, strict=True)], whole)
    return [
        policy_link(run, place, number),
        Cell(shown=drawn, value=f"{total:.6g}"),
        figure(place.usd(total), total),
        figure(change(total, none) if number else "", total - none),
        *(figure(place.usd(part.usd), part.usd, tokens(part.tokens)) for part in parts),
    ]


def _outcome_row(run: Run, place: Place, number: int, most: int) -> Sequence[Cell]:
    harms = run.harms
    shares = (("v-lost", float(harms.lost)), ("v-routed", float(harms.routed)), ("v-visible", float(harms.visible)))
    all_needs = harms.lost + harms.routed + harms.visible
    judged = run.policy != UNBOUNDED
    return [
        policy_link(run, place, number),
        figure(f"{run.commits_made:,}", run.commits_made),
        figure(tokens(run.left), run.left),
        figure(tokens(run.peak), run.peak, f"{count(run.unmet, 'call')} over the limit" if run.unmet else ""),
        Cell(shown=bar(shares, most), value=str(all_needs)),
        figure(f"{harms.lost:,}" if judged else "", harms.lost),
        figure(
            f"{harms.routed:,}" if judged else "", harms.routed, count(run.bill.recalls, "recall") if run.bill.recalls else ""
        ),
        figure(f"{harms.visible:,}" if judged else "", harms.visible),
        figure(place.usd(run.bill.fetched_again.usd) if harms.lost else "", run.bill.fetched_again.usd),
    ]
