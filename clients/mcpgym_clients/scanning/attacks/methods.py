"""Guessed tools, methods, prompts and resources: what is not listed must not be there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from mcpgym_clients.scanning.attacks.target import ERAS, Target
from mcpgym_clients.scanning.raw_http import Answer
from mcpgym_clients.scanning.search import excerpt

ATTACK = "guessed names"
FIX = "answer names that are not listed with an error; offer harnesses what they need on the control plane"

TOOLS = (
    "score", "get_score", "reward", "get_reward", "rewards", "compute_reward", "grade", "evaluate", "verify",
    "reset",
    "reset_episode", "restart", "start_episode", "new_episode", "open_episode", "end_episode", "close_episode",
    "close",
    "state", "get_state", "set_state", "save_state", "load_state", "snapshot", "undo", "info", "get_info", "task",
    "get_task",
    "tasks", "list_tasks", "seed", "get_seed", "set_seed", "seed_session", "solution", "get_solution", "answer",
    "get_answer", "reveal", "hint", "peek", "cheat", "admin", "debug", "config", "set_config", "env", "environment",
    "get_environment", "secret", "token", "step", "respond", "messages", "transcript", "history", "log", "logs",
    "calls",
    "trace", "eval", "exec", "run", "python", "shell", "bash", "system", "read_file", "list_episodes", "list_tools",
    "call",
    "get_info_for_agent", "is_done", "game_outcome", "game_tree", "teacher", "reference_policies", "shutdown",
    "__init__",
    "__class__", "__dict__", "tools", "control", "control/score", "environment.reset", "self.score", "../score", "*",
    " ",
)  # fmt: skip
METHODS = (
    "score", "reward", "reset", "state", "close", "info", "step", "seed", "control/score", "control/v1/score",
    "episodes/score", "episode/score", "episode/reset", "mcpgym/score", "mcpgym/reward", "mcpgym/state",
    "mcpgym/seed",
    "env/reset", "env/step", "env/state", "server/state", "server/info", "tools/score", "tools/reset",
    "tools/describe",
    "resources/subscribe", "resources/list_all", "tasks/list", "tasks/get", "tasks/result", "roots/list",
    "sampling/createMessage", "elicitation/create", "logging/get", "rpc.discover", "system.listMethods", "debug",
    "eval",
    "notifications/score", "admin/reset", "session/close", "__init__", "", "*",
)  # fmt: skip
PROMPTS = ("solution", "answer", "system", "hidden", "expert", "reward", "task_info", "../task", "", "admin")


async def attack_names(target: Target, listed: Iterable[str], environments: Sequence[str] = ()) -> None:
    """Call tools, methods, prompts and resources that are not listed; each that gives a result is a finding.

    ``listed`` are the tools that the server lists; ``environments`` the names that resources may have.
    """
    known = set(listed)
    for era in ERAS:
        for name in (*TOOLS, *_of_the_environment(target)):
            if name in known:
                continue
            path, owner = await _fresh(target, 6)
            answer = await target.rpc(
                ATTACK, "tools/call", {"name": name, "arguments": {}}, era=era, path=path, owner=owner
            )
            if (result := _result(answer)) is not None and not result.get("isError", False):
                _tell(target, f"a tool that is not listed answers: {name!r}", f"tools/call {name}", answer)
        for method in METHODS:
            answer = await target.rpc(ATTACK, method, {"name": "score"}, era=era)
            if (result := _result(answer)) is not None:
                _tell(target, f"a method of no protocol answers: {method!r}", method, answer)
        for name in PROMPTS:
            answer = await target.rpc(ATTACK, "prompts/get", {"name": name}, era=era)
            if _result(answer) is not None:
                _tell(target, f"a prompt that is not listed answers: {name!r}", f"prompts/get {name}", answer)
        for uri in _uris(target, environments):
            answer = await target.rpc(ATTACK, "resources/read", {"uri": uri}, era=era)
            if _result(answer) is not None:
                _tell(target, f"a resource that is not listed answers: {uri}", f"resources/read {uri}", answer)


def _of_the_environment(target: Target) -> list[str]:
    """The names that an environment's own author might have let slip in."""
    if target.inside is None:
        return []
    environment = target.inside.control.episodes.environments[target.inside.environment]
    names = [
        *environment.rewards,
        *(f"reward_{name}" for name in environment.rewards),
        f"{type(environment).__name__}.reset",
    ]
    return [name for name in names if name not in TOOLS]


async def _fresh(target: Target, calls: int) -> tuple[str, str]:
    """The path of an episode that has calls left, and its owner; the target's own where none can be opened."""
    if target.inside is None:
        return target.address.path, target.owner
    if target.spare is None or target.attempts[ATTACK] % calls == 0:
        target.spare = await target.inside.open()
    return f"/e/{target.spare.token}/mcp", target.spare.token


def _uris(target: Target, environments: Sequence[str]) -> list[str]:
    name = environments[0] if environments else "environment"
    task = target.spare.task if target.spare is not None else "test-0"
    port = target.address.port
    return [
        *(f"env://{name}/{what}" for what in ("", "score", "reward", "state", "secret", "config", "seed", "rules/x")),
        *(f"env://{name}/task/{task}/{what}" for what in ("info", "answer", "solution", "seed")),
        *(f"env://{name}/{what}/{task}" for what in ("info", "answer", "solution", "hidden", "state")),
        f"env://{name}/tasks/test?info=1", f"env://{name}/tasks/hidden",
        "env://../rules",
        "env://other/rules", "file:///etc/passwd", "file:///proc/self/environ", f"env://{name}/../../etc/passwd",
        f"http://127.0.0.1:{port}/control/v1/health", f"env://{name}/task/{task}%00", "control://v1/health", "",
    ]  # fmt: skip


def _result(answer: Answer) -> dict[str, Any] | None:
    for line in answer.body.splitlines():
        try:
            found = json.loads(line.removeprefix(b"data:"))
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and isinstance(found.get("result"), dict):
            result: dict[str, Any] = found["result"]
            return result
    return None


def _tell(target: Target, what: str, where: str, answer: Answer) -> None:
    text = answer.body.decode("utf-8", "replace")
    target.report.add("hidden name", what, f"attack: {ATTACK}", where, excerpt(text, "\0"), "it gave a result", FIX)
