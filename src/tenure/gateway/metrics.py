"""What a gateway counts, as Prometheus reads it: tokens and money with and without eviction, commits, recalls, misses, failures, times."""

from collections import Counter as Counts
from collections.abc import Mapping
from hashlib import sha256
from threading import Lock
from time import monotonic
from typing import Final

from msgspec.structs import asdict
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from tenure.engine.meter.ledger import PICO, Account, Ledger
from tenure.errors import TenureError
from tenure.gateway.missed import Missed
from tenure.gateway.server import FAULTS, Gateway
from tenure.gateway.trace import RequestTrace

MODELS: Final = 100  # that are told apart: clients name them
WAITING: Final = 1_000  # conversations that are still to be looked through for misses
LOOK_S: Final = 1.0  # of each reading of the metrics, for looking
OTHER: Final = "other"
_TIMES: Final = (0.001, 0.0025, 0.005, 0.01, 0.015, 0.03, 0.06, 0.15, 0.5, 1, 2.5, 5, 10, 30, 60, 300)  # seconds
_WHO: Final = ("model", "mode", "tenant", "arm")
_LATENCIES: Final[Mapping[str, str]] = {
    "find": "Until it was known what to send: reading, finding the conversation, deciding what leaves.",
    "record": "Recording the replies of a request.",
    "upstream": "From a call upstream to its status.",
    "first_byte": "From a request to the first byte of its answer.",
    "request": "From a request to the end of its answer.",
}

Who = tuple[str, str, str, str]


def tenant_name(tenant: str) -> str:
    """A tenant as metrics and spans name it: the start of a hash."""
    return sha256(tenant.encode("utf-8", "surrogatepass")).hexdigest()[:12] if tenant else ""


