"""The metrics of several processes as one server's: what is counted is added up, what is waited for is the worst.

What a dead process had counted is kept as it was last read, so that sums do not fall.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from mcpgym.errors import McpgymError
from mcpgym.fleet.crew import Crew
from mcpgym.fleet.workers import Worker

ASK_SECONDS = 5.0
_WORST = frozenset({"mcpgym_tool_call_seconds", "mcpgym_event_loop_lag_seconds", "mcpgym_event_loop_lag_worst_seconds"})
_LATEST = frozenset({"mcpgym", "process_start_time_seconds", "process_max_fds"})
"""Of which the largest is shown: a process that began later than all others began counting anew."""


class FleetMetrics:
    """What ``/metrics`` shows of a fleet."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._last: dict[str, list[Metric]] = {}
        self._dead: list[Metric] = []
        self._front = ProcessCollector(registry=None)

    async def render(self) -> bytes:
        """Everything in Prometheus's text format."""
        alive = self._crew.alive()
        texts = await asyncio.gather(*(self._ask(worker) for worker in alive))
        for worker, text in zip(alive, texts, strict=True):
            if text is not None and not worker.member.gone:
                self._last[worker.name] = list(text_string_to_metric_families(text))
        there = {worker.name for worker in alive}
        for name in [name for name in self._last if name not in there]:
            self._dead = merged([self._dead, _counted(self._last.pop(name))])
        registry = CollectorRegistry(auto_describe=False)
        living = [self._last[name] for name in there if name in self._last]
        registry.register(_Once([*merged([*living, self._dead, list(self._front.collect())]), *self._own()]))
        return generate_latest(registry)

    async def _ask(self, worker: Worker) -> str | None:
        try:
            async with asyncio.timeout(ASK_SECONDS):
                return await worker.member.control.metrics()
        except (McpgymError, TimeoutError):
            return None

    def _own(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("mcpgym_workers", "Worker processes that answer.", len(self._crew.alive()))
        yield CounterMetricFamily("mcpgym_workers_died", "Worker processes that died.", self._crew.deaths)
        yield CounterMetricFamily("mcpgym_episodes_lost", "Episodes that died with their worker.", self._crew.lost)
        yield CounterMetricFamily("mcpgym_front_cpu_seconds", "CPU time of the front alone.", time.process_time())


def merged(processes: Iterable[list[Metric]]) -> list[Metric]:
    """The metrics of several processes as one's."""
    families: dict[str, Metric] = {}
    values: dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]] = {}
    for found in processes:
        for family in found:
            families.setdefault(family.name, family)
            sums = values.setdefault(family.name, {})
            for sample in family.samples:
                if sample.name.endswith("_created"):
                    continue
                key = (sample.name, tuple(sorted(sample.labels.items())))
                if family.name in _WORST or family.name in _LATEST:
                    sums[key] = max(sums.get(key, sample.value), sample.value)
                else:
                    sums[key] = sums.get(key, 0.0) + sample.value
    made = []
    for name, family in families.items():
        one = Metric(name, family.documentation, family.type)
        one.samples = [Sample(sample, dict(labels), value) for (sample, labels), value in values[name].items()]
        made.append(one)
    return made


def _counted(found: list[Metric]) -> list[Metric]:
    """What stays true of a dead process: what it had counted."""
    return [family for family in found if family.type in ("counter", "histogram")]


class _Once(Collector):
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics
