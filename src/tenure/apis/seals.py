"""Signatures that check themselves, so that a pure function can tell what a provider's own keys would.

A signature covers its text, and under `prefix_bound` what came before it. The id of a call says which thinking led to it; the id of an
item which reasoning item it belongs to.
"""

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

_SEAL: Final = re.compile(r"^tenure\.([0-9a-f]{16})\.([0-9a-f]{16}|-)$")
_SEALED_CALL: Final = re.compile(r"^toolu_t([0-9a-f]{8})_")
_ITEM_OF: Final = re.compile(r"^(?:msg|fc|ctc)_(r[0-9a-z]+)_\d+$")


def seal(text: str, prefix: Sequence[str] | None = None) -> str:
    """The signature of thinking `text`, bound to what came before it when `prefix` is given."""
    return f"tenure.{_short(text)}.{_short(*prefix) if prefix is not None else '-'}"


def is_ours(signature: str) -> bool:
    """Whether the signature is of this kind and so can be checked."""
    return _SEAL.match(signature) is not None


def seals_text(signature: str, text: str) -> bool:
    """Whether a signature of ours covers this text."""
    match = _SEAL.match(signature)
    return match is not None and match[1] == _short(text)


def seals_prefix(signature: str, prefix: Sequence[str]) -> bool:
    """Whether a signature of ours may stand after `prefix`: it is not bound, or bound to just that."""
    match = _SEAL.match(signature)
    return match is not None and match[2] in ("-", _short(*prefix))


def sealed_call_id(signature: str, n: int) -> str:
    """An id for the `n`-th call that follows thinking with this signature."""
    return f"toolu_t{_short(signature)[:8]}_{n}"


def led_to(signature: str, call_id: str) -> bool:
    """Whether thinking with this signature led to the call."""
    match = _SEALED_CALL.match(call_id)
    return match is not None and match[1] == _short(signature)[:8]


def needs_thinking(call_id: str) -> bool:
    """Whether some thinking led to the call."""
    return _SEALED_CALL.match(call_id) is not None


def reasoning_of(item_id: str) -> str:
    """The id of the reasoning item that an item belongs to; empty when it belongs to none."""
    match = _ITEM_OF.match(item_id)
    return f"rs_{match[1]}" if match else ""


def _short(*texts: str) -> str:
    return sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
