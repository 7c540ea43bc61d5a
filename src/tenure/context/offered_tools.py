"""The tools of a request: the host's own, and ours, which take another name where the host has one of the same."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from tenure.apis.api import Api
from tenure.apis.sdk import plain, sendable, undeclared
from tenure.context.durable_session import DurableSession
from tenure.engine.policies.offer import Offer, offers
from tenure.engine.record.index import Index
from tenure.engine.record.notes import NOTES_DESCRIPTION, NOTES_SCHEMA
from tenure.engine.record.tools import NOTES, Kinds, ToolKind, declared_kinds, is_virtual, name_of, offered_name

_NOTES_TOOL: Final = Offer(NOTES, NOTES_DESCRIPTION, NOTES_SCHEMA)
_RENAMED: Final = "{} Where this conversation says {}, this tool is meant."


class OfferedTools:
    """What tools one conversation's requests offer. Mutable: it learns the kinds that tools declare."""

    def __init__(self, durable: DurableSession, api: Api, kinds: Mapping[str, ToolKind], *, offered_before: bool) -> None:
        """`offered_before`: ours were offered in a request already, so there may be calls of them."""
        self.offered_before = offered_before
        self._durable, self._api, self._kinds = durable, api, dict(kinds)
        self._beside: tuple[Index | None, bytes] = None, b""  # the tools of the newest client's request, and what learned of them

    def of(self, tools: Iterable[Mapping[str, Any] | object]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The declarations of the host's tools, with that of the notes, and of what its policy offers; the last of these is `recall`."""
        declared = self._learned(tools)
        own = [undeclared(tool) for tool in declared] + [self._declaration(_NOTES_TOOL)] * self._durable.terms.notes
        return own, self._ours()

    def beside(self, tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """What the policy offers beside tools that a client declares itself, which are not read again where the request before had the same."""
        index = self._durable.session.index
        try:
            text = msgspec.json.encode(tools)
        except UnicodeEncodeError:  # a lone surrogate
            text = b""
        if not text or self._beside[0] is not index or self._beside[1] != text:
            self._learned(tools)
            self._beside = index, text
        return self._ours()

    def _ours(self) -> list[dict[str, Any]]:
        return [self._declaration(each) for each in offers(self._durable.session.setup.policy)]

    def _learned(self, given: Iterable[Mapping[str, Any] | object]) -> list[dict[str, Any]]:
        """The host's tools. Learns what they declare of themselves, and which of them have names of ours."""
        tools, index = self._api.declarations([sendable(dict(plain(tool))) for tool in given]), self._durable.session.index
        if declared := declared_kinds(tools):
            self._kinds |= declared
            index.kinds = Kinds(self._kinds)
        own = [name for name in map(name_of, tools) if name not in index.own and is_virtual(name)]
        if own:
            since = len(index) if self.offered_before else 0  # before ours were offered, no call can have been of them
            self._durable.keep_tools({**index.own, **dict.fromkeys(own, since)}, since=since)
        return tools

    def _declaration(self, offer: Offer) -> dict[str, Any]:
        name = offered_name(offer.name, self._durable.session.index.own)
        text = offer.description if name == offer.name else _RENAMED.format(offer.description, offer.name)
        return self._api.tool(name, text, offer.schema)
