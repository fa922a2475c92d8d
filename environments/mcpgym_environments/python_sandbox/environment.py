"""The Python sandbox as an environment: a problem, a notebook to solve it in, and one solution to hand in."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from mcpgym import (
    CallRecord,
    LazyTasks,
    ReferencePolicy,
    Task,
    ToolError,
    Transcript,
    derive_seed,
    reward,
    task_id,
    tool,
)
from mcpgym.errors import UnknownNameError
from mcpgym_environments.python_sandbox.config import PythonSandboxConfig
from mcpgym_environments.python_sandbox.judging import share_of_answer, share_of_code
from mcpgym_environments.python_sandbox.observation import (
    INSTRUCTIONS,
    SOLUTION,
    SPENT,
    inline,
    prompt,
    show_files,
    show_left,
    show_part,
    show_run,
)
from mcpgym_environments.python_sandbox.sandboxed import SandboxedEnvironment
from mcpgym_environments.python_sandbox.sessions.backend import MAX_SEED, SessionSpent
from mcpgym_environments.python_sandbox.sessions.session import FileFault, Session
from mcpgym_environments.python_sandbox.state import Work
from mcpgym_environments.python_sandbox.workspace import inside, opened, read_text, released, unread, wrote
from mcpgym_environments.thinking import thinks_first

if TYPE_CHECKING:
    from mcpgym_environments.python_sandbox.finding import Finder
    from mcpgym_environments.python_sandbox.problems.catalogue import Catalogue
    from mcpgym_environments.python_sandbox.problems.problem import Generator, Problem

LONGEST_CODE = 100_000
LONGEST_TEXT = 1_000_000
LONGEST_PATH = 500
LONGEST_ANSWER = 2_000
PATIENCE = 900.0
"""Seconds that a call may take with its waiting for a processor: far above the session's own limits, which end it."""
DEEPEST = 64
"""How many folders down a listing goes."""
SPARE_CALLS = 10
"""How many calls an episode has beyond its steps: for the solution, and for calls that cannot be made."""


