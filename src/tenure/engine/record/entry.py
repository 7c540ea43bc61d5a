"""What a conversation is made of: entries and their blocks.

A provider's or a log's message is parsed once into a `Draft`; the chain places it (`Entry`) and never changes it again.
The original bytes travel along as `payload`, so that what was not edited goes out as it came in. Text in blocks is always valid
Unicode: a lone surrogate becomes U+FFFD there, and stays as it was in the payload.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from msgspec import UNSET, Struct, UnsetType

SPILL_CHARS: Final = 12  # hex digits of a spill's handle

At = tuple[int, int]  # (entry, block): a block's place in the record
Count = Callable[[str], int]  # o200k tokens of a text


class Role(StrEnum):
    """Who speaks, in the terms of every provider. A `tool` entry is folded into `user` where a dialect has no such role."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Origin(StrEnum):
    """Who wrote a block. It belongs to the block: one user message can hold a human's words and a harness's reminder."""

    HUMAN = "human"
    MODEL = "model"
    TOOL = "tool"
    HARNESS = "harness"


class Text(Struct, frozen=True, kw_only=True, gc=False, tag="text", tag_field="kind"):
    """Words of a human, the model or the harness."""

    text: str
    origin: Origin


class Thinking(Struct, frozen=True, kw_only=True, gc=False, tag="thinking", tag_field="kind"):
    """A reasoning trace. With a `seal` the provider verifies it, so it goes back whole or not at all."""

    text: str
    seal: str = ""  # sha256 in hex of the signature or of the encrypted content
    origin: Origin = Origin.MODEL

    @property
    def signed(self) -> bool:
        """Whether the provider would notice a change."""
        return bool(self.seal)


class ToolCall(Struct, frozen=True, kw_only=True, gc=False, tag="tool_call", tag_field="kind"):
    """A call the model made. `arguments` is JSON text, as the model sees it; malformed text is kept as it is."""

    call_id: str
    name: str
    arguments: str
    origin: Origin = Origin.MODEL

    @property
    def text(self) -> str:
        """What the model sees of the call, apart from its name."""
        return self.arguments


class Media(Struct, frozen=True, kw_only=True, gc=False, tag="media", tag_field="kind"):
    """An image or document. Its bytes stay in the payload; `sha256` is of the decoded bytes, or of the URL where there are none."""

    media_type: str  # "image/png", "application/pdf", "" when unknown
    sha256: str
    size: int = 0  # bytes, decoded; 0 when only a URL is known
    width: int = 0  # pixels; 0 when unknown
    height: int = 0
    pages: int = 0  # documents; 0 when unknown
    text: str = ""  # a caption or URL that the model sees beside it
    origin: Origin = Origin.HUMAN


class Spill(Struct, frozen=True, kw_only=True, gc=False):
    """An output of which a result's text holds only the beginning and the end, as bytes in a file beside the store, known by their hash.

    The file has all of it, unless a limit was reached or the disk was full: then `size` is less than `of_size`, and it has the first `size` bytes.
    """

    sha256: str  # in hex, of the file
    size: int  # bytes of the file
    lines: int
    of_size: int  # bytes of the output
    of_lines: int
    left: tuple[int, int]  # the first and the last line of the output that the text leaves out; (0, 0) for none

    @property
    def handle(self) -> str:
        """How it is recalled."""
        return f"spill:{self.sha256[:SPILL_CHARS]}"


class ToolResult(Struct, frozen=True, kw_only=True, tag="tool_result", tag_field="kind"):
    """What a tool returned for the call `call_id`. List content is joined by newlines in `text`, its images are in `media`.

    `spill` is set where `text` is not the whole output.
    """

    call_id: str
    text: str
    error: bool = False
    media: tuple[Media, ...] = ()
    origin: Origin = Origin.TOOL
    spill: Spill | UnsetType = UNSET


class Opaque(Struct, frozen=True, kw_only=True, gc=False, tag="opaque", tag_field="kind"):
    """A part this version does not know (`type`): carried, counted by `text`, never edited, only dropped."""

    type: str
    text: str = ""
    origin: Origin = Origin.HARNESS


Block = Text | Thinking | ToolCall | ToolResult | Media | Opaque  # match on it, and close with assert_never

NEUTRAL: Final = "tenure"  # the dialect of a payload that is the JSON of our own blocks


class Usage(Struct, frozen=True, kw_only=True, gc=False):
    """What a provider reported for one call, in its own tokens. The prompt is `uncached + cache_write + cache_read`."""

    uncached: int = 0
    cache_write: int = 0
    cache_read: int = 0
    output: int = 0

    @property
    def prompt(self) -> int:
        """Tokens of the whole prompt, cached or not."""
        return self.uncached + self.cache_write + self.cache_read

    def __add__(self, other: "Usage") -> "Usage":
        """Both together."""
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__})


class Draft(Struct, frozen=True, kw_only=True):
    """A parsed message that has not been placed in a chain yet."""

    role: Role
    blocks: tuple[Block, ...]
    dialect: str = NEUTRAL  # whose JSON `payload` is
    payload: bytes = b""  # empty with NEUTRAL: the chain writes the blocks' JSON
    at: str = ""  # ISO 8601 in UTC with a Z; empty when the source has no time
    model: str = ""  # of an assistant message, when the source names it
    usage: Usage | None = None  # of the call that made this assistant message
    cache_life: str = ""  # that its request asked for, such as "1h", when the source tells; `tenure.engine.meter.price.LIVES`
    source: int = 0  # which file of several
    line: int = 0  # 1-based line in that file, 0 when it has none


class Entry(Struct, frozen=True, kw_only=True):
    """A message in its place: the `n`-th of its conversation, chained to `parent` by `id`."""

    n: int
    id: str  # sha256 in hex, over the parent's id and the canonical content
    parent: str
    sha256: str  # of `payload`
    role: Role
    blocks: tuple[Block, ...]
    tokens: tuple[int, ...]  # o200k, one per block; the first includes the entry's framing
    dialect: str
    payload: bytes
    at: str = ""
    model: str = ""
    source: int = 0
    line: int = 0


Read = Callable[[int], Entry]  # a record entry by its number
