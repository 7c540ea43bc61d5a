"""What a conversation refuses to take in or to send, since a provider would, or since it is there already."""

from collections.abc import Callable, Mapping
from typing import Any

from tenure.apis.api import Api
from tenure.engine.lifecycle.session import Session
from tenure.engine.record.entry import Draft, Entry, Role, ToolCall
from tenure.errors import InputError


class Refusals:
    """Refuses by raising InputError. Mutable: it knows the reply to the newest request."""

    def __init__(self, api: Api, session: Session, read: Callable[[int], Entry]) -> None:
        self.reply = "", b""  # to the newest request: its id and its message
        self._api, self._session, self._read = api, session, read

    def again(self, draft: Draft, reply_id: str) -> None:
        """Refuse a reply a second time: its calls are in the record, or nothing was said or asked since it came."""
        self.repeated(draft, "reply")
        index = self._session.index
        is_last = bool(index.entries) and index.entries[-1].role is Role.ASSISTANT and bool(reply_id)
        is_same = is_last and bool(index.steps) and self._read(index.steps[-1].entry).payload == draft.payload
        if is_same or (reply_id and (reply_id, draft.payload) == self.reply):
            raise InputError("reply", "the newest reply of the record a second time", "a new one")
        self.reply = reply_id, draft.payload

    def repeated(self, draft: Draft, where: str) -> None:
        """Refuse a call that the record has already, where the API wants each of its own id."""
        calls = (block for block in draft.blocks if isinstance(block, ToolCall) and self._api.unique_calls)
        for call in calls:
            span = self._session.index.called(call.call_id)
            if span is not None and self._read(span.call[0]).blocks[span.call[1]] == call:
                raise InputError(
                    where, f"the call {call.call_id!r} of {span.object} a second time", "what is not in the record yet"
                )

    def fields(self, fields: Mapping[str, Any]) -> None:
        """Refuse a field that would bring in a history beside the conversation's own."""
        more: Any = fields.get("extra_body")
        fields = {**fields, **more} if isinstance(more, Mapping) else fields  # the SDK writes these over its own
        for name, why in self._api.histories.items():
            if isinstance(fields.get(name), str | list | tuple | Mapping):
                raise InputError(f"the field {name!r}", "another history", why)

    def dangling(self) -> None:
        """Refuse a request when the record ends with calls that have no result: no provider takes such a request."""
        index = self._session.index
        if not index.entries or index.entries[-1].role is not Role.ASSISTANT:
            return
        if made := [span for span in index.spans_in(index.reply, len(index)) if span.result is None]:
            raise InputError(
                "request",
                "no result yet for " + ", ".join(span.object for span in made),
                "the results first, by `extend`; or words of the user, behind which the calls count as interrupted",
            )