class PythonSandbox(SandboxedEnvironment[Work, PythonSandboxConfig]):
    """Solve problems with Python in a sandbox that hostile code cannot leave."""

    name = "python-sandbox"
    version = "1"
    description = "Solve problems by writing and running Python in a sandbox; answers and hidden tests are exact."
    instructions = INSTRUCTIONS
    icon = (
        "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 48 48' fill='none' stroke-width='4' "
        "stroke-linecap='round' stroke-linejoin='round'%3E%3Cpath stroke='%23888' d='M6 14 24 5l18 9v20l-18 9-18-9z'/"
        "%3E%3Cpath stroke='%2336c' d='M15 19l6 5-6 5M25 30h8'/%3E%3C/svg%3E"
    ).replace(" ", "%20")
    config_class = PythonSandboxConfig
    generators: ClassVar[Sequence[Generator]] = ()
    """What makes the problems, in a subclass that brings its own; here, all that are bundled."""

    def __init__(self, config: PythonSandboxConfig | None = None) -> None:
        super().__init__(config)
        paid = {"efficiency": self.config.efficiency_weight, "no_errors": self.config.no_errors_weight}
        self.rewards = {  # type: ignore[misc]
            name: replace(item, weight=paid.get(name, item.weight)) for name, item in type(self).rewards.items()
        }
        if self._is_open:
            self.splits = ("test",)  # type: ignore[misc]
        elif self.config.generator_names is not None or self.generators:
            _ = self._catalogue  # says at once what is not there

    @property
    def sandbox(self) -> PythonSandboxConfig:
        """All of the configuration."""
        return self.config

    @property
    def _is_open(self) -> bool:
        """Whether somebody works on what they like: there is no problem, and nothing is counted."""
        return self.config.tasks == "open"

    @cached_property
    def _catalogue(self) -> Catalogue:
        from mcpgym_environments.python_sandbox.problems.catalogue import Catalogue

        config = self.config
        return Catalogue(
            config.family_names, config.generator_names, config.min_level, config.max_level, self.generators
        )

    @cached_property
    def _finder(self) -> Finder:
        from mcpgym_environments.python_sandbox.finding import Finder

        return Finder(self._catalogue, {split: self._count(split) for split in self.splits})

    def _count(self, split: str) -> int:
        if self._is_open:
            return 1
        return self.config.test_tasks if split == "test" else self.config.train_tasks

    def tasks(self, split: str) -> Sequence[Task]:
        """One problem each."""
        if split not in self.splits:
            raise UnknownNameError("split", split, self.splits)
        return LazyTasks(self._count(split), lambda index: self._task(split, index))

    def _task(self, split: str, index: int) -> Task:
        problem = self.problem(split, index)
        messages = prompt(
            None if problem is None else problem.text,
            by_code=problem is not None and problem.tests is not None,
            files=() if problem is None else problem.files,
            packages=self.config.package_names,
            thoughts=self.config.thoughts,
            steps=self.config.max_calls,
        )
        return Task(task_id(split, index), split, messages, _hidden(problem))

    def problem(self, split: str, index: int) -> Problem | None:
        """The problem of a task; None where somebody works on what they like."""
        return None if self._is_open else self._catalogue.problem(split, index)

    async def reset(self, task: Task, seed: int) -> Work:
        """The first episode starts the sandbox; a session is taken from it when a tool first needs one."""
        pool = await self.started()
        index = int(task.id.rpartition("-")[2])
        problem = self.problem(task.split, index)
        if problem is not None:
            self._finder.remember(task.split, index, problem)
        hidden, shown = derive_seed("tests", task.split, index, seed), derive_seed("session", task.split, index)
        return Work(problem, pool, hidden, shown % (MAX_SEED + 1))

    @tool(title="Run Python", timeout=PATIENCE)
    async def run_python(
        self,
        work: Work,
        code: Annotated[str, Field(max_length=LONGEST_CODE), "Python code; the value of a last expression is shown."],
    ) -> str:
        """Run Python code as in a notebook: variables stay for the next run. Shows what it printed."""
        session = await self._step(work)
        with self._counted(work):
            outcome = await session.run(code)
        work.faults += outcome.status != "ok"
        return self._said(work, show_run(outcome, self.config.limits, self.config.output_characters))

    @tool(title="Write a file", timeout=PATIENCE)
    async def write_file(
        self,
        work: Work,
        path: Annotated[str, Field(min_length=1, max_length=LONGEST_PATH), "Where in the workspace: solution.py."],
        text: Annotated[str, Field(max_length=LONGEST_TEXT), "The whole text of the file."],
    ) -> str:
        """Write a text file into the workspace; one that is there is replaced."""
        session = await self._step(work)
        with self._counted(work):
            await session.write(inside(path), text.encode())
        return self._said(work, wrote(path, text))

    @tool(title="Read a file", read_only=True, timeout=PATIENCE)
    async def read_file(
        self,
        work: Work,
        path: Annotated[str, Field(min_length=1, max_length=LONGEST_PATH), "Where in the workspace: data.csv."],
        offset: Annotated[int, Field(ge=0, le=2**40), "Where to begin, in bytes, as the last answer said."] = 0,
    ) -> str:
        """Read a text file of the workspace. A long one comes in parts; the last line says where the next begins."""
        session = await self._step(work)
        with self._counted(work):
            try:
                part = await read_text(session, path, offset, self.config.output_characters)
            except FileFault as fault:
                raise await unread(session, fault) from None
        return self._said(work, show_part(part))

    @tool(title="List files", read_only=True, timeout=PATIENCE)
    async def list_files(self, work: Work) -> str:
        """List the files and folders of the workspace with their sizes."""
        session = await self._step(work)
        with self._counted(work):
            entries, omitted = await session.list_part(".", DEEPEST)
        return self._said(work, show_files(entries, omitted))

    @tool(title="Submit the solution", timeout=PATIENCE)
    async def submit(
        self,
        work: Work,
        answer: Annotated[
            str, Field(max_length=LONGEST_ANSWER), "The bare answer; nothing where solution.py is graded."
        ] = "",
    ) -> str:
        """Hand in your answer, or solution.py where the task asks for code. It can be done once, and ends the task."""
        if work.problem is None:
            work.submitted = answer
            return "The visit is over."
        with self._counted(work):
            by_code = work.problem.tests is not None
            work.share = await (share_of_code(work) if by_code else share_of_answer(work.problem, answer))
        work.submitted = answer
        released(work)
        said = SOLUTION if by_code else f'"{inline(answer, LONGEST_ANSWER)}"'
        return f"You submitted {said}. The task is over."

    async def _step(self, work: Work) -> Session:
        """Count a run, write, read or listing, if there is one left; the session to do it in."""
        if not self._is_open and work.steps >= self.config.max_calls:
            work.faults += 1
            raise ToolError(f"you have made {work.steps} calls, and may make no more: submit is the only tool left")
        work.steps += 1
        return await opened(work)

    @contextlib.contextmanager
    def _counted(self, work: Work) -> Iterator[None]:
        """A call that cannot be done is a fault. So is one whose session took all of the machine's memory."""
        try:
            yield
        except SessionSpent:
            work.faults += 1
            released(work)
            raise ToolError(SPENT) from None
        except ToolError:
            work.faults += 1
            raise

    def _said(self, work: Work, text: str) -> str:
        """``text`` with what is left, if that is little."""
        left = "" if self._is_open else show_left(self.config.max_calls - work.steps)
        return f"{text}\n{left}" if left else text

    def is_done(self, state: Work) -> bool:
        """Whether a solution was handed in."""
        return state.submitted is not None

    @property
    def max_turns(self) -> int | None:
        """How many calls an episode may take, mistaken ones too; no limit where somebody works on what they like."""
        return None if self._is_open else self.config.max_calls + SPARE_CALLS

    @reward(weight=1.0)
    def correct(self, work: Work) -> float | None:
        """How much of the submitted solution is right: 0 or 1 for an answer, the share of hidden tests for code."""
        return _paid(work, work.share)

    @reward(weight=0.2)
    def format(self, transcript: Transcript) -> float:
        """The share of turns that think inside <think>…</think> before they act; 0 where the prompt does not ask it."""
        turns = transcript.assistant_turns
        return sum(map(thinks_first, turns)) / len(turns) if turns and self.config.thoughts else 0.0

    @reward(weight=0.0)
    def efficiency(self, work: Work, calls: Sequence[CallRecord]) -> float | None:
        """The fewest calls that a solution takes, two, over those made; 0 unless all of it is right."""
        return _paid(work, min(1.0, 2 / len(calls)) if calls and work.share == 1 else 0.0)

    @reward(weight=0.0)
    def no_errors(self, work: Work) -> float | None:
        """1 if all of the solution is right and no run and no call on the way to it failed."""
        return _paid(work, float(work.share == 1 and not work.faults))

    @reward(weight=0.0)
    def solved(self, work: Work) -> float | None:
        """1 if all of the submitted solution is right."""
        return _paid(work, float(work.share == 1))

    def reference_policies(self) -> Mapping[str, ReferencePolicy]:
        """``expert`` and ``random``; see :mod:`mcpgym_environments.python_sandbox.reference`."""
        from mcpgym_environments.python_sandbox.reference import Expert, wander

        return {"expert": Expert(self._finder), "random": wander}

    def teacher(self, skill: float) -> ReferencePolicy:
        """The expert, or with probability 1 - ``skill`` the random policy, drawn in each turn."""
        from mcpgym_environments.python_sandbox.reference import Expert, wander
        from mcpgym_environments.teaching import mixed

        return mixed(Expert(self._finder), wander, skill)


def _paid(work: Work, value: float | None) -> float | None:
    """A reward's ``value``; nothing without a submission, and null where there was no problem."""
    if work.problem is None:
        return None
    return 0.0 if work.submitted is None else value


def _hidden(problem: Problem | None) -> dict[str, object]:
    """What a task says of its problem; no policy sees it."""
    if problem is None:
        return {}
    from mcpgym_environments.python_sandbox.problems.answers import answer_text

    told: dict[str, object] = {"generator": problem.generator, "family": problem.family, "level": problem.level}
    return told if problem.answer is None else {**told, "wanted": answer_text(problem.answer)}
