"""``mcpgym demo``: hundreds of games over MCP on this machine, held against what is known exactly."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Literal

from rich.columns import Columns
from rich.console import Group
from rich.padding import Padding
from rich.segment import Segments
from rich.table import Table
from rich.text import Text

from mcpgym.control import ControlPlane
from mcpgym.registry import environment_class, load_environment
from mcpgym_clients import connect
from mcpgym_clients.boards import draw, read_board
from mcpgym_clients.connection import own_server
from mcpgym_clients.console import escaped, out
from mcpgym_clients.eval_options import EvalOptions
from mcpgym_clients.evaluation import Evaluation
from mcpgym_clients.failures import CommandFailed
from mcpgym_clients.files import run_folder
from mcpgym_clients.report import number, percent
from mcpgym_rl.lanes import McpLane
from mcpgym_rl.packaged import MODELS, packaged_file
from mcpgym_rl.policies import make_policy
from mcpgym_rl.traces import Trace, read_traces

GAME = "tic-tac-toe"
RANDOM_OPPONENT = {"min_random_move_prob": "1", "max_random_move_prob": "1"}
PERFECT_OPPONENT = {"min_random_move_prob": "0", "max_random_move_prob": "0"}
_RIGHT = frozenset({"games", "measured", "95 % interval", "exact"})
_TABLE_WIDTH = 83
"""Columns that the table needs; on a narrower terminal its lines are wrapped, and no number is cut off."""
OUTCOMES = ("win", "draw", "loss")
BAND = 0.999
"""Outside this interval around the measured share, the exact value says that something is wrong."""


@dataclass(frozen=True, slots=True)
class Part:
    """One run of the demonstration.

    ``exact`` are the shares that dynamic programming over all games gives, where it can. ``client`` is the MCP client:
    ``thin``, which costs little per game, or ``official``, the SDK's own.
    """

    folder: str
    environment: str
    policy: str
    opponent: str
    episodes: int
    config: Mapping[str, str] = field(default_factory=dict)
    exact: Mapping[str, float] = field(default_factory=dict)
    client: Literal["thin", "official"] = "official"


def parts(games: int) -> list[Part]:
    """What the demonstration plays. The exact shares are averages over moving first and second, which are as likely."""
    return [
        Part(
            "random",
            GAME,
            "random",
            "random play",
            games,
            RANDOM_OPPONENT,
            {"win": 0.437, "draw": 0.127, "loss": 0.437},
            "thin",
        ),
        Part(
            "expert",
            GAME,
            "expert",
            "random play",
            games,
            RANDOM_OPPONENT,
            {"win": 0.9556, "draw": 0.0444, "loss": 0.0},
            "thin",
        ),
        Part(
            "expert-perfect",
            GAME,
            "expert",
            "perfect play",
            40,
            PERFECT_OPPONENT,
            {"win": 0.0, "draw": 1.0, "loss": 0.0},
        ),
        *_master(games),
        Part("reverse-text", "reverse-text", "expert", "", 10),
        Part("double-check", "double-check", "expert", "", 10),
    ]


def _master(games: int) -> list[Part]:
    """The model that ships with the game, at temperature 0; its exact shares stand in its certificate."""
    path = packaged_file(environment_class(GAME), MODELS, "default", "certificate.json")
    if path is None:
        return []
    certificate = json.loads(path.read_text("utf-8"))
    policy = "local:default"
    random, perfect = (
        {name: certificate[part][name] for name in OUTCOMES} for part in ("versus_random", "versus_perfect")
    )
    return [
        Part("master", GAME, policy, "random play", games // 2, RANDOM_OPPONENT, random, "thin"),
        Part("master-perfect", GAME, policy, "perfect play", 40, PERFECT_OPPONENT, perfect, "thin"),
    ]


def run(games: int, folder: Path | None) -> None:
    """Play, print, and say what to do next.

    Raises:
        CommandFailed: an episode broke, or a measured share cannot be reconciled with the exact one.
    """
    asyncio.run(_demonstrate(parts(games), run_folder(folder, "demo")))


async def _demonstrate(played: Sequence[Part], folder: Path) -> None:
    environments = [load_environment(name) for name in dict.fromkeys(part.environment for part in played)]
    results: list[tuple[Part, Evaluation]] = []
    async with own_server(*environments) as control:
        names = ", ".join(environment.name for environment in environments)
        out().print(f"Serving {escaped(names)} over MCP on loopback.")
        out().print(
            "Every episode has an address of its own, [cyan]/e/<token>/mcp[/cyan]; every call goes through it.\n"
        )
        results += [(part, await _play(control, part, folder / part.folder)) for part in played]
    wide = out().options.update(width=max(out().width, _TABLE_WIDTH))
    out().print(Segments(out().render(_games_table(results), wide)), soft_wrap=True)
    out().print(_others_table(results))
    _show_a_game(folder)
    _say_where(folder)
    _judge(results)


async def _play(control: ControlPlane, part: Part, folder: Path) -> Evaluation:
    options = EvalOptions(
        part.environment,
        part.policy,
        tasks=part.episodes,
        config=[f"{name}={value}" for name, value in part.config.items()],
        lane="mcp",
    )
    evaluation = Evaluation(options, run_folder(folder))
    policy = make_policy(part.policy, load_environment(part.environment, part.config))
    lane = McpLane(control, client=part.client)
    try:
        await evaluation.play(policy, lane, part.environment, part.config)
    finally:
        await lane.aclose()
        await policy.aclose()
        evaluation.finish()
    if evaluation.failure is not None or evaluation.summary.scored < part.episodes:
        reasons = evaluation.failure or "; ".join(evaluation.summary.unscored_examples.values())
        raise CommandFailed(f"{part.environment}: not every episode came to its end: {reasons}")
    return evaluation


def _games_table(results: Sequence[tuple[Part, Evaluation]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for name in ("opponent", "policy", "games", "", "measured", "95 % interval", "exact", ""):
        table.add_column(name, no_wrap=True, justify="right" if name in _RIGHT else "left")
    colours = {"win": "green", "draw": "blue", "loss": "red"}
    for part, evaluation in results:
        shares, wide = evaluation.summary.outcome_shares(), evaluation.summary.outcome_shares(BAND)
        for index, (name, exact) in enumerate(part.exact.items()):
            low, high = shares[name].interval or (0.0, 1.0)
            label = (part.opponent, part.policy, str(part.episodes)) if index == 0 else ("", "", "")
            table.add_row(
                *label,
                f"[{colours[name]}]{name}[/{colours[name]}]",
                percent(shares[name].mean),
                f"{100 * low:.1f}–{100 * high:.1f} %",
                percent(exact),
                _verdict(exact, (low, high), wide[name].interval or [0.0, 1.0]),
                end_section=index == len(part.exact) - 1,
            )
    return table


def _verdict(exact: float, interval: Sequence[float], band: Sequence[float]) -> str:
    if interval[0] <= exact <= interval[1]:
        return "[green]agrees[/green]"
    return "[yellow]just outside[/yellow]" if band[0] <= exact <= band[1] else "[bold red]disagrees[/bold red]"


def _others_table(results: Sequence[tuple[Part, Evaluation]]) -> Padding:
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    for part, evaluation in results:
        if not part.exact and (reward := evaluation.summary.reward) is not None:
            mean = f"mean reward [bold]{number(reward.mean)}[/bold]"
            table.add_row(escaped(part.environment), part.policy, f"{part.episodes} episodes", mean)
    return Padding(table, (1, 0))


def _show_a_game(folder: Path) -> None:
    """The longest game that the expert won, board by board."""
    won = [t for t in read_traces(folder / "expert" / "traces.jsonl") if t.score and t.score.game_outcome == "win"]
    if won:
        trace = max(won, key=lambda item: item.turns)
        out().print(f"One of them: the expert is X ({escaped(trace.task)}).")
        out().print(Columns(_boards(trace), padding=(0, 2)))


def _boards(trace: Trace) -> list[Group]:
    opening = read_board(trace.messages[trace.prompt_messages - 1]["content"]) or "." * 9
    after = [cells for call in trace.calls if (cells := read_board(call.result)) is not None]
    boards = [Group(Text("the opening", style="dim"), draw(opening))]
    for before, cells in pairwise([opening, *after]):
        played = [f"{cells[cell]} {cell}" for cell in range(9) if cells[cell] != before[cell]]
        boards.append(Group(Text(", ".join(sorted(played, reverse=True)), style="dim"), draw(cells), Text()))
    return boards


def _say_where(folder: Path) -> None:
    def say(label: str, *commands: str) -> None:
        out().print(f"[dim]{escaped(label)}[/dim]")
        for command in commands:
            out().print(f"  {escaped(command)}", soft_wrap=True)

    out().print(f"[bold]Traces[/bold] of every game are in {escaped(folder)}.\n", soft_wrap=True)
    out().print("[bold]Connect a client[/bold]")
    say("Claude Code, over stdio:", connect.claude_stdio("mcpgym"))
    say("any other, in its JSON configuration:", connect.client_json("mcpgym"))
    say("over HTTP: serve, then give a client the URL", connect.typed("serve"), f"{connect.HTTP_URL}/mcp")
    say("or, with Claude Code:", connect.claude_http("mcpgym"))
    out().print("\n[bold]Next[/bold]")
    say("play it yourself:", connect.typed("play", GAME))
    say("read the games:", connect.typed("show", str(folder / "expert")))
    say("measure a model:", connect.typed("eval", GAME, "--policy", "openai:MODEL@http://127.0.0.1:8080/v1"))


def _judge(results: Sequence[tuple[Part, Evaluation]]) -> None:
    wrong = []
    for part, evaluation in results:
        shares = evaluation.summary.outcome_shares(BAND)
        for name, exact in part.exact.items():
            low, high = shares[name].interval or (0.0, 1.0)
            if not low <= exact <= high:
                wrong.append(
                    f"{part.policy} against {part.opponent}: {name} {percent(shares[name].mean)}, not {percent(exact)}"
                )
    if wrong:
        raise CommandFailed(f"measured shares cannot be reconciled with the exact ones: {'; '.join(wrong)}")
