"""The rule about game trees: what a tree says is what episodes say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from typing import Any

from mcpgym.asking import settle
from mcpgym.check.arguments import valid_arguments
from mcpgym.check.plays import Act, dump, show
from mcpgym.check.report import Report
from mcpgym.check.rules_plays import over
from mcpgym.check.rules_tasks import Make
from mcpgym.environment import Environment
from mcpgym.errors import McpgymError
from mcpgym.game_tree import Answer, GameTree, Start, opponent_of

RULE = "game-tree"
GAMES = 24
"""Games that are played in the tree and then as episodes."""
LONGEST = 100
"""Calls of a game, at most."""
TASKS = 8
"""Tasks of each split whose opponents are looked at."""


class _Wrong(Exception):
    """The tree is wrong: the text says how."""


@dataclass(slots=True)
class _Game:
    """One game in the tree: its calls, and what the tree says that follows each."""

    seat: str
    messages: Sequence[Any]
    acts: list[str] = field(default_factory=list)
    calls: list[tuple[Act, Answer[Any]]] = field(default_factory=list)

    def __str__(self) -> str:
        return f"the game {' '.join(self.acts) or 'without a move'} in the seat {self.seat}"


async def check_tree(make: Make, random: Random, report: Report) -> None:
    """The rule ``game-tree``, for environments that give one."""
    environment = make()
    try:
        tree = environment.game_tree()
    except Exception as error:
        report.add(RULE, f"game_tree raised {type(error).__name__}: {error}", "game_tree()", "return a tree or None")
        return
    if tree is None:
        return
    for _ in range(GAMES):
        game: _Game | None = None
        try:
            game = _walk(environment, tree, random)
            await _compare(environment, tree, game)
        except _Wrong as wrong:
            fix = "make the answers of the tree with call_tool, on a state whose opponent is told what to reply"
            report.add(RULE, str(wrong), str(game or "the tree"), fix)
        except Exception as error:
            fix = "a tree takes whatever a policy may send, and its lines are tasks that open"
            report.add(RULE, f"{type(error).__name__}: {error}", str(game or "the tree"), fix)
        report.episodes += game is not None
    try:
        await _check_opponents(environment, tree)
        await _check_stated(environment, tree, random)
    except _Wrong as wrong:
        fix = (
            "opponent(task) gives a task's seat and its opponent's share of random moves, choices(state) what is played"
        )
        report.add(RULE, str(wrong), "the exact value of an evaluation", fix)
    except McpgymError:
        pass  # tasks that cannot be made are told by other rules
    except Exception as error:
        report.add(
            RULE, f"{type(error).__name__}: {error}", "opponent(task), choices(state)", "let them take all there is"
        )


async def _check_opponents(environment: Environment[Any, Any, Any], tree: GameTree) -> None:
    """Whom the tree says that tasks meet: their games begin as games in that seat do."""
    episodes = over(environment)
    for split in environment.splits:
        for task in environment.tasks_at(split, 0, TASKS):
            met = opponent_of(tree, task)
            if met is None:
                continue
            if met.seat not in tree.seats or not 0 <= met.random <= 1:
                raise _Wrong(f"task {task.id}: its opponent is {met}; seats are {', '.join(tree.seats)}, random 0 to 1")
            episode = await episodes.open(environment.name, task=task.id)
            begun = dump(list(episode.messages))
            await episodes.close(episode.token)
            if all(dump(list(start.messages)) != begun for start in tree.starts(met.seat)):
                raise _Wrong(f"task {task.id}: no game in the seat {met.seat} begins with {show(begun)}")


async def _check_stated(environment: Environment[Any, Any, Any], tree: GameTree, random: Random) -> None:
    """What reference policies say of themselves: chances of legal calls that add up to 1, and no other call made."""
    for name, policy in environment.reference_policies().items():
        choices: Any = getattr(policy, "choices", None)
        if choices is None:
            continue
        for seat in tree.seats:
            start = random.choice(list(tree.starts(seat)))
            said = list(choices(start.state))
            legal = [(call.tool, dict(call.arguments)) for call in tree.legal(start.state)]
            if sum((chance for chance, _ in said), Fraction(0)) != 1 or any(chance < 0 for chance, _ in said):
                raise _Wrong(f"{name}: its chances in {start.state!r} are {[str(chance) for chance, _ in said]}")
            if any((call.tool, dict(call.arguments)) not in legal for _, call in said):
                raise _Wrong(f"{name}: it states a call in {start.state!r} that is not legal there")
            made: Any = await settle(policy(start.messages, Random(random.random())))
            call = made["tool_calls"][0]["function"]
            act = call["name"], json.loads(call["arguments"])
            if all((item.tool, dict(item.arguments)) != act for chance, item in said if chance):
                raise _Wrong(f"{name}: it states no chance for {act[0]}({show(dump(act[1]), 60)}), and makes that call")


def _walk(environment: Environment[Any, Any, Any], tree: GameTree, random: Random) -> _Game:
    """A game at random: mostly legal moves, now and then a call that its schema allows."""
    seat = random.choice(list(tree.seats))
    starts = list(tree.starts(seat))
    _require_chances(f"the starts of the seat {seat}", starts)
    start = random.choice(starts)
    game = _Game(seat, start.messages)
    _add(game, start.act)
    state = start.state
    limit = min(environment.max_turns or LONGEST, LONGEST)
    while tree.outcome(state) is None and len(game.calls) < limit:
        legal = list(tree.legal(state))
        if not legal:
            raise _Wrong(f"{game}: it goes on, and legal has no call")
        call = random.choice(legal)
        free = random.random() < 0.2
        if free:
            tool = random.choice(list(environment.tools.values()))
            act = Act(tool.name, valid_arguments(tool.parser.schema, random))
        else:
            act = Act(call.tool, dict(call.arguments))
        answers = list(tree.answers(state, act.name or "", act.arguments))
        where = f"{game}, then {act.name}({show(dump(act.arguments), 60)})"
        _require_chances(where, answers)
        if not free and any(answer.is_error or answer.act is None for answer in answers):
            raise _Wrong(f"{where}: legal has this call, and answers refuses it")
        answer = random.choice(answers)
        game.calls.append((act, answer))
        _add(game, answer.act)
        _add(game, answer.reply)
        state = answer.state
    for call in tree.legal(state) if tree.outcome(state) is not None else ():
        raise _Wrong(f"{game} is over, and legal has {call.tool} still")
    return game


def _add(game: _Game, act: str | None) -> None:
    if act is None:
        return
    if not act or act.split() != [act]:
        raise _Wrong(f"{game}: the move {act!r} must be a text without spaces")
    game.acts.append(act)


def _require_chances(where: str, branches: Sequence[Answer[Any] | Start[Any]]) -> None:
    for name in ("random", "perfect"):
        together = sum((getattr(branch.chances, name) for branch in branches), Fraction(0))
        if together != 1:
            raise _Wrong(f"{where}: the chances under {name} play add up to {together}, not to 1")


async def _compare(environment: Environment[Any, Any, Any], tree: GameTree, game: _Game) -> None:
    """Play the game's calls in an episode of its line's task, and compare."""
    tree.draw(game.seat, game.acts)
    task = tree.line_task(game.seat, game.acts)
    episodes = over(environment)
    episode = await episodes.open(environment.name, task=task)
    try:
        if dump(list(episode.messages)) != dump(list(game.messages)):
            prompts = f"{show(dump(list(game.messages)))}, and in an episode {show(dump(list(episode.messages)))}"
            raise _Wrong(f"task {task}: the prompt is {prompts}")
        for act, answer in game.calls:
            result = await episode.call(act.name or "", act.arguments)
            what = f"task {task}, {act.name}({show(dump(act.arguments), 60)})"
            if (result.text, result.is_error) != (answer.text, answer.is_error):
                raise _Wrong(f"{what} is answered {show(answer.text)}, and in an episode {show(result.text)}")
            outcome, real = tree.outcome(answer.state), environment.game_outcome(episode.state)
            if outcome != real:
                raise _Wrong(f"{what}: the outcome is {outcome}, and in an episode {real}")
            if (episode.stop_reason == "done") != (outcome is not None):
                raise _Wrong(
                    f"{what}: the outcome is {outcome}, and the episode is {episode.stop_reason or 'not'} over"
                )
    finally:
        await episodes.close(episode.token)