class Metrics:
    """Counters of one gateway. Usable by several threads."""

    def __init__(self, gateway: Gateway, missed: Missed) -> None:
        self._gateway, self._missed, self._lock = gateway, missed, Lock()
        self._waiting: dict[str, Who] = {}  # conversations with new entries and with commits
        self._known: dict[str, Counts[str]] = {}  # misses of a conversation that are counted already
        self._models = set[str]()
        self._events = Counts[str]()
        self._registry = held = CollectorRegistry()
        self._active = Gauge("tenure_requests_active", "Requests that are being answered.", registry=held)
        self._live = Gauge("tenure_conversations_live", "Conversations in memory.", registry=held)
        self._event = Counter("tenure_events", "What became of requests.", ["event"], registry=held)
        self._fault = Counter(
            "tenure_fail_opens", "Requests that were relayed as they came since something failed.", ["reason"], registry=held
        )
        self._calls = Counter("tenure_calls", "Calls of models that were reported.", _WHO, registry=held)
        self._tokens = Counter("tenure_tokens", "Provider tokens as reported.", (*_WHO, "kind"), registry=held)
        self._usd = Counter("tenure_usd", "Dollars for what was reported, at list prices.", _WHO, registry=held)
        self._simulated_tokens = Counter(
            "tenure_simulated_prompt_tokens", "Prompt tokens as sent, and had nothing left.", (*_WHO, "side"), registry=held
        )
        self._simulated_usd = Counter(
            "tenure_simulated_usd",
            "Dollars as sent, and had nothing left, through the same simulated cache.",
            (*_WHO, "side"),
            registry=held,
        )
        self._commits = Counter("tenure_commits", "Commits: times that something left.", _WHO, registry=held)
        self._recalls = Counter("tenure_recalls", "Answers that brought something back.", _WHO, registry=held)
        self._misses = Counter(
            "tenure_misses",
            "Needs of what had left: routed (a pointer led there) or lost. Looked for when metrics are read.",
            (*_WHO, "verdict"),
            registry=held,
        )
        self._behind = Gauge("tenure_misses_waiting", "Conversations still to be looked through for misses.", registry=held)
        self._times = {
            name: Histogram(f"tenure_{name}_seconds", text, registry=held, buckets=_TIMES) for name, text in _LATENCIES.items()
        }
        gateway.watchers.append(self.take)

    def take(self, trace: RequestTrace) -> None:
        """A request is over."""
        seconds = {"find": trace.find_s, "record": trace.record_s, "first_byte": trace.first_byte_s, "request": trace.elapsed_s}
        for name, value in seconds.items():
            if trace.operation and value >= 0:
                self._times[name].observe(value)
        for call in trace.calls:
            if trace.operation and call.answered_ns:
                self._times["upstream"].observe((call.answered_ns - call.begun_ns) / 1e9)
        exchange = trace.exchange
        growth = exchange.growth() if exchange is not None else None
        if exchange is None or growth is None or exchange.context is None:
            return
        tenant, arm, mode = tenant_name(trace.tenant), exchange.context.arm, self._gateway.settings.mode
        for account in _gained(growth.before, growth.now):
            who = self._model(account.model), mode, tenant, arm
            self._calls.labels(*who).inc(account.calls)
            self._usd.labels(*who).inc(account.usd)
            for kind, tokens in asdict(account.usage).items():
                self._tokens.labels(*who, kind).inc(tokens)
        who = self._model(exchange.model), mode, tenant, arm
        before, now = growth.before, growth.now
        for side, then, since in (
            ("sent", before.compared.sent, now.compared.sent),
            ("without", before.compared.whole, now.compared.whole),
        ):
            self._simulated_tokens.labels(*who, side).inc(since.usage.prompt - then.usage.prompt)
            self._simulated_usd.labels(*who, side).inc((since.pico_usd - then.pico_usd) / PICO)
        if growth.commits:
            self._commits.labels(*who).inc(growth.commits)
        if recalls := now.recalls.answers - before.recalls.answers:
            self._recalls.labels(*who).inc(recalls)
        if len(exchange.context.session.commits):
            with self._lock:
                self._waiting[exchange.conversation] = who
                while len(self._waiting) > WAITING:
                    del self._waiting[next(iter(self._waiting))]

    def text(self) -> bytes:
        """All of it, in Prometheus's own format. Reads the store, for a second at most."""
        self._look()
        gateway = self._gateway
        self._active.set(gateway.active)
        self._live.set(gateway.histories.live)
        self._behind.set(len(self._waiting))
        with self._lock:
            now = Counts(gateway.counts)
            for event, count in (now - self._events).items():
                self._event.labels(event).inc(count)
                if event in FAULTS:
                    self._fault.labels(event).inc(count)
            self._events = now
        return generate_latest(self._registry)

    def _look(self) -> None:
        """Look for what was missed in conversations that have gone on."""
        until = monotonic() + LOOK_S
        while monotonic() < until:
            with self._lock:
                if not self._waiting:
                    return
                conversation = next(iter(self._waiting))
                who = self._waiting.pop(conversation)
            try:
                verdicts = Counts[str](need.verdict for need in self._missed.of(conversation))
            except TenureError:  # it was deleted, or the store is away
                continue
            with self._lock:
                fresh = verdicts - self._known.pop(conversation, Counts[str]())
                self._known[conversation] = verdicts
                while len(self._known) > WAITING:
                    del self._known[next(iter(self._known))]
            for verdict, count in fresh.items():
                self._misses.labels(*who, verdict).inc(count)

    def _model(self, name: str) -> str:
        """A model as it is told apart from others."""
        with self._lock:
            if len(self._models) < MODELS:
                self._models.add(name)
            return name if name in self._models else OTHER


def _gained(before: Ledger, now: Ledger) -> list[Account]:
    """What each account gained, of those that did."""
    held = {(account.role, account.model): account for account in before.accounts}
    gained: list[Account] = []
    for account in now.accounts:
        then = held.get((account.role, account.model), Account(role=account.role, model=account.model))
        if account.calls > then.calls:
            gained.append(account.since(then))
    return gained
