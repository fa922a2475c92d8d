"""The programs in docs/clients.md do what the page says, each with the packages that it wants; only a model is ours."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.real_clients.all_clients import OLDER_SDK
from tests.real_clients.client_programs import without_keys
from tests.real_clients.fake_chat_completions import FakeChatCompletions
from tests.real_clients.programs.player import next_call
from tests.real_clients.remembering import Remembering
from tests.real_clients.table import PAGE
from tests.test_documents import blocks

from mcpgym.control import LocalControl
from mcpgym.registry import load_environment
from mcpgym.serving import serving

MOVES = {"sdk_2_player.py": 1, "sdk_1_player.py": 1, "fastmcp_player.py": 1}
"""The programs that have no model, and how many moves they make; agents play to the end."""
PROGRAMS = {
    options["file"]: text
    for language, options, text in blocks(PAGE)
    if language == "python" and options.get("file", "").endswith("_player.py")
}
NEEDS_OLDER_SDK = ("sdk_1_player.py", "langchain_player.py")
ADDRESS = "http://127.0.0.1:8000/mcp"


async def model(name: str, texts: Sequence[str]) -> Sequence[tuple[str, Mapping[str, Any]]]:
    wanted = next_call("bare", "test-0", (9, 4, 0, 8, 2, 6, 1, 3, 5, 7), texts)
    return [] if wanted is None else [wanted]


@pytest.mark.slow
@pytest.mark.parametrize("file", sorted(PROGRAMS))
def test_a_program_of_the_page_plays(file: str, tmp_path: Path) -> None:
    python = OLDER_SDK if file in NEEDS_OLDER_SDK else Path(sys.executable)
    if not python.exists() and "CI" not in os.environ:
        pytest.skip(f"{python} is not there: make test installs it")
    assert ADDRESS in PROGRAMS[file]

    async def run() -> None:
        names = ("tic-tac-toe", "reverse-text")  # as at a server of several, start_episode asks which
        episodes = Remembering({name: load_environment(name) for name in names})
        async with serving(episodes, secret="a-secret-of-the-tests") as server, FakeChatCompletions(model) as api:
            program = PROGRAMS[file].replace(ADDRESS, f"{server.url}/mcp")
            (tmp_path / file).write_text(program, encoding="utf-8")
            process = await asyncio.create_subprocess_exec(
                python,
                file,
                cwd=tmp_path,
                env=without_keys() | {"OPENAI_BASE_URL": api.address, "OPENAI_API_KEY": "none"},
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            out, _ = await process.communicate()
            assert process.returncode == 0, out.decode()
            assert not api.failures, api.failures
            (episode,) = episodes.opened
            if file in MOVES:
                assert episode.turns == MOVES[file]
            else:
                score = await LocalControl(episodes).score(episode.token)
                assert score.game_outcome in ("win", "draw", "loss"), out.decode()
                assert score.components["invalid_move"] == -0.1  # its model read an error, and went on

    asyncio.run(run())


def test_the_page_has_a_program_for_each_library() -> None:
    assert len(PROGRAMS) == 7
