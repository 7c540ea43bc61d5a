"""Calls of tools as logs of several makers spell them, with arguments in the form in which they were sent."""

from typing import Final

import msgspec
from msgspec import Raw, Struct

from tenure.logs.mend import Damaged, decode

_text: Final = msgspec.json.Decoder(str)


class _Function(Struct, frozen=True, gc=False):
    name: str = ""
    arguments: Raw = Raw(b"{}")


class Call(Struct, frozen=True, gc=False):
    """A call in ATIF's, OpenAgents', tau2-bench's or OpenAI's spelling."""

    tool_call_id: str | None = None
    function_name: str | None = None
    arguments: Raw = Raw(b"{}")
    id: str | None = None
    name: str | None = None
    function: _Function | None = None

    @property
    def call_id(self) -> str:
        """Empty when the call has none."""
        return self.tool_call_id or self.id or ""

    @property
    def called(self) -> str:
        """The tool's name."""
        return self.function_name or self.name or (self.function.name if self.function else "")

    @property
    def sent(self) -> str:
        """The arguments as JSON text, without the layout of the file; a text, in which hosts put the JSON, stays as it is."""
        raw = bytes(self.function.arguments if self.function else self.arguments)
        try:
            return decode(raw, _text) if raw.startswith(b'"') else msgspec.json.format(raw, indent=-1).decode("utf-8", "replace")
        except (Damaged, msgspec.DecodeError, ValueError, RecursionError):
            return raw.decode("utf-8", "replace")
