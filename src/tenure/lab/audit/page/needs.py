"""What later steps needed of what one policy took."""

from collections.abc import Mapping, Sequence

from tenure.engine.policies import UNBOUNDED
from tenure.lab.audit.page.data import VERDICTS, named_needs
from tenure.lab.audit.page.detail import Detail
from tenure.lab.audit.page.figures import count
from tenure.lab.audit.page.markup import Html, el, join, line
from tenure.lab.audit.page.session import Place
from tenure.lab.audit.page.tables import Cell, Column, figure, table, text
from tenure.lab.audit.report import Harm, Run


def needs_section(run: Run, place: Place, number: int, detail: Detail) -> Html:
    """Counts, and the needs that are listed."""
    harms = run.harms
    if run.policy == UNBOUNDED:
        return el("p", "Not judged: what the recorded agent took away itself, it went on without.", class_="none")
    if not harms.lost + harms.routed + harms.visible:
        return el("p", "None: no later step used anything that had left.", class_="none")
    listed = sorted(named_needs(run, detail.listed), key=lambda named: VERDICTS.index(named[1].line.verdict))
    here = f"{place.id}/{place.policies[number]}"
    told = listed[: detail.needs]
    columns = [
        Column(name="", class_="verdict"),
        Column(name="what was needed", class_="words"),
        Column(name="form", class_="slim"),
        Column(name="category"),
        Column(name="at call", class_="n slim", sort=""),
        Column(name="held by"),
        Column(name="left in commit", class_="n slim"),
    ]
    rows = [_need_row(harm, f"{here}/{name}") for name, harm in told]
    unlisted = f" {harms.more:,} more are counted and not listed." if harms.more else ""
    return join(
        [
            el(
                "div",
                _counts("kind", harms.by_kind),
                _counts("category", harms.by_category),
                class_="counts",
            ),
            el("div", class_="filters js"),
            el(
                "div",
                table(
                    f"The first {len(told)} of {count(len(listed), 'listed need')}.{unlisted}",
                    columns,
                    rows,
                    ids=[f"{here}/{name}" for name, _ in told],
                    fold=False,
                    title=True,
                ),
                class_="needs",
            ),
        ]
    )


def _counts(what: str, counted: Mapping[str, Mapping[str, int]]) -> Html:
    """Needs by kind or category."""
    columns = [Column(name=what), *(Column(name=verdict, class_="n", swatch=f"v-{verdict}") for verdict in VERDICTS)]
    rows = [
        [
            text(name.replace("-", " "), 60, name=True),
            *(figure(f"{by.get(verdict, 0):,}", by.get(verdict, 0)) for verdict in VERDICTS),
        ]
        for name, by in sorted(counted.items(), key=lambda item: (-item[1].get("lost", 0), -item[1].get("routed", 0), item[0]))
    ]
    return table(f"Needs by {what}", columns, rows, fold=False)


def _need_row(harm: Harm, link: str) -> Sequence[Cell]:
    needed = harm.line
    return [
        Cell(shown=el("b", needed.verdict, class_=f"tag v-{needed.verdict}"), value=str(VERDICTS.index(needed.verdict))),
        Cell(shown=el("a", line(needed.text, 140), href=f"#{link}", class_="clip mono"), is_name=True),
        text(needed.form, 20),
        text(needed.category.replace("-", " "), 40),
        figure(f"{needed.call:,}", needed.call),
        text(needed.objects[-1] if needed.objects else f"entry:{needed.held[-1][0]}" if needed.held else "", 60, mono=True),
        figure(str(needed.commit), needed.commit),
    ]
