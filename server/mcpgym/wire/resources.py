"""MCP resources for people and their clients: the rules of an environment, its tasks by id and prompt, and its app.

What a task hides (answers, seeds, difficulty) is never read here, so it cannot leak from here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from mcpgym.environment import Environment
from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym.wire.apps import META, MIME, app_of, app_uri
from mcpgym.wire.players import Player

PAGE = 100
"""Tasks listed at once."""

Environments = Mapping[str, Environment[Any, Any, Any]]


def resource_list(environments: Environments) -> list[dict[str, Any]]:
    """The resources there are: rules, the first page of each split, and the app where there is one."""
    found: list[dict[str, Any]] = []
    for name, environment in environments.items():
        found.append(_entry(f"env://{name}/rules", f"{name} rules", f"The rules of {name}.", "text/markdown"))
        found += [
            _entry(f"env://{name}/tasks/{quote(split)}", f"{name} {split} tasks", f"Task ids of {split}.")
            for split in environment.splits
        ]
        if app_of(environment) is not None:
            app = _entry(app_uri(name), f"{name} app", f"Shows {name} in clients that render MCP Apps.", MIME)
            found.append({**app, "_meta": META})
    return found


def template_list(environments: Environments) -> list[dict[str, str]]:
    """The templates: one task, and a split's tasks from an offset."""
    found = []
    for name in environments:
        task = _entry(f"env://{name}/task/{{id}}", f"{name} task", "The prompt of one task, by its id.")
        page = _entry(f"env://{name}/tasks/{{split}}{{?offset}}", f"{name} tasks", f"{PAGE} task ids from an offset.")
        found += [{"uriTemplate": entry.pop("uri"), **entry} for entry in (task, page)]
    return found


def read(player: Player, uri: str) -> dict[str, Any]:
    """The resource at ``uri``: its ``mimeType``, its ``text``, and what else is said of it.

    Raises:
        UnknownNameError, ConfigurationError: there is none; the message says what there is.
        EpisodeError: the environment cannot make its tasks; the message is not for players.
    """
    environments, parts = player.environments, urlsplit(uri)
    name, path = unquote(parts.netloc), [unquote(part) for part in parts.path.split("/")[1:]]
    app = app_of(environments[name]) if name in environments else None
    if app is not None and uri == app_uri(name):
        return {"mimeType": MIME, "text": app.html, "_meta": META}
    if parts.scheme != "env" or name not in environments:
        raise UnknownNameError("resource", uri, [f"env://{known}/rules" for known in environments])
    environment = environments[name]
    match path:
        case ["rules"]:
            return {"mimeType": "text/markdown", "text": rules(environment)}
        case ["tasks", split]:
            return _json(_page(environment, split, _offset(parts.query)))
        case ["task", wanted]:
            task = environment.task(wanted)
            prompt = {"id": task.id, "split": task.split, "messages": list(task.messages)}
            return _json(prompt)
        case ["episode", *handle] if app is not None and len(handle) <= 1:  # what an app reads to follow the model
            return _json(player.so_far("".join(handle)))
    shapes = [f"env://{name}/rules", f"env://{name}/tasks/SPLIT?offset=N", f"env://{name}/task/ID"]
    raise UnknownNameError("resource", uri, shapes)


def rules(environment: Environment[Any, Any, Any]) -> str:
    """What a person should know of the environment, as Markdown."""
    tools = "\n".join(f"- `{tool.name}`: {tool.description}" for tool in environment.tools.values())
    parts = [f"# {environment.name} {environment.version}", environment.description, environment.instructions, tools]
    return "\n\n".join(part for part in parts if part)


def _page(environment: Environment[Any, Any, Any], split: str, offset: int) -> dict[str, Any]:
    ids = [task.id for task in environment.tasks_at(split, offset, PAGE)]
    total, after = environment.size(split), offset + len(ids)
    page: dict[str, Any] = {
        "environment": environment.name,
        "split": split,
        "total": total,
        "offset": offset,
        "ids": ids,
    }
    if after < total:
        page["next"] = f"env://{environment.name}/tasks/{quote(split)}?offset={after}"
    return page


def _offset(query: str) -> int:
    given = dict(parse_qsl(query, keep_blank_values=True))
    text = given.get("offset", "0")
    if set(given) - {"offset"} or not (text.isascii() and text.isdigit() and len(text) <= 12):
        raise ConfigurationError(f"?{query}: only offset is known here, and it is a number from 0")
    return int(text)


def _json(value: Any) -> dict[str, str]:
    return {"mimeType": "application/json", "text": json.dumps(value, ensure_ascii=False)}


def _entry(uri: str, name: str, description: str, mime: str = "application/json") -> dict[str, str]:
    return {"uri": uri, "name": name, "description": description, "mimeType": mime}
