"""What a tool returned, in any dialect: a string, or a list of texts, images and documents."""

from collections.abc import Iterable

from tenure.apis.json_text import Json, clean, dump, elements, load, optional_string
from tenure.apis.media import media_of, source_of
from tenure.engine.record.entry import Media, Origin


def read_output(content: Json) -> tuple[str, tuple[Media, ...]]:
    """The text of an output, parts joined by newlines and unknown ones as their JSON; and its media."""
    parts = content if isinstance(content, list) else [content]
    found = [source_of(part) for part in parts]
    texts = [_text(part) for part, item in zip(parts, found, strict=True) if not item]
    return "\n".join(texts), tuple(media_of(item, Origin.TOOL) for item in found if item)


def media_parts(content: str, shown: Iterable[Media]) -> list[str]:
    """The parts of an output's JSON list that are `shown`, as they are spelled; none of a string."""
    if not content.startswith("["):
        return []
    wanted = {media.sha256 for media in shown}
    found = [(item.text, source_of(load(item.text))) for item in elements(content)]
    return [text for text, item in found if item and media_of(item, Origin.TOOL).sha256 in wanted]


def _text(part: Json) -> str:
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return optional_string(part, "text")
    return clean(part) if isinstance(part, str) else "" if part is None else clean(dump(part))
