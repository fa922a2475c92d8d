"""The environment: ``act`` takes an action as the game's rules write it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Annotated, Any

from pydantic import Field

from mcpgym import (
    Environment,
    GameOutcome,
    Message,
    ReferencePolicy,
    Requirement,
    Task,
    ToolError,
    Transcript,
    reward,
    task_id,
    tool,
)
from mcpgym.messages import assistant, system, tool_call, user
from mcpgym_environments.imported.seeds import own_seed, task_number, tasks_of
from mcpgym_environments.imported.textarena.config import TextArenaConfig
from mcpgym_environments.imported.textarena.games import base, check_game, is_alone
from mcpgym_environments.imported.textarena.moves import candidates
from mcpgym_environments.imported.textarena.package import EXTRA
from mcpgym_environments.imported.textarena.table import Table

SYSTEM = """\
You play a game in text. Its rules say how an action is written, mostly in square brackets. Think about your move, \
then call the tool `act` with the action. The answer tells what happened. An action against the rules may be forgiven \
once; after that it loses the game, and so does leaving it."""
NOT_OVER = "The game is not over. Call act with your action."
LONGEST = 4_000


class TextArena(Environment[Task, Table, TextArenaConfig]):
    """TextArena's games for one player, and for two against an opponent that makes random legal moves."""

    name = "textarena"
    version = "1"
    description = "TextArena's games in text, alone or against a random legal opponent: 33 games and their variants."
    instructions = SYSTEM
    icon = (
        "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 48 48' fill='none' stroke-width='4' "
        "stroke-linecap='round' stroke-linejoin='round'%3E%3Cpath stroke='%23888' d='M6 10h36v24H22l-8 7v-7H6z'/%3E"
        "%3Cpath stroke='%2336c' d='M16 18l8 8M24 18l-8 8M30 18v8'/%3E%3C/svg%3E"
    ).replace(" ", "%20")
    config_class = TextArenaConfig
    spec_field = "game"

    def __init__(self, config: TextArenaConfig | None = None) -> None:
        super().__init__(config)
        EXTRA.check()
        check_game(self.config.game)

    def tasks(self, split: str) -> Sequence[Task]:
        """A seed each, an even one in ``train``, an odd one in ``test``; and in games for two, a seat."""
        return tasks_of(split, self.splits, self.config, self._task)

    def _task(self, split: str, index: int) -> Task:
        seat = 0 if is_alone(self.config.game) else index % 2
        return Task(task_id(split, index), split, (), {"seed": task_number(split, index), "seat": seat})

    async def reset(self, task: Task, seed: int) -> Table:
        """A game of its own; what the opponent does before the policy's first move is done."""
        own = own_seed("textarena", task.info["seed"], seed)
        return await asyncio.to_thread(Table, self.config.game, task.info["seat"], own)  # a puzzle may take seconds

    def messages(self, task: Task, state: Table) -> Sequence[Message]:
        """The game's own rules, and what is to be seen."""
        return (system(SYSTEM), user(state.first))

    @tool(title="Act")
    def act(
        self,
        table: Table,
        action: Annotated[str, Field(max_length=LONGEST), "Your action, written as the rules of the game say."],
    ) -> str:
        """Take your action in the game. The answer tells what happened, up to your next turn."""
        if not action.strip():
            raise ToolError("an empty action is none; write it as the rules of the game say")
        table.act(action)
        return table.seen()

    def is_done(self, state: Table) -> bool:
        """Whether the game is over, or no actions are left."""
        return state.over or state.actions >= self.config.max_actions

    @property
    def max_turns(self) -> int | None:
        """Some calls more than actions, for those that were none."""
        return self.config.max_actions + 20

    def respond(self, state: Table, transcript: Transcript) -> Sequence[Message] | None:
        """Whoever stops too early is told so, twice."""
        said = sum(message["content"] == NOT_OVER for message in transcript if message["role"] == "user")
        return None if said >= 2 else [user(NOT_OVER)]

    @reward(weight=1.0, low=-1.0)
    def outcome(self, table: Table) -> float:
        """What the game gives: for two players 1 for a win, 0 for a draw, -1 for a loss; alone, mostly the share of it
        that was solved. -1 for a game that was left, or lost by actions against its rules."""
        return table.outcome

    def game_outcome(self, state: Table) -> GameOutcome | None:
        """How a game for two ended."""
        if not state.over or state.players == 1:
            return None
        return "win" if state.outcome > 0 else "loss" if state.outcome < 0 else "draw"

    def reference_policies(self) -> Mapping[str, ReferencePolicy]:
        """``random`` tries any move of the right form; the game may not take it."""
        return {"random": self._any}

    def _any(self, messages: Sequence[Message], random: Random) -> Message:
        move = candidates(base(self.config.game), None, random)[0]
        return assistant("", [tool_call(f"call-{len(messages)}", "act", json.dumps({"action": move}))])

    def conditions(self) -> Mapping[str, Any]:
        """Another version may have other games."""
        return {"textarena": EXTRA.version}

    @classmethod
    def requirements(cls) -> Sequence[Requirement]:
        """TextArena's package."""
        return [EXTRA.requirement()]
