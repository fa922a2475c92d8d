"""The environment: the user speaks again whenever the policy stops, until nothing is left to ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcpgym import Environment, Message, ReferencePolicy, Requirement, Task, ToolError, Transcript, reward
from mcpgym.errors import UnknownNameError
from mcpgym.schema import schema_hash
from mcpgym.tools import Tool
from mcpgym_environments.imported.bfcl.apis import Apis
from mcpgym_environments.imported.bfcl.config import BfclConfig
from mcpgym_environments.imported.bfcl.data import Row, rows
from mcpgym_environments.imported.bfcl.functions import Function, Handler, tools
from mcpgym_environments.imported.bfcl.guards import too_much
from mcpgym_environments.imported.bfcl.judging import beyond_walking, every_turn_is_right, turn_is_right
from mcpgym_environments.imported.bfcl.package import EXTRA
from mcpgym_environments.imported.bfcl.reference import expert, random_calls
from mcpgym_environments.imported.bfcl.state import Session

MOST_TURNS = 10
"""The user's turns in the longest conversation, and some."""


class Bfcl(Environment[Task, Session, BfclConfig]):
    """BFCL's multi-turn tasks. Its tools are known once an instance is made: they come from the installed package."""

    name = "bfcl"
    version = "1"
    description = "The Berkeley function-calling leaderboard's multi-turn tasks: a user's requests to stateful APIs."
    instructions = (
        "A user asks for things to be done. Do them with the functions you have, one step after the other; what was "
        "done stays done. When nothing more is to be done, or it cannot be done, answer without calling a function: "
        "the user may then ask for more."
    )
    icon = (
        "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 48 48' fill='none' stroke-width='4' "
        "stroke-linecap='round' stroke-linejoin='round'%3E%3Cpath stroke='%23888' d='M6 8h26v16H16l-8 7v-7H6z'/%3E"
        "%3Cpath stroke='%2336c' d='M22 36h20M36 30l6 6-6 6'/%3E%3C/svg%3E"
    ).replace(" ", "%20")
    splits = ("test",)
    config_class = BfclConfig
    spec_field = "category"

    def __init__(self, config: BfclConfig | None = None) -> None:
        super().__init__(config)
        EXTRA.check()
        self.tools: Mapping[str, Tool] = tools(self.config.api_names, _handler)  # type: ignore[misc]
        self.schema_hash = schema_hash([tool.listing for tool in self.tools.values()])  # type: ignore[misc]

    @property
    def rows(self) -> dict[str, Row]:
        """The tasks as BFCL has them, by id."""
        wanted = {*self.config.api_names}
        found = rows(self.config.category)
        return {row.id: row for row in found if not self.config.apis or {*row.apis} == wanted}

    def tasks(self, split: str) -> Sequence[Task]:
        """BFCL's tasks, under its own ids; the solutions are hidden."""
        if split not in self.splits:
            raise UnknownNameError("split", split, self.splits)
        return [Task(row.id, split, row.turns[0], _hidden(row)) for row in self.rows.values()]

    def reset(self, task: Task, seed: int) -> Session:
        """Instances of the APIs for this episode alone. Nothing is random but what BFCL seeds by itself."""
        row = self.rows[task.id]
        return Session(row, Apis(row), Apis(row))

    def is_done(self, state: Session) -> bool:
        """Whether a turn took too many calls, or the last one is over."""
        return bool(state.broken) or state.over

    @property
    def max_turns(self) -> int | None:
        """So many that the limit of each turn is met before."""
        return (self.config.calls_per_turn + 2) * MOST_TURNS

    def respond(self, state: Session, transcript: Transcript) -> Sequence[Message] | None:
        """What the user asks for next."""
        state.right.append(turn_is_right(state))
        state.turn += 1
        state.calls = 0
        state.answered.clear()
        return None if state.over else state.row.turns[state.turn]

    @reward(weight=1.0)
    def correct(self, state: Session) -> float:
        """1 if every turn went as BFCL's checker wants it: the states that the solution leaves, its answers seen."""
        return float(all(every_turn_is_right(state)))

    @reward(weight=0.0)
    def turns_right(self, state: Session) -> float:
        """The share of the user's turns after which all was as it should be."""
        found = every_turn_is_right(state)
        return sum(found) / len(found)

    def reference_policies(self) -> Mapping[str, ReferencePolicy]:
        """``expert`` makes the calls of the solution, ``random`` any calls."""
        return {
            "expert": lambda messages, random: expert(self.rows, messages),
            "random": lambda messages, random: random_calls(self.tools, messages, random),
        }

    @classmethod
    def requirements(cls) -> Sequence[Requirement]:
        """BFCL's package."""
        return [EXTRA.requirement()]

    def remarks(self) -> Sequence[str]:
        """What is not as BFCL has it."""
        found = []
        if not self.config.apis:
            found.append(
                "tools: all APIs' are listed for every task; BFCL lists those of the APIs that a task involves"
            )
        if self.config.category == "miss_func":
            found.append(
                "tools: a function that BFCL lists only from a later turn on is listed, and refuses until then"
            )
        return found


def _handler(function: Function) -> Handler:
    def call(environment: Any, session: Session, /, arguments: Mapping[str, Any], misfit: str = "") -> str:
        _begin(session, environment.config.calls_per_turn)
        row = session.row
        if function.api not in row.apis:
            raise ToolError(f"{function.name} is not available in this task; it has the functions of: {_named(row)}")
        if function.name in row.excluded or row.withheld.get(function.name, 0) > session.turn:
            raise ToolError(f"{function.name} is not available now; do without it, or say that it cannot be done")
        if (why := too_much(arguments)) is not None:
            raise ToolError(f"{function.name}: {why}")
        text, failed = session.mine.call(function.api, function.name, arguments)
        session.results.append(text)
        session.answered.append(text)
        if function.api == "GorillaFileSystem" and beyond_walking(session):
            session.broken = "the file system is full"
            raise ToolError(f"{function.name}: the file system is full, and the task has ended")
        if misfit:
            raise ToolError(f"{text}\n{misfit}")
        if failed:
            raise ToolError(text)
        return text

    return call


def _begin(session: Session, most: int) -> None:
    session.calls += 1
    if session.calls > most:
        session.broken = f"more than {most} calls in one turn"
        raise ToolError(f"you have made {most} calls since the user spoke, and may make no more: the task has ended")


def _hidden(row: Row) -> dict[str, Any]:
    return {"gold": row.gold, "later": [message["content"] for turn in row.turns[1:] for message in turn]}


def _named(row: Row) -> str:
    return ", ".join(row.apis)
