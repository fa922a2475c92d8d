"""Metrics of one server for Prometheus: its episodes and calls, the event loop's lag, and the process."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from mcpgym.episodes import Episodes
from mcpgym.tally import BOUNDS

logger = logging.getLogger(__name__)

SAMPLE_SECONDS = 0.1
WINDOW_SECONDS = 60.0
WARN_SECONDS = 1.0
QUANTILES = (0.5, 0.9, 0.99)


class LoopLag:
    """How late the event loop runs what is due: a blocking tool or reward shows here first. All in seconds."""

    def __init__(self) -> None:
        self.latest = 0.0
        self._samples: deque[float] = deque(maxlen=round(WINDOW_SECONDS / SAMPLE_SECONDS))

    @property
    def worst(self) -> float:
        """The longest lag within the last minute."""
        return max(self._samples, default=0.0)

    async def sample_forever(self) -> None:
        """Measure until cancelled; a lag of over a second is also a warning in the log, once a minute."""
        quiet_until = 0.0
        while True:
            before = time.perf_counter()
            await asyncio.sleep(SAMPLE_SECONDS)
            self.latest = max(0.0, time.perf_counter() - before - SAMPLE_SECONDS)
            self._samples.append(self.latest)
            if self.latest > WARN_SECONDS and before > quiet_until:
                quiet_until = before + WINDOW_SECONDS
                logger.warning(
                    "the event loop stood still for %.1f s: a reset, reward or inline tool computes too long, or this "
                    "machine is overloaded",
                    self.latest,
                )


class EpisodesCollector(Collector):
    """Reads the counters of ``episodes`` when asked; nothing is counted twice, and nothing names an episode."""

    def __init__(self, episodes: Episodes, lag: LoopLag) -> None:
        self.episodes = episodes
        self.lag = lag

    def collect(self) -> Iterator[Metric]:
        """The metrics as they stand."""
        from mcpgym import __version__

        counters = self.episodes.counters
        yield InfoMetricFamily("mcpgym", "The server.", {"version": __version__})
        yield GaugeMetricFamily("mcpgym_episodes_live", "Episodes that are open now.", len(self.episodes))
        yield GaugeMetricFamily("mcpgym_episodes_cap", "Episodes that may be open at once.", self.episodes.limits.live)
        yield CounterMetricFamily("mcpgym_episodes_opened", "Episodes opened.", counters.opened)
        yield CounterMetricFamily("mcpgym_episodes_scored", "Scores given.", counters.scored)
        ended = CounterMetricFamily("mcpgym_episodes_ended", "Episodes ended, by reason.", labels=["reason"])
        for reason, count in sorted(counters.ended.items()):
            ended.add_metric([reason], count)
        yield ended
        yield CounterMetricFamily("mcpgym_tool_calls", "Tool calls answered.", counters.calls)
        yield CounterMetricFamily("mcpgym_tool_call_errors", "Tool calls answered with an error.", counters.call_errors)
        if latencies := sorted(counters.latencies):
            recent = GaugeMetricFamily(
                "mcpgym_tool_call_seconds", "Time inside the environment, over the latest calls.", labels=["quantile"]
            )
            for quantile in QUANTILES:
                recent.add_metric([str(quantile)], latencies[int(quantile * (len(latencies) - 1))] / 1e3)
            yield recent
        yield from self._by_environment()
        yield GaugeMetricFamily("mcpgym_event_loop_lag_seconds", "How late the event loop ran last.", self.lag.latest)
        yield GaugeMetricFamily(
            "mcpgym_event_loop_lag_worst_seconds", "How late the event loop ran at worst in a minute.", self.lag.worst
        )
        if gauges := self.episodes.gauges():
            own = GaugeMetricFamily(
                "mcpgym_environment",
                "What an environment says of itself, over all its configurations.",
                labels=["environment", "name"],
            )
            for (environment, name), value in sorted(gauges.items()):
                own.add_metric([environment, name], value)
            yield own
        yield GaugeMetricFamily("mcpgym_threads", "Threads alive; stuck tools keep theirs.", threading.active_count())

    def _by_environment(self) -> Iterator[Metric]:
        labels = ["environment"]
        live = GaugeMetricFamily("mcpgym_environment_episodes_live", "Episodes that are open now.", labels=labels)
        errors = CounterMetricFamily(
            "mcpgym_environment_tool_call_errors", "Tool calls answered with an error.", labels=labels
        )
        durations = HistogramMetricFamily(
            "mcpgym_environment_tool_call_seconds", "Time inside the environment.", labels=labels
        )
        for name, tally in sorted(self.episodes.counters.tallies.items()):
            counts, total = tally.snapshot()
            buckets = zip((*map(repr, BOUNDS), "+Inf"), accumulate(counts), strict=True)
            live.add_metric([name], tally.live)
            errors.add_metric([name], tally.errors)
            durations.add_metric([name], [(bound, float(count)) for bound, count in buckets], total)
        yield from (live, errors, durations)


class Metrics:
    """The registry of one server; servers in one process do not share it."""

    def __init__(self, episodes: Episodes, lag: LoopLag) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(EpisodesCollector(episodes, lag))
        ProcessCollector(registry=self._registry)

    def render(self) -> bytes:
        """Everything in Prometheus's text format."""
        return generate_latest(self._registry)
