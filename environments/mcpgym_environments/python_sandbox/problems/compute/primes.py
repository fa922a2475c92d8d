"""The first primes beyond a number with a residue and a digit sum."""

from __future__ import annotations

from math import gcd
from random import Random

from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.writing import ask_whole, mistaken, pick, program, whole

_STARTS = (10**3, 10**5, 10**7, 10**9, 10**11)
_COUNTS = (1, 2, 4, 6, 8)
_WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
_CODE = """
def is_prime(n):
    if n < 2 or n % 2 == 0:
        return n == 2
    factor = 3
    while factor * factor <= n:
        if n % factor == 0:
            return False
        factor += 2
    return True


found = []
n = start + 1
while len(found) < count:
    if n % m == r and sum(map(int, str(n))) % k == 0 and is_prime(n):
        found.append(n)
    n += 1
print(sum(found))
"""


def is_prime(n: int) -> bool:
    """Whether ``n`` < 3 * 10^23 is prime: Miller-Rabin with bases that are enough there (Sorenson, Webster 2015)."""
    if n < 2:
        return False
    for prime in _WITNESSES:
        if n % prime == 0:
            return n == prime
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in _WITNESSES:
        power = pow(base, odd, n)
        if power in (1, n - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % n
            if power == n - 1:
                break
        else:
            return False
    return True


def primes_from(start: int, count: int, m: int, r: int, k: int) -> list[int]:
    """The first ``count`` primes of at least ``start`` that are r modulo m and have a digit sum that k divides."""
    found: list[int] = []
    n = start + (r - start) % m
    while len(found) < count:
        if sum(map(int, str(n))) % k == 0 and is_prime(n):
            found.append(n)
        n += m
    return found


def _make(random: Random, level: int) -> Problem:
    base, count = _STARTS[level - 1], _COUNTS[level - 1]
    m = random.randint(4, 12)
    r = random.choice([residue for residue in range(m) if gcd(residue, m) == 1])
    k = random.choice((2, 4, 5, 7))  # with 3 or 9 the digit sum would decide divisibility
    start, *found = primes_from(random.randint(base, 9 * base), count + 1, m, r, k)
    such = f"leave the remainder {r} when divided by {m} and have a sum of decimal digits that is divisible by {k}"
    if count == 1:
        text = pick(
            random,
            f"What is the smallest prime number greater than {start} that leaves the remainder {r} when divided by "
            f"{m} and whose decimal digits have a sum divisible by {k}?",
            f"Find the first prime p > {start} with p mod {m} = {r} and a digit sum (base ten) divisible by {k}.",
        )
    else:
        text = pick(
            random,
            f"Among the primes strictly greater than {start}, take the {count} smallest that {such}. What is their "
            "sum?",
            f"Let p1 < p2 < ... < p{count} be the {count} smallest primes above {start} (which does not count itself) "
            f"that {such}. Compute p1 + ... + p{count}.",
        )
    values = {"start": start, "count": count, "m": m, "r": r, "k": k}
    return Problem(
        "prime-search",
        "compute",
        level,
        f"{text} {ask_whole(random)}",
        whole(sum(found)),
        solution=program(_CODE, **values),
        wrong=program(mistaken(_CODE, "start + 1", "start"), **values),
        key=repr(values),
    )


PRIMES = Made("prime-search", "compute", "the first primes beyond a number with a residue and a digit sum", _make)
