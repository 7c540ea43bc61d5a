"""The pages of the evidence: each section is a template with its queries and charts, over the events of all sessions. Pure but for `write`."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

import tenure
from tenure.engine.meter.figures import several
from tenure.errors import StoreError
from tenure.lab.evidence.measure import CEILING, MARKS, PRUNE, SUBJECT, SWEPT, TOGETHER, CorpusEvents, Label, ceilings_of
from tenure.lab.intervals import wilson
from tenure.lab.kept import appearing
from tenure.lab.protocols.runs import USUAL
from tenure.lab.protocols.workload import RULES
from tenure.lab.query import Events, columns_of
from tenure.lab.report import charts
from tenure.lab.report.charts import Chart
from tenure.lab.report.template import asking, environment, table
from tenure.lab.spread import version_of
from tenure.lab.validation import CAUSES

MADE: Final = "<!-- made by `tenure evidence`: do not edit -->\n"
INDEX: Final = "README.md"
ROWS_MOST: Final = 1_000_000  # bytes of one file of rows; larger ones are not kept beside the pages
# What every page says of its sessions.
LACKS: Final = (
    "What these sessions lack: none was recorded with a mark, since their agents knew no `delimiter`. So rows of `cwl` and `cwl-paper` judge steps in order of age, and `pi-cwl`,"
    " which evicts marked episodes and nothing else, does nothing. [marks](marks.md) compares sessions with marks that a language model added; `graph` gains nothing by them there."
)

# In the order of the index: what each section needs to be run beside the profiles, and the table without rows of which there is nothing to show.
SECTIONS: Final[Mapping[str, tuple[tuple[str, ...], str]]] = MappingProxyType(
    {
        "cuts": (("cuts",), "cuts"),
        "whole": (("alone",), "runs"),
        "accumulating": (("alone", TOGETHER), "conversations"),
        "marks": ((MARKS,), "marked_runs"),
        "sweep": (("alone", TOGETHER), "swept"),
        "bounds": (("needs",), "curves"),
        "bill": (("billed",), "bills"),
        "detector": ((), "labels"),
        "sessions": ((), "profiles"),
    }
)
SWEPT_UNDER: Final[Mapping[str, Sequence[int]]] = MappingProxyType({name: ceilings_of(name) for name in SWEPT})
HARMS: Final = (("routed", "one recall away"), ("lost", "lost"))
# The parts of a bill, as fields of it, in the order in which a bar shows them.
PARTS: Final = (
    ("read", "cache read", "b.cache_read.usd"),
    ("write", "write", "b.cache_write.usd"),
    ("uncached", "uncached", "b.uncached.usd"),
    ("output", "output", "b.output.usd"),
    ("recall", "recalls", "b.recall.usd"),
    ("helpers", "helpers", "b.helpers_usd"),
)


Query = Callable[..., list[dict[str, Any]]]


class Drawn(Struct, frozen=True):
    """A chart of a section, its file's name without ending, and its title."""

    name: str
    title: str
    chart: Chart


class EvidenceSection(Struct, kw_only=True):
    """One question with what was measured, as its template writes it. Mutable while it is written."""

    name: str  # of its page, and of `--only`
    title: str = ""
    lead: str = ""  # the one sentence that the index shows
    text: str = ""  # of the page
    figures: list[Drawn] = []
    goals: list[tuple[str, str, bool]] = []  # what is wanted of the default policy, what was measured, whether it is met
    rows: bytes = b""  # JSON lines from which the tables can be made again


def events_of(found: CorpusEvents, swept: Mapping[str, Sequence[int]] = SWEPT_UNDER) -> Events:
    """The events of a corpus with the tables that sections ask beside them; to be closed. `swept`: policies by name, and their ceilings."""
    events = Events.of(found.events)
    rules = [(str(rule.workload), rule.says, number) for number, rule in enumerate(RULES)]
    events.add("rules", {"name": "varchar", "says": "varchar", "place": "int"}, [*rules, ("hard", "", len(rules))])
    events.add("members", {"name": "varchar", "tool": "varchar"}, list(found.tools.items()))
    causes = [(cause, says, number) for number, (cause, says) in enumerate(CAUSES.items())]
    events.add("causes", {"cause": "varchar", "says": "varchar", "place": "int"}, causes)
    ceilings = [(policy, ceiling) for policy, each in swept.items() for ceiling in each]
    events.add("ceilings", {"policy": "varchar", "ceiling": "bigint"}, ceilings)
    events.add("labels", columns_of(Label), [astuple(label) for label in found.labels])
    for script in ("views.sql", "claims.sql"):
        events.script(files("tenure.lab.evidence").joinpath(script).read_text(encoding="utf-8"))
    return events


