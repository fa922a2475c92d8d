"""Any of our environments as the class that TRL's ``environment_factory`` wants, for scripts of your own."""

from __future__ import annotations

import asyncio
import functools
import json
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from mcpgym.calls import CallResult
from mcpgym.environment import Environment
from mcpgym.episode import Episode
from mcpgym.episodes import Episodes
from mcpgym.errors import ConfigurationError, McpgymError
from mcpgym.messages import Message, ToolCall, assistant, tool_answer, tool_call
from mcpgym.registry import load_environment
from mcpgym.rewards import Score
from mcpgym_rl.policies.chat_format import native_tools
from mcpgym_rl.trl.methods import method_of

if TYPE_CHECKING:
    from datasets import Dataset  # type: ignore[import-untyped]

T = TypeVar("T")


def total(score: Score) -> float | None:
    """The environment's own total: what a rollout is worth unless you say otherwise."""
    return score.total


class EnvironmentFactory:
    """What ``GRPOTrainer`` is given: ``environment_factory=made``, ``train_dataset=made.dataset(64)`` and
    ``reward_funcs=made.reward``.

    Called, it makes an instance of a class whose public methods are the environment's tools, with their names,
    descriptions and types, and ``reset``; what else there is begins with an underscore, which TRL never offers to a
    policy. Episodes are opened in this process; TRL's loop plays them.

    Args:
        environment: the environment, or its name (or ``module:Class``).
        config: fields of its configuration.
        worth: what a score is worth; its total by default. None is a rollout without a reward.

    Raises:
        ConfigurationError: there is no such environment or field, or TRL's loop cannot play it.
    """

    def __init__(
        self,
        environment: str | Environment[Any, Any, Any],
        config: Mapping[str, Any] | None = None,
        worth: Callable[[Score], float | None] = total,
    ) -> None:
        made = load_environment(environment, config) if isinstance(environment, str) else environment
        if type(made).respond is not Environment.respond:
            raise ConfigurationError(
                f"{made.name} answers as the user, which TRL's loop never lets it do; train on it with our rollouts: "
                "mcpgym train --engine trl"
            )
        self.environment, self._worth = made, worth
        self._episodes = Episodes({made.name: made})
        methods = {str(tool.listing["name"]): method_of(tool.listing) for tool in made.tools.values()}
        name = "".join(part.capitalize() for part in made.name.replace("_", "-").split("-"))
        self.environment_class: type[PlayedByTrl] = type(name, (PlayedByTrl,), methods)
        self.__name__ = name

    @property
    def max_turns(self) -> int | None:
        """The environment's limit on turns: TRL's ``max_tool_calling_iterations``."""
        return self.environment.max_turns

    def __call__(self) -> PlayedByTrl:
        """An instance, for one rollout after the other."""
        return self.environment_class(self._episodes, self.environment.name)

    def dataset(self, count: int, *, split: str = "train", seed: int = 0, first: int = 0) -> Dataset:
        """The prompts of ``count`` tasks from the ``first`` of a split, and which episodes they belong to.

        Raises:
            ConfigurationError: there is no such split, it ends before, or that is no task at all.
        """
        from datasets import Dataset

        if count < 1:
            raise ConfigurationError(f"a data set of {count} tasks teaches nothing; ask for at least 1")

        rows = [
            {"prompt": _in_loop(self._prompt(split, index, seed)), "split": split, "index": index, "seed": seed}
            for index in range(first, first + count)
        ]
        return Dataset.from_list(rows)

    def reward(
        self, completions: Sequence[Sequence[Mapping[str, Any]]], environments: Sequence[Any], **rest: Any
    ) -> list[float | None]:
        """TRL's reward function: each rollout's score, with what the policy wrote; None for those of other environments
        and for those without a score. The components' means go into TRL's metrics."""
        scores = [
            made._scored(said) if isinstance(made, self.environment_class) else None
            for made, said in zip(environments, completions, strict=True)
        ]
        if (log := rest.get("log_metric")) is not None:
            for name in self.environment.rewards:
                known = [value for score in scores if score and (value := score.components.get(name)) is not None]
                if known:
                    log(f"{self.environment.name}/{name}", sum(known) / len(known))
        return [None if score is None else self._worth(score) for score in scores]

    def show_tools_as_served(self, trainer: Any, name: str | None = None) -> None:
        """Have ``trainer`` show the policy the tools exactly as the server lists them, bounds and defaults too.

        TRL would show what transformers makes of the methods; it has no public way to give it schemas, so this sets
        its ``_env_tools``.

        Args:
            trainer: a ``GRPOTrainer`` with this factory.
            name: under which it has this factory, where it has several.
        """
        trainer._env_tools[name] = native_tools([tool.listing for tool in self.environment.tools.values()])

    async def _prompt(self, split: str, index: int, seed: int) -> list[dict[str, str]]:
        episode = await self._episodes.open(self.environment.name, split=split, index=index, seed=seed)
        try:
            return [{"role": message["role"], "content": message["content"]} for message in episode.messages]
        finally:
            await self._episodes.close(episode.token)


