"""Problems that take computing: a second, independent method gives the same answers, and a mistake another."""

from __future__ import annotations

from datetime import date, timedelta
from fractions import Fraction
from itertools import combinations, permutations, product
from math import prod
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.environments.sandbox_problems import check_guesses, check_solutions, check_texts, made, parameters

from mcpgym_environments.python_sandbox.problems.answers import SurdAnswer, answer_text, judge
from mcpgym_environments.python_sandbox.problems.compute import GENERATORS
from mcpgym_environments.python_sandbox.problems.compute.calendar_days import matching
from mcpgym_environments.python_sandbox.problems.compute.cellular import evolve
from mcpgym_environments.python_sandbox.problems.compute.circle import counted_out
from mcpgym_environments.python_sandbox.problems.compute.coins import ways
from mcpgym_environments.python_sandbox.problems.compute.dice import favourable
from mcpgym_environments.python_sandbox.problems.compute.digits import below, fits
from mcpgym_environments.python_sandbox.problems.compute.graphs import shortest, spanning_trees
from mcpgym_environments.python_sandbox.problems.compute.paths import paths
from mcpgym_environments.python_sandbox.problems.compute.polygons import POINTS, inside
from mcpgym_environments.python_sandbox.problems.compute.primes import is_prime, primes_from
from mcpgym_environments.python_sandbox.problems.compute.ratios import alternating, nested
from mcpgym_environments.python_sandbox.problems.compute.residues import count
from mcpgym_environments.python_sandbox.problems.compute.rewriting import pair_count
from mcpgym_environments.python_sandbox.problems.compute.words import strings
from mcpgym_environments.python_sandbox.problems.compute.working_days import closed_days, working_day
from mcpgym_environments.python_sandbox.problems.problem import LEVELS


def test_there_are_enough() -> None:
    assert len(GENERATORS) >= 8
    assert all(generator.family == "compute" and list(generator.levels) == list(LEVELS) for generator in GENERATORS)


def test_solutions_are_right_and_mistakes_wrong() -> None:
    check_solutions(GENERATORS)


@pytest.mark.parametrize("generator", GENERATORS, ids=lambda generator: generator.name)
def test_texts_are_varied_and_do_not_hold_the_answer(generator) -> None:  # type: ignore[no-untyped-def]
    check_texts(generator)


@pytest.mark.parametrize("generator", GENERATORS, ids=lambda generator: generator.name)
def test_answers_cannot_be_guessed(generator) -> None:  # type: ignore[no-untyped-def]
    check_guesses(generator)


@settings(deadline=None, max_examples=40)
@given(st.integers(-200, 200), st.integers(0, 400), st.integers(1, 30), st.sets(st.integers(0, 29)))
def test_counting_by_residues_is_counting(low: int, span: int, period: int, chosen: set[int]) -> None:
    found = count(low, low + span, period, lambda n: n % period in chosen)
    assert found == sum(n % period in chosen for n in range(low, low + span + 1))


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**14))
def test_primes_are_those_of_sympy(n: int) -> None:
    sympy = pytest.importorskip("sympy")
    assert is_prime(n) == sympy.isprime(n)


def test_small_primes_and_pseudoprimes() -> None:
    assert [n for n in range(60) if is_prime(n)] == [n for n in range(2, 60) if all(n % d for d in range(2, n))]
    assert not any(map(is_prime, (561, 3215031751, 3825123056546413051)))  # strong pseudoprimes to smaller bases
    such = [n for n in range(10, 300) if is_prime(n) and n % 4 == 1 and sum(map(int, str(n))) % 5 == 0]
    assert primes_from(10, 3, 4, 1, 5) == such[:3]


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 4_000), st.integers(1, 13), st.integers(0, 12), st.integers(1, 3))
def test_numbers_below_a_bound_are_counted_one_by_one(top: int, m: int, r: int, gap: int) -> None:
    assert below(top, m, r % m, gap) == sum(fits(n, m, r % m, gap) for n in range(1, top))


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 4)), min_size=1, max_size=4), st.integers(0, 40))
def test_ways_to_pay_are_counted_one_by_one(coins: list[tuple[int, int]], amount: int) -> None:
    used = product(*(range(most + 1) for _, most in coins))
    one_by_one = sum(sum(n * value for n, (value, _) in zip(row, coins, strict=True)) == amount for row in used)
    assert ways(coins, amount) == one_by_one


