"""Call ids that a request may carry."""

import re
from collections.abc import Iterable
from typing import Final

from tenure.engine.record.chain import Pairing
from tenure.engine.record.entry import Block, ToolCall, ToolResult

_FOREIGN: Final = re.compile(r"[^a-zA-Z0-9_-]")  # Anthropic takes only these characters; the others take them too


class CallIds:
    """Names the calls of one request in order: what the provider's own messages say stays, other ids are made fit and unique."""

    def __init__(self) -> None:
        self._pairing = Pairing()
        self._names: dict[int, str] = {}
        self._used: set[str] = set()

    def keep(self, blocks: Iterable[Block]) -> None:
        """Take in blocks that are sent as they are."""
        for block in blocks:
            if isinstance(block, ToolCall):
                self._name(block.call_id, block.call_id)
            elif isinstance(block, ToolResult):
                self._pairing.result(block.call_id)

    def call(self, call_id: str) -> str:
        """The id to send for the next call."""
        fit = _FOREIGN.sub("_", call_id) or "call"
        name, n = fit, 2
        while name in self._used:
            name, n = f"{fit}_{n}", n + 1
        return self._name(call_id, name)

    def result(self, call_id: str) -> str:
        """The id to send for the next result: that of the call it answers."""
        ordinal = self._pairing.result(call_id)
        return _FOREIGN.sub("_", call_id) if ordinal is None else self._names[ordinal]

    def _name(self, call_id: str, name: str) -> str:
        self._names[self._pairing.call(call_id)] = name
        self._used.add(name)
        return name
