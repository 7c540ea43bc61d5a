"""One OpenTelemetry span for each call of a model upstream, by the semantic conventions for generative AI (gen_ai.*).

Nothing is sent unless the standard variables say where to: OTEL_EXPORTER_OTLP_ENDPOINT, or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, or
OTEL_TRACES_EXPORTER=console. No words of any conversation are in a span.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from tenure.apis.sdk import reply_id
from tenure.errors import InputError
from tenure.extras import NotInstalled
from tenure.gateway.metrics import tenant_name
from tenure.gateway.server import Gateway
from tenure.gateway.trace import RequestTrace, UpstreamCall
from tenure.models.hosts import NAMED

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
EXPORTER: Final = "OTEL_TRACES_EXPORTER"
PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
HTTP: Final = "http/protobuf"


def is_configured(environment: Mapping[str, str]) -> bool:
    """Whether the environment asks for spans."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or environment.get(EXPORTER) == "none":
        return False
    return any(environment.get(name) for name in (*ENDPOINTS, EXPORTER))


def provider_of(environment: Mapping[str, str]) -> "TracerProvider":
    """What sends spans as the environment says. Raises InputError for a way that is not there, NotInstalled without the extra `otel`."""
    kind = environment.get(EXPORTER) or "otlp"
    protocol = next((environment[name] for name in PROTOCOLS if environment.get(name)), HTTP)
    if kind not in ("otlp", "console"):
        raise InputError(EXPORTER, repr(kind), "otlp, console or none")
    if kind == "otlp" and protocol != HTTP:
        raise InputError(PROTOCOLS[1], repr(protocol), HTTP)
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
    except ModuleNotFoundError as error:
        raise NotInstalled("opentelemetry") from error
    named = {} if environment.get("OTEL_SERVICE_NAME") else {"service.name": "tenure"}
    exporter: SpanExporter = OTLPSpanExporter() if kind == "otlp" else ConsoleSpanExporter()
    provider = TracerProvider(resource=Resource.create(named))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


@contextmanager
def tracing(gateway: Gateway, environment: Mapping[str, str]) -> Generator[None, None, None]:
    """Make spans of a gateway's calls meanwhile, where the environment asks for them; what is left is sent at the end. Raises as `provider_of`."""
    if not is_configured(environment):
        yield
        return
    spans = Spans(gateway, provider_of(environment))
    try:
        yield
    finally:
        spans.close()


class Spans:
    """Makes the spans of one gateway. Usable by several threads."""

    def __init__(self, gateway: Gateway, provider: "TracerProvider") -> None:
        from tenure import __version__

        self._gateway, self._provider = gateway, provider
        self._tracer = provider.get_tracer("tenure", __version__, schema_url="https://opentelemetry.io/schemas/1.37.0")
        gateway.watchers.append(self.take)

    def take(self, trace: RequestTrace) -> None:
        """A request is over; a client that sends a `traceparent` finds its spans in its own trace."""
        from opentelemetry.trace import SpanKind, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        if not trace.operation:
            return
        context = TraceContextTextMapPropagator().extract(trace.headers)
        for call in trace.calls:
            span = self._tracer.start_span(
                f"{trace.operation} {_model(trace)}".strip(),
                context,
                SpanKind.CLIENT,
                attributes=self._attributes(trace, call),
                start_time=call.begun_ns,
            )
            if error := call.error or (str(call.status) if call.status >= 400 else ""):
                span.set_attribute("error.type", error)
                span.set_status(StatusCode.ERROR)
            span.end(call.ended_ns)

    def close(self) -> None:
        """Send what is left."""
        self._provider.shutdown()

    def _attributes(self, trace: RequestTrace, call: UpstreamCall) -> dict[str, str | int | float | bool]:
        parts, service = urlsplit(call.upstream.url), NAMED.get(call.upstream.provider or call.upstream.name)
        exchange, reply = trace.exchange, call.reply
        found: dict[str, str | int | float | bool] = {
            "gen_ai.operation.name": trace.operation,
            "gen_ai.provider.name": (service.convention or service.name) if service else call.upstream.name,
            "gen_ai.request.model": _model(trace),
            "server.address": parts.hostname or "",
            "server.port": parts.port or (443 if parts.scheme == "https" else 80),
            "http.response.status_code": call.status,
            "tenure.mode": self._gateway.settings.mode,
            "tenure.tenant": tenant_name(trace.tenant),
            "tenure.round": call.number,
            "tenure.changed": call.is_changed,
        }
        if exchange is not None:
            found |= {"gen_ai.conversation.id": exchange.conversation, "tenure.unmanaged": exchange.reason}
        if exchange is not None and exchange.context is not None:
            found |= {"tenure.arm": exchange.context.arm, "tenure.commits": len(exchange.context.session.commits)}
        if reply is not None:
            found |= {"gen_ai.response.model": reply.model, "gen_ai.response.id": reply_id(call.content)}
        if reply is not None and reply.usage is not None:
            found |= {
                "gen_ai.usage.input_tokens": reply.usage.prompt,
                "gen_ai.usage.output_tokens": reply.usage.output,
                "gen_ai.usage.cache_read.input_tokens": reply.usage.cache_read,
                "gen_ai.usage.cache_creation.input_tokens": reply.usage.cache_write,
            }
        return {name: value for name, value in found.items() if value not in ("", None)}


def _model(trace: RequestTrace) -> str:
    return trace.exchange.model if trace.exchange is not None else trace.model
