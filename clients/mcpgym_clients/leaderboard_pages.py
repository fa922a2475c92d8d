"""A leaderboard as Markdown, as JSON, and as one HTML page that loads nothing and runs nothing.

Names of policies, harnesses and clients are whatever somebody wrote: nothing in them is markup.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from mcpgym_clients.console import clean
from mcpgym_clients.leaderboard import Board, Leaderboard, Row
from mcpgym_clients.statistics import Estimate

SCHEMA = "mcpgym.leaderboard/1"

_SPECIAL = re.compile(r"([\\`*_\[\]<>#+|~&$@:]|(?<=www)\.)", re.IGNORECASE)


def written(found: Leaderboard, format: str) -> str:
    """The text of a leaderboard: ``markdown``, ``json`` or ``html``."""
    return {"markdown": markdown, "json": as_json, "html": html}[format](found)


def as_json(found: Leaderboard) -> str:
    """For programs."""
    boards = [
        {
            "environment": board.what.environment,
            "environment_version": board.what.version,
            "split": board.what.split,
            "config": dict(board.config),
            "config_hash": board.what.config_hash,
            "schema_hash": board.what.schema_hash,
            "episodes": board.pairs,
            "common": board.common,
            "rows": [_row_json(row) for row in board.rows],
        }
        for board in found.boards
    ]
    whole = {"schema": SCHEMA, "boards": boards, "notes": list(found.notes)}
    return json.dumps(whole, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def _row_json(row: Row) -> dict[str, Any]:
    return {
        "policy": row.who.policy,
        "options": row.who.options,
        "harness": row.who.harness,
        "client": row.who.client,
        "n": row.n,
        "tasks": row.tasks,
        "reward": _estimate(row.reward),
        "reward_on_common": _estimate(row.common),
        "outcomes": {name: _estimate(item) for name, item in row.outcomes.items()},
        "distinct": row.distinct,
        "missing": row.missing,
        "repeated": row.repeated,
        "unscored": row.unscored,
        "scored_between": [row.first, row.last],
        "keys": list(row.keys),
    }


def _estimate(item: Estimate | None) -> dict[str, Any] | None:
    return None if item is None else {"mean": item.mean, "interval": item.interval, "n": item.n}


HEAD = (
    "policy (claimed)",
    "client (seen)",
    "harness (claimed)",
    "reward",
    "95 %",
    "on common",
    "outcomes",
    "n",
    "cover",
)


def cells(row: Row, board: Board) -> tuple[str, ...]:
    """What stands in the columns of ``HEAD``."""
    policy = row.who.policy + (f" {row.who.options}" if row.who.options else "")
    interval = "" if row.reward is None or row.reward.low is None else f"{row.reward.low:.3f} to {row.reward.high:.3f}"
    common = "–" if row.common is None else f"{row.common.mean:.3f}"
    outcomes = ", ".join(f"{name} {100 * item.mean:.1f} %" for name, item in row.outcomes.items()) or "–"
    reward = "–" if row.reward is None else f"{row.reward.mean:.3f}"
    return (policy, row.who.client, row.who.harness, reward, interval, common, outcomes, str(row.n), cover(row, board))


def cover(row: Row, board: Board) -> str:
    """What a row's mean covers, in words."""
    parts = [f"{board.pairs - row.missing} of {board.pairs} episodes, {row.tasks} tasks"]
    for count, word in ((row.missing, "missing"), (row.repeated, "repeated"), (row.unscored, "unscored")):
        parts += [f"{count} {word}"] if count else []
    return ", ".join(parts + ([f"only {row.distinct} distinct"] if row.distinct < row.n else []))


def about(board: Board) -> str:
    """Under a board's title."""
    return (
        f"{board.pairs} episodes (task and seed) in all, {board.common} of them in every row; "
        f"config {board.what.config_hash[:12]}, tools {board.what.schema_hash[:12]}"
    )


