"""The page: facts, contract, prompt, what its own policies are paid, and one of their rollouts."""

from __future__ import annotations

import asyncio
from typing import Any

from mcpgym.environment import Environment
from mcpgym_clients.cards.playing import as_text, reward_of, rollouts
from mcpgym_clients.cards.tables import code, contract, facts, table
from mcpgym_rl.traces import Trace

EXAMPLE = "expert"
"""The policy whose rollout is shown; the first there is, where an environment has none of this name."""
LONGEST = 6_000
"""Characters of a rollout that are shown."""


def card(environment: Environment[Any, Any, Any], episodes: int) -> str:
    """The page of ``environment``, without a title; its own policies play ``episodes`` episodes each.

    The same environment, configuration and number give the same page, where the environment is reproducible.
    """
    episodes = min(episodes, environment.size(environment.splits[-1]))
    played = asyncio.run(_play(environment, episodes))
    parts = [facts(environment), f"Schema hash `{environment.schema_hash}`.\n", *contract(environment)]
    if any(played.values()):
        split = environment.splits[-1]
        parts += [
            f"**What its own policies are paid** (the first {episodes} tasks of `{split}`, seed 0; 95 % interval)\n",
            table(["policy", "mean reward", "interval", "scored"], [_row(name, done) for name, done in played.items()]),
        ]
    shown = EXAMPLE if EXAMPLE in played else next(iter(played), None)
    if shown is not None and played[shown]:
        text = as_text(played[shown][0].messages)
        cut = text if len(text) <= LONGEST else text[:LONGEST].rstrip() + "\n…"
        parts += [f"**A rollout of `{shown}`** (`{played[shown][0].task}`)\n", code(cut)]
    return "\n".join(parts)


async def _play(environment: Environment[Any, Any, Any], episodes: int) -> dict[str, list[Trace]]:
    names = sorted(environment.reference_policies())
    return {name: list(await rollouts(environment, name, episodes)) for name in names} if episodes else {}


def _row(name: str, traces: list[Trace]) -> list[str]:
    reward = reward_of(traces)
    if reward is None:
        return [f"`{name}`", "not scored", "", f"0 of {len(traces)}"]
    interval = "" if reward.interval is None else f"{reward.interval[0]:.3f} to {reward.interval[1]:.3f}"
    return [f"`{name}`", f"{reward.mean:.3f}", interval, f"{reward.n} of {len(traces)}"]
