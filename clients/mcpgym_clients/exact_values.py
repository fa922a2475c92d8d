"""The exact value beside an evaluation's estimate: ``exact`` of ``summary.json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcpgym.environment import Environment
from mcpgym.errors import ConfigurationError
from mcpgym_clients.console import talk
from mcpgym_rl.certificate.twice import deterministic
from mcpgym_rl.exact import Exact, NoExactValue, exact_outcomes, states_its_chances
from mcpgym_rl.policy import Policy, PolicyError
from mcpgym_rl.traces import Trace


async def exact_values(
    policy: Policy,
    environment: Environment[Any, Any, Any] | None,
    tasks: Mapping[str, int],
    first: Trace | None,
    *,
    max_turns: int | None = None,
    wanted: bool | None = None,
    concurrency: int | None = None,
) -> dict[str, Any] | None:
    """What ``exact`` is for a run; None where there is none.

    By default it is worked out where that takes no turn of the policy: for one that states its chances.

    Args:
        policy: who played.
        environment: the environment as it is installed here; None where it is not.
        tasks: how many scored episodes there are of each task.
        first: one of the run's traces: which version, tools and configuration were played.
        max_turns: the run's limit on turns, where it set one.
        wanted: False for never; True also for a policy that must be asked at every position of the game, and then it is
            an error if there is no exact value.
        concurrency: at how many points the policy is asked at once.

    Raises:
        NoExactValue: it was wanted, and there is none; the message says why.
    """
    if wanted is False or (wanted is None and not states_its_chances(policy)):
        return None
    try:
        played = _as_played(environment, first)
        with talk().status("working out the exact value"):
            found = await exact_outcomes(policy, played, tasks, max_turns=max_turns, concurrency=concurrency)
    except (NoExactValue, PolicyError) as error:
        if wanted:
            raise NoExactValue(f"there is no exact value to show: {error}") from None
        return None
    return _as_json(found)


def require_exact(policy: Policy, environment: Environment[Any, Any, Any] | None) -> None:
    """See before anything is played whether there can be an exact value.

    Raises:
        NoExactValue: there cannot; the message says why.
    """
    if environment is None:
        raise NoExactValue("--exact: the environment is not installed here")
    tree = environment.game_tree()
    if tree is None or not hasattr(tree, "opponent"):
        missing = "gives no game tree" if tree is None else "does not say who a task's opponent is"
        raise NoExactValue(f"--exact: {environment.name} {missing}")
    if not states_its_chances(policy) and deterministic(policy) is False:
        raise NoExactValue(f"--exact: {policy.name} draws its answers; give it temperature 0")


def _as_json(found: Exact) -> dict[str, Any]:
    seats = {seat: shares for seat, shares in found.by_seat.items() if shares is not None}
    return {
        "outcomes": {end: float(share) for end, share in found.outcomes.items()},
        "by_seat": {seat: {end: float(share) for end, share in shares.items()} for seat, shares in seats.items()},
        "episodes": found.episodes,
        "tasks": found.tasks,
    }


def _as_played(environment: Environment[Any, Any, Any] | None, first: Trace | None) -> Environment[Any, Any, Any]:
    """The environment that the traces are of, made from the one that is installed here."""
    if environment is None or first is None:
        raise NoExactValue("the environment is not installed here" if environment is None else "nothing was played")
    if (environment.version, environment.schema_hash) != (first.environment_version, first.schema_hash):
        raise NoExactValue(f"the {environment.name} that is installed here is another version than the one played")
    if environment.config.model_dump(mode="json") == dict(first.config):
        return environment
    try:
        return type(environment)(environment.config_class.model_validate(dict(first.config)))
    except (ValueError, ConfigurationError) as error:
        raise NoExactValue(f"{environment.name} cannot be made as it was played: {error}") from None
