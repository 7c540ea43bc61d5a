"""What a gateway counts and reports of requests: Prometheus metrics, OpenTelemetry spans, and the split of arms."""

import json
import re
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from otlp import receiving
from prometheus_client.parser import text_string_to_metric_families
from sdk_clients import STEPS
from test_gateway import LONG, QUESTION, READ, TIGHT, agent, becomes_idle, between, replies

from tenure.context.exchange import Management
from tenure.engine.lifecycle.budget import Budget
from tenure.errors import InputError
from tenure.gateway.metrics import Metrics, tenant_name
from tenure.gateway.missed import Missed
from tenure.gateway.server import Gateway
from tenure.gateway.settings import tokens_of
from tenure.gateway.spans import Spans, is_configured, provider_of, tracing
from tenure.lab.split import split_of
from tenure.store.records import Records
from tenure.testing.provider import FakeProvider
from tenure.testing.script import Call, Fault, Reply, Script

WHO = {"model": "claude-opus-5", "mode": "on", "tenant": "", "arm": ""}
USED = {**QUESTION, "tools": [{"name": "read", "input_schema": {"type": "object"}}]}


class Counted:
    """The metrics of a gateway, read as Prometheus reads them."""

    def __init__(self, gateway: Gateway) -> None:
        self._metrics = Metrics(gateway, Missed(gateway.histories.store))

    def read(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for family in text_string_to_metric_families(self._metrics.text().decode()):
            for sample in family.samples:
                labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()) if value)
                found[f"{sample.name} {labels}".strip()] = sample.value
        return found


def needing(calls: int) -> Script:
    """Reads for a while, and uses a name at the end that stood in the first result only."""
    late = Call(name="read", arguments='{"path": "src/deep/zq_7919_helper.py"}')
    return Script(replies=tuple(Reply(text=f"look {n}", calls=(late if n == calls - 1 else READ,)) for n in range(calls)))


def test_metrics_say_what_was_sent_what_it_would_have_been_and_what_was_missed() -> None:
    provider = FakeProvider(replies, clock=lambda: 0.0)
    with between(provider) as (url, gateway):
        counted = Counted(gateway)
        agent("anthropic", url, 12, stream=True)
        assert becomes_idle(gateway)
        now = counted.read()
        store = gateway.histories.store
        (only,) = store.conversations()
        reports = [each.usage for each in store.usages(only.id)]
    who = "arm=,mode=on,model=claude-opus-5".replace("arm=,", "")
    assert now[f"tenure_calls_total {who}"] == len(reports)
    for kind in ("uncached", "cache_write", "cache_read", "output"):
        assert now[f"tenure_tokens_total kind={kind},{who}"] == sum(getattr(each, kind) for each in reports)
    assert now[f"tenure_commits_total {who}"] == only.commits
    assert now[f"tenure_recalls_total {who}"] >= 1
    sent, without = (now[f"tenure_simulated_prompt_tokens_total {who},side={side}"] for side in ("sent", "without"))
    assert sent < without
    assert now[f"tenure_usd_total {who}"] > 0
    assert now[f"tenure_simulated_usd_total {who},side=sent"] > 0
    for part in ("find", "record", "upstream", "first_byte", "request"):
        assert now[f"tenure_{part}_seconds_count"] >= 12
        assert now[f"tenure_{part}_seconds_bucket le=+Inf"] == now[f"tenure_{part}_seconds_count"]
    assert now["tenure_events_total event=leads"] == 12
    assert now["tenure_misses_waiting"] == 0


