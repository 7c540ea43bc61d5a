"""What headers say between a client, a gateway and an upstream."""

import sys
from collections.abc import Iterable, Mapping
from typing import Final

from tenure.apis.json_text import load
from tenure.apis.reply import fields_of, text_of
from tenure.errors import InputError

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdDecompressor, ZstdError
else:
    from backports.zstd import ZstdDecompressor, ZstdError

TOKEN: Final = "x-tenure-token"  # noqa: S105 - a header's name; the gateway's own, which goes no further
_HOP: Final[frozenset[str]] = frozenset(
    "connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding upgrade host"
    " content-length".split()
)  # of one connection: RFC 9110, section 7.6.1
# By which clients name their sessions: Claude Code, Codex, OpenCode.
_SESSIONS: Final = ("x-claude-code-session-id", "session_id", "session-id", "x-session-affinity", "x-session-id")
TURN: Final = "x-codex-turn-metadata"  # of Codex: what its request is for
_ASIDES: Final = ("prewarm", "compaction")


def forwarded(headers: Iterable[tuple[str, str]], *, managed: bool, changed: bool) -> list[tuple[str, str]]:
    """A client's headers as they go upstream. `managed`: the reply will be read; `changed`: the body is another, and plain."""
    gone = {TOKEN, *_HOP, *(("accept-encoding",) if managed else ()), *(("content-encoding",) if changed else ())}
    kept = [(name, value) for name, value in headers if name.lower() not in gone]
    return [*kept, ("accept-encoding", "identity")] if managed else kept


def returned(headers: Iterable[tuple[str, str]], *, decoded: bool) -> list[tuple[str, str]]:
    """An upstream's headers as the client gets them; `decoded`: the body is unpacked by now, and of another length."""
    unpacked_too = frozenset({"content-length", "content-encoding"} if decoded else ())
    gone = (_HOP - {"content-length"}) | unpacked_too
    return [(name, value) for name, value in headers if name.lower() not in gone]


def session_named(headers: Mapping[str, str]) -> str:
    """What a client calls its session; empty where it says nothing."""
    return next((headers[name] for name in _SESSIONS if headers.get(name)), "")


def is_aside(headers: Mapping[str, str]) -> bool:
    """Whether a client says that a request is none of the conversation's own, such as one that warms a cache."""
    told = headers.get(TURN)
    if not told:
        return False
    try:
        return text_of(fields_of(load(told)), "request_kind") in _ASIDES
    except InputError:
        return False


def unpacked(body: bytes, encoding: str, most: int) -> bytes:
    """A request's body as it reads. Raises InputError for an encoding that is not known, for what does not unpack, and above `most` bytes."""
    if encoding in ("", "identity"):
        return body
    if encoding != "zstd":
        raise InputError("content-encoding", repr(encoding), "zstd, or none")
    try:
        unpacker = ZstdDecompressor()
        plain = unpacker.decompress(body, max_length=most + 1)
    except ZstdError as error:
        raise InputError("body", f"no zstd ({error})", "one frame of zstd") from error
    if len(plain) > most or not unpacker.eof:
        raise InputError("body", "more than is taken, or not whole", f"at most {most:,} bytes")
    return plain
