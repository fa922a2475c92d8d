"""Mutation tests of the checker: an environment with one fault in it, and the rule that must find it."""

from __future__ import annotations

import asyncio
import os
import random
import time
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Annotated, Any, Literal

import pytest
from check_toys import Chat, Doors, Room, Sums
from pydantic import ConfigDict, Field

from mcpgym import App, Config, LazyTasks, Task, ToolError, check_environment, reward, task_id, tool
from mcpgym.check import RULES
from mcpgym.game_tree import LegalCall
from mcpgym.messages import assistant, tool_call, user
from mcpgym_environments.tic_tac_toe import TicTacToe
from mcpgym_environments.tic_tac_toe.config import TicTacToeConfig

FAULTS: list[Any] = []


def breaks(rule: str) -> Any:
    """Register a broken environment with the rule that must find it."""

    def register(cls: type) -> type:
        FAULTS.append(pytest.param(cls, rule, id=f"{rule}-{cls.__name__}"))
        return cls

    return register


@breaks("app")
class ItsAppCannotBeMade(Doors):
    def app(self) -> App:
        return App('<!doctype html><script src="board.js"></script>')


@breaks("app")
class ItsAppIsNone(Doors):
    def app(self) -> Any:
        return "<!doctype html>"


@breaks("app")
class ItsAppShowsNoTool(Doors):
    def app(self) -> App:
        return App("<!doctype html>", tools=["opem"])


@breaks("app")
class ItsAppHasALevelThatIsNone(Doors):
    def app(self) -> App:
        return App("<!doctype html>", levels={"hard": {"dors": 9}})


@breaks("reproducible")
class CannotBeExactAndHasNoRule(Doors):
    reproducible = False


@breaks("reproducible")
class HasARuleThatNobodyAsks(Doors):
    def same_observation(self, recorded: str, replayed: str) -> bool:
        return recorded.lower() == replayed.lower()


@breaks("reproducible")
class TakesEverythingForTheSame(Doors):
    reproducible = False

    def same_observation(self, recorded: str, replayed: str) -> bool:
        return True


@breaks("reproducible")
class IsNotEvenTheSameAsItself(Doors):
    reproducible = False

    def same_observation(self, recorded: str, replayed: str) -> bool:
        return recorded < replayed


@breaks("reproducible")
class ItsRuleBreaks(Doors):
    reproducible = False

    def same_observation(self, recorded: str, replayed: str) -> bool:
        return recorded.split(":")[3] == replayed.split(":")[3]


@breaks("reproducible")
class ItsRuleGivesNoBool(Doors):
    reproducible = False

    def same_observation(self, recorded: str, replayed: str) -> bool:
        return len(recorded) - len(replayed)  # type: ignore[return-value]


@breaks("reproducible")
class SaysYes(Doors):
    reproducible = "yes"  # type: ignore[assignment]


@breaks("seed")
class IsLessReproducibleThanItsRuleSays(Doors):
    reproducible = False

    @tool(inline=True)
    def look(self, room: Room) -> str:
        """Look around."""
        return f"it is {time.perf_counter_ns()}"

    def same_observation(self, recorded: str, replayed: str) -> bool:
        return recorded[:12] == replayed[:12] and len(recorded) == len(replayed) and recorded[-4:] == replayed[-4:]


@breaks("seed")
class UsesTheSystemsRandomness(Doors):
    def reset(self, task, seed):
        return Room(0, random.SystemRandom())  # type: ignore[arg-type]


@breaks("seed")
class TellsTheTime(Doors):
    @tool(inline=True)
    def look(self, room: Room) -> str:
        """Look around."""
        return f"it is {time.perf_counter_ns()}"


@breaks("seed")
class CountsOnTheClass(Doors):
    total = 0

    @tool(inline=True)
    def open_door(self, room: Room, number: Annotated[int, "Which door."]) -> str:
        """Open one door."""
        CountsOnTheClass.total += 1
        return f"door opened, {CountsOnTheClass.total} in all"


@breaks("global-random")
class ReadsTheGlobalGenerator(Doors):
    def reset(self, task, seed):
        return Room(random.randrange(9), random.Random(seed))


@breaks("global-random")
class SeedsTheGlobalGenerator(Doors):
    def reset(self, task, seed):
        random.seed(seed)
        return Room(random.randrange(9), random.Random(seed))


