"""Values to rows and back. Promise: nothing is lost; what is read equals what was written."""

from typing import Any

import msgspec

from tenure.errors import StoreError
from tenure.meter.ledger import CallRole, Spent
from tenure.record.entry import Block, Entry, Role, Usage
from tenure.store.records import Conversation, Observed
from tenure.view.edit import Commit
from tenure.view.guard import Hold

Row = tuple[Any, ...]
Values = dict[str, Any]

_encode = msgspec.json.encode
_blocks = msgspec.json.Decoder(tuple[Block, ...])
_tokens = msgspec.json.Decoder(tuple[int, ...])
_commit = msgspec.json.Decoder(Commit)
_roles = {str(role): role for role in Role}
_call_role = msgspec.json.Decoder(CallRole)


def conversation_values(conversation: Conversation) -> Values:
    """The row of a conversation; no parent is NULL, which a foreign key accepts."""
    return msgspec.structs.asdict(conversation) | {"parent": conversation.parent or None}


def conversation_of(row: Row) -> Conversation:
    """The inverse of `conversation_values`."""
    conversation = Conversation(**dict(zip(Conversation.__struct_fields__, row, strict=True)))
    return conversation if conversation.parent else msgspec.structs.replace(conversation, parent="")


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
    """The inverse of `entry_values`; StoreError when the row was damaged."""
    n, id_, parent, sha256, role, dialect, at, model, source, line, tokens, blocks, payload = row
    try:
        return Entry(
            n=n,
            id=id_,
            parent=parent,
            sha256=sha256,
            role=_roles[role],
            blocks=_blocks.decode(payload if blocks is None else blocks),
            tokens=_tokens.decode(tokens),
            dialect=dialect,
            payload=payload,
            at=at,
            model=model,
            source=source,
            line=line,
        )
    except (msgspec.MsgspecError, KeyError, TypeError, UnicodeError) as error:
        raise StoreError(f"entry {n} cannot be read back: {error}") from error


def commit_values(conversation_id: str, commit: Commit) -> Values:
    """The row of a commit."""
    return {"conversation": conversation_id, "n": commit.n, "body": _encode(commit)}


def commit_of(row: Row) -> Commit:
    """The inverse of `commit_values`; StoreError when the row was damaged."""
    try:
        return _commit.decode(row[0])
    except (msgspec.MsgspecError, TypeError, UnicodeError) as error:
        raise StoreError(f"a commit cannot be read back: {error}") from error


def observed_values(conversation_id: str, observed: Observed) -> Values:
    """The row of a usage report."""
    usage = msgspec.structs.asdict(observed.usage)
    said = {"model": observed.model, "at": observed.at, "usd": observed.usd}
    return {"conversation": conversation_id, "n": observed.n} | said | usage


def observed_of(row: Row) -> Observed:
    """The inverse of `observed_values`."""
    n, uncached, cache_write, cache_read, output, model, at, usd = row
    usage = Usage(uncached=uncached, cache_write=cache_write, cache_read=cache_read, output=output)
    return Observed(n=n, usage=usage, model=model, at=at, usd=usd)


def aside_values(conversation_id: str, spent: Spent) -> Values:
    """The row of a helper model's call."""
    said = {"role": spent.role, "model": spent.model, "usd": spent.usd, "at": spent.at}
    return {"conversation": conversation_id} | said | msgspec.structs.asdict(spent.usage)


def aside_of(row: Row) -> Spent:
    """The inverse of `aside_values`; StoreError when a newer version knows a role that this one does not."""
    role, model, uncached, cache_write, cache_read, output, usd, at = row
    usage = Usage(uncached=uncached, cache_write=cache_write, cache_read=cache_read, output=output)
    try:
        return Spent(role=_call_role.decode(_encode(role)), model=model, usage=usage, usd=usd, at=at)
    except msgspec.MsgspecError as error:
        raise StoreError(f"a call of a helper model cannot be read back: {error}") from error


def hold_values(conversation_id: str, hold: Hold) -> Values:
    """The row of a hold."""
    return msgspec.structs.asdict(hold) | {"conversation": conversation_id}


def hold_of(row: Row) -> Hold:
    """The inverse of `hold_values`."""
    kind, object_, reason = row
    return Hold(kind=kind, object=object_, reason=reason)
