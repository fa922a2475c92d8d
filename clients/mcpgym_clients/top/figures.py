"""What a server's metrics say at one moment, and what two such moments say of the time between them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

DURATIONS = "mcpgym_environment_tool_call_seconds"


@dataclass(slots=True)
class Counts:
    """What one environment has done since the server's start. ``buckets`` holds (upper bound in seconds, calls up to
    it), in order; the last bound is infinite."""

    live: int = 0
    errors: int = 0
    buckets: dict[float, int] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        """Tool calls answered."""
        return self.buckets.get(math.inf, 0)


@dataclass(frozen=True, slots=True)
class Moment:
    """A server's metrics when they were read: ``at`` in seconds of a clock that only runs on, memory in bytes."""

    at: float
    began: float
    version: str
    live: int
    opened: int
    memory: int
    cpu: float
    lag: float
    worst_lag: float
    environments: Mapping[str, Counts]


def read(text: str, at: float) -> Moment:
    """The metrics in Prometheus's text format.

    Raises:
        ValueError: they are none of ours.
    """
    from prometheus_client.parser import text_string_to_metric_families

    plain: dict[str, float] = {}
    version = ""
    environments: dict[str, Counts] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name, labels = sample.name, sample.labels
            if name == "mcpgym_info":
                version = labels.get("version", "")
            elif name.startswith("mcpgym_environment_") and "environment" in labels:
                counts = environments.setdefault(labels["environment"], Counts())
                if name == f"{DURATIONS}_bucket":
                    counts.buckets[float(labels["le"])] = int(sample.value)
                elif name == "mcpgym_environment_episodes_live":
                    counts.live = int(sample.value)
                elif name == "mcpgym_environment_tool_call_errors_total":
                    counts.errors = int(sample.value)
            elif not labels:
                plain[name] = sample.value
    if not version or "mcpgym_episodes_live" not in plain:
        raise ValueError("these are no metrics of an mcpgym server")
    return Moment(
        at=at,
        began=plain.get("process_start_time_seconds", 0.0),
        version=version,
        live=int(plain["mcpgym_episodes_live"]),
        opened=int(plain.get("mcpgym_episodes_opened_total", 0)),
        memory=int(plain.get("process_resident_memory_bytes", 0)),
        cpu=plain.get("process_cpu_seconds_total", 0.0),
        lag=plain.get("mcpgym_event_loop_lag_seconds", 0.0),
        worst_lag=plain.get("mcpgym_event_loop_lag_worst_seconds", 0.0),
        environments=environments,
    )


def percentile(buckets: Mapping[float, int], share: float, before: Mapping[float, int] | None = None) -> float | None:
    """The duration in seconds that ``share`` of the calls stayed below; None where there were no calls.

    Within a bucket calls count as spread evenly. Above all bounds the last bound is the answer.
    """
    earlier = before or {}
    upto = [(bound, count - earlier.get(bound, 0)) for bound, count in sorted(buckets.items())]
    total = upto[-1][1] if upto else 0
    if total <= 0:
        return None
    wanted, low, below = share * total, 0.0, 0
    for bound, count in upto:
        if count >= wanted and count > below:
            return low if math.isinf(bound) else low + (bound - low) * (wanted - below) / (count - below)
        low, below = bound if not math.isinf(bound) else low, count
    return low


def between(before: Moment, now: Moment) -> dict[str, Any]:
    """What happened from ``before`` to ``now``, for programs and for the table; durations in seconds."""
    seconds = max(now.at - before.at, 1e-9)
    rows: Sequence[dict[str, Any]] = [
        _row(name, counts, before.environments.get(name, Counts()), seconds)
        for name, counts in sorted(now.environments.items())
    ]
    return {
        "version": now.version,
        "seconds": round(seconds, 3),
        "episodes_live": now.live,
        "episodes_opened_per_second": round((now.opened - before.opened) / seconds, 3),
        "calls_per_second": round(sum(row["calls_per_second"] for row in rows), 3),
        "memory_bytes": now.memory,
        "cpu_share": round((now.cpu - before.cpu) / seconds, 4),
        "event_loop_lag_seconds": now.lag,
        "event_loop_lag_worst_seconds": now.worst_lag,
        "environments": rows,
    }


def _row(name: str, counts: Counts, before: Counts, seconds: float) -> dict[str, Any]:
    calls, errors = counts.calls - before.calls, counts.errors - before.errors
    return {
        "environment": name,
        "live": counts.live,
        "calls": counts.calls,
        "errors": counts.errors,
        "calls_per_second": round(calls / seconds, 3),
        "errors_per_second": round(errors / seconds, 3),
        "p50_seconds": percentile(counts.buckets, 0.5, before.buckets),
        "p99_seconds": percentile(counts.buckets, 0.99, before.buckets),
        "p50_seconds_since_start": percentile(counts.buckets, 0.5),
        "p99_seconds_since_start": percentile(counts.buckets, 0.99),
    }
