"""One policy over one session: the window call by call, its commits, its needs.

A script makes these lists complete, sortable and searchable; without one the largest commits and the first needs are still told.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from tenure.engine.policies import UNBOUNDED
from tenure.lab.audit.page.detail import Detail
from tenure.lab.audit.page.figures import count, rounded, tokens
from tenure.lab.audit.page.layers import Layers, Stacks, taken
from tenure.lab.audit.page.markup import Html, el, join, line
from tenure.lab.audit.page.needs import needs_section
from tenure.lab.audit.page.session import Place, name_of
from tenure.lab.audit.page.tables import Cell, Column, figure, table, text
from tenure.lab.audit.page.timeline import timeline
from tenure.lab.audit.report import Audit, Removal, Run

_NAMED: Final = 3  # objects of a commit
_SETTINGS: Final = 40
_VIOLATIONS: Final = 3


def runs_section(audit: Audit, place: Place, stacks: Stacks, detail: Detail) -> Html:
    """All policies, one of which is shown at a time where a script can do that."""
    tabs = [el("a", name_of(run.policy), href=f"#{place.id}/{place.policies[number]}") for number, run in enumerate(audit.runs)]
    own = len(audit.window.compactions)
    runs = [_run(run, place, number, stacks, detail, own) for number, run in enumerate(audit.runs)]
    return el(
        "section",
        place.heading("The window, call by call"),
        el("nav", *tabs, class_="tabs", aria_label="Policies"),
        *runs,
        class_="runs",
    )


def _run(run: Run, place: Place, number: int, stacks: Stacks, detail: Detail, own: int) -> Html:
    """`own`: how often the recorded agent changed its window itself."""
    name = name_of(run.policy)
    return el(
        "article",
        place.heading(name, 2),
        el("p", *_words(run, own), class_="lead"),
        el(
            "figure",
            timeline(run, stacks.runs[number], stacks, name),
            _readout(stacks.runs[number], stacks),
            el(
                "p",
                "Point at the drawing, or use the arrow keys on it: ← → go from call to call, with Shift from commit to commit.",
                class_="event js",
            ),
            class_="timeline",
        ),
        _gone(run, stacks),
        _settings(run),
        place.heading("Commits", 3),
        _commits(run, place, number, run.commits_made + own, detail.commits),
        place.heading("Needs", 3),
        needs_section(run, place, number, detail),
        id=f"{place.id}/{place.policies[number]}",
        class_="run",
    )


def _words(run: Run, own: int) -> Iterator[str]:
    if run.policy == UNBOUNDED:
        made = f"it took something away itself {_times(own)}" if own else "nothing left it"
        yield f"The window that the recorded agent had; {made}. Its largest request has {tokens(run.peak)} tokens. "
    else:
        limits = (("target", run.budget.target), ("ceiling", run.budget.ceiling), ("floor", run.budget.floor))
        told = ", ".join(f"a {name} of {rounded(value)}" for name, value in limits if value is not None)
        yield f"Under {told or 'the window of the model'}, {count(run.commits_made, 'commit')} took {tokens(run.left)} tokens (o200k). "
        yield f"The largest request has {tokens(run.peak)} tokens. "
        if own:
            yield f"What the recorded agent took away itself, {_times(own)}, is gone here too. "
    if run.unmet:
        held = ", ".join(f"{line(what.replace('_', ' '), 40)} {tokens(size)}" for what, size in run.unmet_held_by.items() if size)
        yield f"The limit could not be kept at {count(run.unmet, 'call')}; at the first of them it was held by {held or 'the tail'}. "
    for violation in run.violations[:_VIOLATIONS]:
        yield f"Broken: {line(violation, 200)}. "
    if len(run.violations) > _VIOLATIONS:
        yield f"{len(run.violations) - _VIOLATIONS:,} more laws are broken. "


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"


def _gone(run: Run, stacks: Stacks) -> Html | None:
    """What left by kind, in words and colours."""
    bands = {band.name: band for band in stacks.bands}
    told = [(bands[name], size) for name, size in run.evicted.items() if name in bands and size > 0]
    if not told:
        return None
    kinds = [
        el("li", el("i", class_=f"swatch {band.class_}", aria_hidden="true"), f"{band.label} ", el("b", tokens(size)))
        for band, size in told
    ]
    return el("ul", el("li", "Left by kind:"), *kinds, class_="gone")


def _settings(run: Run) -> Html | None:
    """What the policy is set to, for those who ask."""
    told = [(line(name.replace("_", " "), 60), _said(value)) for name, value in islice(run.settings.items(), _SETTINGS)]
    if not told:
        return None
    facts = [el("div", el("dt", name), el("dd", value)) for name, value in told]
    return el("details", el("summary", "Settings"), el("dl", *facts, class_="facts"))


def _said(value: str | float | bool | None) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case _:
            return line(str(value), 60)


def _readout(layers: Layers, stacks: Stacks) -> Html:
    """The kinds with their colours and their tokens: at the largest request, until a script says another."""
    row = layers.values[layers.fullest] if layers.calls else tuple(0 for _ in stacks.bands)
    recorded = (
        sum(stacks.recorded.values[stacks.recorded.at(layers.calls[layers.fullest])])
        if layers.calls and stacks.recorded.calls
        else 0
    )
    where = f"call {layers.calls[layers.fullest]:,}, the largest" if layers.calls else "no call"
    kinds = [
        el(
            "tr",
            el("th", el("i", class_=f"swatch {band.class_}", aria_hidden="true"), band.label, scope="row"),
            el("td", tokens(size)),
        )
        for band, size in reversed(list(zip(stacks.bands, row, strict=True)))
    ]
    sums = [
        el("tr", el("th", "request", scope="row"), el("td", tokens(sum(row))), class_="sum"),
        el(
            "tr",
            el("th", el("i", class_="swatch outlined", aria_hidden="true"), "as recorded", scope="row"),
            el("td", tokens(recorded)),
            class_="recorded",
        ),
    ]
    return el("table", el("caption", where), el("tbody", *kinds, *sums), class_="readout")


def _commits(run: Run, place: Place, number: int, every: int, most: int) -> Html:
    """`most` of them, the largest; `every`: how many commits there are, the recorded agent's own among them."""
    if not run.commits:
        return el("p", "None: nothing left the window.", class_="none")
    told = sorted(sorted(run.commits, key=taken, reverse=True)[:most], key=lambda commit: commit.commit)
    here = f"{place.id}/{place.policies[number]}"
    columns = [
        Column(name="commit", class_="n slim", sort="ascending"),
        Column(name="before call", class_="n slim"),
        Column(name="moment", class_="slim"),
        Column(name="why", class_="words"),
        Column(name="left", class_="n"),
        Column(name="window", class_="n"),
        Column(name="largest objects", class_="words"),
    ]
    rows = [
        [
            Cell(shown=el("a", commit.commit, href=f"#{here}/commit-{commit.commit}"), value=str(commit.commit), class_="n"),
            figure(f"{commit.before_call:,}", commit.before_call),
            text(commit.moment + (", forced" if commit.forced else ""), 40),
            text(commit.why, 160),
            figure(tokens(taken(commit)), taken(commit)),
            figure(_from_to(commit), commit.tokens_before * commit.ratio),
            text(", ".join(_named(commit)), 200, mono=True),
        ]
        for commit in told
    ]
    title = "Commits" if len(told) >= every else f"The {len(told)} largest of {every:,} commits"
    drawn = table(title, columns, rows, title=len(told) < every, ids=[f"{here}/commit-{commit.commit}" for commit in told])
    own_tokens = any(commit.ratio != 1 for commit in told)
    words = "Tokens are the provider's own, as in the drawing and the limits." if own_tokens else None
    return join([el("p", words, class_="lead"), drawn]) if words else drawn


def _from_to(commit: Removal) -> str:
    """The window before and after, in provider tokens."""
    return f"{tokens(round(commit.tokens_before * commit.ratio))} → {tokens(round(commit.tokens_after * commit.ratio))}"


def _named(commit: Removal) -> Iterator[str]:
    for gone in commit.objects[:_NAMED]:
        yield f"{line(gone.object, 48)} {tokens(round(gone.tokens * commit.ratio))}"
    rest = len(commit.objects[_NAMED:]) + commit.more
    if rest:
        yield f"{rest:,} more"
