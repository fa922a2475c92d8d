"""The agent that ``--agent`` names."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from mcpgym.environment import Environment
from mcpgym.errors import UnknownNameError
from mcpgym_clients.agents.contract import Agent
from mcpgym_clients.agents.places import remove_abandoned
from mcpgym_clients.agents.playing import AgentPolicy
from mcpgym_clients.eval_options import LOOP
from mcpgym_clients.failures import UsageProblem

PRODUCTS = ("claude-code", "openai-agents", "codex", "gemini")
NAMES = (LOOP, *PRODUCTS, "command:…")


async def make_agent(
    name: str,
    policy: str | None,
    environment: object | None = None,
    python: Path | None = None,
    passing: Sequence[str] = (),
) -> AgentPolicy:
    """The policy that an agent product is, ready to play.

    Args:
        name: as typed: ``claude-code``, …, or ``command:TEMPLATE``.
        policy: the model, as ``--policy`` names it; None for none.
        environment: the environment, whose reference policies are no models; None where it is not installed here.
        python: the interpreter that has the agent's package (``openai-agents``).
        passing: names of the user's variables that a command is to have.

    Raises:
        UsageProblem: there is no such agent, its program is not here, or options do not fit it.
    """
    if sys.platform == "win32":
        raise UsageProblem("--agent needs Linux or macOS: what an agent starts could not be ended for sure here")
    kind = name.partition(":")[0]
    if python is not None and kind != "openai-agents":
        raise UsageProblem(f"--agent-python is for openai-agents, not for {name}")
    if passing and kind != "command":
        raise UsageProblem(f"--agent-env is for command:…; {name} gets the key of its API and no other")
    if kind == "command":
        agent: Agent = _command(name.partition(":")[2], policy, passing)
    elif name not in PRODUCTS:
        raise UsageProblem(f"--agent {name}: {UnknownNameError('agent', name, NAMES)}")
    else:
        agent = _product(name, _named(name, policy, environment), python)
    remove_abandoned()
    await agent.prepare()
    return AgentPolicy(agent)


def _named(name: str, policy: str | None, environment: object | None) -> str:
    if not policy:
        raise UsageProblem(f"--agent {name}: name its model: -p MODEL, or -p KIND:MODEL@BASE_URL")
    own = environment.reference_policies() if isinstance(environment, Environment) else {}
    if policy in {*own, "random", "expert"}:
        raise UsageProblem(
            f"--agent {name}: {policy} is no model but a policy, which plays in our own loop: --agent loop"
        )
    return policy


def _product(name: str, spec: str, python: Path | None) -> Agent:
    if name == "claude-code":
        from mcpgym_clients.agents.claude_code import ClaudeCode

        return ClaudeCode(spec)
    if name == "openai-agents":
        from mcpgym_clients.agents.openai_agents import OpenAIAgents

        return OpenAIAgents(spec, python)
    if name == "codex":
        from mcpgym_clients.agents.codex import Codex

        return Codex(spec)
    from mcpgym_clients.agents.gemini import Gemini

    return Gemini(spec)


def _command(template: str, model: str | None, passing: Sequence[str]) -> Agent:
    from mcpgym_clients.agents.command import AnyCommand

    variables = {}
    for name in passing:
        if name not in os.environ:
            raise UsageProblem(f"--agent-env {name}: it is not set")
        variables[name] = os.environ[name]
    return AnyCommand(template, model or None, variables)