@breaks("isolation")
class OneStateForAll(Doors):
    def __init__(self, config=None):
        super().__init__(config)
        self.room = Room(4, random.Random(1))

    def reset(self, task, seed):
        return self.room


@breaks("isolation")
class CountsOnTheInstance(Doors):
    count = 0

    @tool(inline=True)
    def open_door(self, room: Room, number: Annotated[int, "Which door."]) -> str:
        """Open one door."""
        self.count += 1
        return f"door opened, {self.count} so far"


@breaks("isolation")
class RemembersTheCurrentRoom(Doors):
    """The last reset wins: one after another all is well, and only interleaving shows it."""

    current: Room

    def reset(self, task, seed):
        self.current = super().reset(task, seed)
        return self.current

    @tool(inline=True)
    def open_door(self, room: Room, number: Annotated[int, "Which door."]) -> str:
        """Open one door."""
        self.current.opened.append(number)
        return f"open: {self.current.opened}, treasure {self.current.treasure in self.current.opened}"


@breaks("splits-disjoint")
class SameTasksInBothSplits(Doors):
    def row(self, split, index):
        return Task(task_id(split, index), split, (user(f"Room {index}."),), {"seed": 123456 + index})


@breaks("splits-disjoint")
class OneTaskInBothSplits(Doors):
    def row(self, split, index):
        if index == 33:
            return Task(task_id(split, index), split, (user("The famous room."),), {"seed": 77})
        return super().row(split, index)


@breaks("splits-disjoint")
class SameIdsInBothSplits(Doors):
    def tasks(self, split):
        return [Task(f"room-{i}", split, (user(f"{split} {i}"),), {"seed": i}) for i in range(5)]


@breaks("task-ids")
class TwoTasksWithOneId(Doors):
    def tasks(self, split):
        return [Task(f"{split}-{i // 2}", split, (user(f"{split} {i}"),), {"seed": i}) for i in range(6)]


@breaks("task-ids")
class LazyTasksThatAreNotFoundById(Doors):
    def row(self, split, index):
        row = super().row(split, index)
        return Task(f"{split}-{index + (index > 0)}", split, row.messages, row.info)


@breaks("task-splits")
class WrongSplitName(Doors):
    def row(self, split, index):
        row = super().row(split, index)
        return Task(row.id, "train", row.messages, row.info)


@breaks("tasks-stable")
class OtherTasksEachTime(Doors):
    def row(self, split, index):
        return Task(task_id(split, index), split, (user(f"{split} {index}"),), {"seed": int.from_bytes(os.urandom(8))})


@breaks("tasks-stable")
class PlayChangesTheTask(Doors):
    def __init__(self, config=None):
        super().__init__(config)
        self.rows = {
            s: [Task(task_id(s, i), s, (user(f"{s} {i}"),), {"log": []}) for i in range(3)] for s in self.splits
        }

    def tasks(self, split):
        return self.rows[split]

    def reset(self, task, seed):
        task.info["log"].append(seed)
        return Room(3, random.Random(seed))


class ForgetfulTasks(LazyTasks):
    def __getitem__(self, index: Any) -> Any:
        return self._make(index)


@breaks("tasks")
class TasksWithoutAnEnd(Doors):
    def tasks(self, split):
        return ForgetfulTasks(40, lambda index: self.row(split, index))


@breaks("tasks")
class NoTasks(Doors):
    def tasks(self, split):
        return []


@breaks("messages")
class PromptIsAString(Doors):
    def row(self, split, index):
        return Task(task_id(split, index), split, "Find it!", {"seed": index})  # type: ignore[arg-type]


@breaks("respond")
class ReplyIsAString(Chat):
    async def respond(self, state, transcript):
        return "Are you sure?"


@breaks("respond")
class RespondFails(Chat):
    async def respond(self, state, transcript):
        return [user({}["text"])]


@breaks("reset")
class ResetFails(Doors):
    def reset(self, task, seed):
        raise KeyError("seed")


@breaks("schemas")
class ChangesItsSchema(Doors):
    pass


ChangesItsSchema.tools["look"].parser.schema["properties"]["where"]["title"] = "Where"


@breaks("rewards")
class RewardIsNotFinite(Doors):
    @reward
    def found(self, room: Room) -> float:
        return float("nan")


