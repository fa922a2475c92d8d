"""The real Claude Code, as claude-agent-sdk brings it, run once against a fake model and with our servers alone."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.real_clients.fake_messages_api import Brain, FakeMessagesAPI

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
