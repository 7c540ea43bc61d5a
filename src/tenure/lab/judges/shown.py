"""What of a case a question shows, as lines.

Session text stands between labels that bear a sign which it cannot hold, so that nothing in it passes for a label.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from types import MappingProxyType
from typing import Final

from tenure.lab.judges.case import INSERTED, Kind, Piece
from tenure.lab.judges.fitting import Shown

SIGN: Final = 8  # characters of a sign, or as many times as many
NO_CALLS: Final[Mapping[int, int]] = MappingProxyType({})


def sign_of(texts: Iterable[str]) -> str:
    """Characters that stand in none of the texts: from their hash, as many as it takes."""
    held = list(texts)
    digest = sha256("\0".join(held).encode("utf-8", "surrogatepass")).hexdigest()
    size = SIGN
    while size < len(digest) and any(digest[:size] in text for text in held):
        size += SIGN
    return digest[:size]


def told(sign: str, side: str, found: Shown, calls: Mapping[int, int] = NO_CALLS) -> Iterator[str]:
    """A side as lines: each piece behind its label, each run of missing ones as one line. `calls`: their numbers, by the answering entry."""
    missing: list[Piece] = []
    for piece, text in zip(found.pieces, found.texts, strict=True):
        if text is None:
            missing.append(piece)
            continue
        if missing:
            yield _gap(sign, side, missing)
            missing = []
        yield f"[{sign} {side} {_label(piece, calls)}]\n{plain(text)}"
    if missing:
        yield _gap(sign, side, missing)


def _label(piece: Piece, calls: Mapping[int, int]) -> str:
    """Such as `entry 12: result of read:3@41aa (error)`."""
    who = _WHO[piece.kind].format(piece.name or "an unknown call")
    call = f"call {calls[piece.entry]}, " if piece.entry in calls else ""
    place = "between entries" if piece.block == INSERTED else f"entry {piece.entry}"
    part = ", what of it is not shown any more" if piece.is_part else ""
    return f"{call}{place}: {who}{part}{' (error)' if piece.error else ''}"


_WHO: Final[dict[Kind, str]] = {
    "system": "system prompt",
    "human": "the person",
    "words": "the agent",
    "thinking": "the agent, thinking",
    "call": "call {}",
    "result": "result of {}",
    "note": "note of the program",
}


def plain(text: str) -> str:
    """What no provider refuses."""
    return text.replace("\0", "\ufffd")


def _gap(sign: str, side: str, missing: Sequence[Piece]) -> str:
    tokens = sum(piece.tokens for piece in missing)
    blocks = f"{len(missing):,} blocks of {tokens:,} tokens are" if len(missing) > 1 else f"1 block of {tokens:,} tokens is"
    return f"[{sign} {side}: {blocks} left out of this question, for room]"
