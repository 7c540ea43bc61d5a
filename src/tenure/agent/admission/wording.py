"""Bytes of anybody's file as words for a prompt, and the fields (frontmatter) at the head of a Markdown file.

What no reader would see is left out: terminal escapes and other controls, marks that turn the direction of text, and the tag characters in
which orders to a model can be hidden from people. Joiners stay: scripts and emoji need them.
"""

import codecs
import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

# The longer marks first: UTF-32's begins with UTF-16's.
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b\n]{0,512}(?:\x07|\x1b\\)|[@-Z\\^_])")
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_LONE: Final = re.compile("[\ud800-\udfff]")
_BREAKS: Final = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_SPACES: Final = re.compile(r"\s+")


class Wording(Struct, frozen=True, kw_only=True):
    """What a file says, its lines parted by single newlines, and what was odd about it."""

    text: str
    oddities: tuple[str, ...] = ()


def wording(data: bytes, *, whole: bool = True) -> Wording | None:
    """What bytes say; None when they are no text. A last character that is cut in two is left out unless the bytes are `whole`."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _harmless(_decoded(data[len(mark) :], encoding, "replace", whole=whole))
    if b"\0" in data:
        return None
    try:
        return _harmless(_decoded(data, "utf-8", "strict", whole=whole))
    except UnicodeDecodeError:
        found = _harmless(data.decode("cp1252", "replace"))
        return Wording(text=found.text, oddities=("not in UTF-8, taken for Windows-1252", *found.oddities))


def one_line(text: str, most: int = 0) -> str:
    """Text as one harmless line, of at most `most` characters when it is given."""
    line = _SPACES.sub(" ", harmless(text[: 8 * most] if most else text)).strip()
    return line if not most or len(line) <= most else line[: max(0, most - 1)].rstrip() + "…"


def harmless(text: str) -> str:
    """Text without what nobody would see; lone surrogates, which no request can carry, become U+FFFD."""
    return _UNSEEN.sub("", _ESCAPES.sub("", _BREAKS.sub("\n", _LONE.sub("\ufffd", text))))


def cut(text: str, most: int) -> str:
    """The first `most` characters, rather up to the end of a line or word near there: half a rule can say the contrary."""
    if len(text) <= most:
        return text
    near = most - most // 10
    for end in ("\n", " "):
        place = text.rfind(end, near, most + 1)
        if place > 0:
            return text[:place].rstrip()
    return text[:most]


def _decoded(data: bytes, encoding: str, errors: str, *, whole: bool) -> str:
    return codecs.getincrementaldecoder(encoding)(errors).decode(data, final=whole)


def _harmless(text: str) -> Wording:
    lines = _BREAKS.sub("\n", _LONE.sub("\ufffd", text))
    seen = _UNSEEN.sub("", _ESCAPES.sub("", lines))
    gone = len(lines) - len(seen)
    return Wording(text=seen, oddities=(f"{gone:,} unseen characters left out",) if gone else ())


_FENCE: Final = re.compile(r"---[ \t]*")
_END: Final = re.compile(r"(?:---|\.\.\.)[ \t]*")
_FIELD: Final = re.compile(r"([A-Za-z_][\w.\-]{0,63})[ \t]*:(.*)", re.DOTALL)
_BLOCK: Final = re.compile(r"[>|][+\-]?\d?[+\-]?(?:[ \t]+#.*)?")


class Front(Struct, frozen=True, kw_only=True):
    """A file in two parts. `fields` is None where it has no frontmatter, or one without an end: then all of it is `body`."""

    fields: Mapping[str, str] | None
    body: str
    unended: bool = False


def front(text: str) -> Front:
    """A file's fields and the text below them. Of fields that are given twice the first counts."""
    lines = text.split("\n")
    if not _FENCE.fullmatch(lines[0]):
        return Front(fields=None, body=text)
    end = next((number for number, line in enumerate(lines) if number and _END.fullmatch(line)), None)
    if end is None:
        return Front(fields=None, body=text, unended=True)
    return Front(fields=_fields(lines[1:end]), body="\n".join(lines[end + 1 :]))


def _fields(lines: list[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    present: list[str] = []
    for line in lines:
        if line[:1] in (" ", "\t") or not line.strip():
            present.append(line.strip())
        elif not line.startswith("#") and (field := _FIELD.fullmatch(line)):
            present = [field[2].strip()]
            found.setdefault(field[1], present)
        else:
            present = []  # a comment, or a line that means nothing here: what goes on below it does so in vain
    return {key: _value(parts) for key, parts in found.items()}


def _value(parts: list[str]) -> str:
    first, *rest = parts
    if _BLOCK.fullmatch(first):
        return ("\n" if first.startswith("|") else " ").join(part for part in rest if part or first.startswith("|")).strip()
    value = " ".join(part for part in parts if part)
    for quote in ('"', "'"):
        if len(value) > 1 and value.startswith(quote) and value.endswith(quote):
            inner = value[1:-1]
            return inner.replace('\\"', '"') if quote == '"' else inner.replace("''", "'")
    return value
