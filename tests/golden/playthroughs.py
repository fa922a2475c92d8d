"""Playthroughs: an environment as text, in the manner of OpenSpiel's: all that it says, and what is hidden as well."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from tests.golden.scripts import scripts

from mcpgym import Environment, Message
from mcpgym.control import LocalControl, OpenedEpisode
from mcpgym.episodes import Episodes
from mcpgym.messages import tool_answer
from mcpgym.rewards import Score
from mcpgym.tasks import derive_seed
from mcpgym_rl.lanes import ControlLane, EpisodeLane
from mcpgym_rl.parse import MalformedCall, parse
from mcpgym_rl.policies import make_policy
from mcpgym_rl.policies.script import ScriptedPolicy
from mcpgym_rl.policy import EpisodeContext, Policy, PolicyError

MAX_TURNS = 20


def playthrough(environment: Environment[Any, Any, Any]) -> str:
    """The text of ``environment``."""
    return asyncio.run(_text(environment))


async def _text(environment: Environment[Any, Any, Any]) -> str:
    lines = list(_contract(environment))
    lane = ControlLane(LocalControl(Episodes({environment.name: environment})))
    policies: list[Policy] = [make_policy(name, environment) for name in sorted(environment.reference_policies())]
    policies += [ScriptedPolicy(turns, name) for name, turns in scripts(environment).items()]
    known: set[str] = set()
    for number, policy in enumerate(policies):
        lines += ["", "=" * 100, f"Episode {number + 1}: {policy.name}", ""]
        lines += [line async for line in _episode(environment, lane, policy, number, known)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _contract(environment: Environment[Any, Any, Any]) -> Iterator[str]:
    yield f"{environment.name}, as it is played. Written by python -m tests.golden; read what changed, then commit it."
    yield ""
    for name in ("name", "version", "description", "splits", "max_turns", "reproducible", "schema_hash"):
        yield f"{name}: {_json(getattr(environment, name))}"
    yield "instructions:"
    yield from _quoted(environment.instructions)
    for name, field in type(environment).config_class.model_fields.items():
        about = " ".join((field.description or "").split())
        yield f"config {name} = {_json(environment.config.model_dump(mode='json')[name])}: {about}"
    for split in environment.splits:
        yield f"tasks {split}: {environment.size(split)}"
    for tool in environment.tools.values():
        yield f"tool {tool.name}:"
        yield from _quoted(json.dumps(tool.listing, indent=2, ensure_ascii=False))
    for name, reward in environment.rewards.items():
        yield f"reward {name}: weight {reward.weight:g}, {reward.low:g} to {reward.high:g}: {reward.description}"


async def _episode(
    environment: Environment[Any, Any, Any], lane: ControlLane, policy: Policy, number: int, known: set[str]
) -> AsyncIterator[str]:
    episode = await lane.open(environment.name, split=environment.splits[-1], index=number, seed=number)
    opened = episode.opened
    task = environment.task(opened.task)
    yield f"task {opened.task}, seed {opened.seed}"
    yield f"hidden: task.info = {_json(task.info)}"
    for message in opened.messages:
        for line in _said(message, known):
            yield line
    messages = list(opened.messages)
    session = policy.begin(_context(opened))
    for turn in range(1, MAX_TURNS + 1):
        yield ""
        yield f"-- turn {turn}"
        try:
            written = await session.act(messages)
        except PolicyError as error:
            yield f"the policy gives up: {error}"
            break
        before = len(messages)
        over = await _turn(episode, written.message, messages)
        for message in messages[before:]:
            for line in _said(message):
                yield line
        yield await _hidden(episode, messages)
        if over:
            break
    await session.aclose()
    await episode.aclose()


async def _turn(episode: EpisodeLane, message: Message, messages: list[Message]) -> bool:
    """Play one turn; whether the episode is over after it."""
    message, calls = parse(message)
    messages.append(message)
    if not calls:
        said = await episode.respond(messages)
        messages += said or ()
        return said is None
    done = False
    for call in calls:
        if isinstance(call, MalformedCall):
            messages.append(tool_answer(call.call, call.problem, is_error=True))
            continue
        result = await episode.call(call.call["function"]["name"], call.arguments)
        messages.append(tool_answer(call.call, result.text, is_error=result.is_error))
        done |= result.done
    return done


async def _hidden(episode: EpisodeLane, messages: Sequence[Message]) -> str:
    status = await episode.status()
    score: Score = await episode.score(messages)
    parts = ", ".join(f"{name} {_json(value)}" for name, value in score.components.items())
    end = f"ended: {status.stop_reason}" if status.done else "goes on"
    return (
        f"hidden: {end} after {status.turns}, score {_json(score.total)} ({parts}), outcome {_json(score.game_outcome)}"
    )


def _context(opened: OpenedEpisode) -> EpisodeContext:
    return EpisodeContext(opened.environment, opened.tools, derive_seed("policy", opened.seed, opened.task, 0))


def _said(message: Message, known: set[str] | None = None) -> Iterator[str]:
    """A message; one that is among the ``known`` in a line, and it is one of them from then on."""
    error = " (error)" if message.get("is_error") else ""
    content = message["content"]
    if known is not None and content in known:
        yield f"{message['role']}{error}: as above"
    elif content or "tool_calls" not in message:
        yield f"{message['role']}{error}:"
        yield from _quoted(content)
    if known is not None and message["role"] == "system":
        known.add(content)
    for call in message.get("tool_calls", ()):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        yield f"call {_plain(name)} {_plain(arguments)}"


def _quoted(text: str) -> Iterator[str]:
    """The lines of a text; one whose characters cannot all be seen is written as JSON, after a colon."""
    for line in text.split("\n"):
        yield f"  | {line}" if line.isprintable() and line == line.rstrip() else f"  : {_json(line)}"


def _plain(text: str) -> str:
    return text if text and text.isprintable() and text == text.strip() else _json(text)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=not str(value).isprintable(), default=_known)


def _known(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)
