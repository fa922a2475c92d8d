"""Draws the house into docs/images: ``python -m tests.website.house``. A test keeps the drawings current.

``packages.svg`` has the four packages, and an arrow wherever the code of one imports another. ``who-sees-what.svg`` has
what a player is answered and what a harness may ask: the names of both are the code's.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from tests.website.drawing import Arrow, Box, Drawing

from mcpgym.calls import CallResult
from mcpgym.control import ControlPlane

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
FOLDERS = {
    "mcpgym": "server", "mcpgym_environments": "environments", "mcpgym_rl": "rl", "mcpgym_clients": "clients",
}  # fmt: skip
"""Each package, and the folder that it is in."""
WAYS = {
    ("clients", "rl"): [(230, 112), (230, 150)],
    ("clients", "server"): [(60, 112), (60, 282)],
    ("rl", "server"): [(230, 244), (230, 282)],
    ("environments", "server"): [(530, 244), (530, 282)],
}
"""Where the arrow between two packages runs: there is none that is not drawn here."""
ASKED = ("environments", "tasks", "open", "step", "status", "score", "calls", "close")
"""What a harness asks, by the names of the control plane's methods."""
SECRET = ("!state, seed, answer, rewards:", "!in the answer of no tool")


@cache
def imports() -> set[tuple[str, str]]:
    """Which folder's code imports which other folder's."""
    found = set()
    for folder in FOLDERS.values():
        for path in (ROOT / folder).rglob("*.py"):
            if "templates" in path.parts:  # of users' packages
                continue
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                found |= {(folder, FOLDERS[top]) for name in names if (top := name.split(".")[0]) in FOLDERS}
    return {(one, other) for one, other in found if one != other}


def packages() -> Drawing:
    """The four packages, yours, and which imports which."""
    bundled = ["games, search, a sandbox, long texts;", "environments of other libraries"]
    command = ["the command: play, connect, evaluate,", "train, compare, look, scan, examine"]
    rollouts = ["rollouts, policies, traces,", "replay, training, certificates"]
    contract = [
        "what an environment is; episodes and their scores; MCP for players;",
        "the control plane for harnesses; receipts; telemetry",
    ]
    boxes = [
        Box(20, 20, 340, 92, ["clients", "`mcpgym_clients", *command]),
        Box(100, 152, 260, 92, ["rl", "`mcpgym_rl", *rollouts]),
        Box(380, 152, 300, 92, ["environments", "`mcpgym_environments", *bundled]),
        Box(700, 152, 120, 92, ["yours", "a class,", "a package,", "or a server"], "ghost"),
        Box(20, 284, 800, 92, ["server", "`mcpgym", *contract], "strong"),
    ]
    arrows = [Arrow(WAYS[pair]) for pair in sorted(imports())]
    arrows.append(Arrow([(760, 244), (760, 282)]))
    return Drawing(840, 396, "clients import rl and server, rl and environments import server", [*boxes, *arrows])


def who_sees_what() -> Drawing:
    """What reaches a player, what a harness, and what neither."""
    asked = [name for name in ASKED if hasattr(ControlPlane, name)]
    server = [
        Box(282, 20, 276, 354, ["one server"], "ghost"),
        Box(300, 60, 240, 64, ["players' listener", "`/mcp or /e/<token>/mcp"], "strong"),
        Box(300, 146, 240, 118, ["an episode", "tools, asked one by one", "", *SECRET]),
        Box(300, 286, 240, 64, ["control plane", "its own listener and secret"], "strong"),
    ]
    player = Box(20, 60, 196, 204, [
        "a player", "a model, an agent,", "a person's client", "", "sees prompt and tools,", "and of each call",
        f"`{', '.join(CallResult._fields)}", "", "!never a score or a seed",
    ])  # fmt: skip
    harness = Box(624, 146, 196, 204, [
        "a harness", "an evaluator, a trainer", "", "asks, with the secret",
        *(f"`{', '.join(asked[at : at + 2])}" for at in range(0, len(asked), 2)), "", "over HTTP, or in process",
    ])  # fmt: skip
    arrows = [
        Arrow([(218, 92), (298, 92)], True, "MCP"),
        Arrow([(622, 318), (542, 318)], True, "HTTP"),
        Arrow([(420, 124), (420, 144)]),
        Arrow([(420, 286), (420, 266)]),
    ]
    about = (
        "a player reaches its episode over MCP and sees text; a harness reaches the control plane, which has the scores"
    )
    return Drawing(840, 394, about, [*server, player, harness, *arrows])


DRAWINGS = {"packages.svg": packages, "who-sees-what.svg": who_sees_what}
"""Each file in docs/images, and what draws it."""


if __name__ == "__main__":
    for name, draw in DRAWINGS.items():
        (IMAGES / name).write_text(draw().svg(), encoding="utf-8")
