"""The environment: ``step`` takes an action by its name, and tells what is seen then."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from mcpgym import (
    Environment,
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
from mcpgym.messages import system, user
from mcpgym_environments.imported.gymnasium.config import GymnasiumConfig
from mcpgym_environments.imported.gymnasium.making import action_names, family, limit, make, reset
from mcpgym_environments.imported.gymnasium.package import EXTRA
from mcpgym_environments.imported.gymnasium.reference import Expert, has_expert, random_action
from mcpgym_environments.imported.gymnasium.state import Play
from mcpgym_environments.imported.gymnasium.telling import picture, told
from mcpgym_environments.imported.seeds import own_seed, task_number, tasks_of

LARGEST = 1e6
"""No return is larger, or further below 0."""
ABOUT: Mapping[str, str] = {
    "FrozenLake": "Cross a frozen lake from the start (S) to the goal (G), over frozen cells (F), without falling into "
    "a hole (H). The ice may be slippery: then you may move at right angles to where you wanted to go.",
    "Taxi": "Drive a taxi on a grid: go to the passenger, pick the passenger up, go to the destination and drop the "
    "passenger off there, in as few steps as you can. Walls (|) cannot be crossed; a wrong pickup or dropoff costs "
    "much.",
    "CliffWalking": "Walk from the start, the lower left cell, to the target (T), the lower right one, in as few steps "
    "as you can. You are x. A step onto the cliff (C) costs much and brings you back to the start.",
    "Blackjack": "Beat the dealer: cards that add up to more than the dealer's, and to 21 at most. Hit takes a card, "
    "stick takes none and lets the dealer play.",
    "CartPole": "Keep the pole on the cart from falling for as long as you can, and the cart from leaving the track. "
    "You see the cart's position and velocity, and the pole's angle and angular velocity.",
    "MountainCar": "Bring the car up the hill on the right in as few steps as you can; its engine is too weak to go "
    "straight. You see its position and its velocity.",
    "Acrobot": "Swing the free end of two linked arms above the height of one arm in as few steps as you can. You see "
    "the cosine and sine of both joints' angles, and their angular velocities.",
}
NOT_OVER = "The episode is not over. Call step with an action."


class Gymnasium(Environment[Task, Play, GymnasiumConfig]):
    """Gymnasium environments with named actions. The reward is the return, as it is or between two bounds."""

    name = "gymnasium"
    version = "1"
    description = "Any Gymnasium environment with discrete actions: FrozenLake, Taxi, Blackjack, MiniGrid, your own."
    instructions = (
        "You act in an environment, one step at a time: call step with the name of an action, and read what you see "
        "then. Go on until the environment says that the episode is over."
    )
    icon = (
        "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 48 48' fill='none' stroke-width='4' "
        "stroke-linecap='round' stroke-linejoin='round'%3E%3Cpath stroke='%23888' d='M6 6h36v36H6zM18 6v36M30 6v36M6 "
        "18h36M6 30h36'/%3E%3Cpath stroke='%2336c' d='M12 12v12h12v12h12'/%3E%3C/svg%3E"
    ).replace(" ", "%20")
    config_class = GymnasiumConfig
    spec_field = "id"

    def __init__(self, config: GymnasiumConfig | None = None) -> None:
        super().__init__(config)
        EXTRA.check()

    def tasks(self, split: str) -> Sequence[Task]:
        """A seed each: an even one in ``train``, an odd one in ``test``."""
        return tasks_of(split, self.splits, self.config, _task)

    async def reset(self, task: Task, seed: int) -> Play:
        """An environment of its own, seeded by task and seed; no two splits share a seed."""
        return await asyncio.to_thread(self._begun, own_seed("gymnasium", task.info["seed"], seed))

    def _begun(self, seed: int) -> Play:
        made = make(self.config)
        try:
            play = Play(made, seed, action_names(self.config.id, made), limit(made))
            play.shown = self._told(play, reset(made, seed))
        except BaseException:
            made.close()
            raise
        return play

    def _told(self, play: Play, observation: Any) -> str:
        columns = int(
            getattr(play.made.unwrapped, "ncol", 0) or (getattr(play.made.unwrapped, "shape", None) or (0, 0))[1]
        )
        text = told(family(self.config.id), observation, columns)
        if self.config.show == "auto" and play.made.render_mode == "ansi" and (seen := picture(play.made.render())):
            return f"{seen}\n{text}"
        return text

    def messages(self, task: Task, state: Play) -> Sequence[Message]:
        """What it is about, the names of the actions, and what is seen first."""
        id = self.config.id
        about = ABOUT.get(family(id)) or _first_words(state.made.unwrapped)
        names = f"The actions are: {', '.join(state.names)}." if state.names else "An action is a text."
        rules = (
            f"You act in the Gymnasium environment {id}. {about}\n\n{names} In every turn, call the tool `step` with "
            f"one action. After {state.limit} steps the episode is cut off."
        )
        return (system(rules), user(state.shown))

    @tool(title="Take a step")
    def step(
        self,
        play: Play,
        action: Annotated[str, Field(max_length=1_000), "One of the actions, by its name."],
    ) -> str:
        """Take one action. The answer tells what you see then."""
        chosen = _action(play, action)
        observation, gained, terminated, truncated, _ = play.made.step(chosen)
        play.actions.append(chosen)
        play.gained += float(gained)
        play.terminated, play.truncated = bool(terminated), bool(truncated)
        play.shown = self._told(play, observation)
        if play.terminated:
            return f"{play.shown}\nThe episode is over."
        return f"{play.shown}\nThe episode is over: no steps are left." if play.truncated else play.shown

    def invalid_arguments(self, state: Play, tool: str, problem: str) -> str:
        """Such a call takes no step, but there may be only so many."""
        state.idle += 1
        return problem

    def is_done(self, state: Play) -> bool:
        """Whether the environment has ended it, or too many calls named no action."""
        return state.over or state.idle > state.limit

    def respond(self, state: Play, transcript: Transcript) -> Sequence[Message] | None:
        """Whoever stops too early is told so, twice."""
        said = sum(message["content"] == NOT_OVER for message in transcript if message["role"] == "user")
        return None if said >= 2 else [user(NOT_OVER)]

    @reward(weight=1.0, low=-LARGEST, high=LARGEST)
    async def episode_return(self, play: Play) -> float:
        """The sum of the environment's rewards, or its place between lowest and highest. An episode that was left is
        played on with the first action: where each step costs, leaving would be best."""
        gained = play.gained if play.over else await asyncio.to_thread(self._played_on, play)
        low, high = self.config.lowest, self.config.highest
        if high > low:
            return (min(max(gained, low), high) - low) / (high - low)
        return min(max(gained, -LARGEST), LARGEST)

    @reward(weight=0.0)
    def ended_by_itself(self, play: Play) -> float:
        """1 if the environment ended the episode, and not its limit of steps."""
        return float(play.terminated)

    def _played_on(self, play: Play) -> float:
        """The return of the same steps, and the first action from there on. The episode itself is left as it is."""
        again = make(self.config)
        try:
            reset(again, play.seed)
            first = int(again.action_space.start) if play.names else ""
            gained, over = 0.0, False
            for action in [*play.actions, *([first] * (play.limit - len(play.actions)))]:
                if over:
                    break
                _, more, terminated, truncated, _ = again.step(action)
                gained += float(more)
                over = bool(terminated or truncated)
            return gained
        finally:
            again.close()

    def reference_policies(self) -> Mapping[str, ReferencePolicy]:
        """``random`` takes any action; ``expert`` the best, where the environment's transitions are known."""
        found: dict[str, ReferencePolicy] = {"random": random_action}
        if has_expert(self.config):
            found["expert"] = Expert(self.config)
        return found

    def close(self, state: Play) -> None:
        """Close the environment."""
        state.made.close()

    @classmethod
    def requirements(cls) -> Sequence[Requirement]:
        """Gymnasium's package."""
        return [EXTRA.requirement()]


def _task(split: str, index: int) -> Task:
    return Task(task_id(split, index), split, (), {"seed": task_number(split, index)})


def _action(play: Play, text: str) -> Any:
    """The action that ``text`` names.

    Raises:
        ToolError: it names none.
    """
    wanted = text.strip()
    if not play.names:
        if play.made.action_space.contains(wanted):
            return wanted
        play.idle += 1
        raise ToolError(f"{text[:60]!r} is no action here: it must be of {play.made.action_space}")
    start = int(play.made.action_space.start)
    if wanted.lower() in play.names:
        return start + play.names.index(wanted.lower())
    if wanted.isascii() and wanted.isdecimal() and len(wanted) < 6 and 0 <= int(wanted) - start < len(play.names):
        return int(wanted)
    play.idle += 1
    raise ToolError(f"{text[:60]!r} is no action; there is: {', '.join(play.names)}")


def _first_words(inner: Any) -> str:
    """What an environment's own documentation begins with."""
    paragraph = " ".join((type(inner).__doc__ or "").strip().split("\n\n")[0].split())
    return paragraph[:600] if not paragraph.startswith("#") else ""