@breaks("rewards")
class RewardIsOutOfRange(Doors):
    @reward
    def found(self, room: Room) -> float:
        return 1.0 + len(room.opened)


@breaks("rewards")
class RewardChangesTheState(Doors):
    @reward
    def found(self, room: Room) -> float:
        room.slips += 1
        return room.slips / 1000


@breaks("rewards")
class RewardFailsWithoutAnAnswer(Sums):
    @reward
    def right(self, answer: int, transcript) -> float:
        return float(transcript[-1]["content"].split()[0] == str(answer))


@breaks("rewards")
class RewardFailsOnWhatAPolicyWrote(Sums):
    @reward
    def right(self, answer: int, transcript) -> float:
        return float(float(transcript.answer or 0) == answer) if transcript.answer[:1].isdigit() else 0.0


@breaks("rewards")
class RewardAsksForTheWrongThing(Doors):
    @reward
    def found(self, room: Room, completion: Any) -> float:
        return 0.0


@breaks("rewards")
class NoRewards(Doors):
    found = slips = polite = None  # type: ignore[assignment]


@breaks("prompt-tools")
class PromptMentionsAnotherTool(Doors):
    def row(self, split, index):
        row = super().row(split, index)
        return Task(row.id, split, (user("Call `open_window` to let air in."), *row.messages), row.info)


@breaks("prompt-tools")
class PromptMisspellsItsTool(Doors):
    def row(self, split, index):
        row = super().row(split, index)
        return Task(row.id, split, (user("Choose with open_doors(3)."), *row.messages), row.info)


@breaks("prompt-tools")
class InstructionsMentionAnotherTool(Doors):
    instructions = "Begin with the `knock` tool."


@breaks("secrets")
class PromptShowsTheSeed(Doors):
    def messages(self, task, state):
        return (*task.messages, user(f"Game {task.info['seed']}."))


@breaks("secrets")
class ToolShowsTheEpisodesSeed(Doors):
    seeds: dict[int, int] = {}

    def reset(self, task, seed):
        room = super().reset(task, seed)
        room.notes.append(f"seed {seed:x}")
        return room

    @tool(inline=True)
    def look(self, room: Room) -> str:
        """Look around."""
        return room.notes[0]


@breaks("secrets")
class ErrorShowsTheTask(Doors):
    def reset(self, task, seed):
        room = super().reset(task, seed)
        room.notes.append(str(dict(task.info)))
        return room

    @tool(inline=True)
    def open_door(self, room: Room, number: Annotated[int, "Which door."]) -> str:
        """Open one door."""
        raise ToolError(f"cannot: {room.notes[0]}")


@breaks("secrets")
class PromptGivesTheAnswerAway(Sums):
    def messages(self, task, state):
        return (*task.messages, user(f"(It is {task.info['answer']}.)"))


@breaks("secrets")
class TaskHasTheAnswerAndItsPromptHidesIt(Sums):
    def row(self, split, index):
        row = super().row(split, index)
        return Task(row.id, split, (*row.messages, user(f"answer: {row.info['answer']}")), row.info)

    def messages(self, task, state):
        return task.messages[:1]


@breaks("secrets")
class ReplyGivesTheAnswerAway(Sums):
    def respond(self, state, transcript):
        return [user(f"No, the answer is {state}.")] if len(transcript) < 4 else None


@breaks("secrets")
class ToolTellsTheReward(Doors):
    @tool(inline=True)
    def look(self, room: Room) -> str:
        """Look around."""
        return f"nothing here, found = {self.found(room)}"


@breaks("secrets")
class ToolShowsItsInside(Doors):
    @tool(inline=True)
    def look(self, room: Room) -> str:
        """Look around."""
        return f"you see {object.__repr__(self)}"


@breaks("tools")
class ToolCrashesOnSomeArguments(Doors):
    @tool(inline=True)
    def open_door(self, room: Room, number: Annotated[int, "Which door."]) -> str:
        """Open one door."""
        return ["empty"][0 if abs(number) < 10**9 else number]


@breaks("tools")
class ToolCrashesOnEmptyText(Doors):
    @tool
    def note(self, room: Room, text: Annotated[str, "What to remember."]) -> str:
        """Write a note."""
        return text[0]


