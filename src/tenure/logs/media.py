"""Images and documents inside logs that are not in a provider's own shape."""

from msgspec.structs import replace

from tenure.apis.media import Source, media_of, source_of
from tenure.engine.record.entry import Media, Origin


def from_base64(data: str, media_type: str, origin: Origin) -> Media:
    """The media whose bytes are `data`."""
    return media_of(Source(media_type=media_type, data=data, image=media_type.startswith("image/")), origin)


def from_url(url: str, media_type: str, origin: Origin) -> Media:
    """The media at `url`, or inside it when it is a data URL."""
    found = source_of({"type": "input_image", "image_url": url}) or Source(url=url)
    return media_of(found if found.media_type else replace(found, media_type=media_type), origin)
