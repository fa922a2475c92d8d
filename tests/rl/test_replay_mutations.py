"""Changed rules: each is found in the first trace it touches, at its first text that differs, which is told apart here
by playing the same turns without any code of the replay."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

import pytest

from mcpgym import Environment, Message, Task, ToolError, Transcript, reward, tool
from mcpgym.control import LocalControl
from mcpgym.episodes import Episodes
from mcpgym.messages import tool_answer, user
from mcpgym_environments.double_check import DoubleCheck
from mcpgym_environments.reverse_text import ReverseText
from mcpgym_environments.tic_tac_toe import Game, TicTacToe, engine
from mcpgym_environments.tic_tac_toe.observation import show_moves
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.parse import MalformedCall, parse
from mcpgym_rl.policies import make_policy
from mcpgym_rl.policies.script import ScriptedPolicy
from mcpgym_rl.replay import DifferenceKind, Replayed, replay
from mcpgym_rl.run import EpisodeSpec, run
from mcpgym_rl.traces import Trace

POSITION = Annotated[int, "A free cell, 0 to 8, row by row from the top left."]
GAMES = 40


class LookAlike(TicTacToe):
    """Nothing is changed: what makes these mutants finds nothing by itself."""

    @tool(title="Play a cell", inline=True)
    def play(self, game: Game, position: POSITION) -> str:
        """Put your X on a free cell. The answer shows what O played and the new board."""
        return self.answer(game, position)

    def answer(self, game: Game, position: int) -> str:
        return super().play(game, position)


class OneSpaceMore(LookAlike):
    def answer(self, game: Game, position: int) -> str:
        return super().answer(game, position) + (" " if game.outcome == "draw" else "")


class DiagonalsDoNotWin(LookAlike):
    def answer(self, game: Game, position: int) -> str:
        text = super().answer(game, position)
        line = engine.winning_line(game.board)
        if line is not None and tuple(sorted(line)) in {(0, 4, 8), (2, 4, 6)}:
            game.outcome = None
            return text.replace("Game over", "No line")
        return text


class OccupiedCellsMayBePlayed(LookAlike):
    def answer(self, game: Game, position: int) -> str:
        try:
            return super().answer(game, position)
        except ToolError:
            return show_moves(game.board, position, None)


class ErrorsAreNoErrors(LookAlike):
    def answer(self, game: Game, position: int) -> str:
        try:
            return super().answer(game, position)
        except ToolError as error:
            return str(error)


class AnotherOpponent(LookAlike):
    def reset(self, task: Task, seed: int) -> Game:
        return super().reset(task, seed + 1)


class ThePromptSaysMore(LookAlike):
    def messages(self, task: Task, state: Game) -> Sequence[Message]:
        rules, board = super().messages(task, state)
        return [rules, user(board["content"] + "\nGood luck!")]


class TwoTurnsFewer(LookAlike):
    @property
    def max_turns(self) -> int:
        return 3


class EndsAfterTheFirstReply(LookAlike):
    def is_done(self, state: Game) -> bool:
        return super().is_done(state) or len(engine.cells_of(state.board, "X")) >= 2


class AnotherToolText(TicTacToe):
    @tool(title="Play a cell", inline=True)
    def play(self, game: Game, position: POSITION) -> str:
        """Put your X on any free cell. The answer shows what O played and the new board."""
        return super().play(game, position)


class DrawsPayLess(LookAlike):
    @reward
    def outcome(self, game: Game) -> float:
        """Less for a draw."""
        return {"win": 1.0, "draw": 0.25}.get(game.outcome or "", 0.0)


class AnotherWeight(LookAlike):
    @reward(weight=0.1)
    def format(self, transcript: Transcript) -> float:
        """It counts less."""
        return super().format(transcript)


class BreaksWhenItIsLost(LookAlike):
    def answer(self, game: Game, position: int) -> str:
        text = super().answer(game, position)
        return text if game.outcome != "loss" else str(1 // 0)


class DoubtsInOtherWords(DoubleCheck):
    def respond(self, state: Any, transcript: Transcript) -> Sequence[Message] | None:
        said = super().respond(state, transcript)
        return None if said is None else [user("Are you really sure?")]


class DoesNotDoubt(DoubleCheck):
    def respond(self, state: Any, transcript: Transcript) -> None:
        super().respond(state, transcript)


class DoubtsTwice(DoubleCheck):
    def respond(self, state: Any, transcript: Transcript) -> Sequence[Message] | None:
        return super().respond(state, transcript) or ([user("Sure?")] if len(transcript.assistant_turns) == 2 else None)


class PaysForCapitals(ReverseText):
    @reward
    def likeness(self, state: Any, transcript: Transcript) -> float:
        """A little less where there is a capital letter."""
        return super().likeness(state, transcript) * (0.999 if transcript.answer[:20].isupper() else 0.998)


class OtherSentences(ReverseText):
    def messages(self, task: Task, state: Any) -> Sequence[Message]:
        rules, text = super().messages(task, state)
        return [rules, user(text["content"].replace("harbour", "harbor"))]


TEXTS: list[type[Environment[Any, Any, Any]]] = [
    OneSpaceMore, DiagonalsDoNotWin, OccupiedCellsMayBePlayed, ErrorsAreNoErrors, AnotherOpponent, ThePromptSaysMore,
    TwoTurnsFewer, EndsAfterTheFirstReply, BreaksWhenItIsLost, DoubtsInOtherWords, DoesNotDoubt, DoubtsTwice,
    OtherSentences,
]  # fmt: skip
SCORES: list[type[Environment[Any, Any, Any]]] = [DrawsPayLess, AnotherWeight, PaysForCapitals]
UNCHANGED: list[type[Environment[Any, Any, Any]]] = [LookAlike, DoubleCheck, ReverseText]

CLUMSY = ScriptedPolicy([{"name": "play", "arguments": {"position": cell}} for cell in (4, 4, 0, 8, 9, 2, 6, 1)])


def lane(*environments: Environment[Any, Any, Any]) -> ControlLane:
    return ControlLane(LocalControl(Episodes({environment.name: environment for environment in environments})))


@pytest.fixture(scope="module")
def traces() -> dict[str, list[Trace]]:
    """Games of every kind by the healthy environments' names."""

    async def play() -> dict[str, list[Trace]]:
        found: dict[str, list[Trace]] = {}
        for environment in (TicTacToe(), DoubleCheck(), ReverseText()):
            policies = [make_policy(name, environment) for name in ("random", "expert", "teacher:skill=0.5")]
            policies += [CLUMSY] if environment.tools else []
            for policy in policies:
                specs = [EpisodeSpec(environment.name, split="train", index=index) for index in range(GAMES)]
                result = await run(policy, lane(environment), specs)
                found[environment.name] = [*found.get(environment.name, []), *result.traces]
        return found

    made = asyncio.run(play())
    outcomes = {trace.score and trace.score.game_outcome for trace in made["tic-tac-toe"]}
    assert outcomes >= {"win", "draw", "loss"}
    return made


