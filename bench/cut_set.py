"""Recorded sessions at a few cuts each, and what their later steps wanted: read once, kept in a folder of pickles, so that an experiment takes minutes.

An owner (a folder of the corpus) gives at most so many sessions, picked by the hash of their names, so that none outweighs the others.
"""

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path

import msgspec

from tenure.apis.rules import rules_for
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.meter.tokens import o200k, weigh
from tenure.engine.record.entry import Draft, Entry, Role, ToolCall, ToolResult
from tenure.errors import InputError
from tenure.lab import harm
from tenure.lab.cuts import LEAST_TOKENS, places
from tenure.lab.harm.holdings import of_entry
from tenure.lab.harm.watch import Uses, uses_of
from tenure.lab.loading import load, source

SUFFIXES = (".jsonl", ".json", ".md", ".traj", ".eval", ".xz", ".gz", ".zst")
NOT_SESSIONS = ("marks", "LICENSES")
CODE = sha256(b"".join(path.read_bytes() for path in sorted(Path(harm.__file__).parent.glob("*.py")))).hexdigest()[
    :8
]  # of the detector


@dataclass(frozen=True)
class CachedSession:
    """A session as every cut of it needs it."""

    owner: str
    path: str
    tenant: str
    model: str
    entries: Sequence[Entry]
    uses: Uses


@dataclass(frozen=True)
class CutGround:
    """A session at a cut. `session` moves on with the next one."""

    whole: CachedSession
    session: Session
    number: int


def sessions(folder: Path, cache: Path, *, most: int, only: set[str] | None = None) -> Iterator[CachedSession]:
    """At most `most` sessions of each owner, by the hashes of their names; only those of the names `only`."""
    cache.mkdir(parents=True, exist_ok=True)
    owners: dict[str, list[Path]] = {}
    for path in folder.rglob("*"):
        owner = path.relative_to(folder).parts[0]
        if path.suffix in SUFFIXES and path.parent != folder and owner not in NOT_SESSIONS:
            owners.setdefault(owner, []).append(path)
    for owner, paths in sorted(owners.items()):
        for path in sorted(paths, key=lambda path: sha256(path.name.encode()).digest())[:most]:
            if only is not None and path.name.partition(".")[0] not in only:
                continue
            kept = cache / f"{owner}.{path.name}.{CODE}.pickle"
            if not kept.exists():
                kept.write_bytes(pickle.dumps(read(owner, path)))
            found = pickle.loads(kept.read_bytes())
            if found is not None:
                yield found


def read(owner: str, path: Path) -> CachedSession | None:
    """A session with all that is known of its future; None of one that cannot be read or is too short to be cut."""
    try:
        one = source(str(path))
        loaded = load([one], o200k())
    except InputError as error:
        print(error)
        return None
    if not places(loaded.entries):
        return None
    messages = [of_entry(entry, loaded.index) for entry in loaded.entries]
    return CachedSession(
        owner,
        str(path),
        one.tenant(),
        next(iter(loaded.models), ""),
        loaded.entries,
        uses_of(messages),
    )


def grounds(whole: CachedSession, points: int) -> Iterator[CutGround]:
    """The session at each of its cuts."""
    at = places(whole.entries, points)
    rules = rules_for("", whole.model, "")
    setup = Setup(budget=Budget(window=10**9), rules=rules, policy=None, tenant=whole.tenant)
    session = Session(
        setup, weigh=partial(weigh, tokenizer=o200k(), media=rules.media), count=o200k(), read=whole.entries.__getitem__
    )
    for entry in whole.entries:
        if entry.n in at and session.view.tokens >= LEAST_TOKENS:
            yield CutGround(whole, session, at[entry.n])
        session.follow(entry)


def marked(whole: CachedSession, marks: Path) -> CachedSession:
    """The session with the delimiter calls that a file says its agent would have made, each answered; cuts stay at the same replies."""
    calls: dict[int, list[dict[str, object]]] = {}
    for line in marks.read_text().splitlines():
        mark = msgspec.json.decode(line)
        calls.setdefault(mark["call"], []).extend(mark["calls"])
    rules = rules_for("", whole.model, "")
    setup = Setup(budget=Budget(window=10**9), rules=rules, policy=None, tenant=whole.tenant)
    entries: list[Entry] = []
    session = Session(setup, weigh=partial(weigh, tokenizer=o200k(), media=rules.media), count=o200k(), read=lambda n: entries[n])
    reply = 0
    for entry in whole.entries:
        blocks, answers = list(entry.blocks), []
        if entry.role is Role.ASSISTANT:
            for number, arguments in enumerate(calls.get(reply, ())):
                call_id = f"mark-{reply}-{number}"
                place = next((n for n, block in enumerate(blocks) if isinstance(block, ToolCall)), len(blocks))
                blocks.insert(
                    place, ToolCall(call_id=call_id, name="delimiter", arguments=msgspec.json.encode(arguments).decode())
                )
                answers.append(ToolResult(call_id=call_id, text="ok"))
            reply += 1
        drafts = [Draft(role=entry.role, blocks=tuple(blocks), at=entry.at, model=entry.model)]
        if answers:
            drafts.append(Draft(role=Role.TOOL, blocks=tuple(answers), at=entry.at))
        for draft in drafts:
            entries += session.append(draft).entries
    messages = [of_entry(entry, session.index) for entry in entries]
    return replace(whole, entries=tuple(entries), uses=uses_of(messages))
