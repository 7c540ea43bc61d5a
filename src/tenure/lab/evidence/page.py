"""Pages as Markdown: words, tables, figures, and the command that makes them again. Pure; one way to write each kind of number."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from tenure.engine.meter.figures import ASSUMED
from tenure.lab.intervals import wilson

MINUS: Final = "\u2212"
NOTHING: Final = "–"


class Drawn(Struct, frozen=True):
    """A figure: the name of its file, without ending, what it shows in a few words, and its SVG."""

    name: str
    shows: str
    svg: str


class Table(Struct, frozen=True, kw_only=True):
    """Rows of words; a column whose head begins with `:` holds words, all others numbers."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


class Goal(Struct, frozen=True, kw_only=True):
    """One of issue 5's goals for the default policy, and what was measured."""

    says: str
    found: str
    is_met: bool


class Section(Struct, frozen=True, kw_only=True):
    """One question with what was measured; `lead` is the one sentence that the index shows."""

    name: str  # of its page, and of `--only`
    title: str
    lead: str
    shows: str  # what it shows and what it does not, in plain words
    parts: tuple[Drawn | Table | str, ...]  # in order; words are paragraphs
    rows: bytes = b""  # JSON lines from which the tables can be recomputed
    goals: tuple[Goal, ...] = ()


def page(section: Section, command: str) -> str:
    """A section as a page of its own."""
    parts = [f"# {section.title}", section.lead, section.shows, f"    {command}"]
    for part in section.parts:
        parts += _told(part)
    if section.goals:
        parts.append(f"### Goals\n\n{goals(section.goals)}")
    if section.rows:
        parts.append(f"Rows: [{section.name}.jsonl]({section.name}.jsonl).")
    parts.append("[All evidence](README.md)")
    return "\n\n".join(parts) + "\n"


def _told(part: Drawn | Table | str) -> list[str]:
    match part:
        case str():
            return [part]
        case Drawn():
            return [f"![{part.shows}]({part.name}.svg)"]
        case Table():
            return [f"### {part.title}", table(part.head, part.rows), *([part.note] if part.note else [])]


def goals(found: Sequence[Goal]) -> str:
    """Goals as a table."""
    rows = [(goal.says, goal.found, "yes" if goal.is_met else "no") for goal in found]
    return table((":goal", ":measured", ":met"), rows)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    rule = ["---" if name.startswith(":") else "---:" for name in head]
    names = [name.removeprefix(":") for name in head]
    return "\n".join("| " + " | ".join(map(cell, line)) + " |" for line in (names, rule, *rows))


def cell(words: str) -> str:
    """Words as a cell holds them: nothing in them ends it, and no file's name is taken for markup."""
    plain = "".join(sign if sign.isprintable() else "\ufffd" for sign in words)
    return plain.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def count(value: int) -> str:
    """A whole number."""
    return f"{value:,}"


def several(value: int, one: str) -> str:
    """A count with what is counted."""
    return f"{value:,} {one}" if value == 1 else f"{value:,} {one}s"


def decimal(value: float, digits: int = 2) -> str:
    """A number with that many decimals."""
    return signed(f"{value:,.{digits}f}")


def percent(share: float, digits: int = 0) -> str:
    """A share from 0 to 1."""
    return signed(f"{share * 100:.{digits}f} %")


def change(now: float, before: float) -> str:
    """How much more or less `now` is than `before`."""
    if not before:
        return NOTHING
    text = f"{(now / before - 1) * 100:+.0f} %"
    return "±0 %" if text in ("+0 %", "-0 %") else signed(text)


def usd(amount: float, *, assumed: bool = False) -> str:
    """An amount of money."""
    return f"{ASSUMED * assumed}${amount:,.2f}"


def tokens(value: int | None) -> str:
    """A budget in a few characters; none is uncapped."""
    if value is None:
        return "uncapped"
    return f"{value / 1000:g}k" if value >= 1000 else str(value)


def shared(hits: int, of: int) -> str:
    """A counted share with Wilson's 95 % interval."""
    if not of:
        return NOTHING
    found = wilson(hits, of)
    return f"{percent(hits / of)} ({found.low * 100:.0f}–{found.high * 100:.0f})"


def signed(text: str) -> str:
    """With a minus that is one."""
    return text.replace("-", MINUS)
