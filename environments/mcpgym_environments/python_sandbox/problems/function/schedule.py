"""Jobs and workers: which job is started when, by stated rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from mcpgym_environments.python_sandbox.problems.function.making import Wanted, written
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.testing import Arguments

Job = list[Any]

_ORDERS: dict[str, tuple[str, Callable[[Job], Any], str]] = {
    "priority-high": ("the one with the greatest priority", lambda job: -job[2], "-job[2]"),
    "priority-low": ("the one with the smallest priority", lambda job: job[2], "job[2]"),
    "short": ("the shortest one", lambda job: job[1], "job[1]"),
    "long": ("the longest one", lambda job: -job[1], "-job[1]"),
    "early": ("the one that arrived first", lambda job: job[3], "job[3]"),
    "late": ("the one that arrived last", lambda job: -job[3], "-job[3]"),
}

_SOLUTION = """
def {function}(jobs{more}):
    waiting = list(jobs)
    free = [0] * {count}
    last = [None] * {count}
    ended = {{}}
    log = []
    while waiting:
        best = None
        for job in waiting:
            {needs_check}
            ready = {ready}
            for worker in range(len(free)):
                start = max(ready, free[worker])
                choice = (start, {keys}, job[0], worker)
                if best is None or choice < best[0]:
                    best = (choice, job, worker, start)
        _, job, worker, start = best
        waiting.remove(job)
        end = start + job[1]{setup}
        free[worker] = end
        last[worker] = job[-1]
        ended[job[0]] = end
        log.append([job[0]{worker_entry}, start, end])
    return log
