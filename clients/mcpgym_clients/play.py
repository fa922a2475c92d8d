"""``mcpgym play``: a person at the terminal, with what a policy gets: the prompt, the tools over MCP, the answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.rule import Rule

from mcpgym.control import ControlPlane, OpenedEpisode
from mcpgym.errors import ConfigurationError, ServerUnavailable
from mcpgym.messages import Message, assistant, tool_answer, tool_call
from mcpgym.registry import load_environment
from mcpgym.rewards import Score
from mcpgym_clients.boards import observation
from mcpgym_clients.connection import own_server, running_server
from mcpgym_clients.console import escaped, out
from mcpgym_clients.forms import Leave, Say, ask_call, ask_words
from mcpgym_clients.lines import Lines
from mcpgym_clients.options import parse_config
from mcpgym_rl.lanes import EpisodeLane, McpLane

_VERDICTS = {
    "win": "[bold green]You won.[/bold green]",
    "draw": "[bold blue]A draw.[/bold blue]",
    "loss": "[bold red]You lost.[/bold red]",
}


@dataclass(frozen=True, slots=True)
class PlayOptions:
    """What was typed. Without a task, one of the split is drawn; without a split, it is the last that is not empty."""

    environment: str
    task: str | None
    split: str | None
    index: int | None
    seed: int | None
    config: Sequence[str]
    server: str | None
    secret_file: Path | None


def run(options: PlayOptions) -> None:
    """Play one episode."""
    try:
        asyncio.run(_run(options))
    except KeyboardInterrupt:
        _say_left()
        raise


async def _run(options: PlayOptions) -> None:
    config: Mapping[str, Any] = parse_config(options.config, [options.environment])[options.environment]
    async with contextlib.AsyncExitStack() as stack:
        if options.server is not None:
            name = options.environment
            control = await stack.enter_async_context(running_server(options.server, options.secret_file))
        else:
            environment = load_environment(options.environment, config)
            name, config = environment.name, {}
            control = await stack.enter_async_context(own_server(environment))
        lane = McpLane(control, client="official")
        stack.push_async_callback(lane.aclose)
        which = await which_episode(control, name, options)
        episode = await lane.open(name, **which, config=config)
        try:
            if await _play(episode):
                out().print(f"[dim]The same again:[/dim] {escaped(again(options, episode.opened))}", soft_wrap=True)
        finally:
            with contextlib.suppress(ServerUnavailable):
                await episode.aclose()


async def which_episode(control: ControlPlane, name: str, options: PlayOptions) -> dict[str, Any]:
    """The task and the seed: those that were named, drawn where none were."""
    seed = secrets.randbelow(2**31) if options.seed is None else options.seed
    if options.task is not None:
        if options.split is not None or options.index is not None:
            raise ConfigurationError("name a task by --task, or by --split and --index; not by both")
        return {"task": options.task, "seed": seed}
    about = next((item for item in await control.environments() if item.name == name), None)
    sizes = {} if about is None else {split: size for split, size in about.splits.items() if size}
    split = options.split or ("test" if "test" in sizes else next(iter(sizes), "test"))
    index = options.index if options.index is not None else secrets.randbelow(sizes.get(split, 1))
    return {"split": split, "index": index, "seed": seed}


def again(options: PlayOptions, opened: OpenedEpisode) -> str:
    """What to type for the same episode."""
    words = ["mcpgym", "play", options.environment, "--task", opened.task, "--seed", str(opened.seed)]
    for option in options.config:
        words += ["--config", option]
    if options.server is not None:
        words += ["--server", options.server]
    return shlex.join(words)


async def _play(episode: EpisodeLane) -> bool:
    """Play to the end; whether it was reached."""
    opened = episode.opened
    heading = f"{opened.environment} [dim]task {escaped(opened.task)}, seed {opened.seed}; Ctrl-D leaves[/dim]"
    out().print(Rule(heading, align="left", style="dim"))
    for message in opened.messages:
        _say(message)
    try:
        messages = await _rounds(episode, Lines())
    except Leave:
        _say_left()
        return False
    if (await episode.status()).stop_reason == "max_turns":
        out().print("[yellow]That was the last turn that you had.[/yellow]")
    _print_score(await episode.score(messages))
    return True


async def _rounds(episode: EpisodeLane, lines: Lines) -> list[Message]:
    """Ask, call, show, until the episode is over; the transcript."""
    messages, tools = list(episode.opened.messages), episode.opened.tools
    while not (await episode.status()).done:
        try:
            if not tools:
                raise Say(await ask_words(lines))
            name, arguments = await ask_call(lines, tools)
        except Say as said:
            messages.append(assistant(said.text))
            answer = await episode.respond(messages)
            if answer is None:
                break
            for message in answer:
                _say(message)
            messages += answer
            continue
        call = tool_call(f"call_{len(messages)}", name, json.dumps(arguments))
        messages.append(assistant("", [call]))
        result = await episode.call(name, arguments)
        messages.append(tool_answer(call, result.text, is_error=result.is_error))
        out().print(observation(result.text, "yellow" if result.is_error else ""))
        out().print()
    return messages


def _say_left() -> None:
    out().print("\n[dim]You left before the end.[/dim]")


def _say(message: Message) -> None:
    out().print(observation(message["content"]), style="dim" if message["role"] == "system" else None)
    out().print()


def _print_score(score: Score) -> None:
    if score.game_outcome is not None:
        out().print(_VERDICTS[score.game_outcome])
    total = "none" if score.total is None else f"{score.total:.3g}"
    parts = ", ".join(
        f"{escaped(name)} {'none' if value is None else format(value, '.3g')}"
        for name, value in score.components.items()
    )
    out().print(f"Score [bold]{total}[/bold] [dim]({parts})[/dim]")