def sections(events: Events, names: Sequence[str], how: str = "", made: str = "") -> list[EvidenceSection]:
    """Those of these sections of which there is anything to show. `how`: the options that choose what is measured; `made`: what of."""
    filled = [name for name in names if events.ask(f"select 1 from {SECTIONS[name][1]} limit 1").rows]  # noqa: S608 - our own names
    return [_written(events, name, how, made) for name in filled]


def _written(events: Events, name: str, how: str, made: str) -> EvidenceSection:
    section = EvidenceSection(name=name)
    ask = asking(events)
    query = ask["query"]

    def figure(place: str, chart: Chart) -> str:
        title = chart["title"]["text"]
        section.figures.append(Drawn(place, title, chart))
        return f"![{title}]({place}.svg)"

    def goal(says: str, measured: str, is_met: bool) -> str:
        section.goals.append((says, measured, is_met))
        return ""

    def rows(sql: str) -> str:
        section.rows += b"".join(str(line).encode() + b"\n" for (line,) in events.ask(sql).rows)
        return ""

    def views(sql: str) -> str:
        events.script(sql)
        return ""

    def columns(sql: str, cell: str, kind: str, **values: object) -> str:
        """A column for each group of sessions, with its size in its head."""
        groups = query(sql, **values)
        return "".join(f", {cell.replace('%s', group['name'])} as '{group['name']} ({group['size']})|{kind}'" for group in groups)

    def each(sql: str, names: Sequence[str]) -> str:
        return "".join(sql.replace("%s", name) for name in names)

    def bill_panel(sql: str, top: float | None = None) -> dict[str, object]:
        """The parts that any of the bills has."""
        parts = [part for part in PARTS if query(f"select 1 from ({sql}) where {part[2]} <> 0 limit 1")]  # noqa: S608 - our own names
        return {
            "title": "bill, USD",
            "kind": "bar",
            "fields": [ink for ink, _, _ in parts],
            "format": ",.0f",
            "inks": [(ink, words) for ink, words, _ in parts],
            "domain": None if top is None else (0, top),
            "weight": 1.25,
        }

    values: dict[str, Any] = {
        **ask,
        "figure": figure,
        "goal": goal,
        "rows": rows,
        "views": views,
        "columns": columns,
        "bill_panel": bill_panel,
        "bars": partial(_bars, query),
        "lines": partial(_lines, query),
        "each": each,
        "several": several,
        "harms": HARMS,
        "prune": PRUNE,
        "ceiling": CEILING,
        "subject": SUBJECT,
    }
    module: Any = environment("tenure.lab.evidence").get_template(f"{name}.md").make_module(values)
    section.title, section.lead = module.title, module.lead
    section.text = "\n\n".join((module.shows, f"    {command(name, how)}", made, LACKS, str(module)))
    return section


def _bars(query: Query, title: str, note: str, panels: Sequence[Mapping[str, Any]], sql: str, **values: object) -> Chart:
    """A chart of rows; a counted share among its columns stands as its value with Wilson's interval, and a bill as its parts."""
    lines = [{key: part for name, value in row.items() for key, part in _plain(name, value)} for row in query(sql, **values)]
    return charts.rows(title, note, [msgspec.convert(dict(panel), charts.Panel) for panel in panels], lines)


def _plain(name: str, value: Any) -> Iterator[tuple[str, object]]:
    if name == "bill":
        yield from ((ink, _part(value, path)) for ink, _, path in PARTS)
    elif isinstance(value, Mapping):
        counted = msgspec.convert(value, dict[str, int])
        hits, of = counted["hits"], counted["of"]
        if of:
            between = wilson(hits, of)
            yield from ((f"{name}_share", hits / of), (f"{name}_low", between.low), (f"{name}_high", between.high))
    else:
        yield name, value


def _part(bill: Any, path: str) -> float:
    for name in path.split(".")[1:]:
        bill = bill[name]
    return bill


def _lines(query: Query, title: str, note: str, plots: Sequence[Mapping[str, Any]]) -> Chart:
    """A chart of curves; the column `whose` names the tone of each line."""
    made: list[charts.Plot] = []
    for plot in plots:
        points = query(plot["sql"])
        inks: dict[str, tuple[str, int]] = {}
        for point in points:
            ink = point.pop("whose")
            inks.setdefault(point["name"], (ink, sum(other == ink for other, _ in inks.values())))
        axes = {edge: msgspec.convert(plot[edge], charts.Axis) for edge in ("x", "y")}
        made.append(charts.Plot(title=plot.get("title", ""), points=points, inks=inks, **axes))
    return charts.curves(title, note, made)


