"""Which agent played in a run, and which model: what a comparison needs to tell their effects apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mcpgym_clients.eval_options import LOOP
from mcpgym_rl.policies import ENDPOINTS
from mcpgym_rl.traces import Trace

_AGENT = "agent:"
"""What the name of a policy begins with that is an agent product."""


@dataclass(frozen=True, slots=True)
class Harness:
    """``agent`` is ``loop`` for our own loop. ``model`` is what the policy asks for; None where nobody said.

    ``version`` is of the agent, where it is known.
    """

    agent: str
    model: str | None
    version: str | None = None

    @property
    def shown(self) -> str:
        """The agent and its version."""
        return self.agent if self.version is None else f"{self.agent} {self.version}"


def harness_of(traces: Sequence[Trace]) -> Harness | None:
    """Who played, by the first trace that has an episode; None where none has."""
    first = next((trace for trace in traces if trace.schema_hash), None)
    if first is None:
        return None
    if not first.policy.startswith(_AGENT):
        return Harness(LOOP, _model(first.policy))
    whole = first.policy.removeprefix(_AGENT)
    named = next((str(trace.agent["name"]) for trace in traces if trace.agent.get("name")), whole.partition("(")[0])
    model = whole.removeprefix(named)  # in parentheses, which a name may have too
    versions = {str(trace.agent["version"]) for trace in traces if trace.agent.get("version")}
    return Harness(named, model[1:-1] or None, " and ".join(sorted(versions)) or None)


def _model(policy: str) -> str:
    """The model that a policy of ours asks; the policy itself, where it asks none."""
    kind, colon, rest = policy.partition(":")
    if colon and kind in [written.partition(":")[0] for written in ENDPOINTS]:
        return re.split(r"@https?://", rest, maxsplit=1)[0]
    return policy


def apart(one: Harness | None, other: Harness | None, names: tuple[str, str]) -> str | None:
    """What of agent and model differs between two runs, as a sentence; None where both are our own loop's."""
    if one is None or other is None or one.agent == other.agent == LOOP:
        return None
    a, b = names
    agents = f"{one.shown} in {a} and {other.shown} in {b}"
    unknown = one.model is None or other.model is None
    models = f"{one.model or 'not said'} in {a} and {other.model or 'not said'} in {b}"
    if one.agent == other.agent:
        version = "" if one.version == other.version else f", of other versions ({agents})"
        if one.model == other.model:
            return f"the agent is {one.shown} in both, and the model is the same{version}"
        return f"the agent is {one.agent} in both{version}; what differs is the model ({models})"
    if not unknown and one.model == other.model:
        return f"the model is {one.model} in both; what differs is the agent ({agents})"
    return (
        f"the agent differs ({agents}), and so {'may' if unknown else 'does'} the model ({models}): either may be why"
    )
