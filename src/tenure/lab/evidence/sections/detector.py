"""How often the detector behind every figure here is right: its findings read by a person, and steps read whole for what it did not find."""

from collections import Counter
from collections.abc import Sequence
from typing import Final, Literal

import msgspec
from msgspec import Struct

from tenure.errors import InputError
from tenure.lab.evidence.figures.rows import Cells, Panel, Point, Row, rows
from tenure.lab.evidence.page import NOTHING, Drawn, Section, Table, count, percent, shared
from tenure.lab.intervals import wilson

NAME: Final = "detector"
SHOWS: Final = (
    "A reader judged a sample of what the detector calls missed (*precision*: how much of it the step did need and could not see) and read whole "
    "steps after removals for what it did not find (*recall*). Rounds were read in order; each one measures the detector as it was then, on "
    "sessions that earlier rounds had not touched, so the last is the nearest to the detector of today. What it does not show: one reader, English "
    "sessions, mostly of software work. The labels hold hashes, no text."
)


class Label(Struct, frozen=True, kw_only=True):
    """What a reader said of one need or of one step; `bench/label_harm.py` draws and shows them."""

    round: int
    label: Literal["needed", "not", "step"]
    kind: str = ""
    why: str = ""
    seen: int = 0  # of a step: needs that the reader saw
    found: int = 0  # and those of them that the detector had found


class _Counted(Struct, frozen=True):
    hits: int
    of: int


def labels_of(lines: bytes, where: str) -> tuple[Label, ...]:
    """The labels of a file. Raises InputError with the line that is none."""
    found: list[Label] = []
    for number, line in enumerate(lines.splitlines(), 1):
        try:
            found.append(msgspec.json.decode(line, type=Label))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{where}:{number}", f"no label ({error})", "a line of bench/label_harm.py") from error
    return tuple(found)


def section(labels: Sequence[Label]) -> Section:
    """The section; at least one label."""
    needs = [label for label in labels if label.label != "step"]
    steps = [label for label in labels if label.label == "step"]
    rounds = sorted({label.round for label in labels})
    return Section(
        name=NAME,
        title="How often the detector is right",
        lead=f"{count(len(needs))} findings and {count(len(steps))} whole steps, read by hand in {len(rounds)} rounds.",
        shows=SHOWS,
        parts=(_figure(labels, rounds), _table(labels, rounds), _by_kind(needs), _reasons(needs)),
    )


def _precision(labels: Sequence[Label]) -> _Counted:
    needs = [label for label in labels if label.label != "step"]
    return _Counted(sum(label.label == "needed" for label in needs), len(needs))


def _recall(labels: Sequence[Label]) -> _Counted:
    return _Counted(sum(label.found for label in labels), sum(label.seen for label in labels))


def _figure(labels: Sequence[Label], rounds: Sequence[int]) -> Drawn:
    def cells(mine: Sequence[Label]) -> Cells:
        return _point(_precision(mine)), _point(_recall(mine))

    lines = [
        Row(
            name=f"round {number}",
            whose="ours" if number == rounds[-1] else "peer",
            cells=cells([label for label in labels if label.round == number]),
        )
        for number in rounds
    ]
    shows = "Precision and recall of the detector, by round"
    note = "Read by hand; lines are Wilson 95 % intervals. Whole steps, which recall needs, were read in some rounds only."
    panels = (
        Panel(title="of what it finds, needed", say=percent, top=1.0),
        Panel(title="of what was needed, found", say=percent, top=1.0),
    )
    return Drawn("detector", shows, rows(shows, note, panels, lines))


def _point(found: _Counted) -> Point | None:
    if not found.of:
        return None
    sure = wilson(found.hits, found.of)
    return Point(found.hits / found.of, sure.low, sure.high)


def _table(labels: Sequence[Label], rounds: Sequence[int]) -> Table:
    def row(name: str, mine: Sequence[Label]) -> tuple[str, ...]:
        precision, recall = _precision(mine), _recall(mine)
        return (name, *_told(precision), *_told(recall), count(sum(label.label == "step" for label in mine)))

    return Table(
        title="By round",
        head=(":round", "needed", "findings read", "precision (95 %)", "found", "needs seen", "recall (95 %)", "steps read"),
        rows=tuple(row(str(number), [label for label in labels if label.round == number]) for number in rounds),
    )


def _told(found: _Counted) -> tuple[str, str, str]:
    return (count(found.hits), count(found.of), shared(found.hits, found.of)) if found.of else (NOTHING, NOTHING, NOTHING)


def _by_kind(needs: Sequence[Label]) -> Table:
    kinds = sorted({need.kind for need in needs})
    return Table(
        title="Precision by kind of need, all rounds",
        head=(":kind", "needed", "findings read", "precision (95 %)"),
        rows=tuple((kind, *_told(_precision([need for need in needs if need.kind == kind]))) for kind in kinds),
    )


def _reasons(needs: Sequence[Label]) -> Table:
    why = Counter(need.why for need in needs if need.label == "not")
    return Table(
        title="Why a finding was not needed, all rounds",
        head=(":reason", "findings"),
        rows=tuple((name, count(number)) for name, number in sorted(why.items(), key=lambda item: (-item[1], item[0]))),
        note="*known*: the model knows it without having seen it; *habit*, *idiom*, *common*, *wording*, *form*, *option*, *everywhere*: it would be "
        "written so anyway; *derivable*: it follows from what is still shown.",
    )
