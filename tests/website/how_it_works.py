"""Draws the pictures of docs/how-it-works into docs/images: ``python -m tests.website.how_it_works``.

A test keeps them current.
"""

from __future__ import annotations

from pathlib import Path

from tests.website.drawing import Arrow, Box, Drawing

IMAGES = Path(__file__).parents[2] / "docs" / "images"


def session_or_url() -> Drawing:
    """What a call brings along, and what of it still names an episode when the client connects anew."""
    parts: list[Box | Arrow] = [
        Box(20, 20, 390, 296, ["by session"], "ghost"),
        Box(40, 62, 160, 64, ["a client", "first connection"]),
        Box(40, 150, 160, 64, ["the same one", "second connection"]),
        Box(240, 62, 150, 64, ["state A", "count: 1"], "strong"),
        Box(240, 150, 150, 64, ["state B", "count: 1"], "strong"),
        Arrow([(200, 94), (238, 94)]),
        Arrow([(200, 182), (238, 182)]),
        Box(40, 238, 350, 62, ["what was done is gone", "!a session is not an episode"]),
        Box(430, 20, 390, 296, ["by URL"], "ghost"),
        Box(450, 62, 170, 64, ["a client", "`/e/3kq…/mcp"]),
        Box(450, 150, 170, 64, ["the same one", "`/e/3kq…/mcp"]),
        Box(660, 62, 140, 152, ["episode 3kq…", "count: 2", "", "task, seed,", "state, log"], "strong"),
        Arrow([(620, 94), (658, 94)]),
        Arrow([(620, 182), (658, 182)]),
        Box(450, 238, 350, 62, ["every call says whose it is", "in the path, which all clients keep"]),
    ]
    return Drawing(840, 336, "state by session is lost when a client connects anew; by URL it is kept", parts)


def three_lanes() -> Drawing:
    """Three ways to one episode."""
    parts: list[Box | Arrow] = [
        Box(20, 20, 240, 82, ["in process", "`LocalControl", "a trainer, one program"]),
        Box(20, 122, 240, 82, ["control plane", "`HttpControl, step([...])", "a trainer, many calls at once"]),
        Box(20, 224, 240, 82, ["MCP over HTTP", "`/e/<token>/mcp", "any client, any agent"]),
        Box(500, 20, 320, 286, [
            "an episode", "", "one call at a time, in order", "arguments checked strictly", "a time limit",
            "an equal call in flight: its answer", "a log", "", "every lane is answered", "`text, is_error, done",
        ], "strong"),
        Arrow([(260, 60), (498, 60)], word="a function call"),
        Arrow([(260, 162), (498, 162)], word="HTTP, a secret, a batch"),
        Arrow([(260, 264), (498, 264)], word="JSON-RPC, one call"),
    ]  # fmt: skip
    return Drawing(840, 326, "in process, control plane and MCP over HTTP end in the same method of an episode", parts)


def token_lane() -> Drawing:
    """Which tokens are trained on, and where each comes from."""
    parts: list[Box | Arrow] = [
        Box(20, 20, 180, 82, ["prompt", "rendered, encoded", "mask 0"]),
        Box(200, 20, 160, 82, ["turn 1", "sampled ids, kept", "mask 1"], "strong"),
        Box(360, 20, 150, 82, ["tool's answer", "encoded once", "mask 0"]),
        Box(510, 20, 160, 82, ["turn 2", "sampled ids, kept", "mask 1"], "strong"),
        Box(670, 20, 150, 82, ["tool's answer", "encoded once", "mask 0"]),
        Box(200, 158, 470, 82, ["the parser", "from ids to text to calls", "!never from text back to sampled ids"]),
        Arrow([(280, 102), (280, 156)], word="text"),
        Arrow([(435, 156), (435, 104)], word="answers"),
        Arrow([(590, 102), (590, 156)], word="text"),
    ]  # fmt: skip
    return Drawing(840, 260, "sampled ids are kept and trained on; only what the environment says is encoded", parts)


DRAWINGS = {"session-or-url.svg": session_or_url, "three-lanes.svg": three_lanes, "token-lane.svg": token_lane}
"""Each file in docs/images, and what draws it."""


if __name__ == "__main__":
    for name, draw in DRAWINGS.items():
        (IMAGES / name).write_text(draw().svg(), encoding="utf-8")
