"""Long texts as an environment: code works on what no model could read, and asks another model about pieces of it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from mcpgym import LazyTasks, ReferencePolicy, Task, ToolError, derive_seed, reward, task_id, tool
from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym_environments.long_context.asking.budget import Allowance, Budget
from mcpgym_environments.long_context.asking.models import Endpoint, SubModel
from mcpgym_environments.long_context.asking.reader import Reader
from mcpgym_environments.long_context.asking.record import Record
from mcpgym_environments.long_context.config import LongContextConfig
from mcpgym_environments.long_context.made.families import make, plan_of
from mcpgym_environments.long_context.observation import FILE, INSTRUCTIONS, LOAD, prompt
from mcpgym_environments.long_context.state import Reading
from mcpgym_environments.python_sandbox.observation import SPENT, inline, show_run
from mcpgym_environments.python_sandbox.problems.answers import judge
from mcpgym_environments.python_sandbox.sandboxed import SandboxedEnvironment
from mcpgym_environments.python_sandbox.sessions.backend import MAX_SEED, SessionSpent
from mcpgym_environments.python_sandbox.sessions.turns import Turns
from mcpgym_environments.python_sandbox.workspace import released

if TYPE_CHECKING:
    from mcpgym_environments.python_sandbox.config import PythonSandboxConfig
    from mcpgym_environments.python_sandbox.sessions.session import Session

OFFLINE = "MCPGYM_SUB_MODEL"
"""Set to ``recorded`` it keeps every episode from asking a model anything: records answer, and the built-in reader."""
LONGEST_CODE = 100_000
LONGEST_ANSWER = 2_000
PATIENCE = 4_000.0
"""Seconds that a run may take with all its waiting: above the limits that end it."""
SPARE_CALLS = 5
"""How many calls an episode has beyond its runs: for the answer, and for calls that cannot be made."""
_making = Turns(2)
"""Texts are made two at a time, so that many episodes at once need the memory of two."""


class LongContext(SandboxedEnvironment[Reading, LongContextConfig]):
    """Answer questions about a text that fits into no model's window, by code that may ask a model about pieces."""

    name = "long-context"
    version = "1"
    description = "Answer questions about a text too long to read, with code that may ask a model about pieces of it."
    instructions = INSTRUCTIONS
    icon = (
        "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 48 48' fill='none' stroke-width='4' "
        "stroke-linecap='round'%3E%3Cpath stroke='%23888' d='M8 6h32M8 15h32M8 33h32M8 42h32'/%3E"
        "%3Cpath stroke='%2336c' d='M8 24h20M36 20v8M32 24h8'/%3E%3C/svg%3E"
    ).replace(" ", "%20")
    config_class = LongContextConfig

    sub_model: SubModel | None = None
    """Set on an instance, it answers what code asks, whatever the configuration says: a trainer's own model, a test's.

    It is called with each prompt, several at once, on the episode's event loop. The budget is counted all the same.
    """

    def __init__(self, config: LongContextConfig | None = None) -> None:
        super().__init__(config)
        self._record = Record(self.config.record) if self.config.record else None
        self._configured: SubModel | None = None
        if self.config.sub_model == "reader":
            self._configured = Reader(self.config.window)
        elif self.config.sub_model.startswith("openai:") and not self._asks_nobody:
            self._configured = Endpoint(self.config.sub_model, self.config.sub_seconds)

    @property
    def sandbox(self) -> PythonSandboxConfig:
        """Its sessions, by this environment's own limits."""
        return self.config.sandbox

    @property
    def _asks_nobody(self) -> bool:
        """Whether only what was recorded may answer."""
        return os.environ.get(OFFLINE, "").strip() == "recorded"

    def tasks(self, split: str) -> Sequence[Task]:
        """One text and one question each; the text is made when an episode needs it."""
        if split not in self.splits:
            raise UnknownNameError("split", split, self.splits)
        count = self.config.test_tasks if split == "test" else self.config.train_tasks
        return LazyTasks(count, lambda index: self._task(split, index))

    def _task(self, split: str, index: int) -> Task:
        plan = plan_of(split, index, self.config.family_names, self.config.levels)
        hidden = {"family": plan.family, "level": plan.level, "characters": plan.size, "text": plan.seed}
        return Task(task_id(split, index), split, prompt(plan, self.config), hidden)

    async def reset(self, task: Task, seed: int) -> Reading:
        """The first episode starts the sandbox; nothing is made before the first run."""
        pool = await self.started()
        index = int(task.id.rpartition("-")[2])
        plan = plan_of(task.split, index, self.config.family_names, self.config.levels)
        shown = derive_seed("session", task.split, index) % (MAX_SEED + 1)
        return Reading(plan, pool, self._budget(task.id, seed), shown)

    def _budget(self, task: str, seed: int) -> Budget | None:
        config = self.config
        model = self._configured if self._asks_nobody else self.sub_model or self._configured
        if model is None and config.sub_model == "given" and self._record is None:
            raise ConfigurationError(
                "sub_model=given: nobody has set environment.sub_model; give a model, or another one"
            )
        if model is None and config.sub_model == "none":
            return None
        allowance = Allowance(
            calls=config.sub_calls,
            characters=config.sub_characters,
            window=config.window,
            answer=config.answer_characters,
            at_once=config.at_once,
            seconds=config.sub_seconds,
        )
        return Budget(allowance, model, self._record, task, seed)

    @tool(title="Run Python", timeout=PATIENCE)
    async def run_python(
        self,
        reading: Reading,
        code: Annotated[str, Field(max_length=LONGEST_CODE), "Python code; the value of a last expression is shown."],
    ) -> str:
        """Run Python code as in a notebook, with the long text as `context`. Shows what it printed."""
        if reading.runs >= self.config.max_runs:
            reading.faults += 1
            raise ToolError(f"you have made {reading.runs} runs, and may make no more: submit is the only tool left")
        reading.runs += 1
        try:
            session = await self._opened(reading)
            if reading.budget is not None:
                reading.budget.begin_run()
            outcome = await session.run(code)
        except SessionSpent:
            reading.faults += 1
            released(reading)
            raise ToolError(SPENT) from None
        except ToolError:
            reading.faults += 1
            raise
        reading.loaded = not outcome.fresh
        reading.faults += outcome.status != "ok"
        text = show_run(outcome, self.config.sandbox.limits, self.config.output_characters)
        left = self.config.max_runs - reading.runs
        return text if left > 3 else f"{text}\n[{left} run{'' if left == 1 else 's'} left]"

    async def _opened(self, reading: Reading) -> Session:
        """The session, with the text in it: its file and its variable as they were, whatever became of them.

        Raises:
            SessionLost: it is gone, or none could be opened.
            ToolError: the episode has ended, or its files are full.
        """
        if reading.closed:
            raise ToolError("the episode has ended")
        if reading.session is None:
            session = await reading.pool.open(reading.session_seed, reading.budget)
            if reading.closed:
                session.kill()
                raise ToolError("the episode has ended")
            reading.session, reading.loaded = session, False
        if not reading.loaded:
            async with _making:
                made = await asyncio.to_thread(make, reading.plan)
                reading.answer = made.answer
                await reading.session.write(FILE, made.text.encode("ascii"))
            reading.loaded = (await reading.session.run(LOAD)).status == "ok"
        return reading.session

    @tool(title="Submit the answer", timeout=PATIENCE)
    async def submit(
        self,
        reading: Reading,
        answer: Annotated[str, Field(max_length=LONGEST_ANSWER), "The bare answer: a number or a name."],
    ) -> str:
        """Hand in your answer. It can be done once, and ends the task."""
        if not answer.strip():
            reading.faults += 1
            raise ToolError("an empty answer cannot be submitted; say what you found, as in answer=42")
        if reading.answer is None:
            async with _making:
                reading.answer = (await asyncio.to_thread(make, reading.plan)).answer
        reading.right = judge(reading.answer, answer).correct
        reading.submitted = answer
        released(reading)
        return f'You submitted "{inline(answer, LONGEST_ANSWER)}". The task is over.'

    def is_done(self, state: Reading) -> bool:
        """Whether an answer was submitted."""
        return state.submitted is not None

    @property
    def max_turns(self) -> int | None:
        """How many calls an episode may take, mistaken ones too."""
        return self.config.max_runs + SPARE_CALLS

    def conditions(self) -> Mapping[str, Any]:
        """What keeps the code in, and who answers it."""
        return {**super().conditions(), "sub_model": "given" if self.sub_model is not None else self.config.sub_model}

    @reward(weight=1.0)
    def correct(self, reading: Reading) -> float:
        """1 if the submitted answer is right."""
        return float(reading.right)

    @reward(weight=0.0)
    def prompts_used(self, reading: Reading) -> float:
        """The share of the prompts that the sub-model may be asked which were."""
        return 0.0 if reading.budget is None else reading.budget.calls / max(1, self.config.sub_calls)

    @reward(weight=0.0)
    def characters_used(self, reading: Reading) -> float:
        """The share of the characters that prompts may have in all which they had."""
        return 0.0 if reading.budget is None else reading.budget.characters / max(1, self.config.sub_characters)

    @reward(weight=0.0)
    def no_errors(self, reading: Reading) -> float:
        """1 if the answer is right and no run and no call on the way to it failed."""
        return float(reading.right and not reading.faults)

    def reference_policies(self) -> Mapping[str, ReferencePolicy]:
        """``expert``, ``flat`` and ``random``; see :mod:`mcpgym_environments.long_context.reference`."""
        from mcpgym_environments.long_context.reference import Solver, wander

        window = self.config.window
        return {"expert": Solver(window), "flat": Solver(window, flat=True), "random": wander}

    def teacher(self, skill: float) -> ReferencePolicy:
        """The expert, or with probability 1 - ``skill`` the random policy, drawn in each turn."""
        from mcpgym_environments.long_context.reference import Solver, wander
        from mcpgym_environments.teaching import mixed

        return mixed(Solver(self.config.window), wander, skill)

    async def shutdown(self) -> None:
        """Let go of the sandbox, and of the sub-model's connection."""
        if isinstance(self._configured, Endpoint):
            await self._configured.close()
        await super().shutdown()
