"""Values to rows and back."""

import hashlib
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import msgspec

from tenure.engine.meter.ledger import Spent
from tenure.engine.record.entry import Block, Entry, Role
from tenure.engine.view.edit import Commit, edits_v1_to_v2
from tenure.engine.view.guard import Hold
from tenure.errors import Damaged, InputError
from tenure.store.contract import commit_id
from tenure.store.records import Conversation, Observed

Row = tuple[Any, ...]
Values = dict[str, Any]

_encode = msgspec.json.encode
_blocks = msgspec.json.Decoder(tuple[Block, ...])
_tokens = msgspec.json.Decoder(tuple[int, ...])
_roles = {str(role): role for role in Role}
_ENTRY: Final = (
    *((int,), (str,), (str,), (str,), (str,), (str,), (str,), (str,), (int,), (int,)),
    *((bytes,), (bytes, type(None)), (bytes,)),
)  # the types of its cells

SHOWN_CHARS: Final = 120  # of what a cell holds

R = TypeVar("R", Observed, Spent)


def conversation_values(conversation: Conversation) -> Values:
    """The row of a conversation; no parent is NULL, which a foreign key accepts."""
    return msgspec.structs.asdict(conversation) | {"parent": conversation.parent or None}


def conversation_of(row: Row) -> Conversation:
    """The inverse of `conversation_values`; Damaged when it cannot be read."""
    with _reading(f"conversation {row[0]!r}"):
        values = dict(zip(Conversation.__struct_fields__, row, strict=True))
        return msgspec.convert(values | {"parent": values["parent"] or ""}, Conversation)


def entry_values(conversation_id: str, entry: Entry) -> Values:
    """The row of an entry. Blocks that are the payload, as in every neutral entry, are not stored twice."""
    blocks = _encode(entry.blocks)
    return {
        "conversation": conversation_id,
        "n": entry.n,
        "id": entry.id,
        "parent": entry.parent,
        "sha256": entry.sha256,
        "role": entry.role.value,
        "dialect": entry.dialect,
        "at": entry.at,
        "model": entry.model,
        "source": entry.source,
        "line": entry.line,
        "tokens": _encode(entry.tokens),
        "blocks": None if blocks == entry.payload else blocks,
        "payload": entry.payload,
    }


def entry_of(row: Row) -> Entry:
    """The inverse of `entry_values`; Damaged when the row was damaged."""
    n, id_, parent, sha256, role, dialect, at, model, source, line, tokens, blocks, payload = row
    with _reading(f"entry {n}"):
        if wrong := [value for value, type_ in zip(row, _ENTRY, strict=True) if type(value) not in type_]:
            raise TypeError(f"a cell holds {wrong[0]!r}")
        held = _blocks.decode(payload if blocks is None else blocks)
        if hashlib.sha256(payload).hexdigest() != sha256:
            raise ValueError(f"its payload does not match its hash {sha256!r}")
        return Entry(
            n=n,
            id=id_,
            parent=parent,
            sha256=sha256,
            role=_roles[role],
            blocks=held,
            tokens=_weights(tokens, len(held)),
            dialect=dialect,
            payload=payload,
            at=at,
            model=model,
            source=source,
            line=line,
        )


def _weights(tokens: bytes, blocks: int) -> tuple[int, ...]:
    weights = _tokens.decode(tokens)
    if len(weights) != blocks or min(weights, default=0) < 0:
        raise ValueError(f"{blocks} blocks with the weights {weights}")
    return weights


class _StoredCommit(Commit, frozen=True, kw_only=True):
    """A commit as it is stored. Version 1 carries no number, and keeps what an insert stands for in the first letter of its key."""

    version: int = 1


_commit = msgspec.json.Decoder(_StoredCommit)


def _fields(commit: Commit) -> Values:
    return {name: getattr(commit, name) for name in Commit.__struct_fields__}


def _unversioned(stored: _StoredCommit) -> Commit:
    values = _fields(stored)
    if stored.version == 1:
        values["edits"] = edits_v1_to_v2(stored.edits)
    return Commit(**values)


def commit_values(conversation_id: str, commits: Iterable[Commit], parent: str) -> list[Values]:
    """The rows of commits that follow the one whose hash is `parent`."""
    values: list[Values] = []
    for commit in commits:
        body = _encode(_StoredCommit(version=2, **_fields(commit)))
        parent = commit_id(parent, body)
        values.append({"conversation": conversation_id, "n": commit.n, "body": body, "id": parent})
    return values


def commit_of(row: Row, parent: str | None) -> Commit:
    """The commit of a row that follows the one whose hash is `parent`, None where that is lost; Damaged when it is not as it was written."""
    n, body, id_ = row
    with _reading(f"commit {n}"):
        if parent is not None and commit_id(parent, body) != id_:
            raise ValueError(f"it does not match its hash {id_!r}")
        commit = _commit.decode(body)
        if commit.n != n:
            raise ValueError(f"it says that it is commit {commit.n}")
        return _unversioned(commit)


def observed_values(conversation_id: str, observed: Observed) -> Values:
    """The row of a usage report."""
    usage = msgspec.structs.asdict(observed.usage)
    said = {"model": observed.model, "at": observed.at, "usd": observed.usd}
    return {"conversation": conversation_id, "n": observed.n} | said | usage


def observed_of(row: Row) -> Observed:
    """The inverse of `observed_values`; Damaged when the row was damaged."""
    n, uncached, cache_write, cache_read, output, model, at, usd = row
    with _reading(f"the usage of entry {n}"):
        usage = {"uncached": uncached, "cache_write": cache_write, "cache_read": cache_read, "output": output}
        return _counted(msgspec.convert({"n": n, "usage": usage, "model": model, "at": at, "usd": usd}, Observed))


def aside_values(conversation_id: str, spent: Spent) -> Values:
    """The row of a helper model's call."""
    said = {"role": spent.role, "model": spent.model, "usd": spent.usd, "at": spent.at}
    return {"conversation": conversation_id} | said | msgspec.structs.asdict(spent.usage)


def aside_of(row: Row) -> Spent:
    """The inverse of `aside_values`; Damaged when the row was damaged, or a newer version knows a role that this one does not."""
    role, model, uncached, cache_write, cache_read, output, usd, at = row
    with _reading("a call of a helper model"):
        usage = {"uncached": uncached, "cache_write": cache_write, "cache_read": cache_read, "output": output}
        return _counted(msgspec.convert({"role": role, "model": model, "usage": usage, "usd": usd, "at": at}, Spent))


def hold_values(conversation_id: str, hold: Hold) -> Values:
    """The row of a hold."""
    return msgspec.structs.asdict(hold) | {"conversation": conversation_id}


def hold_of(row: Row) -> Hold:
    """The inverse of `hold_values`; Damaged when the row was damaged."""
    kind, object_, reason = row
    with _reading(f"the hold of {object_!r}"):
        return msgspec.convert({"kind": kind, "object": object_, "reason": reason}, Hold)


def _counted(report: R) -> R:
    if min(msgspec.structs.astuple(report.usage)) < 0:
        raise ValueError("a negative number of tokens")
    return report


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "…"


@contextmanager
def _reading(what: str) -> Generator[None]:
    try:
        yield
    except (msgspec.MsgspecError, InputError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise Damaged(f"{what} cannot be read back ({_short(str(error))})") from error
