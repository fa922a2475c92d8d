"""The real Claude Code, as claude-agent-sdk brings it, run once against a fake model and with our servers alone."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.real_clients.clients import WAYS, CannotPlay, Client, Played, Seat
from tests.real_clients.fake_messages_api import Block, Brain, FakeMessagesAPI, calls, results, says
from tests.real_clients.programs.player import next_call

SECONDS = 90


def bundled() -> Path | None:
    """Where Claude Code lies; None without claude-agent-sdk or on a machine it has no program for."""
    try:
        import claude_agent_sdk
    except ImportError:
        return None
    program = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
    return program if program.exists() else None


async def ask(
    prompt: str, servers: Mapping[str, Mapping[str, Any]], brain: Brain, home: Path
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Run ``claude -p`` with ``servers`` for its MCP configuration: what it printed, and what it sent to the model."""
    program = bundled()
    assert program is not None
    home.mkdir(parents=True, exist_ok=True)
    configuration = home / "mcp servers.json"
    configuration.write_text(json.dumps({"mcpServers": servers}))
    async with FakeMessagesAPI(brain) as api:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "CLAUDE_CONFIG_DIR": str(home / "claude"),
            "ANTHROPIC_BASE_URL": api.address,
            "ANTHROPIC_API_KEY": "no-key",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "ENABLE_TOOL_SEARCH": "false",
        }
        process = await asyncio.create_subprocess_exec(
            program,
            *("-p", prompt, "--model", "claude-sonnet-4-5", "--output-format", "json"),
            *("--mcp-config", str(configuration), "--strict-mcp-config"),
            *("--allowed-tools", ",".join(f"mcp__{name}" for name in servers)),
            cwd=home,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(), SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise
        assert process.returncode == 0, (out, err)
        return json.loads(out), api.requests


def client() -> Client:
    """Claude Code for the table: one run of the command line for each game."""

    def version() -> str:
        program = bundled()
        assert program is not None
        said = subprocess.run([program, "--version"], check=True, capture_output=True, text=True, timeout=60)
        return f"claude {said.stdout.split()[0]}"

    async def play(seats: Sequence[Seat]) -> Sequence[Played | Exception]:
        done: list[Played | Exception] = []
        for way in WAYS:  # nine at once would be too much for a small machine
            games = [_play(seat) for seat in seats if seat.way == way]
            for game in await asyncio.gather(*games, return_exceptions=True):
                if isinstance(game, BaseException) and not isinstance(game, Exception):
                    raise game
                done.append(game)
        return done

    return Client(
        "Claude Code", version, play, lambda: None if bundled() else "claude-agent-sdk brings none for this machine"
    )


async def _play(seat: Seat) -> Played:
    """One game; ``seat`` is the configured server ``game``."""

    def brain(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> Sequence[Block]:
        texts = results(messages)
        wanted = next_call(seat.way, seat.task, seat.cells, texts)
        return [says("Done.")] if wanted is None else [calls(f"mcp__game__{wanted[0]}", wanted[1], len(texts))]

    command, *arguments = [*seat.command, ""]
    reached = {"command": command, "args": arguments[:-1]} if seat.way == "stdio" else {"type": "http", "url": seat.url}
    said, requests = await ask("Play.", {"game": reached}, brain, seat.home)
    if not requests:
        raise CannotPlay(f"no tools reached the model: {said.get('result')}")
    tools = [
        {"name": tool["name"], "description": tool["description"], "inputSchema": tool["input_schema"]}
        | {key: value for key, value in tool.items() if key not in ("name", "description", "input_schema")}
        for tool in requests[-1]["tools"]
        if tool["name"].startswith("mcp__game__")
    ]
    return Played(tools, results(requests[-1]["messages"]))
