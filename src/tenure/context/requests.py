"""Making the next request: its head, what leaves before it, and the messages of the view behind it."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import takewhile
from typing import Any

import msgspec

from tenure.apis.api import Api
from tenure.apis.rendering import light
from tenure.apis.request_builder import Builder, Request
from tenure.apis.rules import rules_for
from tenure.apis.sdk import is_json, plain, sendable
from tenure.context.durable_session import DurableSession
from tenure.context.offered_tools import OfferedTools
from tenure.context.refusals import Refusals
from tenure.engine.lifecycle.decision import Decision, Stay
from tenure.engine.view.edit import Insert, Moment
from tenure.engine.view.piece import Piece
from tenure.engine.view.project import View
from tenure.engine.view.request import Messages
from tenure.engine.view.rules import Rules
from tenure.models.helpers import HelperModels
from tenure.store.records import Now


class Requests:
    """The requests of one conversation. Mutable: what was made for the one before is not made again."""

    def __init__(
        self,
        durable: DurableSession,
        api: Api,
        helpers: HelperModels,
        refusals: Refusals,
        tools: OfferedTools,
        *,
        model: str,
        on_decision: Callable[[Decision], None] | None,
        clock: Now,
    ) -> None:
        self.decision: Decision | None = None  # what came of the newest
        self.refusals, self.tools = refusals, tools
        self._durable, self._api, self._helpers = durable, api, helpers
        self._model, self._on_decision, self._clock = model, on_decision, clock
        self._newest: Request | None = None
        self._counted = b""  # values of the head that was weighed last
        self._stem = (0, 0), 0  # number of commits and the entry of the stem, and the messages in front of it
        self._messages = Messages(durable.session.index, durable.entry, partial(light, api=api))
        self._builder = Builder(api, ttl="1h" if durable.terms.cache_life == "1h" else "", markers=durable.terms.markers)

    def next_request(
        self,
        tools: Iterable[Mapping[str, Any] | object],
        fields: dict[str, Any],
        *,
        annotate: bool,
        notes: str,
        queued: bool,
    ) -> Request:
        """The next request, once what leaves has been decided and stored. `queued`: no helper model is asked for a handoff."""
        durable, notes = self._durable, sendable(notes)
        beside = durable.session.count(notes) if notes else 0
        fields = self._api.from_arguments(fields)
        own, offered = self.tools.of(tools)
        self.refusals.fields(fields)
        self.refusals.dangling()
        head = self._head(fields, own + (offered if annotate else offered[-1:]))  # the last redeems what markers name
        self._ask_helpers(queued=queued)
        self.settle(beside=beside)
        if not annotate and not len(durable.session.commits):
            head = self._head(fields, own)  # nothing left yet
        self._newest = self._request(head, notes)
        durable.send(beside=beside, at=self._clock())
        self.tools.offered_before = True
        self.refusals.reply = "", b""
        return self._newest

    def body(self, request: Request) -> bytes:
        """The bytes of a request. Raises InputError for a field that is no JSON."""
        return self._builder.body(request)

    def prefix(self) -> bytes:
        """The newest request, or one of the view alone, as the bytes behind which a planner is asked."""
        return (self._newest or self._request({}, "")).plain()

    def settle(self, moment: Moment = "before-call", *, beside: int = 0, only_forced: bool = False) -> Decision:
        """What is to happen now, carried out. `beside`: o200k tokens of what goes out beside the head and the view.

        `only_forced`: what no limit forces waits until this is asked again.
        """
        durable = self._durable
        # A limit holds for what the provider counts beside the view, not for what we estimate.
        counted = int(durable.gauge.tokens / durable.session.ratio) - durable.session.view.tokens
        extra = max(durable.head[1] + beside, counted)
        decision = durable.session.decide(moment, extra=extra, at=self._clock(), only_forced=only_forced)
        self.decision = durable.carry_out(decision)
        self._report(self.decision)
        return self.decision

    def _ask_helpers(self, *, queued: bool) -> None:
        """Ask the helper models that are due, and carry out what comes of each before the next is asked."""
        prefix = self._newest.plain if self._newest is not None else None
        for outcome in self._helpers.due(prefix, head_tokens=self._durable.head[1], queued=queued):
            self._report(outcome if isinstance(outcome, Stay) else self._durable.carry_out(outcome.decision))

    def _head(self, fields: dict[str, Any], tools: list[dict[str, Any]]) -> dict[str, Any]:
        """The head of a request with these tools, counted."""
        head = fields | ({"tools": self._api.tools(tools)} if tools else {})
        self.count_head(head)
        return head

    def count_head(self, head: Mapping[str, Any]) -> None:
        """Weigh the head of the next request; one of the same values as before is not looked at again."""
        try:
            values = msgspec.json.encode([(key in head, head.get(key)) for key in self._api.head_fields])
        except (TypeError, ValueError, OverflowError):  # an SDK's objects, a lone surrogate
            values = b""
        if values and values == self._counted:
            return
        self._counted = values
        counted = {key: head[key] for key in self._api.head_fields if is_json(head.get(key, self))}
        text = msgspec.json.encode(counted, enc_hook=plain).decode() if counted else ""
        if text != self._durable.head[0]:
            self._durable.head = text, self._durable.session.count(text)

    def _request(self, head: Mapping[str, Any], notes: str) -> Request:
        """The messages of the view behind a head."""
        return self._builder.request(head, self.pieces(), self.rules(head), notes, self.stem())

    def pieces(self) -> tuple[Piece, ...]:
        """The messages of the view; what was made for the request before is not made again."""
        return self._messages.of(self._durable.session.freeze())

    def stem(self) -> int:
        """How many of the view's messages stand in front of the session's stem. O(view) after a commit."""
        session = self._durable.session
        key = len(session.commits), session.stem
        if self._stem[0] != key:
            lines = takewhile(
                lambda line: (line.before_entry if isinstance(line, Insert) else line.entry) < session.stem,
                session.freeze().lines,
            )
            self._stem = key, len(Messages(session.index, self._durable.entry).of(View(tuple(lines), 0)))
        return self._stem[1]

    def rules(self, head: Mapping[str, Any]) -> Rules:
        """What the model takes that is asked: the conversation's, else the one that the head names."""
        rules = self._durable.session.setup.rules
        named = "" if self._model else str(head.get("model") or "")
        return rules_for(rules.provider, named, self._api.name) if named else rules

    def send(self) -> None:
        """Note that the view goes out now behind the head that was counted last."""
        self._durable.send(beside=0, at=self._clock())
        self.refusals.reply = "", b""

    def _report(self, decision: Decision) -> None:
        if self._on_decision is not None:
            self._on_decision(decision)
