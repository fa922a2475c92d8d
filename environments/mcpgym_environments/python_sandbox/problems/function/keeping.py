"""Stores of limited size: what is thrown out when, given as a list of operations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal

from mcpgym_environments.python_sandbox.problems.function.making import Wanted, written
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.testing import Arguments

Policy = Literal["oldest", "unused", "newest", "rarest", "smallest"]

_WORDS: dict[Policy, str] = {
    "oldest": "the key that was put in first (putting a key that is there again does not change its place)",
    "unused": "the key whose last use (put or successful get) is longest ago",
    "newest": "the key, of those that were there before, whose last use (put or successful get) is the most recent",
    "rarest": "the key with the fewest uses (puts and successful gets since it came in); among equals the one whose "
    "last "
    "use is longest ago",
    "smallest": "the key with the smallest value; among equals the one that comes first in the alphabet",
}
_KEYS: dict[Policy, str] = {
    "oldest": "entry['born']",
    "unused": "entry['used']",
    "newest": "-entry['used']",
    "rarest": "(entry['uses'], entry['used'])",
    "smallest": "(entry['value'], key)",
}

_SOLUTION = """
def {function}(capacity, operations):
    store, second, results = {{}}, {{}}, []
    for now, (name, key, *rest) in enumerate(operations):
        for table in (store, second):
            for old in [k for k, entry in table.items() if now - entry['put'] > {life}]:
                del table[old]
        if name == 'get' and key not in store and key in second and {two}:
            name, rest = 'promote', [second.pop(key)['value']]
            results.append(rest[0])
        elif name == 'get':
            if key in store:
                store[key]['used'] = now
                store[key]['uses'] += 1
            results.append(store[key]['value'] if key in store else {missing!r})
            continue
        elif name == 'drop':
            found = [table.pop(key) for table in (store, second) if key in table]
            results.append(len(found))
            continue
        value = rest[0]
        if key in store:
            store[key].update(value=value, used=now, put=now)
            store[key]['uses'] += 1
            {resize}
        second.pop(key, None)
        if key not in store:
            {too_big}
            while store and {full}:
                out = min(store, key=lambda key: (lambda entry: {order})(store[key]))
                entry = store.pop(out)
                if {two}:
                    second[out] = {{'value': entry['value'], 'put': entry['put']}}
                    if len(second) > {second_size}:
                        del second[next(iter(second))]
            store[key] = dict(value=value, born=now, put=now, used=now, uses=1)
    return results
"""


@dataclass(slots=True)
class Entry:
    """A key's value and when and how often it was used, in operations from the first."""

    value: int
    born: int
    used: int
    uses: int = 1


@dataclass(slots=True)
class Store:
    """The store, operation by operation."""

    policy: Policy
    capacity: int
    by_size: bool
    life: int
    second_size: int
    entries: dict[str, Entry] = field(default_factory=dict)
    put_at: dict[str, int] = field(default_factory=dict)
    second: list[tuple[str, int]] = field(default_factory=list)

    def run(self, operations: list[list[Any]], missing: Any) -> list[Any]:
        """What the operations give."""
        results: list[Any] = []
        for now, operation in enumerate(operations):
            self._expire(now)
            key = operation[1]
            held = dict(self.second)
            if operation[0] == "put":
                self._put(key, operation[2], now)
            elif operation[0] == "drop":
                results.append(int(key in self.entries or key in held))
                self.entries.pop(key, None)
                self.second = [pair for pair in self.second if pair[0] != key]
            elif key in self.entries:
                self.entries[key].used = now
                self.entries[key].uses += 1
                results.append(self.entries[key].value)
            elif key in held:
                results.append(held[key])
                self._put(key, held[key], now)
            else:
                results.append(missing)
        return results

    def _expire(self, now: int) -> None:
        if self.life:
            gone = {key for key, put in self.put_at.items() if now - put > self.life}
            self.entries = {key: entry for key, entry in self.entries.items() if key not in gone}
            self.second = [pair for pair in self.second if pair[0] not in gone]

    def _put(self, key: str, value: int, now: int) -> None:
        self.second = [pair for pair in self.second if pair[0] != key]
        before = self.entries.pop(key, None)
        size = value if self.by_size else 1
        if before is not None and not self.by_size:
            self.entries[key] = Entry(value, before.born, now, before.uses + 1)
        elif size <= self.capacity:
            while self._load() + size > self.capacity:
                self._throw_out()
            self.entries[key] = Entry(value, now, now)
        self.put_at[key] = now

    def _load(self) -> int:
        return sum(entry.value for entry in self.entries.values()) if self.by_size else len(self.entries)

    def _throw_out(self) -> None:
        def order(key: str) -> tuple[Any, ...]:
            entry = self.entries[key]
            match self.policy:
                case "oldest":
                    return (entry.born,)
                case "unused":
                    return (entry.used,)
                case "newest":
                    return (-entry.used,)
                case "rarest":
                    return entry.uses, entry.used
            return entry.value, key

        out = sorted(self.entries, key=order)[0]
        value = self.entries.pop(out).value
        if self.second_size:
            self.second = [*self.second, (out, value)][-self.second_size :]