@breaks("tools")
class ToolAnswersNoText(Doors):
    @tool(inline=True)
    def look(self, room: Room) -> Any:
        """Look around."""
        return object()


@breaks("hostile-arguments")
class InvalidArgumentsCrash(Doors):
    def invalid_arguments(self, state, tool, problem):
        raise RuntimeError("no!")


@breaks("invalid-arguments")
class InvalidCallMovesTheGameOn(Doors):
    def invalid_arguments(self, state, tool, problem):
        state.dice.random()
        return problem


@breaks("done")
class LookingEndsIt(Chat):
    def is_done(self, state):
        state.append("looked")
        return False

    @reward
    def patience(self, state: list[str]) -> float:
        return 0.5


@breaks("done")
class DoneIsTakenBack(Doors):
    def is_done(self, room):
        room.slips += 1
        return room.slips % 5 == 4


@breaks("close")
class CloseFails(Doors):
    def close(self, state):
        raise OSError("no such process")


@breaks("close")
class CloseFailsOnlyAfterPlay(Doors):
    def close(self, state):
        if state.opened:
            raise OSError("no such process")


@breaks("close")
class ShutdownFails(Doors):
    def shutdown(self):
        raise OSError("gone")


class Undescribed(Config):
    doors: int = 9


class WithoutDefault(Config):
    doors: int = Field(description="Doors in a room.")


class Loose(Config):
    model_config = ConfigDict(extra="allow")
    doors: int = Field(default=9, description="Doors in a room.")


@breaks("config")
class ConfigFieldIsNotDescribed(Doors):
    config_class = Undescribed  # type: ignore[assignment]


@breaks("config")
class ConfigTakesAnything(Doors):
    config_class = Loose  # type: ignore[assignment]


@breaks("reference-policies")
class ReferencePolicyFails(Doors):
    def reference_policies(self):
        return {"expert": lambda messages, random: assistant(messages[99]["content"])}


@breaks("reference-policies")
class TeacherFails(Doors):
    def teacher(self, skill):
        return lambda messages, random: {"role": "teacher", "content": "no"}


@breaks("process")
class DependsOnTheHashSeed(Doors):
    def row(self, split, index):
        row = super().row(split, index)
        words = {"red", "green", "blue", "black", "white", "grey", "pink", "brown", "gold", "cyan"}
        return Task(row.id, split, (user(f"Doors: {', '.join(words)}. Room {split} {index}."),), row.info)


@breaks("isolation")
class RemembersTheCurrentRoomWhileItWaits(Doors):
    @tool
    async def look(self, room: Room) -> str:
        """Look around."""
        self.current = room
        await asyncio.sleep(0.001)
        return f"open: {self.current.opened}"


@breaks("isolation")
class RemembersTheCurrentRoomInAThread(Doors):
    @tool
    def look(self, room: Room) -> str:
        """Look around."""
        self.current = room
        time.sleep(0.002)
        return f"open: {self.current.opened}"


@breaks("isolation")
class LeavesTheWorkingFolder(Doors):
    def reset(self, task, seed):
        os.chdir("/")
        return super().reset(task, seed)


@breaks("done")
class UnfinishedGamesAreLost(Doors):
    def game_outcome(self, room):
        return "win" if self.is_done(room) else "loss"


@breaks("rewards")
class RewardLeavesItsRangeAfterManySlips(Doors):
    @reward(weight=0.5, low=-1, high=0)
    def slips(self, room: Room) -> float:
        return -room.slips / 12


@breaks("config")
class NoTurnToPlay(Doors):
    max_turns = 0


class Unfitting(Config):
    doors: int = Field(default=1, ge=2)
    """Doors."""


@breaks("config")
class DefaultDoesNotFit(Doors):
    config_class = Unfitting  # type: ignore[assignment]


def told(**wrong: Any) -> Any:
    """Tic-tac-toe's tree, but for some methods; each gets what the right one says, and then its arguments."""

    def game_tree(self):
        tree = TicTacToe.game_tree(self)
        for name, method in wrong.items():
            right = getattr(tree, name)
            setattr(tree, name, lambda *given, right=right, method=method: method(right(*given), *given))
        return tree

    return game_tree