def again(traces: Sequence[Trace], environment: Environment[Any, Any, Any]) -> list[Replayed]:
    async def all_of_them() -> list[Replayed]:
        return [one async for one in replay(traces, lane(environment))]

    return asyncio.run(all_of_them())


async def first_that_differs(trace: Trace, environment: Environment[Any, Any, Any]) -> int | None:
    """Where the same turns give other messages, by nothing but the episode itself; None where nowhere."""
    episode = await Episodes({environment.name: environment}).open(
        environment.name, task=trace.task, seed=trace.seed, config=trace.config
    )
    old = list(trace.messages)
    new: list[Message] = list(episode.messages)
    while new == old[: len(new)] and len(new) < len(old):
        if old[len(new)]["role"] != "assistant":
            return len(new)  # the environment said something here, and is silent now
        turn, calls = parse(old[len(new)])
        new.append(turn)
        for call in calls:
            if isinstance(call, MalformedCall):
                new.append(tool_answer(call.call, call.problem, is_error=True))
                continue
            result = await episode.call(call.call["function"]["name"], call.arguments)
            new.append(tool_answer(call.call, result.text, is_error=result.is_error))
        if not calls:
            new += await episode.respond(new) or ()
        if episode.done:
            break
    for at, (a, b) in enumerate(zip(old, new, strict=False)):
        if a != b:
            return at
    longer = max(len(old), len(new))
    if len(old) != len(new):
        return min(len(old), len(new))
    return longer if not episode.done and trace.stop_reason == "done" else None


@pytest.mark.parametrize("cls", UNCHANGED)
def test_what_is_not_changed_differs_nowhere(cls: type[Any], traces: dict[str, list[Trace]]) -> None:
    assert [str(one.difference) for one in again(traces[cls.name], cls()) if not one.equal] == []


@pytest.mark.parametrize("cls", TEXTS)
def test_a_changed_rule_is_found_at_its_first_differing_observation(
    cls: type[Any], traces: dict[str, list[Trace]]
) -> None:
    recorded = traces[cls.name]
    expected = [asyncio.run(first_that_differs(trace, cls())) for trace in recorded]
    assert any(at is not None for at in expected), "this mutant changes nothing that these games show"
    found = again(recorded, cls())
    assert [one.difference and one.difference.message for one in found] == expected
    kinds = {one.difference.kind for one in found if one.difference is not None}
    assert not kinds & {DifferenceKind.OPENING, DifferenceKind.TOOLS, DifferenceKind.SCORE, DifferenceKind.CALLS}


@pytest.mark.parametrize("cls", SCORES)
def test_a_changed_reward_is_found_in_the_score_and_nowhere_before(
    cls: type[Any], traces: dict[str, list[Trace]]
) -> None:
    found = [one.difference for one in again(traces[cls.name], cls()) if one.difference is not None]
    assert found
    assert {one.kind for one in found} == {DifferenceKind.SCORE}


def test_another_text_of_a_tool_is_found_by_its_schema_hash(traces: dict[str, list[Trace]]) -> None:
    found = again(traces["tic-tac-toe"], AnotherToolText())
    assert {str(one.difference and one.difference.kind) for one in found} == {"tools"}
    assert all(len(one.differences) == 1 for one in found)  # and all that is played is as it was


def test_what_breaks_in_the_replay_is_called_a_failure(traces: dict[str, list[Trace]]) -> None:
    found = [one.difference for one in again(traces["tic-tac-toe"], BreaksWhenItIsLost()) if one.difference]
    assert {one.kind for one in found} <= {DifferenceKind.FAILURE, DifferenceKind.OBSERVATION}
    assert all("failed inside the environment" in one.replayed for one in found)
