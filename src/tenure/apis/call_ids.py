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
        self._made: dict[int, tuple[str, str]] = {}  # the tool's name, and the id that is sent
        self._used: set[str] = set()
        self._renamed: set[str] = set()

    def fit(self, call: ToolCall) -> str:
        """The id of a call of another API, as this one takes it."""
        return _FOREIGN.sub("_", call.call_id) or "call"

    def own(self, call: ToolCall) -> str:
        """The id of a call of this API, as it is sent."""
        return call.call_id

    def keep(self, blocks: Iterable[Block]) -> bool:
        """Take in blocks that are sent as they are; False, and none is, where one answers a call that got another id: they are built anew."""
        if any(isinstance(block, ToolResult) and block.call_id in self._renamed for block in blocks):
            return False
        for block in blocks:
            if isinstance(block, ToolCall):
                self._add(block, self.own(block))
            elif isinstance(block, ToolResult):
                self._pairing.result(block.call_id)
        return True

    def call(self, call: ToolCall) -> str:
        """The id to send for the next call: no two have the same."""
        call_id, n = self.fit(call), 2
        while call_id and call_id in self._used:
            call_id, n = f"{self.fit(call)}_{n}", n + 1
        if call_id != self.own(call):
            self._renamed.add(call.call_id)
        return self._add(call, call_id)

    def answered(self, result: ToolResult) -> tuple[str, str] | None:
        """The name of the tool and the id to send for the next result: those of the call it answers; None for one without a call."""
        ordinal = self._pairing.result(result.call_id)
        return None if ordinal is None else self._made[ordinal]

    def result(self, result: ToolResult) -> str:
        """The id to send for the next result."""
        _, call_id = self.answered(result) or ("", _FOREIGN.sub("_", result.call_id))
        return call_id

    def _add(self, call: ToolCall, call_id: str) -> str:
        self._made[self._pairing.call(call.call_id)] = call.name, call_id
        self._used.add(call_id)
        return call_id
