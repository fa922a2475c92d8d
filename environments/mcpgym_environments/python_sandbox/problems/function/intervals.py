"""Intervals of whole numbers: joining, taking away, adding up weights."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from mcpgym_environments.python_sandbox.problems.function.making import Wanted, written
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.testing import Arguments

_MERGE = """
def {function}(intervals{more}):
    pairs = []
    for start, end in intervals:
        if start > end:
            {reversed_line}
        pairs.append((start, end + {closed}))
    pairs.sort()
    merged = []
    for start, end in pairs:
        if start == end:
            continue
        if merged and start - merged[-1][1] <= {gap}:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
{removing}    return [[start, end - {closed}] for start, end in merged]
"""

_REMOVING = """\
    for low, high in removed:
        high += {closed}
        if low >= high:
            continue
        left = []
        for start, end in merged:
            if start < min(end, low):
                left.append([start, min(end, low)])
            if max(start, high) < end:
                left.append([max(start, high), end])
        merged = left
"""

_WEIGHTS = """
def {function}(intervals{more}):
    points = sorted({{edge for start, end, _ in intervals for edge in (start, end)}}{clip})
    segments = []
    for low, high in zip(points, points[1:]):
        {window_line}
        total = {start_value}
        for start, end, weight in intervals:
            if start <= low and high <= end:
                total = {combine}
        if not {keep}:
            continue
        if segments and segments[-1][1] == low and segments[-1][2] == total:
            segments[-1][1] = high
        else:
            segments.append([low, high, total])
    return segments
