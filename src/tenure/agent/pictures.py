"""Images that a person shows (an edge: files are read)."""

import base64
import re
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from tenure.agent.tools.files import image_type
from tenure.apis.media import MediaSource
from tenure.errors import InputError
from tenure.logs.places.files import read_file

LARGEST: Final = 3_750_000  # bytes: 5 MB in base64 is what providers take

_SUFFIXES: Final = r"\.(?:png|jpe?g|gif|webp|pdf)"
_MENTIONED: Final = re.compile(rf'(?<!\S)@(?:"([^"\n]+{_SUFFIXES})"|(\S+{_SUFFIXES}))(?!\S)', re.IGNORECASE)
_PICTURE: Final = re.compile(rf"(?:file://)?[^\n]+{_SUFFIXES}", re.IGNORECASE)
_DATA: Final = re.compile(r"data:(?:image/[\w.+-]+|application/pdf);base64,([A-Za-z0-9+/=\s]+)")


def pictures_in(text: str, folder: Path) -> tuple[Path, ...]:
    """The files that a text mentions as `@shot.png` and that are there."""
    named = dict.fromkeys(folder / Path(quoted or name).expanduser() for quoted, name in _MENTIONED.findall(text))
    return tuple(path for path in named if path.is_file())


def mention_of(pasted: str, folder: Path, kept: Path) -> str:
    """The mention of an image that a terminal pasted as a path, a file URL or a data URL; empty for other text. What a data URL holds goes into `kept`."""
    text = pasted.strip()
    if found := _DATA.fullmatch(text):
        try:
            data = base64.b64decode(found[1], validate=False)
        except ValueError:
            return ""
        kind = _kind_of(data)
        if not kind or len(data) > LARGEST:
            return ""
        path = kept / f"pasted-{sha256(data).hexdigest()[:12]}.{kind.rpartition('/')[2]}"
        path.write_bytes(data)
    else:
        text = text[1:-1] if text[:1] == text[-1:] and text[:1] in "'\"" and len(text) > 1 else text.replace("\\ ", " ")
        if not _PICTURE.fullmatch(text):
            return ""
        path = folder / Path(unquote(text.removeprefix("file://")) if text.startswith("file://") else text).expanduser()
        try:
            if not path.is_file():
                return ""
        except OSError:  # a name that is too long
            return ""
    name = str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)
    return f'@"{name}"' if " " in name else f"@{name}"


def read_pictures(paths: Iterable[Path]) -> tuple[MediaSource, ...]:
    """The images and documents in these files. Raises InputError for one that is too large, or none."""
    return tuple(_read(path) for path in paths)


def _read(path: Path) -> MediaSource:
    data = read_file(path, LARGEST)
    kind = _kind_of(data)
    if not kind:
        raise InputError(str(path), "another kind of file", "PNG, JPEG, GIF, WebP or PDF")
    encoded = base64.b64encode(data).decode()
    return MediaSource(media_type=kind, data=encoded, name=path.name, image=kind.startswith("image/"))


def _kind_of(data: bytes) -> str:
    """The media type, by how the data begins; empty for others."""
    return "application/pdf" if data.startswith(b"%PDF-") else image_type(data)
