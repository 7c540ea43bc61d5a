"""The sessions of one user on this machine, to be looked through by somebody who may name only those (an edge).

A session has a short id, made of its tool and the hash of its address. What is asked for is bounded: sessions, seconds, tokens.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import Final

from msgspec import Struct
from rich.console import Console

from tenure.cli.audit_screen import screen
from tenure.cli.forget import forgettable, forgotten
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.tokens import Tokenizer
from tenure.engine.policies import DEFAULT, policy_named
from tenure.engine.record.index import Span
from tenure.engine.record.query import CAP, Query, RecallFacts
from tenure.engine.record.recall import LEAST, answer
from tenure.engine.record.search import Nearest
from tenure.engine.record.visible import visible
from tenure.errors import InputError
from tenure.lab.audit.audit import AuditRequest, audit
from tenure.lab.audit.report import Audit
from tenure.lab.loading import Loaded, load, own_address, own_store, source, sources_of, spills_of
from tenure.lab.replay import Options
from tenure.lab.why.explain import explain
from tenure.lab.why.past import kept, moment, replayed
from tenure.lab.why.telling import facts, rows, title
from tenure.logs.places.first_sight import Glimpse, glimpse
from tenure.logs.places.here import Surroundings
from tenure.logs.places.known_places import FoundSession, below, newest_first, usual_places
from tenure.store.spills import Spills

ANY: Final = "*"  # every project
NEWEST: Final = 20  # sessions that a list or a search looks at, unless asked for more
MOST: Final = 200
SEARCH_S: Final = 20.0  # after which no further session is opened
SEARCHED_BYTES: Final = (
    64 * 2**20
)  # of one session in a search through many: a larger one is named and left for a search of its own
EACH: Final = 1_200  # o200k tokens that one session's hits may take
MOST_CAP: Final = 20_000  # o200k tokens of one answer, whatever is asked for
WORDS: Final = 160  # characters of what a session is about
_ID: Final = 8  # hex digits


class ShelfRow(Struct, frozen=True, kw_only=True):
    """A session on the shelf, and what its start says of it."""

    id: str
    found: FoundSession
    about: Glimpse


class Shelf:
    """The sessions that may be asked for: those in the places of the tools on this machine, and those below `folders`.

    `current` is the folder whose sessions are meant where none is named. Mutable only in what it remembers of sessions it has read.
    """

    def __init__(
        self,
        where: Surroundings,
        folders: Sequence[Path],
        count: Tokenizer,
        now: Callable[[], float],
        nearest: Nearest | None = None,
    ) -> None:
        self._nearest = nearest
        self._where, self._folders, self._count, self._now = where, tuple(folders), count, now
        self._seen: dict[tuple[str, float], Glimpse | None] = {}
        self._loaded: dict[tuple[str, float], Loaded] = {}

    def rows(self, project: str = "", tool: str = "") -> Iterator[ShelfRow]:
        """Sessions, newest first: of the current folder's project, of another folder's, or of all with `ANY`."""
        folder = str(self._where.current) if project in ("", ".") else project
        for found in self._all():
            about = self._about(found)
            if about is None or tool not in ("", about.tool):
                continue
            if folder == ANY or about.project == folder or Path(folder) in Path(about.project or "/").parents:
                yield ShelfRow(id=_id(about.tool, found.address), found=found, about=about)

    def listing(self, project: str = "", tool: str = "", newest: int = NEWEST) -> str:
        """The newest sessions, two lines each: id, when and where; what it is about."""
        lines: list[str] = []
        more = 0
        for row in self.rows(project, tool):
            if len(lines) >= _between(newest, 1, MOST):
                more += 1
                continue
            size = f"{row.found.size:,} bytes" if row.found.size else f"{row.found.messages:,} messages"
            when = row.found.modified.isoformat(timespec="minutes").replace("+00:00", "Z")
            words = " ".join(visible(row.about.words[: 4 * WORDS]).split())[:WORDS]
            lines.append(f"{row.id}  {when}  {size}  {visible(row.about.project)}\n  {words or '(no words of a person)'}")
        if not lines:
            raise InputError(
                "project", f"no session of {project or self._where.current}", f"another folder, or {ANY!r} for every project"
            )
        return "\n".join([*lines, *([f"{more:,} older ones are not listed"] if more else [])])

    def named(self, session: str) -> ShelfRow:
        """A session by its id, by the beginning of it, or by its address; empty means the newest of the current project. Raises InputError."""
        wanted = session.strip()
        if not wanted:
            if (newest := next(self.rows(), None)) is None:
                raise InputError("session", f"no session of {self._where.current}", "an id as `sessions` lists it")
            return newest
        near = [row for row in self.rows(ANY) if row.id.startswith(wanted) or row.found.address == wanted]
        if len(near) == 1 or (near and near[0].id == wanted):
            return near[0]
        several = ", ".join(row.id for row in near[:4])
        raise InputError("session", f"{wanted!r} names {several or 'none'}", "one id as `sessions` lists it")

    def recall(self, query: Query, session: str = "", cap: int = CAP) -> str:
        """What a handle names in a session, or where that session speaks of something, at most `cap` tokens of it. Raises InputError."""
        row = self.named(session)
        return f"[{row.id}]\n{self._answer(row, query, self._cap(cap))}"

    def search(self, query: Query, project: str = "", tool: str = "", newest: int = NEWEST, cap: int = CAP) -> str:
        """Where sessions speak of something, newest session first, with the handles that `recall` takes. Raises InputError."""
        if not query.searches:
            raise InputError("search", "nothing to look for", "words, a path or a pattern")
        until, room = self._now() + SEARCH_S, self._cap(cap)
        parts: list[str] = []
        passed: list[str] = []
        looked = 0
        for row in self.rows(project, tool):
            if looked >= _between(newest, 1, MOST) or self._now() > until or room < LEAST:
                passed.append("older ones were not looked through: ask for a tool, a project, or more of them")
                break
            if row.found.size > SEARCHED_BYTES:
                passed.append(f"{row.id} is too large to search among others: `recall` with this session searches it")
                continue
            looked += 1
            try:
                text = self._answer(row, query, min(EACH, room))
            except InputError:  # nothing in it matches, or it cannot be read: `recall` of that session says which
                continue
            parts.append(f"[{row.id}] {' '.join(visible(row.about.words[: 4 * WORDS]).split())[:WORDS]}\n{text}")
            room -= self._count(parts[-1])
        if not parts:
            raise InputError("search", f"nothing in {looked} sessions matches", f"other words, or project={ANY!r}")
        return "\n\n".join([*parts, f"[{looked} sessions looked through{''.join('; ' + each for each in passed[:3])}]"])

    def why(self, object_: str, session: str = "", limit: int = 0) -> str:
        """Why an object stands in the window as it does, as `tenure why` says it. Raises InputError."""
        row = self.named(session)
        budget = Budget(ceiling=limit) if limit else Budget()
        own = own_address(row.found.address)
        if own is not None:
            with own_store(*own) as (store, sheet):
                past = kept(store, sheet, policy_named(DEFAULT))
        else:
            past = replayed([source(row.found.address)], Options(budget=budget, policy=policy_named(DEFAULT)), self._count)
        account = explain(moment(past, self._count), object_, row.id)
        lines = [f"{each.label:<10}{each.text}" for each in rows(account, _WIDTH)]
        return visible("\n".join([f"{account.thing.handle}  {title(account, _WIDTH)}", facts(account), *lines]))

    def audit(self, session: str = "", limit: int = 0) -> str:
        """Where a session's window went, and what our policy would have saved and missed, as `tenure audit` says it. Raises InputError."""
        row = self.named(session)
        asked = AuditRequest(policies=(DEFAULT,), budget=Budget(ceiling=limit) if limit else Budget())
        report = next(line for line in audit(source(row.found.address), asked, self._count) if isinstance(line, Audit))
        out = StringIO()
        Console(file=out, width=_WIDTH, color_system=None, highlight=False, markup=False, emoji=False).print(
            screen(report, _WIDTH)
        )
        return visible("\n".join(line.rstrip() for line in out.getvalue().splitlines()))

    def forgettable(self, session: str) -> str:
        """What a person is asked before a conversation is deleted. Raises InputError for what is not in a store of our own."""
        if not session.strip():
            raise InputError("session", "none", "the id of a conversation in a store of Tenure's own")
        return forgettable(self.named(session).found.address)[0]

    def forget(self, session: str) -> str:
        """Delete a conversation of a store of our own for good; what was deleted, in a sentence."""
        _, path, id_ = forgettable(self.named(session).found.address)
        return forgotten(path, id_)

    def _answer(self, row: ShelfRow, query: Query, cap: int) -> str:
        address = row.found.address
        loaded = self._load(row)
        opened = Spills.among([spills_of(address)])
        text = answer(
            loaded.index,
            loaded.read,
            query,
            count=self._count,
            cap=cap,
            now=self._now,
            opened=opened,
            sources=lambda: sources_of(address),
            nearest=self._nearest,
        )
        return visible(text)

    def _load(self, row: ShelfRow) -> Loaded:
        key = row.found.address, row.found.modified.timestamp()
        if key not in self._loaded:
            while len(self._loaded) > 1:
                del self._loaded[next(iter(self._loaded))]
            loaded = self._loaded[key] = load([source(row.found.address)], _rough)
            own = (span for span in loaded.index.spans if _is_own(span, loaded))  # else every search would find itself first
            loaded.index.recalls.update((span.ordinal, RecallFacts(span.object, ())) for span in own)
        return self._loaded[key]

    def _all(self) -> list[FoundSession]:
        more = below(self._folders) if self._folders else []
        found = {each.address: each for each in [*usual_places(self._where), *more]}
        return newest_first(found.values())

    def _about(self, found: FoundSession) -> Glimpse | None:
        key = found.address, found.modified.timestamp()
        if key not in self._seen:
            self._seen[key] = glimpse(found)
        return self._seen[key]

    def _cap(self, cap: int) -> int:
        return _between(cap or CAP, LEAST, MOST_CAP)


_WIDTH: Final = 110  # columns of tables
_OURS: Final = "sessions|search|recall|audit|why"
_OWN: Final = re.compile(rf"tenure[_.-]+(?:{_OURS})$")  # our tools, as clients name them: mcp__tenure__search
_CODEX: Final = re.compile(rf"(?:exec|{_OURS})$")
_OWN_IN_CODEX: Final = re.compile(rb'\btools\.mcp__tenure__|"namespace":\s*"mcp__tenure"')


def _is_own(span: Span, loaded: Loaded) -> bool:
    """Whether a call is one of our tools': by its name; in Codex by the namespace beside the name, or by the program that calls it."""
    if not _CODEX.match(span.tool):
        return _OWN.search(span.tool) is not None
    return _OWN_IN_CODEX.search(loaded.read(span.call[0]).payload) is not None


def _rough(text: str) -> int:
    """A weight that is enough to rank texts by: an answer is counted exactly."""
    return len(text) // 4 + 1


def _id(tool: str, address: str) -> str:
    return f"{tool}-{sha256(address.encode('utf-8', 'surrogateescape')).hexdigest()[:_ID]}"


def _between(number: int, least: int, most: int) -> int:
    return max(least, min(number, most))