"""


@dataclass(frozen=True, slots=True)
class Rules:
    """How jobs are chosen, and what the level adds."""

    orders: tuple[str, ...]
    workers: bool
    arrivals: bool
    needs: bool
    setup: int

    def run(self, jobs: list[Job], count: int = 1) -> list[list[Any]]:
        """What is done, by going through time."""
        waiting, log = [list(job) for job in jobs], []
        busy_until, last = [0] * count, [None] * count
        ended: dict[str, int] = {}
        now = 0
        while waiting:
            open_jobs = [job for job in waiting if self._open(job, now, ended)]
            free = [worker for worker in range(count) if busy_until[worker] <= now]
            if open_jobs and free:
                job = min(open_jobs, key=lambda job: (*(_ORDERS[name][1](job) for name in self.orders), job[0]))
                worker = free[0]
                waiting.remove(job)
                change = self.setup if self.setup and last[worker] not in (None, job[-1]) else 0
                end = now + change + job[1]
                busy_until[worker], last[worker], ended[job[0]] = end, job[-1], end
                log.append([job[0], *([worker] if self.workers else []), now, end])
            else:
                now += 1
        return log

    def _open(self, job: Job, now: int, ended: dict[str, int]) -> bool:
        if self.arrivals and job[3] > now:
            return False
        return not self.needs or all(ended.get(need, now + 1) <= now for need in job[4])


def _jobs(random: Random, rules: Rules, count: int) -> list[Job]:
    names = random.sample([a + b for a in "abcdefgh" for b in "aeiou"], count)
    jobs: list[Job] = []
    for place, name in enumerate(names):
        job: Job = [name, random.randint(1, 9), random.randint(1, 4)]
        if rules.arrivals:
            job.append(random.randint(0, 3 * count))
        if rules.needs:
            job.append(sorted(random.sample(names[:place], min(place, random.choice((0, 0, 1, 2))))))
        if rules.setup:
            job.append(random.choice(("red", "blue")))
        jobs.append(job)
    random.shuffle(jobs)
    return jobs


def _make(random: Random, level: int) -> Problem:
    arrivals = level >= 2
    first = random.choice(("priority-high", "priority-low", "short", "long"))
    others = [
        name for name in _ORDERS if name.split("-")[0] != first.split("-")[0] and {name, first} != {"short", "long"}
    ]
    second = random.choice([name for name in others if arrivals or name not in ("early", "late")])
    rules = Rules((first, second), level >= 3, arrivals, level >= 4, random.randint(1, 4) if level == 5 else 0)
    function = random.choice(("plan", "schedule", "timetable", "assign"))

    def arguments(random: Random, count: int) -> Arguments:
        jobs = _jobs(random, rules, count)
        return (jobs, random.randint(1, 4)) if rules.workers else (jobs,)

    def inputs(random: Random) -> Iterator[Arguments]:
        yield ([], 2) if rules.workers else ([],)
        yield arguments(random, 1)
        same_length = [[*job[:1], 3, 2, *([0] if arrivals else []), *job[4 if arrivals else 3 :]]
                       for job in _jobs(random, rules, 6)]  # fmt: skip
        yield (same_length, 2) if rules.workers else (same_length,)
        if arrivals:
            far = _jobs(random, rules, 3)
            far[0][3] = 90
            yield (far, 3) if rules.workers else (far,)
        if rules.workers:
            yield (_jobs(random, rules, 5), 9)
        while True:
            yield arguments(random, random.randint(3, 14))

    fields = ["name", "duration", "priority"]
    described = [
        "its name (a string, different for each)",
        "how long it takes (at least 1)",
        "its priority (an integer)",
    ]
    if rules.arrivals:
        fields.append("arrival")
        described.append("when it arrives (0 or later)")
    if rules.needs:
        fields.append("needs")
        described.append("the names of the jobs that must have ended before it may start (never in a circle)")
    if rules.setup:
        fields.append("colour")
        described.append("its colour (a string)")
    who = "are several workers, numbered from 0" if rules.workers else "is one worker"
    lines = [
        f"There {who}. Time is counted in whole units from 0; a job, once started, is done without a break. "
        f"A worker is free again from the moment its job ends.",
        "A job may start at any time" if not rules.arrivals else "A job may not start before it arrives",
    ]
    lines[-1] += ", and not before all that it needs have ended (at that very moment it may)." if rules.needs else "."
    texts = [_ORDERS[name][0] for name in rules.orders]
    lines.append(
        "Whenever a worker is free and at least one job may start, a job is started at once: "
        f"{texts[0]}; among equals {texts[1]}; among those the one whose name comes first in the alphabet. "
        "Nothing waits for a better job that may start only later."
    )
    if rules.workers:
        lines.append(
            "The free worker with the smallest number takes it. Then the same again, until nobody or nothing is left."
        )
    if rules.setup:
        lines.append(
            f"When the last job of a worker had another colour, the job begins with {rules.setup} units of changing "
            f"over: it "
            f"starts then, and takes that much longer. A worker's first job needs none."
        )
    parameters = {"jobs": f"a list of [{', '.join(fields)}]: " + "; ".join(described)}
    if rules.workers:
        parameters["workers"] = "how many workers there are (at least 1)"
    wanted = Wanted(
        function,
        parameters,
        "\n".join(lines),
        f"what is done, in the order in which it is started: a list of [name{', worker' * rules.workers}, start, end].",
        rules.run,
        inputs,
        [arguments(random, size) for size in (4, 5)],
        _SOLUTION.format(
            function=function, more=", workers" if rules.workers else "", count="workers" if rules.workers else "1",
            needs_check="if any(need not in ended for need in job[4]): continue" if rules.needs else "pass",
            ready="max([job[3]] + [ended[need] for need in job[4]])" if rules.needs
            else "job[3]" if rules.arrivals else "0",
            keys=", ".join(_ORDERS[name][2] for name in rules.orders),
            setup=f" + ({rules.setup} if last[worker] not in (None, job[-1]) else 0)" if rules.setup else "",
            worker_entry=", worker" if rules.workers else "",
        ),
        (", ".join(_ORDERS[name][2] for name in rules.orders) + ", job[0]", "job[0]"),
    )  # fmt: skip
    return written("schedule", level, wanted)


GENERATOR = Made("schedule", "function", "jobs are given to workers by stated rules", _make)