"""


def _interval(random: Random, span: int) -> list[int]:
    start = random.randint(-span, span)
    return [start, start + random.choice((0, 1, 2, random.randint(0, span)))]


def _several(random: Random, count: int, span: int, reversed_share: float) -> list[list[int]]:
    drawn = [_interval(random, span) for _ in range(count)]
    return [pair[::-1] if random.random() < reversed_share else pair for pair in drawn]


def _merging(random: Random, level: int) -> Problem:
    closed = int(random.random() < 0.5)
    gap = random.randint(1, 4) if level >= 2 else random.randint(0, 3)
    swap = random.random() < 0.5
    removing = level == 3
    function = random.choice(("merge", "join_intervals", "combine", "covered"))

    def reference(intervals: list[list[int]], removed: list[list[int]] | None = None) -> list[list[int]]:
        spans = []
        for first, second in intervals:
            start, end = (min(first, second), max(first, second)) if swap or level == 1 else (first, second)
            if start < end + closed:
                spans.append((start, end + closed))
        merged: list[tuple[int, int]] = []
        for start, end in sorted(spans):
            if merged and start <= merged[-1][1] + gap:
                start, end = merged[-1][0], max(end, merged.pop()[1])
            merged.append((start, end))
        for low, last in removed or []:
            high = last + closed
            if low < high:
                parts = [part for start, end in merged for part in ((start, min(end, low)), (max(start, high), end))]
                merged = [(start, end) for start, end in parts if start < end]
        return [[start, end - closed] for start, end in merged]

    turned = 0.25 if level >= 2 else 0.0

    def arguments(random: Random, count: int, span: int) -> Arguments:
        intervals = _several(random, count, span, turned)
        return (intervals, _several(random, max(1, count // 3), span, 0.0)) if removing else (intervals,)

    def inputs(random: Random) -> Iterator[Arguments]:
        extra = ([[0, 2]],) if removing else ()
        yield ([], *extra)
        yield ([[3, 3]], *extra)
        yield ([[0, 5], [5, 9]], *extra)
        yield ([[0, 5], [6, 9]], *extra)
        yield ([[0, 4], [5 + gap, 9], [30, 33 + gap], [34 + 2 * gap, 50]], *extra)
        yield ([[-10, 40], [-2, 3], [39, 40]], *extra)
        while True:
            yield arguments(random, random.randint(3, 25), random.choice((10, 40, 150)))

    kind = "closed: [2, 4] covers 2, 3 and 4" if closed else "half-open: [2, 4] covers 2 and 3, and [3, 3] nothing"
    lines = [f"Intervals are {kind}. They come in any order. Join the intervals that overlap or directly follow each "
             f"other (such as {[0, 3]} and {[3 + closed, 5]})."]  # fmt: skip
    if gap:
        lines.append(
            f"Join them also when at most {gap} whole number{'s' * (gap > 1)} between them "
            f"{'is' if gap == 1 else 'are'} "
            f"uncovered: the gap then belongs to the joined interval."
        )
    if level >= 2:
        lines.append(
            "An interval whose first number is greater than its second "
            + ("means the same as with the two exchanged." if swap else "is left out, as if it were not there.")
        )
    if removing:
        lines.append(
            "After that, take away what the intervals in removed cover (the same kind of interval, first number never "
            "the greater): what is left of a joined interval may be nothing, or several pieces, which stay apart."
        )
    if not closed:
        lines.append("An interval that covers nothing is left out.")
    parameters = {"intervals": "a list of [first, second], two integers each"}
    if removing:
        parameters["removed"] = "a list of [first, second]"
    wanted = Wanted(
        function,
        parameters,
        "\n".join(lines),
        "the resulting intervals, a list of [first, second], ascending, none overlapping.",
        reference,
        inputs,
        [arguments(random, random.randint(4, 7), 15) for _ in range(2)],
        _MERGE.format(
            function=function, more=", removed" if removing else "", closed=closed, gap=gap,
            reversed_line="start, end = end, start" if swap or level == 1 else "continue",
            removing=_REMOVING.format(closed=closed) if removing else "",
        ),
        ("merged[-1][1] = max(merged[-1][1], end)", "merged[-1][1] = end"),
    )  # fmt: skip
    return written("intervals", level, wanted)


def _weighing(random: Random, level: int) -> Problem:
    window = level == 5
    take = random.choice(("sum", "greatest", "number"))
    least = random.randint(2, 4) if window else random.randint(1, 3)
    function = random.choice(("profile", "load", "levels", "heights"))

    def reference(intervals: list[list[int]], window_: list[int] | None = None) -> list[list[int]]:
        def value(place: int) -> int:
            weights = [weight for start, end, weight in intervals if start <= place < end]
            return sum(weights) if take == "sum" else len(weights) if take == "number" else max(weights, default=0)

        if not intervals:
            return []
        low, high = min(each[0] for each in intervals), max(each[1] for each in intervals)
        if window_ is not None:
            low, high = max(low, window_[0]), min(high, window_[1])
        segments: list[list[int]] = []
        for place in range(low, high):
            here = value(place)
            if here < least:
                continue
            if segments and segments[-1][1] == place and segments[-1][2] == here:
                segments[-1][1] = place + 1
            else:
                segments.append([place, place + 1, here])
        return segments

    def arguments(random: Random, count: int, span: int) -> Arguments:
        drawn = [[*_interval(random, span), random.randint(1, 5)] for _ in range(count)]
        drawn = [[start, end + (start == end), weight] for start, end, weight in drawn]
        low = random.randint(-span, span)
        return (drawn, [low, low + random.randint(0, 2 * span)]) if window else (drawn,)

    def inputs(random: Random) -> Iterator[Arguments]:
        extra = ([-3, 8],) if window else ()
        yield ([], *extra)
        yield ([[0, 4, 3]], *extra)
        yield ([[0, 4, 3], [4, 9, 3]], *extra)
        yield ([[0, 9, 2], [2, 5, 2], [2, 5, 1], [5, 7, 3]], *extra)
        yield ([[-60, 60, 1], [-5, 5, 4], [-5, 5, 4]], *extra)
        while True:
            yield arguments(random, random.randint(2, 16), random.choice((8, 25, 60)))

    said = {"sum": "the sum of the weights", "greatest": "the greatest of the weights", "number": "the number"}[take]
    rules = (
        f"Intervals are half-open: [2, 4, w] covers 2 and 3 and has the weight w; the first number is always below the "
        f"second. The level at a whole number is {said} of the intervals that cover it"
        + (" (their weights do not matter)" if take == "number" else "")
        + ", and 0 where none does.\nFind the longest stretches of one and the same level. Stretches with a level "
        "below "
        f"{least} are left out."
    )
    if window:
        rules += " Only the numbers that window covers count: stretches are cut at its ends."
    parameters = {"intervals": "a list of [first, second, weight], integers; weight is at least 1"}
    if window:
        parameters["window"] = "[first, second], half-open too; it may cover nothing"
    combine = {"sum": "total + weight", "greatest": "max(total, weight)", "number": "total + 1"}[take]
    wanted = Wanted(
        function,
        parameters,
        rules,
        "the stretches, a list of [first, second, level], half-open, ascending; two of one level that touch are one.",
        reference,
        inputs,
        [arguments(random, random.randint(3, 5), 10) for _ in range(2)],
        _WEIGHTS.format(
            function=function, more=", window" if window else "", clip=" | set(window)" if window else "",
            window_line="if low < window[0] or high > window[1]: continue" if window else "pass",
            start_value=0, combine=combine, keep=f"total >= {least}",
        ),
        (f"total >= {least}", f"total > {least}") if window
        else ("and segments[-1][2] == total", "and segments[-1][2] <= total"),
    )  # fmt: skip
    return written("intervals", level, wanted)


def _make(random: Random, level: int) -> Problem:
    return _weighing(random, level) if level >= 4 else _merging(random, level)


GENERATOR = Made("intervals", "function", "intervals joined, cut and weighed by stated rules", _make)