@settings(deadline=None, max_examples=40)
@given(
    st.integers(0, 4), st.integers(0, 4), st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=4),
    st.integers(1, 4), st.booleans(),
)  # fmt: skip
def test_paths_are_counted_one_by_one(
    width: int, height: int, blocked: set[tuple[int, int]], most: int, slanted: bool
) -> None:
    steps = ((1, 0), (0, 1), (1, 1)) if slanted else ((1, 0), (0, 1))
    blocked -= {(0, 0), (width, height)}

    def walk(x: int, y: int, done: tuple[tuple[int, int], ...]) -> int:
        if x > width or y > height or (x, y) in blocked:
            return 0
        if len(done) > most and len(set(done[-most - 1 :])) == 1:
            return 0
        return (x, y) == (width, height) or sum(walk(x + a, y + b, (*done, (a, b))) for a, b in steps)

    assert paths(width, height, blocked, steps, most) == walk(0, 0, ())


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=3), st.integers(1, 8), st.integers(1, 3),
    st.integers(0, 2),
)  # fmt: skip
def test_strings_are_counted_one_by_one(words: list[str], length: int, m: int, r: int) -> None:
    texts = map("".join, product("ab", repeat=length))
    one_by_one = sum(not any(word in text for word in words) and text.count("a") % m == r % m for text in texts)
    assert strings("ab", words, length, m, r % m) == one_by_one


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 255), st.integers(3, 9), st.integers(0, 511), st.integers(0, 60))
def test_a_row_of_cells_is_simulated(rule: int, width: int, row: int, steps: int) -> None:
    cells = [row >> place & 1 for place in range(width - 1, -1, -1)]
    for _ in range(steps):
        cells = [rule >> (4 * cells[i - 1] + 2 * cells[i] + cells[(i + 1) % width]) & 1 for i in range(width)]
    assert evolve(rule, width, row % 2**width, steps) == int("".join(map(str, cells)), 2)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 255), st.integers(3, 9), st.integers(0, 511), st.integers(2_000, 10**18), st.integers(1, 99))
def test_a_row_of_cells_comes_back(rule: int, width: int, row: int, steps: int, more: int) -> None:
    now = evolve(rule, width, row % 2**width, steps)
    assert now is not None
    assert evolve(rule, width, row % 2**width, steps + more) == evolve(rule, width, now, more)


@settings(deadline=None, max_examples=40)
@given(st.text("ABC", min_size=1, max_size=4), st.integers(0, 5), st.randoms(use_true_random=False))
def test_rewriting_is_done_letter_by_letter(start: str, rounds: int, random: Random) -> None:
    rules = {letter: "".join(random.choices("ABC", k=random.randint(1, 3))) for letter in "AB"}
    text = start
    for _ in range(rounds):
        text = "".join(rules.get(letter, letter) for letter in text)
    for pair in map("".join, permutations("ABC", 2)):
        assert pair_count(start, rules, rounds, pair) == text.count(pair)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 40), st.integers(1, 60), st.integers(0, 9), st.integers(0, 9), st.integers(1, 50))
def test_counting_out_is_counted_one_by_one(people: int, first: int, a: int, b: int, c: int) -> None:
    here, out, place, k = [True] * people, [], 0, first
    while len(out) < people:
        counted = 0
        while True:
            if here[place]:
                counted += 1
                if counted == k:
                    break
            place = (place + 1) % people
        here[place] = False
        out.append(place + 1)
        k = (a * k + b) % c + 1
    assert counted_out(people, first, a, b, c) == out


@settings(deadline=None, max_examples=40)
@given(
    st.dates(date(1970, 1, 1), date(2100, 1, 1)), st.integers(1, 200),
    st.sets(st.integers(0, 6), min_size=1, max_size=3), st.sets(st.integers(0, 250), max_size=12),
)  # fmt: skip
def test_working_days_are_those_of_numpy(start: date, days: int, weekend: set[int], offsets: set[int]) -> None:
    numpy = pytest.importorskip("numpy")
    holidays = [start + timedelta(days=offset) for offset in offsets]
    mask = "".join("0" if day in weekend else "1" for day in range(7))
    # roll=backward: the day before the first working day after the start
    theirs = numpy.busday_offset(start, days, roll="backward", weekmask=mask, holidays=holidays)
    assert working_day(start, days, weekend, closed_days(holidays, weekend, False)) == theirs.astype(date)


def test_holidays_move_to_the_next_day_that_is_free() -> None:
    saturday = date(2024, 6, 1)
    closed = closed_days([saturday, saturday + timedelta(days=1), saturday + timedelta(days=2)], {5, 6}, True)
    assert closed == {saturday.toordinal() + more for more in (2, 3, 4)}


@settings(deadline=None, max_examples=30)
@given(
    st.dates(date(1700, 1, 1), date(2200, 1, 1)), st.integers(0, 2_000), st.sets(st.integers(0, 6)),
    st.sets(st.integers(1, 31)), st.sets(st.integers(1, 12)), st.sampled_from((None, 0, 1)),
)  # fmt: skip
def test_days_of_the_calendar_are_looked_at_one_by_one(
    start: date, span: int, weekdays: set[int], days: set[int], months: set[int], weeks: int | None
) -> None:
    every = [start + timedelta(days=more) for more in range(span + 1)]
    assert matching(start, every[-1], weekdays, days, months, weeks) == [
        day
        for day in every
        if day.isoweekday() - 1 in weekdays
        and day.day in days
        and day.month not in months
        and (weeks is None or int(day.strftime("%V")) % 2 == weeks)
    ]


ROADS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(1, 20), st.booleans()), min_size=1, max_size=14
)


