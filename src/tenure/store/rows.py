"""Values to rows and back."""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from hashlib import sha256 as sha256_of
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import asdict

from tenure.engine.meter.ledger import Spent
from tenure.engine.record.entry import Block, Entry, Role, Usage
from tenure.engine.view.edit import Commit, edits_v1_to_v2
from tenure.engine.view.guard import Hold
from tenure.errors import Damaged, InputError
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

_USAGE: Final = Usage.__struct_fields__

R = TypeVar("R", Observed, Spent)


def conversation_values(conversation: Conversation) -> Values:
    """The row of a conversation; no parent is NULL, which a foreign key accepts."""
    return asdict(conversation) | {"parent": conversation.parent or None}


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
        if sha256_of(payload).hexdigest() != sha256:
            raise ValueError(f"its payload does not match its hash {sha256!r}")
        weights = _tokens.decode(tokens)
        if len(weights) != len(held) or min(weights, default=0) < 0:
            raise ValueError(f"{len(held)} blocks with the weights {weights}")
        return Entry(
            n=n,
            id=id_,
            parent=parent,
            sha256=sha256,
            role=_roles[role],
            blocks=held,
            tokens=weights,
            dialect=dialect,
            payload=payload,
            at=at,
            model=model,
            source=source,
            line=line,
        )


def commit_id(parent: str, body: bytes) -> str:
    """The hash of a commit as it is stored, after the one whose hash is `parent`; the first follows an empty text."""
    return sha256_of(parent.encode() + b"\0" + body).hexdigest()


class _StoredCommit(Commit, frozen=True, kw_only=True):
    """A commit as it is stored. Version 1 carries no number, and keeps what an insert stands for in the first letter of its key."""

    version: int = 1


_commit = msgspec.json.Decoder(_StoredCommit)


def _fields(commit: Commit) -> Values:
    return {name: getattr(commit, name) for name in Commit.__struct_fields__}


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
        values = _fields(commit)
        if commit.version == 1:
            values["edits"] = edits_v1_to_v2(commit.edits)
        return Commit(**values)


def observed_values(conversation_id: str, observed: Observed) -> Values:
    """The row of a usage report."""
    return {"conversation": conversation_id} | _flat(observed)


def observed_of(row: Row) -> Observed:
    """The inverse of `observed_values`; Damaged when the row was damaged."""
    with _reading(f"the usage of entry {row[0]}"):
        return _counted(dict(zip(("n", *_USAGE, "model", "at", "usd"), row, strict=True)), Observed)


def aside_values(conversation_id: str, spent: Spent) -> Values:
    """The row of a helper model's call."""
    return {"conversation": conversation_id} | _flat(spent)


def aside_of(row: Row) -> Spent:
    """The inverse of `aside_values`; Damaged when the row was damaged, or a newer version knows a role that this one does not."""
    with _reading("a call of a helper model"):
        return _counted(dict(zip(("role", "model", *_USAGE, "usd", "at"), row, strict=True)), Spent)


def _flat(report: Observed | Spent) -> Values:
    """A report's own fields and those of its usage."""
    values = asdict(report)
    return values | asdict(values.pop("usage"))


def _counted(values: Values, kind: type[R]) -> R:
    usage = {name: values.pop(name) for name in _USAGE}
    report = msgspec.convert({**values, "usage": usage}, kind)
    if min(usage.values()) < 0:
        raise ValueError("a negative number of tokens")
    return report


def hold_values(conversation_id: str, hold: Hold) -> Values:
    """The row of a hold."""
    return asdict(hold) | {"conversation": conversation_id}


def hold_of(row: Row) -> Hold:
    """The inverse of `hold_values`; Damaged when the row was damaged."""
    with _reading(f"the hold of {row[1]!r}"):
        return msgspec.convert(dict(zip(("kind", "object", "reason"), row, strict=True)), Hold)


@contextmanager
def _reading(what: str) -> Generator[None]:
    try:
        yield
    except (msgspec.MsgspecError, InputError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        words = str(error)
        shown = words if len(words) <= SHOWN_CHARS else words[:SHOWN_CHARS] + "…"
        raise Damaged(f"{what} cannot be read back ({shown})") from error
