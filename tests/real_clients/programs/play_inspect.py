"""Inspect AI plays: one evaluation, with a sample, a chat-completions model and an MCP server for each game."""

from __future__ import annotations

import tempfile
from typing import Any

from inspect_ai import Task, eval
from inspect_ai.agent import react
from inspect_ai.dataset import Sample
from inspect_ai.model import get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import mcp_server_http, mcp_server_stdio, mcp_tools
from player import Seat, seats_taken, tell


@solver
def player(seats: dict[str, Seat], model: str) -> Solver:
    """Each sample's own agent, on the seat that has the sample's name."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        seat = seats[str(state.sample_id)]
        server: Any
        if seat.way == "stdio":
            command, *arguments = seat.command
            server = mcp_server_stdio(name="game", command=command, args=arguments)
        else:
            server = mcp_server_http(name="game", url=seat.url)
        chat = get_model(f"openai-api/fake/{seat.name}", base_url=model, api_key="none")
        await react(tools=[mcp_tools(server)], model=chat, submit=False)(state)
        return state

    return solve


def main() -> None:
    seats, model = seats_taken()
    task = Task([Sample("Play.", id=seat.name) for seat in seats], solver=player({s.name: s for s in seats}, model))
    with tempfile.TemporaryDirectory() as logs:
        (log,) = eval(task, model="none/none", log_dir=logs, display="none", fail_on_error=False, max_samples=64)
        samples = {sample.id: sample for sample in log.samples or []}  # read from the file only now
    problems = [samples[seat.name].error for seat in seats] if samples else [log.error for _ in seats]
    tell([{} if problem is None else {"error": problem.message} for problem in problems])


main()