def environment_factory(
    environment: str | Environment[Any, Any, Any],
    config: Mapping[str, Any] | None = None,
    worth: Callable[[Score], float | None] = total,
) -> EnvironmentFactory:
    """See :class:`EnvironmentFactory`."""
    return EnvironmentFactory(environment, config, worth)


class PlayedByTrl:
    """An environment as TRL plays it: one episode after the other. Its subclasses have the tools as methods."""

    def __init__(self, episodes: Episodes, name: str) -> None:
        self._episodes, self._name = episodes, name
        self._episode: Episode | None = None
        self._answers: list[tuple[str, CallResult]] = []

    def reset(self, *, split: str, index: int, seed: int = 0, **row: Any) -> None:
        """Begin the episode of a row of the data set; its prompt is in the row already."""
        _in_loop(self._begin(split, index, seed))

    async def _begin(self, split: str, index: int, seed: int) -> None:
        if self._episode is not None:
            await self._episodes.close(self._episode.token)
        self._episode, self._answers = None, []
        self._episode = await self._episodes.open(self._name, split=split, index=index, seed=seed)

    def _call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """What the policy reads: also an error is an answer, in the words that it reads everywhere else."""
        if self._episode is None:
            return "there is no episode"
        answer = _in_loop(self._episode.call(name, arguments))
        if not self._answers or not self._answers[-1][1].done:  # what is said after the end is in no transcript
            self._answers.append((name, answer))
        return answer.text

    def _scored(self, said: Sequence[Mapping[str, Any]]) -> Score | None:
        """The score of what was played and ``said``; None where the episode broke."""
        if self._episode is None:
            return None
        messages = [*self._episode.messages, *transcript(said, self._answers)]
        try:
            return _in_loop(self._episode.score(messages))
        except McpgymError:
            return None


def transcript(said: Sequence[Mapping[str, Any]], answers: Sequence[tuple[str, CallResult]]) -> list[Message]:
    """TRL's messages of a rollout as ours, up to the answer that ended the episode.

    TRL's loop goes on after the end; in our rollouts nothing comes after it, and rewards know no such turns.

    Args:
        said: what followed the prompt; TRL itself answers calls of tools that are not there.
        answers: what the episode answered, in order, and to which tool.
    """
    made: list[Message] = []
    waiting: list[ToolCall] = []
    calls = answered = 0
    for message in said:
        content = str(message.get("content") or "")
        if message.get("role") == "tool":
            name = str(message.get("name", ""))
            call = waiting.pop(0) if waiting else tool_call(f"call_{calls}", name, "{}")
            ours = answered < len(answers) and (name, content) == (answers[answered][0], answers[answered][1].text)
            answer = answers[answered][1] if ours else None
            made.append(tool_answer(call, content, is_error=answer is None or answer.is_error))
            answered += ours
            if answer is not None and answer.done:
                break
        elif message:
            written = [call.get("function", call) for call in message.get("tool_calls") or ()]
            waiting = []
            for one in written:
                waiting.append(tool_call(f"call_{calls}", str(one.get("name", "")), _text(one.get("arguments", {}))))
                calls += 1
            made.append(assistant(content, list(waiting)))
    return made


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    """Where all episodes live: TRL calls from threads of its own, and scripts from notebooks that have a loop."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="mcpgym episodes", daemon=True).start()
    return loop


def _in_loop(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run_coroutine_threadsafe(work, _loop()).result()
