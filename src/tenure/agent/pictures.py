"""Images that a person shows (an edge: files are read)."""

import base64
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tenure.apis.media import MediaSource
from tenure.errors import InputError
from tenure.logs.places.files import read_file

LARGEST: Final = 3_750_000  # bytes: 5 MB in base64 is what providers take
# How files of each kind begin.
_KINDS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)


_MENTIONED: Final = re.compile(r"(?<!\S)@(\S+\.(?:png|jpe?g|gif|webp|pdf))(?!\S)", re.IGNORECASE)


def pictures_in(text: str, folder: Path) -> tuple[Path, ...]:
    """The files that a text mentions as `@shot.png` and that are there."""
    named = dict.fromkeys(folder / Path(name).expanduser() for name in _MENTIONED.findall(text))
    return tuple(path for path in named if path.is_file())


def read_pictures(paths: Iterable[Path]) -> tuple[MediaSource, ...]:
    """The images and documents in these files. Raises InputError for one that is too large, or none."""
    return tuple(_read(path) for path in paths)


def _read(path: Path) -> MediaSource:
    data = read_file(path, LARGEST)
    kind = next((kind for start, kind in _KINDS if data.startswith(start)), "")
    if not kind and data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        kind = "image/webp"
    if not kind:
        raise InputError(str(path), "another kind of file", "PNG, JPEG, GIF, WebP or PDF")
    encoded = base64.b64encode(data).decode()
    return MediaSource(media_type=kind, data=encoded, name=path.name, image=kind.startswith("image/"))
