"""Where evaluations take place: what they are told about the server."""

from __future__ import annotations

import asyncio

import pytest

from mcpgym.episodes import Episodes
from mcpgym.serving import serving
from mcpgym_clients.arena import open_arena
from mcpgym_clients.eval_options import EvalOptions
from mcpgym_environments.tic_tac_toe import TicTacToe

SECRET = "a-secret-that-is-long-enough"


class Newer(TicTacToe):
    version = "99"


@pytest.mark.parametrize(
    ("served", "policy", "warned"),
    [(Newer, "expert", True), (TicTacToe, "expert", False), (Newer, "openai:m@http://127.0.0.1:9/v1", False)],
)
def test_case_21_a_reference_policy_of_another_version_than_the_servers_is_warned_of(
    served: type[TicTacToe],
    policy: str,
    warned: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MCPGYM_CONTROL_SECRET", SECRET)

    async def look() -> None:
        episodes = Episodes({"tic-tac-toe": served()})
        async with (
            serving(episodes, control_port=0, secret=SECRET) as server,
            open_arena(EvalOptions("tic-tac-toe", policy, server=server.control_url)) as arena,
        ):
            assert arena.name == "tic-tac-toe"

    asyncio.run(look())
    said = " ".join(capsys.readouterr().err.split())
    assert ("the server has tic-tac-toe 99; it may misread it" in said) == warned
