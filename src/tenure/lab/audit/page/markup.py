"""Markup that no text can break out of.

Sessions are hostile: they hold markup, control characters, escape sequences, overrides of the reading direction, and lines of megabytes. Only a
value of the type `Html` stands as it is; every other text is made harmless where it is put in, whoever calls.
"""

import re
from collections.abc import Sequence
from html import escape
from typing import Final

from tenure.engine.record.visible import visible

_LINE: Final = 120  # characters of a text in a line

_VOID: Final = frozenset({"meta", "input", "br"})


class Html(str):
    """Markup."""

    __slots__ = ()


Child = str | int | None
Value = str | int | bool | None


def el(name: str, /, *children: Child, **attributes: Value) -> Html:
    """An element. Of an attribute's name, `_` stands for `-` and a last one for nothing; None and False leave it out."""
    opened = "".join([f"<{name}", *(_attribute(key, value) for key, value in attributes.items()), ">"])
    if name in _VOID:
        return Html(opened)
    return Html(f"{opened}{join(children)}</{name}>")


def join(children: Sequence[Child]) -> Html:
    """Several after one another; None is nothing."""
    return Html("".join([child if isinstance(child, Html) else _text(child) for child in children if child is not None]))


def line(text: str, limit: int = _LINE) -> str:
    """`text` in one line of at most about `limit` characters; what is longer says how long it is. O(limit)."""
    cut = text[:limit]
    shown = visible(cut).replace("\n", "⏎").replace("\t", " ")
    return shown if len(cut) == len(text) else f"{shown}… ({len(text):,} characters)"


def slug(text: str, taken: set[str]) -> str:
    """A name for a link: letters, digits, dots and hyphens, given once; it is added to `taken`."""
    base = re.sub(r"[^A-Za-z0-9._-]+", "-", text[-200:]).strip("-.")[:60] or "unnamed"
    name, number = base, 1
    while name.lower() in taken:
        number += 1
        name = f"{base}-{number}"
    taken.add(name.lower())
    return name


def _attribute(key: str, value: Value) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f' {name}=""' if value is True else f' {name}="{_text(value)}"'


def _text(value: str | int) -> str:
    return str(value) if isinstance(value, int) else escape(visible(value))
