"""Ray: an evaluation on a cluster that loses a node is the evaluation that one process makes."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpgym.errors import UnknownNameError
from mcpgym_clients.failures import CommandFailed
from mcpgym_clients.on_ray.cluster import _without_secrets
from mcpgym_clients.on_ray.engine import _Waiting
from mcpgym_clients.on_ray.player_actor import passed_on
from mcpgym_rl.run import LOST_AT_MOST, EpisodeSpec


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_node_that_is_killed_costs_no_episode(tmp_path: Path) -> None:
    """Two nodes and 240 episodes; ``python -m tests.bench.ray_nodes`` by itself has four and two thousand."""
    pytest.importorskip("ray", reason="Ray is in the extra ray")
    figures = tmp_path / "figures.json"
    command = [sys.executable, "-m", "tests.bench.ray_nodes", "--nodes", "2", "--episodes", "240"]
    done = subprocess.run(
        [*command, "--json", str(figures)], cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=580
    )
    assert done.returncode == 0, done.stdout + done.stderr
    made = json.loads(figures.read_text())
    assert (made["scored"], made["twice"], made["differing_traces"]) == (240, 0, 0)
    assert made["servers"] == "2"
    assert made["listening_beyond_loopback"] == [], "a cluster that is started here is nobody else's"
    assert made["played_again"] >= 1, "the node was to die with episodes under way"


def test_what_a_dead_player_had_is_made_by_another_and_not_for_ever() -> None:
    async def run() -> None:
        specs = [EpisodeSpec("desk", split="test", index=index) for index in range(5)]
        waiting = _Waiting(iter(specs))
        first, second = waiting.take(2), waiting.take(2)
        assert [place for place, _ in [*first, *second]] == [0, 1, 2, 3]
        await waiting.done(first[1:])
        assert [place for place, _ in waiting.take(9)] == [1, 4], "lost ones first"
        assert waiting.take(9) == []
        idle = asyncio.ensure_future(waiting.wait())
        await asyncio.sleep(0)
        assert not idle.done()
        assert not waiting.over
        await waiting.done([])
        await waiting.done(second)
        await asyncio.wait_for(idle, 30)
        for _ in range(LOST_AT_MOST - 1):
            taken = waiting.take(9)
            await waiting.done(taken)
        last = waiting.take(9)
        with pytest.raises(CommandFailed, match="number 2 was lost"):
            await waiting.done(last)

    asyncio.run(run())


def test_options_of_ray_go_with_it(command: Callable) -> None:
    code, _, said = command("eval", "tic-tac-toe", "-p", "random", "--shards", "2")
    assert (code, "go with --engine ray" in said) == (2, True)
    code, _, said = command("serve", "tic-tac-toe", "--ray-address", "x:1")
    assert (code, "go with --ray" in said) == (2, True)
    code, _, said = command("serve", "tic-tac-toe", "--ray", "--name", "a")
    assert (code, "is of one server" in said) == (2, True)


def test_an_address_where_no_cluster_is_costs_neither_time_nor_a_folder(command: Callable, tmp_path: Path) -> None:
    for address, said in (("127.0.0.1:1", "no Ray cluster answers at 127.0.0.1:1"), ("[::1]:99999", "out of range")):
        asked = ("eval", "tic-tac-toe", "-p", "random", "-n", "2", "--engine", "ray", "--ray-address", address)
        code, _, text = command(*asked, "--out", str(tmp_path / "run"))
        assert (code, said in text) == (2, True), text
    assert not (tmp_path / "run").exists()
    code, _, text = command("serve", "nosuch", "--ray", "--ray-address", "127.0.0.1:1", "--host", "node")
    assert (code, "no environment 'nosuch'" in text) == (2, True), "which needs no cluster to be seen"
    assert "--host node lets other machines play here" in text


def test_what_is_unknown_to_a_process_of_the_cluster_is_said_by_it_and_by_us_alike() -> None:
    error = UnknownNameError("task", "x", ["y"])
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.kind, again.name) == (UnknownNameError, str(error), "task", "x")


def test_what_ray_starts_gets_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MCPGYM_CONTROL_SECRET", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "not-to-be-seen")
    with _without_secrets():
        assert "not-to-be-seen" not in os.environ.values()
    assert passed_on()["OPENAI_API_KEY"] == os.environ["MCPGYM_CONTROL_SECRET"] == "not-to-be-seen"


def test_a_missing_ray_is_said_with_the_line_that_brings_it(command: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    code, _, said = command("eval", "tic-tac-toe", "-p", "random", "-n", "2", "--engine", "ray", "--out", "run")
    assert (code, "pip install 'mcpgym[ray]'" in said) == (2, True)
