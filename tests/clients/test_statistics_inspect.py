"""Our intervals on Inspect's own data structures: the two agree where they define the same thing."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from mcpgym_clients.statistics import bootstrap, mean, share
from mcpgym_clients.statistics.estimates import cluster_variance


class _Scorer:
    """Inspect's module, imported when a test first needs it: it takes seconds, and every worker collects every test."""

    def __getattr__(self, name: str) -> Any:
        return getattr(pytest.importorskip("inspect_ai.scorer"), name)


scorer = _Scorer()

RANDOM = Random(20260728)
TASKS = [f"test-{number}" for number in range(25)]
CLUSTERS = [task for task in TASKS for _ in range(4)]
LEVELS = {task: RANDOM.random() for task in TASKS}
VALUES = [min(1.0, max(0.0, RANDOM.gauss(LEVELS[task], 0.2))) for task in CLUSTERS]
WON = [RANDOM.random() < LEVELS[task] for task in CLUSTERS]


def scores(values: Sequence[float], clusters: Sequence[str]) -> list[Any]:
    return [
        scorer.SampleScore(score=scorer.Score(value=value), sample_metadata={"task": task})
        for value, task in zip(values, clusters, strict=True)
    ]


def theirs(metric: Any, values: Sequence[float], clusters: Sequence[str]) -> Any:
    found = metric(scores(values, clusters))
    return [found["lower"], found["upper"]] if isinstance(found, dict) else found


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_t_intervals_are_the_same(level: float) -> None:
    once = VALUES[::4]
    assert mean(once, TASKS, level).interval == pytest.approx(theirs(scorer.ci(level), once, TASKS), abs=1e-12)
    clustered = theirs(scorer.ci(level, cluster="task"), VALUES, CLUSTERS)
    assert mean(VALUES, CLUSTERS, level).interval == pytest.approx(clustered, abs=1e-12)


def test_standard_errors_are_the_same() -> None:
    centre = sum(VALUES) / len(VALUES)
    ours = cluster_variance(VALUES, centre, CLUSTERS)[0] ** 0.5
    assert ours == pytest.approx(theirs(scorer.stderr(cluster="task"), VALUES, CLUSTERS), abs=1e-12)
    plain = cluster_variance(VALUES, centre, range(len(VALUES)))[0] ** 0.5
    assert plain == pytest.approx(theirs(scorer.stderr(), VALUES, CLUSTERS), abs=1e-12)
    assert ours > 1.3 * plain  # or the test would not tell them apart


def test_wilsons_intervals_are_the_same_and_near_each_other_where_clustered() -> None:
    """Inspect puts the t quantile of the clusters into Wilson's formula; Korn and Graubard, and we, into the size."""
    once = WON[::4]
    numbers = [float(value) for value in once]
    assert share(once, TASKS).interval == pytest.approx(theirs(scorer.ci_wilson(), numbers, TASKS), abs=1e-12)
    numbers = [float(value) for value in WON]
    clustered = theirs(scorer.ci_wilson(cluster="task"), numbers, CLUSTERS)
    assert share(WON, CLUSTERS).interval == pytest.approx(clustered, abs=5e-3)


@pytest.mark.parametrize("clustered", [False, True])
def test_bootstraps_come_to_the_same(clustered: bool) -> None:
    import numpy

    numpy.random.seed(11)
    metric = scorer.ci(method="bootstrap", num_samples=4_000, cluster="task" if clustered else None)
    found = theirs(metric, VALUES, CLUSTERS)
    groups: Sequence[Any] = CLUSTERS if clustered else range(len(VALUES))
    assert bootstrap(VALUES, groups, corrected=False).interval == pytest.approx(found, abs=6e-3)
    assert bootstrap(VALUES, groups).interval == pytest.approx(found, abs=2e-2)
