"""`tenure audit`: where the window of recorded sessions went, what each policy would have done to it, and what that costs and loses."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Final

import typer
from msgspec import Struct, field
from msgspec.structs import replace
from rich.console import Console

from tenure.cli import words
from tenure.cli.audit_screen import AuditRow, brief, corpus, name_of, screen, unreadable
from tenure.cli.options import (
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
from tenure.cli.progress import ProgressLine
from tenure.engine.meter.tokens import o200k
from tenure.engine.policies import PEERS, POLICIES, UNBOUNDED, policy_named
from tenure.engine.record.visible import json_of
from tenure.errors import InputError
from tenure.lab.audit.audit import AuditCache, Auditor, AuditRequest
from tenure.lab.audit.report import Audit, AuditLine, AuditOutput, RunLine, Total, UnreadSession, together, total_of
from tenure.lab.events import BudgetLine, CallLine, spelled
from tenure.lab.marks import marks_in
from tenure.logs.places.files import STDIN, open_session
from tenure.logs.places.first_sight import glimpse
from tenure.logs.places.here import Surroundings, here
from tenure.logs.places.known_places import FoundSession, below, usual_places
from tenure.logs.places.stores import store_of

NEWEST: Final = 10  # of the user's own sessions, where none are named
# Beside "none": ours, and the rules that agents in wide use follow, or that were measured in public.
USUAL: Final = (*POLICIES, "observation-masking", "opencode-prune", "clear-tool-uses")
NOWHERE: Final = "no"
BROKEN: Final = 1  # exit codes
UNREAD: Final = 2
INTERRUPTED: Final = 130  # as shells have it
_NAME: Final = 28  # columns of a session's name beside the progress bar


def audit(
    *,
    sessions: Annotated[
        list[str] | None,
        argument("SESSION...", "Session files, stores, or folders of them; - for standard input. Default: your newest sessions."),
    ] = None,
    policy: Annotated[list[str] | None, option("NAME", f"Try this policy; may be repeated. Default: {', '.join(USUAL)}.")] = None,
    every: Annotated[bool, flag("--all", "Try every policy, and every rule of other tools.")] = False,
    newest: Annotated[int, option("N", "Without SESSION: audit this many of your newest sessions.", min=1)] = NEWEST,
    limits: LimitOptions,
    model: PricedAs = "",
    head_tokens: HeadTokens = "",
    marks: MarkFiles = None,
    json: JsonLines = "",
    html: Annotated[str, option("FILE", "Write a self-contained HTML page.")] = "",
    keep: Annotated[str, option("FOLDER", f"Keep finished work here; {NOWHERE!r} keeps none. Default: your cache folder.")] = "",
    fresh: Annotated[bool, flag("--fresh", "Audit again what was kept.")] = False,
    quiet: Quiet = False,
) -> None:
    """Show what filled the window of recorded sessions, and what each policy would have saved and lost.

    An interrupted audit continues where it stopped.

    Exit codes: 0 done, 1 a law was broken or a file could not be written, 2 nothing could be read, 130 interrupted.
    """
    wanted = (*POLICIES, *PEERS) if every else tuple(policy or ()) or USUAL
    for name in wanted:
        policy_named(name)
    read = marks_in(marks) if marks else None
    asked = AuditRequest(
        policies=tuple(name for name in dict.fromkeys(wanted) if name != UNBOUNDED),
        budget=limits.budget(),
        model=model,
        head_tokens=head_of(head_tokens),
        marks=read.sha256 if read is not None else "",
    )
    console = words.screen(stderr=json == STDOUT, quiet=quiet)
    errors = words.screen(stderr=True, quiet=quiet)
    picked = _picked(sessions or (), newest, here())
    if not picked.addresses and not picked.unread:
        raise InputError(
            "audit",
            "no session" + (" below these folders" if sessions else " of any known tool"),
            "one; `tenure sessions` lists those found",
        )
    if sessions is None and picked.older:
        errors.print(f"your {words.several(len(picked.addresses), 'newest session')}; --newest for more of them", style="dim")
    page = _page() if html else None  # what it needs is missing before anything is played, or not at all
    with output(json) as out:
        kept = _kept(keep, errors)
        auditor = Auditor(asked, o200k(), kept=kept, fresh=fresh, out=out, marks=read)
        done = _all(picked, auditor, kept, 1 + len(asked.policies), errors, whole=bool(html) or len(picked.addresses) == 1)
        if out is not None:
            out.write(json_of(done.total) + b"\n")
    if auditor.reused:
        errors.print(f"{words.several(auditor.reused, 'session')} as audited before (--fresh to audit again)", style="dim")
    if page is not None:
        with output(html) as file:
            assert file is not None
            file.write(page(done.audits, done.total.unread).encode())
    if len(done.audits) == 1 and done.total.sessions == 1:
        console.print(screen(done.audits[0], console.width))
    elif done.rows:
        console.print(corpus(done.rows, done.total, BudgetLine.of(asked.budget), console.width))
    if picked.passed_over:
        verb = "holds" if picked.passed_over == 1 else "hold"
        console.print(f"{words.several(picked.passed_over, 'file')} below the folders {verb} no session", style="dim")
    for line in unreadable(done.total.unread):
        words.screen(stderr=True).print(line, soft_wrap=True)
    if any(run.violations for run in done.total.runs):
        raise typer.Exit(BROKEN)
    if not done.total.sessions:
        raise typer.Exit(UNREAD)


def _page() -> Callable[[Sequence[Audit], Sequence[UnreadSession]], str]:
    from tenure.lab.audit.page import page

    return page


class AuditedSessions(Struct, kw_only=True):
    """What is kept of the sessions as they are audited: rows, and whole reports where a page or the only screen wants them."""

    rows: list[AuditRow] = field(default_factory=list[AuditRow])
    audits: list[Audit] = field(default_factory=list[Audit])
    total: Total


def _all(
    picked: "PickedSessions", auditor: Auditor, kept: AuditCache | None, runs: int, errors: Console, *, whole: bool
) -> AuditedSessions:
    """Audit them; of an interruption it is said what is kept."""
    total, unread = Total(), list(picked.unread)
    rows: list[AuditRow] = []
    audits: list[Audit] = []
    try:
        with _AuditProgress(errors, len(picked.addresses), runs) as progress:
            for number, outcome in enumerate(auditor.each(picked.addresses, progress.note), start=1):
                progress.next_session(number)
                if isinstance(outcome, UnreadSession):
                    unread.append(outcome)
                    continue
                total = together(total, total_of(outcome))
                rows.append(brief(outcome))
                audits += [outcome] if whole else []
    except KeyboardInterrupt:
        rest = " and kept: the same command goes on from there" if kept is not None else ", and nothing is kept"
        errors.print(f"interrupted: {len(rows)} of {words.several(len(picked.addresses), 'session')} done{rest}", style="yellow")
        raise typer.Exit(INTERRUPTED) from None
    finally:
        if kept is not None:
            kept.prune()
            for path in kept.damaged:
                errors.print(f"{words.plain(str(path))} was damaged, and its session is audited again", style="yellow")
    return AuditedSessions(rows=rows, audits=audits, total=replace(total, unread=tuple(unread)))


class _AuditProgress(ProgressLine):
    """Which session is audited for which policy, and how far all are. Mutable."""

    def __init__(self, console: Console, sessions: int, runs: int) -> None:
        super().__init__(console, total=sessions * runs)
        self._sessions, self._runs = sessions, runs
        self._session = 0
        self._name = ""
        self._begun = 0  # runs of this session
        self._calls = self._all = 0  # of this run so far, and of each run: known once one is through

    def next_session(self, number: int) -> None:
        """The one of that number, from 0, is next; those before it are done."""
        self._session = number
        self.update(completed=number * self._runs)

    def note(self, line: AuditOutput) -> None:
        """What is being made."""
        match line:
            case AuditLine():
                self._name = words.first_line(name_of(line.source.path), _NAME)
                self._begun = self._calls = self._all = 0
                self._describe("reading")
            case RunLine():
                self._all, self._calls = self._all or self._calls, 0
                self._begun += 1
                self._describe(line.policy)
            case CallLine():
                self._calls += 1
                if self._all:
                    done = self._begun - 1 + self._calls / self._all
                    self.update(completed=self._session * self._runs + done)
            case _:
                return

    def _describe(self, what: str) -> None:
        self.update(description=f"{self._session + 1} of {self._sessions}  {self._name}  {words.plain(what):<19}")


def _kept(folder: str, errors: Console) -> AuditCache | None:
    """Where audits are kept; that they cannot be is said, and nobody is kept from auditing."""
    if folder == NOWHERE:
        return None
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    try:
        return AuditCache(Path(folder) if folder else Path(base) / "tenure" / "audits")
    except OSError as error:
        if folder:
            raise InputError("--keep", f"{folder!r} cannot be written to ({error.strerror or error})", "a folder") from error
        errors.print(f"nothing is kept: {words.plain(str(error))}", style="dim")
        return None


class PickedSessions(Struct, frozen=True, kw_only=True):
    """Addresses in the order in which they are audited."""

    addresses: tuple[str, ...]
    unread: tuple[UnreadSession, ...] = ()  # that are known already to be damaged
    passed_over: int = 0  # files below folders that are no sessions
    older: int = 0  # of the user's own sessions, that were not asked for


def _picked(names: Sequence[str], newest: int, where: Surroundings) -> PickedSessions:
    """What `names` mean: each a session, or a folder of sessions; without any the `newest` of the user's own."""
    if not names:
        found = usual_places(where)
        sessions = list(islice((each for each in found if glimpse(each) is not None), newest))
        older = len(found) - found.index(sessions[-1]) - 1 if sessions else 0
        return PickedSessions(addresses=tuple(each.address for each in sessions), older=older)
    addresses: dict[str, None] = {}
    unread: list[UnreadSession] = []
    passed_over = 0
    for name in names:
        if not _is_folder(name):
            addresses[name] = None
            continue
        for session, why in _sorted_out(below([Path(name)])):
            if why is None:
                addresses[session.address] = None
            elif why:
                unread.append(UnreadSession(path=spelled(session.address), why=why))
            else:
                passed_over += 1
    return PickedSessions(addresses=tuple(addresses), unread=tuple(unread), passed_over=passed_over)


def _is_folder(name: str) -> bool:
    """Whether it is a folder of sessions, and not a session or a store that is one."""
    try:
        path = Path(name)
        return name != STDIN and path.is_dir() and not store_of(path)
    except (OSError, ValueError):
        return False


def _sorted_out(found: Iterable[FoundSession]) -> Iterator[tuple[FoundSession, str | None]]:
    """By address, each with None; or with why it cannot be read; or, of what is no session, with nothing."""
    for each in sorted(found, key=lambda session: session.address):
        if glimpse(each) is not None:
            yield each, None
            continue
        try:
            next(open_session(each.path), b"")
            yield each, ""
        except InputError as error:
            yield each, error.found