def test_what_is_missed_is_counted_once_however_often_metrics_are_read() -> None:
    first = LONG.replace("line 60:", "line 60: src/deep/zq_7919_helper.py says that", 1)
    provider = FakeProvider(needing(14), clock=lambda: 0.0)
    with between(provider) as (url, gateway), STEPS["anthropic"](url, stream=True) as step:
        counted = Counted(gateway)
        history: list[Any] = [{"role": "user", "content": "please do it"}]
        for n in range(14):
            history, calls = step(history)
            content = first if n == 0 else LONG
            history += [
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id_, "content": content} for id_, _ in calls]}
            ]
            if n == 11:
                counted.read()
        assert becomes_idle(gateway)
        (only,) = gateway.histories.store.conversations()
        missed = Missed(gateway.histories.store).of(only.id)
        now = counted.read() | counted.read()
    assert any("zq_7919" in need.text for need in missed)
    assert sum(value for name, value in now.items() if name.startswith("tenure_misses_total")) == len(missed)


def test_tenants_are_named_by_a_hash_and_models_are_bounded() -> None:
    provider = FakeProvider(Script(replies=tuple(Reply(text="hi") for _ in range(120))))
    with between(provider, tokens=tokens_of(["red=" + "r" * 20])) as (url, gateway):
        counted = Counted(gateway)
        for n in range(110):
            body = {**USED, "model": f"model-{n}", "messages": [{"role": "user", "content": f"go {n}"}]}
            assert httpx.post(f"{url}/v1/messages", json=body, headers={"x-tenure-token": "r" * 20}).status_code == 200
        assert becomes_idle(gateway)
        now = counted.read()
    named = [name for name in now if name.startswith("tenure_calls_total")]
    assert all(f"tenant={tenant_name('red')}" in name for name in named)
    assert "red" not in "".join(named).replace(tenant_name("red"), "")
    assert len(named) <= 101
    assert any("model=other" in name for name in named)


def test_what_failed_open_is_counted_by_its_reason() -> None:
    provider = FakeProvider(Script(replies=(Reply(text="hi"),)))
    with between(provider) as (url, gateway):
        counted = Counted(gateway)
        httpx.post(f"{url}/v1/messages", content=b"{")
        assert counted.read()["tenure_fail_opens_total reason=could not be managed"] == 1


# --- Spans


