"""The pieces of telemetry: the trace context that travels, the bytes of OTLP, sampling, and what the variables mean."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased, Sampler, TraceIdRatioBased
from tests.server.telemetry_backend import attributes

from mcpgym.calls import CallRecord
from mcpgym.episodes import Episodes
from mcpgym.tally import BOUNDS, Tally
from mcpgym.telemetry import otlp, settings, switch
from mcpgym.telemetry.calls import CallKind, Calls
from mcpgym.telemetry.context import CURRENT, NOBODY, Context, caller, carry, new_span, new_trace, read, write
from mcpgym.telemetry.sections import NOTHING, Template, section
from mcpgym.telemetry.spans import Kind, Owner, Shape, digest

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TEMPLATE = Template("work")


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    settings.begin([exporter])
    yield exporter
    settings.end()


def test_a_span_that_a_caller_names_is_read_and_written_alike() -> None:
    found = read(f"00-{TRACE}-{SPAN}-01", "mcp")
    assert found == Context(bytes.fromhex(TRACE), bytes.fromhex(SPAN), True, True, "mcp")
    assert write(found) == f"00-{TRACE}-{SPAN}-01"
    assert not read(f"00-{TRACE}-{SPAN}-00", "mcp").sampled
    assert read(f"01-{TRACE}-{SPAN}-03-more", "mcp").sampled, "later versions may say more"


@pytest.mark.parametrize(
    "odd",
    [
        None,
        7,
        [],
        "",
        "x" * 100_000,
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}-01x",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00 {TRACE}-{SPAN}-01",
        f"00-{TRACE[:-1]}\u0661-{SPAN}-01",
    ],
    ids=lambda odd: repr(odd)[:50],
)
def test_what_is_no_trace_context_counts_as_none(odd: Any) -> None:
    assert caller({"traceparent": odd}, "mcp") is NOBODY["mcp"]
    assert caller(odd, "control") is NOBODY["control"]


@given(st.text(max_size=80) | st.from_regex(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", fullmatch=True))
def test_any_text_as_a_trace_context_is_read_as_the_official_propagator_reads_it(text: str) -> None:
    from opentelemetry.context import Context as Shared
    from opentelemetry.trace import get_current_span
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    theirs = get_current_span(TraceContextTextMapPropagator().extract({"traceparent": text}, Shared()))
    ours, known = read(text, "mcp"), theirs.get_span_context()
    if text != text.strip():
        return  # a header's blanks are no part of it; theirs passes them over
    assert bool(ours.trace) == known.is_valid
    if known.is_valid:
        assert (int.from_bytes(ours.trace, "big"), ours.sampled) == (known.trace_id, known.trace_flags.sampled)


VALUES = st.text(max_size=20) | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
ABOUT = st.dictionaries(st.text(min_size=1, max_size=10), VALUES, max_size=4)


@given(ABOUT, ABOUT, st.booleans(), st.booleans(), st.booleans())
def test_the_official_messages_read_what_was_written(
    common: Any, own: Any, failed: bool, parent: bool, elsewhere: bool
) -> None:
    trace, id_ = new_trace(), new_span()
    above = Context(trace, new_span(), True, remote=True) if parent else None
    owner = Owner({"episode": "digest"}, Context(new_trace() if elsewhere else trace, new_span(), True))
    shape = Shape("náme " * 90, Kind.SERVER, common, failed=failed)
    span = (trace, id_, above, 10**18 + 7, 10**18 + 8, shape, owner, {**own, "list": ("a", "b")})
    resource = otlp.attributes({"service.name": "ours"}, 1)
    made = ExportTraceServiceRequest.FromString(otlp.request(resource, otlp.field(1, b"mcpgym"), [span, span]))
    (found,) = made.resource_spans
    assert attributes(found.resource) == {"service.name": "ours"}
    assert found.scope_spans[0].scope.name == "mcpgym"
    first, second = found.scope_spans[0].spans
    assert first == second, "what is encoded once is the same the second time"
    assert (first.trace_id, first.span_id) == (trace, id_)
    assert first.parent_span_id == (above.span if above is not None else b"")
    assert bool(first.flags & 0x200) == parent
    assert (first.start_time_unix_nano, first.end_time_unix_nano) == (10**18 + 7, 10**18 + 8)
    assert (first.name, first.kind) == (shape.name, Span.SPAN_KIND_SERVER)
    assert (first.status.code == Status.STATUS_CODE_ERROR, first.status.message) == (failed, "")
    assert [link.span_id for link in first.links] == ([owner.span.span] if elsewhere else [])
    assert attributes(first) == {**common, "episode": "digest", **own, "list": ["a", "b"]}


KINDS = st.lists(st.tuples(st.sampled_from(["a", "bc", "d" * 90, "é" * 200]), st.booleans()), min_size=1, max_size=5)
WAITED = st.lists(st.tuples(st.integers(0, 4), st.floats(0, 1e9), st.integers(10**18, 2 * 10**18)), max_size=40)


@given(ABOUT, KINDS, WAITED)
def test_calls_are_written_as_spans_are(about: Any, named: Any, waited: Any) -> None:
    kinds = []
    for name, remote in named:
        owner = Owner({"episode": "digest"}, Context(new_trace(), new_span(), True, remote))
        kinds.append(CallKind(owner, Shape(name, Kind.SERVER, about, failed=name == "bc")))
    waited = [(kinds[number % len(kinds)], *times) for number, *times in waited]
    calls = Calls(list(itertools.chain(*waited)))
    spans = list(calls.spans())
    assert len(calls) == len(spans) == len({span[1] for span in spans}) == len(waited)
    assert [(span[6], span[5], span[4] - span[3], span[4]) for span in spans] == [
        (kind.owner, kind.shape, int(milliseconds * 1e6), end) for kind, milliseconds, end in waited
    ]
    written = otlp.request(b"", b"", spans), otlp.request(b"", b"", (), calls)
    (wanted,), (found,) = (ExportTraceServiceRequest.FromString(bytes_).resource_spans for bytes_ in written)
    by_id = [{span.span_id: span for span in some.scope_spans[0].spans} for some in (wanted, found)]
    assert by_id[0] == by_id[1]
    assert len(found.scope_spans[0].spans) == len(spans)


def test_no_call_is_lost_or_told_twice_while_others_export(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "1000000")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "7")
    exporter = InMemorySpanExporter()
    settings.begin([exporter])
    episodes = Episodes.of("tic-tac-toe")
    episode = asyncio.run(episodes.open("tic-tac-toe", split="train", index=0))
    watch, called = episode.watch, 20_000
    assert watch is not None

    def calling() -> None:
        for milliseconds in range(called):
            watch.called(CallRecord("play", {}, "", milliseconds % 50 == 0, float(milliseconds)))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        thread = threading.Thread(target=calling)
        thread.start()
        while thread.is_alive():
            settings.flush()
        thread.join()
    finally:
        sys.setswitchinterval(interval)
        settings.end()
    spans = exporter.get_finished_spans()
    found = sorted((span.end_time or 0) - (span.start_time or 0) for span in spans)
    assert found == [milliseconds * 1_000_000 for milliseconds in range(called)]


def test_while_it_is_off_nothing_is_made_and_nothing_is_carried() -> None:
    assert switch.recorder is None
    assert section(TEMPLATE) is NOTHING
    with section(TEMPLATE) as span:
        assert span is None
        assert CURRENT.get() is None
        meta: dict[str, Any] = {}
        carry(meta)
        assert meta == {}


def test_sections_within_each_other_are_parent_and_child(spans: InMemorySpanExporter) -> None:
    meta: dict[str, Any] = {}
    with section(TEMPLATE), contextlib.suppress(KeyError), section(TEMPLATE) as inner:
        assert inner is not None
        carry(meta)
        raise KeyError("what nobody is told")
    assert meta["traceparent"] == f"00-{inner.context.trace.hex()}-{inner.context.span.hex()}-01"
    settings.flush()
    below, above = spans.get_finished_spans()
    assert below.parent is not None
    assert (below.parent.span_id, below.context.trace_id) == (above.context.span_id, above.context.trace_id)
    assert (below.attributes, below.status.status_code.name) == ({"error.type": "KeyError"}, "ERROR")
    assert "nobody" not in below.to_json()


def test_whoever_uses_us_as_a_library_finds_our_spans_below_its_own(spans: InMemorySpanExporter) -> None:
    from opentelemetry.sdk.trace import TracerProvider

    with TracerProvider(shutdown_on_exit=False).get_tracer("theirs").start_as_current_span("theirs") as theirs:
        with section(TEMPLATE):
            pass
        settings.flush()
        (ours,) = spans.get_finished_spans()
        assert ours.parent is not None
        assert ours.parent.span_id == theirs.get_span_context().span_id


@pytest.mark.parametrize(("sampler", "follows"), [(ParentBased(ALWAYS_OFF), True), (TraceIdRatioBased(0.0), False)])
def test_samplers_are_asked_where_a_trace_begins_and_about_callers(sampler: Any, follows: bool) -> None:
    exporter = InMemorySpanExporter()
    settings.begin([exporter], sampler=sampler)
    try:
        with section(TEMPLATE), section(TEMPLATE):
            pass
        token = CURRENT.set(read(f"00-{TRACE}-{SPAN}-01", "mcp"))
        with section(TEMPLATE), section(TEMPLATE):
            pass
        CURRENT.reset(token)
    finally:
        settings.end()
    assert len(exporter.get_finished_spans()) == (2 if follows else 0)


@pytest.mark.parametrize(
    ("variables", "traces", "metrics"),
    [
        ({}, [], []),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:1"}, ["otlp"], ["otlp"]),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://h:1"}, ["otlp"], []),
        ({"OTEL_TRACES_EXPORTER": "console, otlp"}, ["console", "otlp"], []),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:1"}, [], ["otlp"]),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:1", "OTEL_SDK_DISABLED": "true"}, [], []),
    ],
    ids=str,
)
def test_what_the_variables_ask_for(variables: dict[str, str], traces: list[str], metrics: list[str]) -> None:
    assert settings.exporter_names("traces", variables) == traces
    assert settings.exporter_names("metrics", variables) == metrics


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("OTEL_TRACES_EXPORTER", "zipking", "installed are: "),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "carrier/pigeon", "http/protobuf"),
    ],
)
def test_a_wrong_setting_is_said_and_the_work_goes_on(
    variable: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv(variable, value)
    with settings.telemetry("test"):
        assert switch.recorder is None
    assert value in caplog.text
    assert said in caplog.text


def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(settings, "entry_points", lambda **_: [])
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)
    with settings.telemetry("test"):
        assert switch.recorder is None
    assert "pip install 'mcpgym[otel]'" in caplog.text


def test_a_backend_that_fails_costs_no_more_than_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(InMemorySpanExporter):
        def export(self, spans: Any) -> Any:
            raise ConnectionError("with a secret in it")

    settings.begin([Broken()])
    with section(TEMPLATE):
        pass
    settings.end()
    assert "ConnectionError" in caplog.text
    assert "secret" not in caplog.text


def test_a_sampler_that_fails_costs_no_more_than_its_spans(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Sampler):
        def should_sample(self, *given: Any, **named: Any) -> Any:
            raise RuntimeError("with a secret in it")

        def get_description(self) -> str:
            return "broken"

    exporter = InMemorySpanExporter()
    settings.begin([exporter], sampler=Broken())
    with section(TEMPLATE) as span:
        assert span is not None
    settings.end()
    assert not exporter.get_finished_spans()
    assert "RuntimeError" in caplog.text
    assert "secret" not in caplog.text


def test_calls_that_cannot_wait_are_lost_and_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "10")
    exporter = InMemorySpanExporter()
    settings.begin([exporter])
    recorder = switch.recorder
    assert recorder is not None
    episode = asyncio.run(Episodes.of("tic-tac-toe").open("tic-tac-toe", split="train", index=0))
    assert episode.watch is not None
    with recorder._exporting:  # the backend is slow
        for _ in range(25):
            episode.watch.called(CallRecord("play", {}, "", False, 1.0))
    settings.end()
    assert [span.name for span in exporter.get_finished_spans()] == ["execute_tool play"] * 10
    assert "15 spans were lost" in caplog.text


def test_what_the_queue_cannot_take_is_lost_and_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "10")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "none")
    exporter = InMemorySpanExporter()
    settings.begin([exporter])
    assert switch.recorder is not None
    with switch.recorder._exporting:  # the backend is slow
        for _ in range(25):
            with section(TEMPLATE):
                pass
    settings.end()
    assert len(exporter.get_finished_spans()) == 10
    assert "15 spans were lost" in caplog.text
    assert "OTEL_BSP_MAX_EXPORT_BATCH_SIZE is no number" in caplog.text


@pytest.mark.flaky(reruns=1)  # it measures time
def test_an_unreachable_backend_holds_nothing_up_at_the_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "opentelemetry")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    with settings.telemetry("test"):
        with section(TEMPLATE):
            pass
        began = time.monotonic()
        settings.end(0.3)
    assert time.monotonic() - began < 6


@given(st.lists(st.floats(0, 200_000), max_size=50))
def test_durations_are_counted_in_the_bucket_they_belong_to(milliseconds: list[float]) -> None:
    tally = Tally()
    for place, value in enumerate(milliseconds):
        tally.add(value, place % 3 == 0)
        if place % 7 == 0:
            tally.snapshot()
    counts, total = tally.snapshot()
    seconds = [value / 1e3 for value in milliseconds]
    edges = [-1.0, *BOUNDS, float("inf")]
    assert counts == [sum(low < value <= high for value in seconds) for low, high in itertools.pairwise(edges)]
    assert total == pytest.approx(sum(seconds))
    assert (tally.calls, tally.errors) == (len(seconds), -(-len(seconds) // 3))


def test_thousands_of_calls_between_two_looks_are_all_counted() -> None:
    tally = Tally()
    for _ in range(10_001):
        tally.add(3.0, False)
    counts, _ = tally.snapshot()
    assert sum(counts) == counts[BOUNDS.index(0.005)] == 10_001


def test_an_episode_s_public_name_is_short_and_always_the_same() -> None:
    assert digest("a" * 32) == digest("a" * 32) != digest("b" * 32)
    assert len(digest("a" * 32)) == 12