def page(section: EvidenceSection) -> str:
    """A section as a page of its own."""
    parts = [f"# {section.title}", section.lead, section.text]
    if section.goals:
        parts.append(f"### Goals\n\n{goals(section.goals)}")
    if section.rows:
        parts.append(f"Rows: [{section.name}.jsonl]({section.name}.jsonl).")
    return re.sub(r"\n{3,}", "\n\n", "\n\n".join([*parts, "[All evidence](README.md)"])) + "\n"


def goals(found: Sequence[tuple[str, str, bool]]) -> str:
    """Goals as a table."""
    return table(("goal|text", "measured|text", "met|answer"), found)


def command(name: str, how: str = "") -> str:
    """What makes a section again."""
    return f"tenure evidence FOLDER{how} --only {name} --out docs/evidence"


def options_of(found: CorpusEvents) -> str:
    """The options that chose what was measured."""
    return (f" {found.corpus.cap}" if found.corpus.cap else "") + (" --marks MARKS" if found.marks else "")


def made_from(found: CorpusEvents) -> str:
    """Of what a page was made: corpus, sample and code."""
    sample = f", a sample by hash of {found.corpus.found:,} (`{found.corpus.cap}` of each owner)" if found.corpus.found else ""
    return f"Corpus `{found.corpus.sha256[:12]}`: {several(len(found.profiles), 'session')}{sample}; code `{found.code[:12]}`."


def index(found: CorpusEvents, made: Sequence[EvidenceSection]) -> str:
    """The page that leads to all others."""
    every = [goal for section in made for goal in section.goals]
    failed = [(failed.name, f"{failed.kind}: {failed.reason}") for failed in found.failed]
    text = (
        environment("tenure.lab.evidence")
        .get_template(INDEX)
        .render(
            profiles=found.profiles,
            agents=len(set(found.tools.values())),
            tokens=sum(each.tokens for each in found.profiles),
            again=len(found.corpus.again),
            corpus=found.corpus.sha256,
            code=found.code,
            tenure=tenure.__version__,
            prices=version_of("genai-prices") or "unknown",
            usual=USUAL,
            goals=goals(every) if every else "",
            sections=made,
            command=partial(command, how=options_of(found)),
            sampled=found.corpus.found,
            cap=found.corpus.cap,
            lacks=LACKS,
            failed=table(("what|text", "why|text"), failed) if failed else "",
        )
    )
    return re.sub(r"\n{3,}", "\n\n", text.strip()) + "\n"


def files_of(found: CorpusEvents, names: Sequence[str], *, is_whole: bool) -> dict[str, bytes]:
    """What is to be written, by file name; the index only when all sections were made."""
    with events_of(found) as events:
        made = sections(events, names, options_of(found), made_from(found))
    written: dict[str, bytes] = {}
    for section in made:
        written |= dict(_of_section(section))
    if is_whole:
        written[INDEX] = (MADE + index(found, made)).encode()
    return written


def _of_section(section: EvidenceSection) -> Iterator[tuple[str, bytes]]:
    if len(section.rows) > ROWS_MOST:
        size = f"The rows that these tables come from take {len(section.rows) / 1e6:.1f} MB and are not kept here."
        section = msgspec.structs.replace(section, rows=b"", text=f"{section.text}\n\n{size}")
    yield f"{section.name}.md", (MADE + page(section)).encode()
    for drawn in section.figures:
        yield f"{drawn.name}.svg", (MADE + charts.svg(drawn.chart)).encode()
    if section.rows:
        yield f"{section.name}.jsonl", section.rows


def write(folder: Path, files: dict[str, bytes], *, is_whole: bool) -> None:
    """Put them there; with `is_whole`, what an earlier run made and this one did not goes. Raises StoreError when the disk will not have them."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, body in files.items():
            with appearing(folder / name) as file:
                file.write(body)
                Path(file.name).chmod(0o644)
        for path in _left_over(folder, files) if is_whole else ():
            path.unlink()
    except OSError as error:
        raise StoreError(f"{error.filename or folder}: cannot be written ({error.strerror or error})") from error


def _left_over(folder: Path, files: dict[str, bytes]) -> Iterator[Path]:
    """Files of ours from an earlier run: pages and figures that say so, and rows that go with a page."""
    for path in sorted(folder.iterdir()):
        if path.name in files:
            continue
        if path.suffix == ".jsonl" and path.stem in SECTIONS:
            yield path
        elif path.suffix in (".md", ".svg"):
            with suppress(OSError), path.open("rb") as file:
                if file.read(len(MADE.encode())) == MADE.encode():
                    yield path
