"""What the MCP Inspector's command line shows beyond whole games, which tests.real_clients.all_clients has it play."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from tests.node_tools import needs_node
from tests.real_clients.clients import Seat
from tests.real_clients.inspector import by_process


@pytest.mark.slow
@needs_node()
def test_each_call_over_stdio_by_cli_is_a_process_and_so_a_game_of_its_own(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mcpgym_clients", "serve", "tic-tac-toe", "--stdio", "--task", "test-0"]
    run = by_process(Seat("stdio", "", [*command, "--seed", "5"], "test-0", (), tmp_path))

    async def twice() -> list[str]:
        answers = [await run("play", {"position": 4}) for _ in range(2)]
        return [answer["content"][0]["text"] for answer in answers]

    first, second = asyncio.run(twice())
    assert first == second
    assert first.startswith("You played 4.")
