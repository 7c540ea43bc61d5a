"""What happens to one request on its way through a gateway, for metrics and spans: times, calls upstream, what they took."""

from collections.abc import Callable
from time import perf_counter, time_ns

from tenure.context.exchange import Exchange
from tenure.engine.record.entry import Draft
from tenure.gateway.settings import Upstream


class UpstreamCall:
    """One call of an upstream. Mutable; times are of the clock that spans have."""

    def __init__(self, upstream: Upstream, number: int, *, is_changed: bool) -> None:
        self.upstream, self.number, self.is_changed = upstream, number, is_changed  # `number`: from 0, of one request's
        self.begun_ns, self.answered_ns, self.ended_ns = time_ns(), 0, 0
        self.status, self.error = 0, ""  # as HTTP has it; the kind of a failure
        self.reply: Draft | None = None  # as far as it was read
        self.content = b""  # of the reply, whole

    def answer(self, status: int) -> None:
        """Its status and headers are here."""
        self.status, self.answered_ns = status, time_ns()

    def hear(self, exchange: Exchange) -> None:
        """Its reply was read."""
        self.reply, self.content = exchange.reply, exchange.newest

    def end(self, error: str = "") -> None:
        """Nothing more comes; only the first word counts."""
        if not self.ended_ns:
            self.ended_ns, self.error = time_ns(), error


class RequestTrace:
    """One request of a client. Mutable; `done` is told of it once, at its end."""

    def __init__(self, number: int, done: "Callable[[RequestTrace], None]") -> None:
        self.number, self.tenant = number, ""
        self.operation, self.model = "", ""  # what it asks of which model, as far as its path says; empty: of none
        self.headers: dict[str, str] = {}  # that continue the client's own trace
        self.exchange: Exchange | None = None
        self.calls: list[UpstreamCall] = []
        self.find_s = self.record_s = self.first_byte_s = -1.0  # below 0: there was none
        self._begun, self._done, self._is_over = perf_counter(), done, False

    @property
    def elapsed_s(self) -> float:
        """Since it came."""
        return perf_counter() - self._begun

    def call(self, upstream: Upstream, *, is_changed: bool) -> UpstreamCall:
        """One more call upstream begins."""
        made = UpstreamCall(upstream, len(self.calls), is_changed=is_changed)
        self.calls.append(made)
        return made

    def write(self) -> None:
        """The client gets a byte."""
        if self.first_byte_s < 0:
            self.first_byte_s = self.elapsed_s

    def end(self) -> None:
        """The request is over."""
        if not self._is_over:
            self._is_over = True
            for call in self.calls:
                call.end()
            self._done(self)
