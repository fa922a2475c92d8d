"""Signed traces played again: the calls on a fresh episode must give the log and the score that were signed."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mcpgym.control import LocalControl
from mcpgym.environment import Environment
from mcpgym.episodes import Episodes
from mcpgym.receipts import canonical
from mcpgym_clients.connection import running_server
from mcpgym_clients.receipt_checks import Checked, signed_calls
from mcpgym_clients.recorded_environments import recorded_environments, refuse_what_reaches_out
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.replay import Same, byte_for_byte, replay, rule_of
from mcpgym_rl.replay.difference import Replayed
from mcpgym_rl.traces import Trace


async def replay_signed(
    signed: Sequence[Checked],
    server: str | None,
    secret_file: Path | None,
    written: Sequence[str] = (),
    *,
    trust: bool = False,
) -> list[tuple[Checked, str | None]]:
    """Each of ``signed`` with what its replay contradicts; None where nothing.

    Args:
        signed: lines whose receipts hold, with their traces.
        server: the address of a running server; None to replay in this process.
        secret_file: the file with its secret.
        written: classes of environments that no package registers (``module:Class``), as the user named them.
        trust: open what the traces' configuration names.

    Raises:
        ConfigurationError: an environment is not installed here, or there is no such server.
        ServerUnavailable: the server is gone.
    """
    traces = [item.trace for item in signed if item.trace is not None]
    environments = recorded_environments({trace.environment for trace in traces}, written, optional=server is not None)
    if not trust:
        refuse_what_reaches_out(environments, traces)

    def rule(trace: Trace) -> Same:
        made = environments.get(trace.environment)
        return byte_for_byte if made is None else rule_of(made)

    async with _lane(environments, server, secret_file) as lane:
        results = [item async for item in replay(traces, lane, rule=rule)]
    inexact = {name for name, made in environments.items() if not made.reproducible}
    return [(item, _problem(item, result, inexact)) for item, result in zip(signed, results, strict=True)]


def _problem(checked: Checked, result: Replayed, inexact: set[str]) -> str | None:
    """What a replay says against a receipt."""
    assert checked.receipt is not None
    signed, again = checked.receipt.statement, result.replayed
    if result.difference is not None:
        notes = "".join(f" ({note})" for note in result.notes)
        return f"replayed, it differs: {result.difference}{notes}"
    if again is None or again.score is None:
        return f"it could not be replayed: {'; '.join(result.notes) or 'the episode has no score'}"
    if again.environment in inexact:
        return None  # its own rule has compared what can be compared
    if signed_calls(again, signed["calls"]["count"]) != signed["calls"]["hash"]:
        return "replayed, its calls are not those that were signed"
    score = {"total": again.score.total, "components": again.score.components, "outcome": again.score.game_outcome}
    said = {"total": signed["total"], "components": signed["components"], "outcome": signed["game_outcome"]}
    if canonical(score) != canonical(said):
        return f"replayed, its score is {canonical(score).decode()}, and {canonical(said).decode()} was signed"
    return None


@contextlib.asynccontextmanager
async def _lane(
    environments: Mapping[str, Environment[Any, Any, Any]], server: str | None, secret_file: Path | None
) -> AsyncIterator[ControlLane]:
    if server is not None:
        async with running_server(server, secret_file) as control:
            yield ControlLane(control)
        return
    lane = ControlLane(LocalControl(Episodes(environments)))
    try:
        yield lane
    finally:
        await lane.aclose()
