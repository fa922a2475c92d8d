"""Before a scan: which of a task's hidden values can be replaced by canaries, so that the environment still plays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

from mcpgym.asking import settle
from mcpgym.control import Call, LocalControl
from mcpgym.environment import Environment
from mcpgym.episodes import Episodes
from mcpgym.errors import CannotBegin, McpgymError
from mcpgym.messages import tool_answer
from mcpgym_clients.scanning.canaries import Canaries
from mcpgym_clients.scanning.planting import Plan, planted
from mcpgym_clients.scanning.playing import Script, scripts
from mcpgym_clients.scanning.task_planting import kind_of_place, leaves

TURNS = 12
Place = tuple[str, int]


async def rehearse(
    environment: Environment[Any, Any, Any], places: Sequence[Place], canaries: Canaries
) -> tuple[set[str], int]:
    """The places of tasks that must keep their values, and how many bits a seed may have.

    Raises:
        McpgymError: the environment does not play even as it is.
    """
    everything = {
        kind_of_place(path) for split, index in places for path, _ in leaves(environment.task_at(split, index))
    }
    for bits in (62, 31):
        if await _plays(environment, places, canaries, everything, bits) is None:
            break
    else:
        error = await _plays(environment, places, canaries, everything, 31)
        raise McpgymError(f"{environment.name} does not play: {error}. mcpgym check tells what an environment must do")
    if await _plays(environment, places, canaries, set(), bits) is None:
        return set(), bits
    kept = {
        kind
        for kind in sorted(everything)
        if await _plays(environment, places, canaries, everything - {kind}, bits) is not None
    }
    if await _plays(environment, places, canaries, kept, bits) is not None:
        kept = everything
    return kept, bits


async def _plays(
    environment: Environment[Any, Any, Any], places: Sequence[Place], canaries: Canaries, kept: set[str], bits: int
) -> str | None:
    """What goes wrong in a play with all places planted but ``kept``; None if nothing does."""
    plan = Plan(Canaries(canaries.seed))
    plan.tasks.kept = kept
    made = planted(environment, plan)
    control = LocalControl(Episodes({made.name: made}))
    try:
        for split, index in places:
            for script in scripts(environment, canaries.seed):
                if script.name == "nonsense":
                    continue
                seed = canaries.integer("rehearsal", split, index, bits=bits)
                if (problem := await _play(control, made.name, split, index, seed, script)) is not None:
                    return problem
    except CannotBegin:
        raise
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


async def _play(control: LocalControl, name: str, split: str, index: int, seed: int, script: Script) -> str | None:
    opened = await control.open(name, split=split, index=index, seed=seed)
    messages, random = list(opened.messages), Random(seed)
    for _ in range(TURNS):
        turn = await settle(script.policy(tuple(messages), random))
        messages.append(turn)
        calls = turn.get("tool_calls", [])
        for item in calls:
            call = Call(opened.token, item["function"]["name"], json.loads(item["function"]["arguments"]))
            (result,) = await control.step([call])
            messages.append(tool_answer(item, result.text, is_error=result.is_error))
        said = None if calls else await control.respond(opened.token, messages)
        messages += said or ()
        status = await control.status(opened.token)
        if status.failure is not None:
            return status.failure
        if status.done or (not calls and said is None):
            break
    await control.score(opened.token, messages)
    await control.close(opened.token)
    return None