def spans_of(url: str, gateway: Gateway, act: Any) -> list[Any]:
    """The spans of what is done."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    spans = Spans(gateway, provider)
    act(url)
    assert becomes_idle(gateway)
    spans.close()
    return list(exporter.get_finished_spans())


@pytest.mark.parametrize(
    ("name", "provider", "operation"),
    [
        ("anthropic", "anthropic", "chat"),
        ("openai-responses", "openai", "chat"),
        ("openai-chat", "openai", "chat"),
        ("gemini", "gcp.gemini", "generate_content"),
    ],
)
def test_every_call_upstream_is_a_span_with_its_usage(name: str, provider: str, operation: str) -> None:
    fake = FakeProvider(replies, clock=lambda: 0.0)
    with between(fake) as (url, gateway):
        streams = name != "openai-chat"  # whose streams report nothing unless asked
        found = spans_of(url, gateway, lambda url: agent(name, url, 10, stream=streams))
        store = gateway.histories.store
        (only,) = store.conversations()
        reports = [each.usage for each in store.usages(only.id)]
    assert len(found) == len(fake.seen) == len(reports)
    assert gateway.counts["rounds"], "the model recalled something"
    for span, usage in zip(found, reports, strict=True):
        held = dict(span.attributes)
        assert span.name == f"{operation} {held['gen_ai.request.model']}"
        assert span.kind.name == "CLIENT"
        assert span.start_time < span.end_time
        assert held["gen_ai.operation.name"] == operation
        assert held["gen_ai.provider.name"] == provider
        assert held["gen_ai.conversation.id"] == only.id
        assert held["gen_ai.usage.input_tokens"] == usage.prompt
        assert held["gen_ai.usage.output_tokens"] == usage.output
        assert held["gen_ai.usage.cache_read.input_tokens"] == usage.cache_read
        assert held["http.response.status_code"] == 200
        assert held["server.address"] == "127.0.0.1"
    assert max(span.attributes["tenure.round"] for span in found) >= 1
    assert found[-1].attributes["tenure.changed"] is True
    assert only.commits - 1 <= found[-1].attributes["tenure.commits"] <= only.commits  # one may be decided behind the last reply
    assert "value of item" not in json.dumps([dict(span.attributes) for span in found])


def test_a_span_continues_the_trace_of_its_client_and_says_what_failed() -> None:
    provider = FakeProvider(Script(replies=(Fault(status=529), Reply(text="hi"))))
    parent = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    with between(provider) as (url, gateway):
        found = spans_of(
            url, gateway, lambda url: [httpx.post(f"{url}/v1/messages", json=USED, headers=parent) for _ in range(2)]
        )
    assert [format(span.context.trace_id, "x") for span in found] == ["af7651916cd43dd8448eb211c80319c"] * 2
    assert [span.attributes.get("error.type") for span in found] == ["529", None]
    assert [span.status.status_code.name for span in found] == ["ERROR", "UNSET"]
    assert provider.seen[0].headers["traceparent"] == parent["traceparent"]


def test_spans_go_where_the_standard_variables_say(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = FakeProvider(Script(replies=(Reply(text="hi"),)))
    with receiving() as (there, came):
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": there, "OTEL_SERVICE_NAME": "agents"}
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        with between(provider) as (url, gateway), tracing(gateway, environment):
            assert httpx.post(f"{url}/v1/messages", json=USED).status_code == 200
            assert becomes_idle(gateway)
    (request,) = came
    (resource,) = request.resource_spans
    named = {each.key: each.value.string_value for each in resource.resource.attributes}
    assert named["service.name"] == "agents"
    (span,) = resource.scope_spans[0].spans
    assert span.name == "chat claude-opus-5"
    assert {each.key for each in span.attributes} >= {"gen_ai.usage.input_tokens", "gen_ai.response.id"}


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_SERVICE_NAME": "x"},
        {"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"},
        {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"},
    ],
)
def test_nothing_is_sent_unless_the_environment_says_so(environment: dict[str, str]) -> None:
    assert not is_configured(environment)


@pytest.mark.parametrize(
    "environment",
    [{"OTEL_TRACES_EXPORTER": "zipkin"}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "x", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}],
)
def test_a_way_to_send_spans_that_is_not_there_is_named(environment: dict[str, str]) -> None:
    with pytest.raises(InputError, match=re.escape(next(iter(environment.values())) if len(environment) == 1 else "grpc")):
        provider_of(environment)


# --- Arms


def test_held_out_sessions_are_left_alone_and_stand_beside_the_others() -> None:
    provider = FakeProvider(replies, clock=lambda: 0.0)
    management = Management(budget=Budget(ceiling=2_000), holdout=0.5)
    with between(provider, management=management) as (url, gateway):
        counted = Counted(gateway)
        for n in range(8):
            history: list[Any] = [{"role": "user", "content": f"task {n}"}]
            with httpx.Client(headers={"x-session-id": f"session {n}"}, timeout=60) as client:
                for _turn in range(7):
                    answer = client.post(f"{url}/v1/messages", json={**USED, "messages": history}).json()
                    calls = [part["id"] for part in answer["content"] if part["type"] == "tool_use"]
                    history += [
                        {"role": "assistant", "content": answer["content"]},
                        {
                            "role": "user",
                            "content": [{"type": "tool_result", "tool_use_id": id_, "content": LONG} for id_ in calls],
                        },
                    ]
        assert becomes_idle(gateway)
        store: Records = gateway.histories.store
        report = split_of(store)
        now = counted.read()
        arms = {held.id: json.loads(held.terms)["arm"] for held in store.conversations()}
        commits = {held.id: held.commits for held in store.conversations()}
    rows = {row.arm: row for row in report.rows}
    assert set(rows) == {"managed", "control"}
    assert all((commits[id_] == 0) == (arm == "control") for id_, arm in arms.items())
    assert report.differences
    assert rows["managed"].input_per_call < rows["control"].input_per_call  # type: ignore[operator]
    assert now["tenure_calls_total arm=control,mode=on,model=claude-opus-5"] == rows["control"].calls
    assert TIGHT.holdout == 0.0
