"""A tree of projects in JSON, with fields that are missing, null or inherited."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from mcpgym_environments.python_sandbox.problems.data.tables import FIRST, PRODUCTS
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.writing import ask_whole, file_name, mistaken, pick, program, whole

_TASKS = (15, 60, 200, 500, 1_000)
_CODE = """
import json

total = 0


def walk(node, owner, rate, archived):
    global total
    archived = archived or node.get("archived") is True
    owner = node.get("owner") or owner
    rate = rate if node.get("rate") is None else node["rate"]
    for task in node.get("tasks") or []:
        hours = task.get("hours")
        if isinstance(hours, str):
            hours = int(hours.replace(",", ""))
        if not archived and owner == wanted and hours is not None and tag in (task.get("tags") or []):
            total += hours * (rate if priced else 1)
    for child in node.get("children") or []:
        walk(child, owner, rate, archived)


with open(path, encoding="utf-8") as file:
    walk(json.load(file), None, 1, False)
print(total)
"""


class _Tree:
    """A tree being made, and the sum that is asked for: ``total``, and ``lax`` with the archived nodes."""

    def __init__(self, random: Random, level: int, owners: list[str], tags: list[str]) -> None:
        self.random, self.level, self.owners, self.tags = random, level, owners, tags
        self.left = _TASKS[level - 1]
        self.total = self.lax = 0

    def node(self, depth: int, owner: str, rate: int, archived: bool) -> dict[str, Any]:
        """A node with its tasks and children; what is not said is inherited from the node above."""
        random, level = self.random, self.level
        node: dict[str, Any] = {"name": f"{random.choice(PRODUCTS)}-{random.randint(10, 99)}"}
        if depth == 0 or random.random() < 0.4:
            owner = node["owner"] = random.choice(self.owners)
        elif level >= 4 and random.random() < 0.3:
            node["owner"] = None
        if level >= 3 and (depth == 0 or random.random() < 0.3):
            rate = node["rate"] = random.randint(20, 95)
        if depth and random.random() < 0.15:
            archived = node["archived"] = True
        elif random.random() < 0.2:
            node["archived"] = False
        node["tasks"] = [self.task(owner, rate, archived) for _ in range(random.randint(0, 4))]
        if not node["tasks"] and level >= 2:
            node["tasks"] = None
        node["children"] = []
        while self.left > 0 and depth < 2 + level and len(node["children"]) < 4 and random.random() < 0.85:
            node["children"].append(self.node(depth + 1, owner, rate, archived))
        if not node["children"] and random.random() < 0.5:
            del node["children"]
        return node

    def task(self, owner: str, rate: int, archived: bool) -> dict[str, Any]:
        """A task, counted where it is one of those that are asked for."""
        random, level = self.random, self.level
        self.left -= 1
        hours = random.randint(900, 2_500) if level >= 5 and random.random() < 0.5 else random.randint(1, 40)
        tags = random.sample(self.tags, random.randint(0, 2))
        task: dict[str, Any] = {"id": random.randint(10_000, 99_999), "hours": hours}
        if tags or random.random() < 0.5:
            task["tags"] = tags
        elif level >= 2:
            task["tags"] = None
        if random.random() < 0.1:
            task["hours"] = None
        elif random.random() < 0.05:
            del task["hours"]
        elif owner == self.owners[0] and self.tags[0] in tags:
            value = hours * (rate if level >= 3 else 1)
            self.lax += value
            self.total += 0 if archived else value
        if level >= 5 and isinstance(task.get("hours"), int) and random.random() < 0.3:
            task["hours"] = f"{hours:,}"
        return task


def _make(random: Random, level: int) -> Problem:
    while True:
        owners = random.sample(FIRST, 2 + level // 2)
        tags = random.sample(("urgent", "legal", "design", "audit", "travel", "training"), 3)
        tree = _Tree(random, level, owners, tags)
        root = tree.node(0, owners[0], 1, False)
        while tree.left > 0:
            root.setdefault("children", []).append(tree.node(1, root["owner"], root.get("rate", 1), False))
        if tree.total > 20 * level and tree.total != tree.lax:
            break
    path = file_name(random, "json", "projects", "tree", "plan")
    asked = f"hours of all tasks that have the tag {tags[0]} and belong to {owners[0]}"
    rules = [
        "A node has tasks and child nodes; its tasks belong to its owner, and where a node has no owner (or null) to "
        "that of the nearest node above that has one. A node that is archived is left out with all that is below it. "
        "Tasks without hours (missing or null) do not count."
    ]
    if level >= 3:
        asked = f"pay (hours times rate) for all tasks that have the tag {tags[0]} and belong to {owners[0]}"
        rules.append("The rate is inherited from above in the same way as the owner.")
    if level >= 5:
        rules.append("Some hours are written as text with commas between thousands.")
    text = pick(
        random,
        f"{path} is a tree of projects in JSON. What is the sum of the {asked}?",
        f"Read {path}, a JSON file of nested projects, and add up the {asked}.",
    )
    values = {"path": path, "wanted": owners[0], "tag": tags[0], "priced": level >= 3}
    return Problem(
        "nested-json",
        "data",
        level,
        " ".join([text, *rules, ask_whole(random)]),
        whole(tree.total),
        files={path: json.dumps(root, indent=1 if level < 4 else None).encode()},
        solution=program(_CODE, **values),
        wrong=program(mistaken(_CODE, "if not archived and owner", "if owner"), **values),
    )


NESTED = Made("nested-json", "data", "a sum over a tree in JSON with missing and inherited fields", _make)
