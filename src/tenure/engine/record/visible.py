"""Text of unknown origin, shown so that it neither acts on a terminal or browser nor changes how the rest is read. Pure.

Control characters are shown as U+2400 and up; separators of lines, marks that turn the direction of text, invisible tags and what is no
character at all by their number. Joiners and spaces of no width stay: scripts and emoji need them, and nothing obeys them.
"""

import json
import re
from typing import Final

import msgspec

_DIRECTIONS: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u206a-\u206f"
_SHAPELESS: Final = f"\x7f-\x9f{_DIRECTIONS}\u2028\u2029\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f"
ACTS: Final = f"\x00-\x08\x0b-\x1f{_SHAPELESS}"  # the inside of a character class
_acts: Final = re.compile(f"[{ACTS}]")
_lone: Final = re.compile("[\ud800-\udfff]")
_unescaped: Final = re.compile(f"[{_SHAPELESS}]")  # what JSON need not escape


def visible(text: str) -> str:
    """The text with every character that acts shown by a sign; tabs and newlines stay. O(text)."""
    return text if text.isascii() and text.isprintable() else _acts.sub(_sign, text)


def visible_json(encoded: bytes) -> bytes:
    """JSON that says the same without a character that acts: those that JSON itself does not escape are escaped. O(text)."""
    text = encoded.decode("utf-8", "surrogatepass")
    return encoded if text.isascii() and "\x7f" not in text else _unescaped.sub(_escape, text).encode()


def json_of(value: object) -> bytes:
    """JSON of a value. What is no Unicode, as in a file's name, is spelled out."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(value, str_keys=True), ensure_ascii=False, separators=(",", ":"))
        return _lone.sub(lambda match: f"\\\\u{ord(match[0]):04x}", text).encode()


def _sign(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"<U+{code:04X}>"


def _escape(match: re.Match[str]) -> str:
    return "\\u007f" if match[0] == "\x7f" else json.dumps(match[0])[1:-1]
