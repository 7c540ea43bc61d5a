"""What a need can look like."""

from enum import StrEnum
from typing import Final

from msgspec import Struct


class Kind(StrEnum):
    """What a need is."""

    LOCATOR = "locator"
    VERBATIM = "verbatim"
    SYMBOL = "symbol"


class Form(StrEnum):
    """What a need looks like."""

    PATH = "path"
    FILE = "file"  # a name without its folder
    URL = "url"
    ID = "id"
    HASH = "hash"
    NUMBER = "number"
    TARGET = "target"  # text that an edit is to find
    LINES = "lines"  # lines of a body or of a command
    QUOTE = "quote"
    NAME = "name"


KIND_OF: Final = {
    Form.PATH: Kind.LOCATOR,
    Form.FILE: Kind.LOCATOR,
    Form.URL: Kind.LOCATOR,
    Form.ID: Kind.LOCATOR,
    Form.HASH: Kind.LOCATOR,
    Form.NUMBER: Kind.LOCATOR,
    Form.TARGET: Kind.VERBATIM,
    Form.LINES: Kind.VERBATIM,
    Form.QUOTE: Kind.VERBATIM,
    Form.NAME: Kind.SYMBOL,
}

# Objects that may hold a string that still counts. A name or a file's bare name in more of them is the session's common talk, and the model has
# it in mind; a whole path, an id or the text of an edit cannot be put down without having it, however often it stood.
RARE: Final = {
    Form.PATH: 24,
    Form.FILE: 6,
    Form.URL: 24,
    Form.ID: 24,
    Form.HASH: 24,
    Form.NUMBER: 6,
    Form.TARGET: 24,
    Form.LINES: 6,
    Form.QUOTE: 6,
    Form.NAME: 6,
}


class Anchor(Struct, frozen=True, gc=False):
    """One exact string that a step uses."""

    form: Form
    text: str
