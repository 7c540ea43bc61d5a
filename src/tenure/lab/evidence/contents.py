"""The sections there are, what each of them needs to be run, and the index that leads to them. Pure."""

from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from msgspec import Struct

import tenure
from tenure.lab.events import IsolatedRun
from tenure.lab.evidence.gathered import TOGETHER, Gathered
from tenure.lab.evidence.jobs import SWEPT
from tenure.lab.evidence.page import Drawn, Goal, Section, Table, count, goals, several, table
from tenure.lab.evidence.sections import accumulating, bill, bounds, cuts, detector, sessions, sweep, whole
from tenure.lab.protocols.claims import tested
from tenure.lab.protocols.conditions import USUAL
from tenure.lab.protocols.sweep import CEILINGS, SweepRow, accumulated_row, isolated_row


class Kind(Struct, frozen=True, kw_only=True):
    """A section before it is made."""

    name: str
    needs: tuple[str, ...]  # what must have been run, beside the profiles
    made: Callable[[Gathered], Section | None]  # None where there is nothing to show


def _cuts(found: Gathered) -> Section | None:
    return cuts.section(found.cuts, sessions.groups_of(found.profiles)) if found.cuts else None


def _whole(found: Gathered) -> Section | None:
    return whole.section(found.alone, sessions.groups_of(found.profiles)) if found.alone else None


def _accumulating(found: Gathered) -> Section | None:
    free = [run for run in found.alone if run.policy == "none"]
    return accumulating.section(found.together, free) if found.conversations else None


def _sweep(found: Gathered) -> Section | None:
    rows = (*_isolated_rows(found.alone), *(accumulated_row(runs) for runs in found.conversations))
    return sweep.section(rows, tested(rows), SWEPT) if rows else None


def _isolated_rows(runs: Iterable[IsolatedRun]) -> list[SweepRow]:
    groups: dict[tuple[str, int | None], list[IsolatedRun]] = {}
    for run in runs:
        if run.budget.target is None and (run.policy in SWEPT or run.policy == "none") and run.budget.ceiling in CEILINGS:
            groups.setdefault((run.policy, run.budget.ceiling), []).append(run)
    return [isolated_row(found, ceiling) for (_, ceiling), found in groups.items()]


def _bounds(found: Gathered) -> Section | None:
    return bounds.section(found.needs, sessions.groups_of(found.profiles)) if found.needs else None


def _bill(found: Gathered) -> Section | None:
    return bill.section(found.billed, found.tools) if found.billed else None


def _detector(found: Gathered) -> Section | None:
    return detector.section(found.labels) if found.labels else None


def _sessions(found: Gathered) -> Section | None:
    return sessions.section(found.profiles, found.tools) if found.profiles else None


# In the order of the index.
KINDS: Final = (
    Kind(name=cuts.NAME, needs=("cuts",), made=_cuts),
    Kind(name=whole.NAME, needs=("alone",), made=_whole),
    Kind(name=accumulating.NAME, needs=("alone", TOGETHER), made=_accumulating),
    Kind(name=sweep.NAME, needs=("alone", TOGETHER), made=_sweep),
    Kind(name=bounds.NAME, needs=("needs",), made=_bounds),
    Kind(name=bill.NAME, needs=("billed",), made=_bill),
    Kind(name=detector.NAME, needs=(), made=_detector),
    Kind(name=sessions.NAME, needs=(), made=_sessions),
)
NAMES: Final = tuple(kind.name for kind in KINDS)


def command(name: str) -> str:
    """What makes a section again."""
    return f"tenure evidence FOLDER --only {name} --out docs/evidence"


def index(found: Gathered, made: Sequence[Section]) -> str:
    """The page that leads to all others."""
    parts = [
        "# Evidence",
        "What every policy here, and every published rule of others, does to recorded sessions: what it saves, what later steps missed, and how far "
        "the best is from what can be known. No model is asked; every figure can be made again, to the byte, from the same sessions:",
        "    make evidence CORPUS=FOLDER",
        "One machine does it by itself; `ENGINE=ray` spreads it over a cluster, whose nodes need this package in the same version and the sessions "
        "under the same path. What an interrupted run has finished is used again. A section by itself, and where it goes:",
        "    tenure evidence FOLDER --only cuts --out docs/evidence",
        _of_what(found),
    ]
    every: list[Goal] = [goal for section in made for goal in section.goals]
    if every:
        parts += ["## Goals of the default policy", goals(every)]
    for section in made:
        parts += [f"## [{section.title}]({section.name}.md)", section.lead]
        figure = next((part for part in section.parts if isinstance(part, Drawn)), None)
        parts += [f"[![{figure.shows}]({figure.name}.svg)]({section.name}.md)"] if figure else []
        parts.append(f"`{command(section.name)}`")
    if found.failed:
        rows = [(failed.name, f"{failed.kind}: {failed.reason}") for failed in found.failed]
        parts += ["## What could not be run", table((":what", ":why"), rows)]
    return "\n\n".join(parts) + "\n"


def _of_what(found: Gathered) -> str:
    tokens = sum(each.tokens for each in found.profiles)
    agents = len(set(found.tools.values()))
    again = f" ({len(found.corpus.again)} more are copies of these)" if found.corpus.again else ""
    return (
        f"Made from {several(len(found.profiles), 'session')} of {several(agents, 'agent')}, {count(tokens)} o200k tokens{again}; corpus `{found.corpus.sha256[:12]}`, "
        f"code `{found.code[:12]}`, tenure {tenure.__version__}, prices of {USUAL.model} as in genai-prices {_version('genai-prices')}, "
        f"{count(USUAL.head_tokens)} tokens of system prompt and tools before every conversation."
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def figures(section: Section) -> list[Drawn]:
    """Those of a section."""
    return [part for part in section.parts if isinstance(part, Drawn)]


def tables(section: Section) -> list[Table]:
    """Those of a section."""
    return [part for part in section.parts if isinstance(part, Table)]