def _operations(random: Random, count: int, keys: int, drops: bool) -> list[list[Any]]:
    names = "abcdefghijkl"[:keys]
    made: list[list[Any]] = []
    for _ in range(count):
        draw, key = random.random(), random.choice(names)
        if draw < 0.45:
            made.append(["put", key, random.randint(1, 9)])
        elif drops and draw < 0.53:
            made.append(["drop", key])
        else:
            made.append(["get", key])
    return made


def _make(random: Random, level: int) -> Problem:
    policies: dict[int, tuple[Policy, ...]] = {
        1: ("oldest", "unused", "newest"),
        2: ("oldest", "unused", "rarest", "smallest"),
        3: ("oldest", "unused", "newest"),
        4: ("rarest", "smallest", "unused"),
        5: ("oldest", "unused", "rarest", "smallest"),
    }
    policy = random.choice(policies[level])
    drops, by_size = level >= 2, level == 3
    life = random.randint(6, 15) if level >= 4 else 0
    second_size = random.randint(1, 3) if level == 5 else 0
    missing = random.choice((None, -1, "none", 0))
    function = random.choice(("run_store", "simulate", "replay", "run_operations"))

    def reference(capacity: int, operations: list[list[Any]]) -> list[Any]:
        return Store(policy, capacity, by_size, life, second_size).run(operations, missing)

    def arguments(random: Random, count: int) -> Arguments:
        capacity = random.randint(6, 20) if by_size else random.randint(1, 4)
        return (capacity, _operations(random, count, random.randint(3, 7), drops))

    def inputs(random: Random) -> Iterator[Arguments]:
        yield (2, [])
        yield (1, [["get", "a"], ["put", "a", 3], ["get", "a"], ["put", "b", 4], ["get", "a"], ["get", "b"]])
        yield (9, [["put", "a", 3], ["put", "a", 4], ["get", "a"], *[["get", "b"]] * 20, ["get", "a"]])
        yield (3, [*[["put", key, 2] for key in "abcabd"], *[["get", key] for key in "abcd"]])
        while True:
            yield arguments(random, random.randint(12, 70))

    words = "the key that was put in first" if by_size and policy == "oldest" else _WORDS[policy]
    lines = [
        "A store keeps values under keys. Work through the operations in order:",
        "- ['put', key, value] keeps the value (an integer, at least 1) under the key (a small letter), in place of "
        "what was "
        "there under it, if anything. It gives no result.",
        f"- ['get', key] gives the value under the key, or {missing!r} if there is none.",
    ]
    if drops:
        lines.append("- ['drop', key] removes the key and gives 1, or gives 0 if it was not there.")
    if by_size:
        lines.append(
            "A value takes up as much room as it says: a 5 takes 5. All together never take more than capacity. A put "
            "of a "
            "key that is there removes that key first, and the key then counts as new. If the value alone is greater "
            "than "
            "capacity, nothing else happens. Otherwise, as long as there is not enough room, this key is thrown out: "
            f"{words}. Then the value is put in."
        )
    else:
        lines.append(
            f"There are never more than capacity keys. When a new key is put in and there is no room, one is thrown "
            f"out first: "
            f"{words}. Putting a key that is there throws nothing out."
        )
    if life:
        lines.append(
            f"A key lives for {life} operations after its last put: if that put was operation number p, counted over "
            f"all "
            f"operations from the first, the key is gone, before anything else happens, in operation p + {life + 1}. "
            f"Gets do not make it live longer."
        )
    if second_size:
        lines.append(
            f"What is thrown out goes to a second store, which has room for {second_size} and throws out for good "
            f"what came "
            f"into it first. Keys there go on ageing and are gone at the same time as they would have been in the "
            f"first. "
            f"A get that finds its key only there gives the value, takes it out of the second store, and puts it into "
            f"the "
            f"first exactly like a put in this operation (so it counts as put now, and another key may move to the "
            f"second). "
            f"A put of a key that is in the second store removes it there first. A drop looks in both."
        )
    wanted = Wanted(
        function,
        {"capacity": "how much the store holds (at least 1)", "operations": "the operations, a list of lists"},
        "\n".join(lines),
        f"the results, in order, of all get{' and drop' * drops} operations, a list.",
        reference,
        inputs,
        [arguments(random, size) for size in (8, 12)],
        _SOLUTION.format(
            function=function, life=life or 10**9, missing=missing, two=bool(second_size), second_size=second_size,
            order=_KEYS[policy], resize="del store[key]" if by_size else "pass",
            too_big="if value > capacity: continue" if by_size else "pass",
            full="sum(e['value'] for e in store.values()) + value > capacity" if by_size else "len(store) >= capacity",
        ),
        ("sum(e['value'] for e in store.values()) + value", "sum(e['value'] for e in store.values())") if by_size
        else ("key in second and True", "key in second and False") if second_size
        else ("len(store) >= capacity", "len(store) > capacity"),
    )  # fmt: skip
    return written("keeping", level, wanted)


GENERATOR = Made("keeping", "function", "a store of limited size that throws out by stated rules", _make)
