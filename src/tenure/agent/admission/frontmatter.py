"""The fields at the head of a Markdown file.

The part of YAML that such files are written in, read as leniently as other agents read it: flat `key: value` lines, quotes, `>` and `|` blocks,
values that go on indented. Colons inside a value stay in it. Lists and nested fields are read as text; nobody here asks for one.
"""

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

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
