"""Images and documents as a recall speaks of them."""

from collections.abc import Callable, Iterator
from typing import Final

from tenure.engine.record.entry import Block, Entry, Media, ToolResult

Medium = Callable[[Entry, Media], bytes]  # the bytes of a medium of an entry

SHA_CHARS: Final = 12


def media_in(block: Block) -> tuple[Media, ...]:
    """The media of a block: of a result those beside its text."""
    match block:
        case Media():
            return (block,)
        case ToolResult(media=media):
            return media
        case _:
            return ()


def described(media: Media) -> str:
    """What is known of a medium: type, dimensions or pages, size, hash."""
    facts = [media.media_type or "an image or document"]
    facts += [f"{media.width}x{media.height}"] if media.width else []
    facts += [f"{media.pages} page{'s' * (media.pages > 1)}"] if media.pages else []
    facts += [f"{media.size:,} bytes"] if media.size else ["known by its address only"]
    return " ".join([", ".join(facts), f"(sha256 {media.sha256[:SHA_CHARS]})"])


def addressed(entry: int, block: int, media: tuple[Media, ...]) -> Iterator[str]:
    """Each medium of a block with the handle that brings it alone."""
    for number, medium in enumerate(media, 1):
        yield f"entry:{entry}/{block}/{number} {described(medium)}"
