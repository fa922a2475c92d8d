"""The list of the real clients, in the order of the table."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.real_clients import claude_code, inspector
from tests.real_clients.client_programs import program
from tests.real_clients.clients import Client

OLDER_SDK = Path(sys.prefix) / "older-sdk" / "bin" / "python"
"""The Python whose MCP SDK is 1.x; ``make test`` makes it from older_sdk.txt."""

CLIENTS: tuple[Client, ...] = (
    program("official Python SDK 1.x", "mcp", "play_sdk_1.py", OLDER_SDK),
    program("official Python SDK 2.x", "mcp", "play_sdk_2.py"),
    program("fastmcp", "fastmcp", "play_fastmcp.py"),
    program("OpenAI Agents SDK", "openai-agents", "play_openai_agents.py", agent=True),
    program("LangChain", "langchain-mcp-adapters", "play_langchain.py", OLDER_SDK, agent=True),
    program("Pydantic AI", "pydantic-ai-slim", "play_pydantic_ai.py", agent=True),
    program("Inspect AI", "inspect-ai", "play_inspect.py", agent=True),
    inspector.client(),
    claude_code.client(),
)