@breaks("game-tree")
class TreeInOtherWords(TicTacToe):
    game_tree = told(answers=lambda right, *_: [replace(one, text=one.text.replace("O", "0")) for one in right])


@breaks("game-tree")
class TreeWithoutAReply(TicTacToe):
    game_tree = told(answers=lambda right, *_: right[:-1] or right)


@breaks("game-tree")
class TreeWithAnotherPrompt(TicTacToe):
    game_tree = told(starts=lambda right, *_: [replace(one, messages=one.messages[1:]) for one in right])


@breaks("game-tree")
class TreeThatKnowsNoDraw(TicTacToe):
    game_tree = told(outcome=lambda right, *_: "win" if right == "draw" else right)


@breaks("game-tree")
class TreeWithAnIllegalCall(TicTacToe):
    game_tree = told(legal=lambda right, *_: [LegalCall("play", {"position": 9})] * bool(right))


@breaks("game-tree")
class TreeWhoseLinesAreNot(TicTacToe):
    game_tree = told(line_task=lambda right, *_: "train-0")


@breaks("game-tree")
class TreeThatBreaks(TicTacToe):
    game_tree = told(answers=lambda right, *_: 1 / 0)


@breaks("game-tree")
class TreeThatIsNotThere(TicTacToe):
    def game_tree(self):
        raise FileNotFoundError("tree")


class FirstConfig(TicTacToeConfig):
    policy_moves: Literal["first", "second", "either"] = "first"
    """The seat."""


@breaks("game-tree")
class TreeThatSeatsEverybodyFirst(TicTacToe):
    game_tree = told(opponent=lambda right, *_: right._replace(seat="first"))


@breaks("game-tree")
class TreeWithAnOpponentThatIsMoreThanRandom(TicTacToe):
    game_tree = told(opponent=lambda right, *_: right._replace(random=2))


class Stating:
    """Plays cell 4, and says something else."""

    def __init__(self, *said: tuple[Fraction, int]) -> None:
        self.said = said

    def __call__(self, messages: Any, random: Any) -> Any:
        return assistant("", [tool_call("c", "play", '{"position": 4}')])

    def choices(self, state: Any) -> list[tuple[Fraction, LegalCall]]:
        return [(chance, LegalCall("play", {"position": cell})) for chance, cell in self.said]


@breaks("game-tree")
class PolicyThatStatesHalf(TicTacToe):
    config_class = FirstConfig

    def reference_policies(self):
        return {"half": Stating((Fraction(1, 2), 4))}


@breaks("game-tree")
class PolicyThatStatesAnotherMove(TicTacToe):
    config_class = FirstConfig

    def reference_policies(self):
        return {"other": Stating((Fraction(1), 3))}


@breaks("game-tree")
class PolicyThatStatesWhatCannotBe(TicTacToe):
    config_class = FirstConfig

    def reference_policies(self):
        return {"illegal": Stating((Fraction(1, 2), 4), (Fraction(1, 2), 9))}


@cache
def checked(cls, second_process=False):
    return check_environment(cls, second_process=second_process)


@pytest.mark.parametrize(("cls", "rule"), FAULTS)
def test_a_fault_is_found_by_its_rule(cls, rule):
    report = checked(cls, second_process=rule == "process")
    assert rule in {finding.rule for finding in report.findings}, str(report)
    assert not report.ok
    for finding in report.findings:
        assert finding.problem
        assert finding.where
        assert finding.fix


def test_a_configuration_field_without_default_is_found():
    class Rigid(Doors):
        config_class = WithoutDefault  # type: ignore[assignment]

    report = check_environment(Rigid, config={"doors": 9}, second_process=False)
    assert [finding.where for finding in report.of("config")] == ["WithoutDefault.doors"]


@pytest.mark.slow
def test_each_fault_is_the_only_kind_found_or_comes_with_its_consequences():
    """A report that blames everything would pass the tests above: most single faults must give a single rule."""
    single = 0
    for parameters in FAULTS:
        cls, rule = parameters.values
        if rule == "process":
            continue
        rules = {finding.rule for finding in checked(cls, second_process=False).findings}
        single += rules == {rule}
    assert single >= 0.8 * len(FAULTS)


def test_every_rule_has_a_fault_that_it_must_find():
    assert {parameters.values[1] for parameters in FAULTS} == set(RULES)
    assert len(FAULTS) > 50
