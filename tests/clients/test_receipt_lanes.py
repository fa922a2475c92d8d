"""An honest trace holds against its receipt, whatever lane its calls took and whatever the policy wrote."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from mcpgym.control import ControlPlane, LocalControl
from mcpgym.control_client import HttpControl
from mcpgym.episodes import Episodes
from mcpgym.messages import Message
from mcpgym.receipts import Signer
from mcpgym.serving import serving
from mcpgym.signing_keys import PublicKey, SigningKey
from mcpgym_clients.receipt_checks import check_trace
from mcpgym_rl.lanes import ControlLane, McpLane
from mcpgym_rl.policies.script import ScriptedPolicy
from mcpgym_rl.rollout import rollout
from mcpgym_rl.traces import Trace

DEEP = '{"position": ' + "[" * 80 + "]" * 80 + "}"
WRITTEN = [
    ("play", '{"position": 4}'),
    ("play", '{"position": 4.0}'),
    ("play", '{"position": "\\ud800"}'),
    ("play", '{"\\ud83d\\ude00": "é \\u0000\\u2028"}'),
    ("play", '{"position": 123456789012345678901234567890}'),
    ("play", '{"position": -0.0}'),
    ("play", '{"position": 1e22}'),
    ("play", '{"position": NaN}'),
    ("play", "[1]"),
    ("play", DEEP),
    ("pl\ud800ay", "{}"),
    ("n" * 300, '{"a": 1}'),
    ("é", "{}"),
    ("", "{}"),
]


def turn(name: str, arguments: str) -> Message:
    call = {"id": "a", "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": "half \ud83d", "tool_calls": [call]}  # type: ignore[list-item]


LANES: dict[str, Callable[[ControlPlane], ControlLane]] = {
    "control": ControlLane,
    "thin": McpLane,
    "official": lambda control: McpLane(control, client="official"),
    "legacy": lambda control: McpLane(control, client="official", mode="legacy"),
}


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("lane", LANES)
def test_an_honest_trace_holds(lane: str, served: bool) -> None:
    private = Ed25519PrivateKey.generate()
    key = SigningKey(PublicKey(private.public_key().public_bytes_raw()), private)

    async def script() -> list[Trace]:
        episodes = Episodes.of("tic-tac-toe")
        async with serving(episodes, secret="a-secret-of-the-tests", signer=Signer(key)) as server:
            control: ControlPlane = LocalControl(episodes, server.url, Signer(key))
            if served:
                control = HttpControl(server.control_url, server.secret)
            made = LANES[lane](control)
            made.claims = {"policy": "script"}
            traces = []
            for name, arguments in WRITTEN:
                policy = ScriptedPolicy([turn(name, arguments), "bye \ude00"])
                traces.append(await rollout(policy, made, environment="tic-tac-toe", split="test", index=0))
            await made.aclose()
            return traces

    traces = asyncio.run(script())
    assert len(traces) == len(WRITTEN)
    logged = 0
    for trace in traces:
        assert trace.error is None
        receipt = check_trace(Trace.from_dict(json.loads(trace.to_json())), {key.public.id: key.public})
        logged += receipt.statement["calls"]["count"]
        lanes = {row["lane"] for row in receipt.statement["clients"]}
        assert lanes <= {"control" if lane == "control" else "mcp"}
    assert logged > len(WRITTEN) / 2
