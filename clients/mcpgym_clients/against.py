"""``mcpgym play ENV --against P``: a person takes the opponent's part, and a policy plays its own."""

from __future__ import annotations

import asyncio
import secrets
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from rich.rule import Rule

from mcpgym.episodes import listings
from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym.game_tree import GameTree
from mcpgym.registry import load_environment
from mcpgym_clients.boards import observation
from mcpgym_clients.console import escaped, out, talk
from mcpgym_clients.failures import CommandFailed
from mcpgym_clients.forms import Leave
from mcpgym_clients.lines import Lines
from mcpgym_clients.options import parse_config
from mcpgym_rl.certificate.lines import Point, Rules, starting_points
from mcpgym_rl.certificate.twice import Player
from mcpgym_rl.policies import make_policy
from mcpgym_rl.policies.endpoint import without_password
from mcpgym_rl.policy import EpisodeContext, PolicyError
from mcpgym_rl.rollout import DEFAULT_MAX_TURNS
from mcpgym_rl.stop_reason import StopReason

_VERDICTS = {
    "win": "[bold red]You lost.[/bold red]",
    "draw": "[bold blue]A draw.[/bold blue]",
    "loss": "[bold green]You won.[/bold green]",
}
_NO_OUTCOME = {
    StopReason.ANSWERED: "it answered without making a move",
    StopReason.TRUNCATED: "its turn, or the conversation, was too long for it",
    StopReason.MAX_TURNS: "it has used up all its turns",
    StopReason.MAX_CALLS: "it has used up all its calls",
}


@dataclass(frozen=True, slots=True)
class AgainstOptions:
    """What was typed. ``seat`` is the policy's; None draws one. ``seed`` seeds the drawing and the policy."""

    environment: str
    policy: str
    seat: str | None
    seed: int | None
    config: Sequence[str]


def run(options: AgainstOptions) -> None:
    """Play one game.

    Raises:
        ConfigurationError: there is no such environment, policy or seat, or the environment gives no tree.
        CommandFailed: the policy gave no turn.
    """
    try:
        asyncio.run(_run(options))
    except KeyboardInterrupt:
        _say_left()
        raise


async def _run(options: AgainstOptions) -> None:
    config = parse_config(options.config, [options.environment])[options.environment]
    environment = load_environment(options.environment, config)
    tree = environment.game_tree()
    if tree is None:
        raise ConfigurationError(f"{environment.name} has no game tree, so nobody can take an opponent's part in it")
    seed = secrets.randbelow(2**31) if options.seed is None else options.seed
    seat = options.seat if options.seat is not None else Random(seed).choice(tree.seats)
    if seat not in tree.seats:
        raise UnknownNameError("seat", seat, tree.seats)
    policy = make_policy(options.policy, environment)
    rules = Rules(tree, environment.max_turns or DEFAULT_MAX_TURNS)
    try:
        player = Player.begin(policy, [EpisodeContext(environment.name, listings(environment), seed)])
        heading = f"{environment.name} [dim]{escaped(policy.name)} has the seat {escaped(seat)}; Ctrl-D leaves[/dim]"
        out().print(Rule(heading, align="left", style="dim"))
        try:
            end = await _play(player, rules, seat)
        finally:
            await player.aclose()
    except Leave:
        _say_left()
        return
    except PolicyError as error:
        raise CommandFailed(f"{policy.name} gave no turn: {error}") from error
    finally:
        await policy.aclose()
    outcome = tree.outcome(end.state)
    why = _NO_OUTCOME.get(end.end, str(end.end)) if end.end is not None else ""
    out().print(_VERDICTS[outcome] if outcome else f"[yellow]The game has no outcome: {escaped(why)}.[/yellow]")
    out().print(f"[dim]The same again:[/dim] {escaped(_again(options, seat, seed))}", soft_wrap=True)


async def _play(player: Player, rules: Rules, seat: str) -> Point:
    """Play to the end; where that is.

    Raises:
        Leave: the person did.
        PolicyError: the policy gave no turn.
    """
    lines, tree, name = Lines(), rules.tree, player.policy.name
    beginnings = starting_points(tree, [seat])
    if all(point.acts for point in beginnings):
        _show(tree, seat, ())
    point = await _choose(lines, tree, beginnings, 0)
    if not point.acts:
        _show(tree, seat, ())
    while point.end is None:
        known, said = len(point.acts), len(point.messages)
        with talk().status(f"{escaped(name)} thinks"):
            turn = await player.act(point.messages)
        if turn is None:
            return replace(point, end=StopReason.TRUNCATED)
        if turn.message["content"].strip():
            out().print(f"[dim]{escaped(turn.message['content'].strip())}[/dim]")
        point = await _choose(lines, tree, rules.after(point, turn), known)
        for message in point.messages[said:]:
            if message.get("is_error"):
                out().print(f"[yellow]{escaped(name)} was told: {escaped(message['content'])}[/yellow]")
    return point


async def _choose(lines: Lines, tree: GameTree, points: Sequence[Point], known: int) -> Point:
    """The one of ``points`` that the person's moves lead to; the first ``known`` moves have been shown."""
    while any(len(point.acts) > known for point in points):
        first = points[0]
        if first.movers[known] == "opponent":
            moves = [point.acts[known] for point in points]
            act = await _ask(lines, list(dict.fromkeys(moves)))
            points = [point for point in points if point.acts[known] == act]
            first = points[0]
        else:
            out().print(f"[bold]It plays {escaped(first.acts[known])}.[/bold]")
        known += 1
        _show(tree, first.seat, first.acts[:known])
    return points[0]


async def _ask(lines: Lines, moves: list[str]) -> str:
    if len(moves) == 1:
        out().print(f"You play {escaped(moves[0])}, the only move there is.")
        return moves[0]
    listed = ", ".join(moves)
    while True:
        hint = f" [dim]({escaped(listed)})[/dim]" if "moves" not in lines.told else ""
        lines.told.add("moves")
        line = await lines.ask(f"[bold]your move[/bold]{hint}: ")
        if line is None:
            raise Leave
        if line.strip() in moves:
            return line.strip()
        out().print(f"[yellow]one of {escaped(listed)}, please[/yellow]")


def _show(tree: GameTree, seat: str, acts: Sequence[str]) -> None:
    out().print(observation(tree.draw(seat, acts)))
    out().print()


def _again(options: AgainstOptions, seat: str, seed: int) -> str:
    policy = without_password(options.policy)
    words = ["mcpgym", "play", options.environment, "--against", policy, "--seat", seat, "--seed", str(seed)]
    for option in options.config:
        words += ["--config", option]
    return shlex.join(words)


def _say_left() -> None:
    out().print("\n[dim]You left before the end.[/dim]")
