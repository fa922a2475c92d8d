"""ENVIRONMENT for Inspect AI: each sample is an episode of its own on a server of mcpgym, and the server scores it.

    inspect eval FILE.py --model openai/gpt-4o-mini --limit 20 -T split=test

The policy gets the tools of one episode. What opens and scores episodes has a secret of its own, from
MCPGYM_CONTROL_SECRET or the file that MCPGYM_CONTROL_SECRET_FILE names; MCPGYM_SERVER says where the server is.
Written by `mcpgym export inspect`.
"""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from typing import Any

from control import EXPORTED, Control, Session, Unscored, label
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    ContentReasoning,
    execute_tools,
    get_model,
)
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import mcp_connection, mcp_server_http


@task
def exported(
    split: str = EXPORTED["split"],
    seed: int = EXPORTED["seed"],
    server: str = "",
    players: str | None = None,
    options: dict[str, Any] | None = None,
) -> Task:
    """The tasks of a split.

    Args:
        split: which tasks.
        seed: the seed of every episode; later epochs have the numbers after it.
        server: the server, or its control plane; by default the variable MCPGYM_SERVER, else as exported.
        players: where players reach the server, if that is not where it itself says.
        options: fields of the environment's configuration, in the place of those that were exported.
    """
    control = Control(EXPORTED, server, players, options)
    if split not in EXPORTED["splits"]:
        raise ValueError(f"there is no split {split!r}; there is: {', '.join(EXPORTED['splits'])}")
    samples = [
        Sample(id=found["id"], input=[_message(one) for one in found["messages"]], metadata={"split": split})
        for found in control.tasks(split)
    ]
    return Task(
        dataset=MemoryDataset(samples, name=f"{EXPORTED['environment']} {split}"),
        solver=played(seed, server, players, options),
        scorer=scored(server, players, options),
        cleanup=_closing(control),
        version=EXPORTED["version"],
        metadata={"schema_hash": EXPORTED["schema_hash"], "environment": EXPORTED["environment"]},
    )


@solver
def played(seed: int, server: str = "", players: str | None = None, options: dict[str, Any] | None = None) -> Solver:
    """Plays each sample's own episode to its end: as `mcpgym eval` does, without one more turn after it."""
    control = Control(EXPORTED, server, players, options)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        async with AsyncExitStack() as stack:
            session = await stack.enter_async_context(control.session())
            opened = await session.open(str(state.sample_id), seed + state.epoch - 1)
            _TOKENS[state.uuid] = opened["token"]
            state.messages = [_message(one) for one in opened["messages"]]  # they show how the episode begins
            if EXPORTED["tools"]:
                place = mcp_server_http(name=EXPORTED["environment"], url=opened["url"], timeout=_SECONDS)
                await stack.enter_async_context(mcp_connection(place))
                state.tools = list(await place.tools())
            await _play(state, session, opened["token"])
        return state

    return solve


async def _play(state: TaskState, session: Session, token: str) -> None:
    """Ask the model and call its tools, until the episode is over or the environment has nothing more to say."""
    for _ in range(EXPORTED["max_turns"]):
        state.output = await get_model().generate(state.messages, tools=state.tools)
        state.messages.append(state.output.message)
        if state.output.stop_reason in ("max_tokens", "model_length"):
            return
        if state.output.message.tool_calls:
            state.messages.extend((await execute_tools(state.messages, state.tools)).messages)
            if (await session.status(token))["done"]:
                return
            continue
        said = await session.respond(token, _plain(state.messages))
        if said is None:
            return
        state.messages.extend(_message(one) for one in said)


@scorer(metrics={"*": [mean(), stderr()]})
def scored(server: str = "", players: str | None = None, options: dict[str, Any] | None = None) -> Scorer:
    """The server's score: its total, and each reward before its weight. An episode without one stays unscored."""
    control = Control(EXPORTED, server, players, options)

    async def score(state: TaskState, target: Target) -> Score:
        token = _TOKENS.get(state.uuid)
        if token is None:
            return Score.unscored(reason="no_episode", explanation="no episode was opened")
        claims = {"policy": label(f"inspect:{state.model}"), "harness": label("inspect-ai")}
        async with control.session() as session:
            try:
                found = await session.score(token, _plain(state.messages), claims)
            except Unscored as problem:
                return Score.unscored(reason="unscored", explanation=str(problem))
        parts = {name: float("nan") if value is None else value for name, value in found["components"].items()}
        about = {name: found[name] for name in ("game_outcome", "receipt") if found.get(name)}
        return Score(value={**parts, "total": found["total"]}, metadata=about)

    return score


def _closing(control: Control) -> Any:
    async def close(state: TaskState) -> None:
        if (token := _TOKENS.pop(state.uuid, None)) is not None:
            async with control.session() as session:
                await session.close(token)

    return close


def _message(one: dict[str, Any]) -> ChatMessage:
    if one["role"] == "system":
        return ChatMessageSystem(content=one["content"])
    if one["role"] == "assistant":
        return ChatMessageAssistant(content=one["content"])
    return ChatMessageUser(content=one["content"])


def _plain(messages: list[ChatMessage]) -> list[dict[str, Any]]:
    """Messages in the form that rewards read."""
    made: list[dict[str, Any]] = []
    for message in messages:
        one: dict[str, Any] = {"role": message.role, "content": message.text}
        if isinstance(message, ChatMessageAssistant):
            if isinstance(message.content, list):
                thoughts = [part.reasoning for part in message.content if isinstance(part, ContentReasoning)]
                one |= {"reasoning_content": "\n".join(thoughts)} if thoughts else {}
            if message.tool_calls:
                one["tool_calls"] = [
                    {
                        "id": call.id,
                        "type": "function",
                        "function": {"name": call.function, "arguments": json.dumps(call.arguments)},
                    }
                    for call in message.tool_calls
                ]
        if isinstance(message, ChatMessageTool):
            one |= {"tool_call_id": message.tool_call_id or "", "name": message.function or ""}
            if message.error is not None:
                one |= {"content": message.error.message, "is_error": True}
        made.append(one)
    return made


_TOKENS: dict[str, str] = {}
"""The episodes of samples that are being played. They are in no log: whoever has one could play there."""
_SECONDS = 600.0
"""How long a tool may take before Inspect gives up: no tool of the server takes longer."""