@settings(deadline=None, max_examples=40)
@given(ROADS, st.integers(0, 3))
def test_shortest_routes_are_those_of_bellman_and_ford(roads: list[tuple[int, int, int, bool]], most: int) -> None:
    far = 10**9
    best = {(place, tolls): 0 if place == 0 else far for place in range(7) for tolls in range(most + 1)}
    for _ in range(7 * (most + 1)):
        for one, other, length, toll in roads:
            for a, b in ((one, other), (other, one)):
                for tolls in range(most + 1 - toll):
                    best[b, tolls + toll] = min(best[b, tolls + toll], best[a, tolls] + length)
    for goal in range(7):
        right = min(best[goal, tolls] for tolls in range(most + 1))
        assert shortest(roads, 0, goal, most) == (None if right == far else right)


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 5), st.sets(st.tuples(st.integers(1, 5), st.integers(1, 5)), max_size=8))
def test_spanning_trees_are_counted_one_by_one(size: int, pairs: set[tuple[int, int]]) -> None:
    edges = sorted({(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1] and max(pair) <= size})

    def connects(chosen: tuple[tuple[int, int], ...]) -> bool:
        reached = {1}
        for _ in range(size):
            reached |= {b for edge in chosen for a, b in (edge, edge[::-1]) if a in reached}
        return len(reached) == size

    assert spanning_trees(size, edges) == sum(map(connects, combinations(edges, size - 1)))


@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 9), st.integers(0, 12), st.integers(2, 5), st.integers(1, 9), st.integers(-9, 9), st.integers(1, 5)
)
def test_sums_are_added_term_by_term(first: int, more: int, skip: int, p: int, q: int, c: int) -> None:
    terms = (Fraction((-1) ** k * (p * k + q), k * k + k * c) for k in range(first, first + more + 1) if k % skip)
    assert alternating(first, first + more, skip, p, q, c) == sum(terms)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 9)), min_size=1, max_size=9))
def test_continued_fractions_are_worked_out_from_within(rows: list[tuple[int, int]]) -> None:
    terms, numerators = [term for term, _ in rows], [numerator for _, numerator in rows[1:]]
    value = Fraction(terms[-1])
    for place in range(len(terms) - 2, -1, -1):
        value = terms[place] + numerators[place] / value
    assert nested(terms, numerators) == value


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.integers(2, 6), min_size=1, max_size=4), st.integers(1, 7), st.integers(0, 6), st.integers(1, 7),
    st.integers(0, 3),
)  # fmt: skip
def test_throws_are_counted_one_by_one(dice: list[int], m: int, r: int, least: int, most_ones: int) -> None:
    throws = product(*(range(1, sides + 1) for sides in dice))
    good = sum(sum(t) % m == r % m and max(t) >= least and t.count(1) <= most_ones for t in throws)
    assert favourable(dice, m, r % m, least, most_ones) == good
    assert 0 <= good <= prod(dice)


@pytest.mark.parametrize("seed", range(12))
def test_points_inside_are_looked_at_one_by_one(seed: int) -> None:
    """By winding: an origin-centred sum of signed turns, exact; and no two sides of the polygon cross."""
    corners = parameters(made(POINTS, 1 + seed % 2, seed))["corners"]
    sides = list(zip(corners, [*corners[1:], corners[0]], strict=True))

    def turn(a, b, p):  # type: ignore[no-untyped-def]
        return (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0])

    def winding(p: tuple[int, int]) -> int | None:
        wound = 0
        for a, b in sides:
            side = turn(a, b, p)
            if side == 0 and min(a[0], b[0]) <= p[0] <= max(a[0], b[0]) and min(a[1], b[1]) <= p[1] <= max(a[1], b[1]):
                return None
            wound += (a[1] <= p[1] < b[1] and side > 0) - (b[1] <= p[1] < a[1] and side < 0)
        return wound

    xs, ys = zip(*corners, strict=True)
    found = [winding((x, y)) for x in range(min(xs), max(xs) + 1) for y in range(min(ys), max(ys) + 1)]
    assert inside(corners) == (sum(bool(wound) for wound in found), found.count(None))
    for (a, b), (c, d) in combinations(sides, 2):
        crossing = turn(a, b, c) * turn(a, b, d) < 0 and turn(c, d, a) * turn(c, d, b) < 0
        assert not crossing


@pytest.mark.parametrize("level", LEVELS)
def test_lengths_are_those_of_sympy(level: int) -> None:
    sympy = pytest.importorskip("sympy")
    problem = made(next(g for g in GENERATORS if g.name == "path-length"), level)
    stops = parameters(problem)["stops"]
    length = sum(
        sympy.Point(*one).distance(sympy.Point(*other))
        for one, other in zip(stops, [*stops[1:], stops[0]], strict=True)
    )
    assert isinstance(problem.answer, SurdAnswer)
    assert sympy.simplify(length - sympy.sympify(answer_text(problem.answer))) == 0
    assert not judge(problem.answer, str(float(length))).correct