def title(board: Board) -> str:
    """A board's title."""
    return f"{board.what.environment} {board.what.version}, {board.what.split}"


FOOT = (
    "Only receipts that hold are counted, and of an episode its first scoring alone. Rows that lack an episode which "
    "another row has stand below the others: their mean may be one of picked tasks. Claimed: what a harness said of "
    "itself; the server cannot know whether it is true. Seen: what the server saw itself."
)


def markdown(found: Leaderboard) -> str:
    """For people, and for repositories."""
    lines = ["# Leaderboard", ""]
    for board in found.boards:
        lines += [f"## {_md(title(board))}", "", _md(about(board)), ""]
        lines += [_md_row(HEAD), "| " + " | ".join(["---"] * 3 + ["---:"] * 3 + ["---", "---:", "---"]) + " |"]
        lines += [_md_row(cells(row, board)) for row in board.rows] + [""]
    lines += [f"- {_md(note)}" for note in found.notes]
    return "\n".join([*lines, *([""] if found.notes else []), FOOT]) + "\n"


def _md_row(texts: Sequence[str]) -> str:
    return "| " + " | ".join(map(_md, texts)) + " |"


def _md(text: str) -> str:
    """``text`` as Markdown in which nothing is markup: no link, no HTML, no mention, no new cell or line."""
    return _SPECIAL.sub(lambda found: _MD.get(found[1], "\\" + found[1]), " ".join(clean(text).split()))


_MD = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "|": "&#124;", "@": "&#64;", ":": "&#58;", "$": "&#36;", ".": "&#46;"}

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Leaderboard</title><style>
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; } .wide { overflow-x: auto; }
th, td { padding: .4rem .8rem .4rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid #8884; }
th { font-weight: 600; font-size: .85rem; } td { font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.number { text-align: right; white-space: nowrap; } .dim { opacity: .7; font-size: .9rem; }
.bar { height: .35rem; background: #8883; margin-top: .25rem; min-width: 6rem; }
.bar i { display: block; height: 100%; background: #2a7ab0; }
</style></head><body><h1>Leaderboard</h1>
{% for board in boards %}<h2>{{ board.title }}</h2><p class="dim">{{ board.about }}</p><div class="wide"><table>
<thead><tr>{% for name in head %}<th scope="col"{% if loop.index0 in numbers %} class="number"{% endif %}>
{{- name }}</th>{% endfor %}</tr></thead><tbody>
{% for row in board.rows %}<tr>{% for cell in row.cells %}<td{% if loop.index0 in numbers %} class="number"{% endif %}>
{{- cell }}{% if loop.index0 == 3 and row.width is not none %}<div class="bar"><i style="width: {{ row.width }}%"></i>
</div>{% endif %}</td>{% endfor %}</tr>
{% endfor %}</tbody></table></div>
{% endfor %}{% if notes %}<h2>To know</h2><ul>{% for note in notes %}<li>{{ note }}</li>{% endfor %}</ul>{% endif %}
<p class="dim">{{ foot }}</p></body></html>
"""


def html(found: Leaderboard) -> str:
    """One page, whole in itself."""
    from jinja2 import Environment

    boards = [
        {
            "title": clean(title(board)),
            "about": clean(about(board)),
            "rows": [
                {"cells": [clean(text) for text in cells(row, board)], "width": _width(row, board)}
                for row in board.rows
            ],
        }
        for board in found.boards
    ]
    page = Environment(autoescape=True).from_string(_PAGE)
    notes = [clean(note) for note in found.notes]
    return page.render(boards=boards, head=HEAD, numbers={3, 4, 5, 7}, notes=notes, foot=FOOT) + "\n"


def _width(row: Row, board: Board) -> str | None:
    """A reward as a bar, on boards whose rewards all lie in 0 to 1, as most do."""
    if row.reward is None or not all(0 <= other.reward.mean <= 1 for other in board.rows if other.reward is not None):
        return None
    return f"{100 * row.reward.mean:.1f}"
