"""What a client may offer while a person types an argument: ids of tasks, names of splits (``completion/complete``).

Only ids are offered, which anyone may list; where tasks are many, those at the beginning of each split and the one
whose id was typed whole. Nothing is searched for, so that a key pressed costs little however large the environment is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mcpgym.environment import Environment
from mcpgym.errors import UnknownNameError
from mcpgym.wire.players import Player
from mcpgym.wire.resources import PAGE, template_list

LIMIT = 100
"""Values in one answer; the protocol allows no more."""


def complete(player: Player, ref: Mapping[str, Any], argument: str, value: str) -> dict[str, Any]:
    """The values of ``argument`` that begin with ``value``, as MCP answers it.

    Args:
        player: who asks.
        ref: what the argument belongs to: ``{"type": "ref/prompt", "name": …}`` or
            ``{"type": "ref/resource", "uri": …}`` with the URI template.
        argument: its name; one that is not known here has no suggestions.
        value: what was typed so far.

    Raises:
        UnknownNameError: there is no such prompt or template; the message says what there is.
        EpisodeError: an environment cannot make its tasks; the message is not for players.
    """
    if ref["type"] == "ref/prompt":
        found = _of_prompt(player, ref["name"], argument, value)
    else:
        found = _of_template(player, ref["uri"], argument, value)
    values = list(dict.fromkeys(found))
    return {"values": values[:LIMIT], "hasMore": len(values) > LIMIT}


def _of_prompt(player: Player, name: str, argument: str, value: str) -> Iterator[str]:
    prompts = {prompt.name: prompt for prompt in player.prompts()}
    if name not in prompts:
        raise UnknownNameError("prompt", name, prompts)
    if argument == "task" and argument in prompts[name].arguments and name in player.environments:
        yield from _ids(player.environments[name], value)


def _of_template(player: Player, uri: str, argument: str, value: str) -> Iterator[str]:
    templates = [entry["uriTemplate"] for entry in template_list(player.environments)]
    if uri not in templates:
        raise UnknownNameError("resource template", uri, templates)
    environment = next(made for name, made in player.environments.items() if uri.startswith(f"env://{name}/"))
    if argument == "id":
        yield from _ids(environment, value)
    elif argument == "split":
        yield from (split for split in environment.splits if split.startswith(value))


def _ids(environment: Environment[Any, Any, Any], value: str) -> Iterator[str]:
    split, _, number = value.rpartition("-")
    if split in environment.splits and number.isascii() and number.isdecimal() and len(number) <= 12:
        yield from (task.id for task in environment.tasks_at(split, int(number), 1) if task.id == value)
    for split in environment.splits:
        yield from (task.id for task in environment.tasks_at(split, 0, PAGE) if task.id.startswith(value))
