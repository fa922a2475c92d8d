"""What ``mcpgym eval`` was asked for."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpgym_clients.failures import UsageProblem
from mcpgym_rl.policies.endpoint import without_password

DEFAULT_TASKS = 100
LOOP = "loop"
"""What ``--agent`` calls our own loop, which is no product."""
AGENTS_AT_ONCE = 4
"""How many agent products play at once where nothing is said: each is a process of some hundred megabytes."""


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """What was typed. ``lane`` is None for the default: MCP with a server, the control plane without.

    With ``fewer``, a split that has not so many ``tasks`` is played whole. ``timeout`` is of one episode, in seconds;
    ``rate_limit`` in requests per minute; ``max_cost`` in US dollars; ``resume`` is the folder of a run to go on with.
    ``success`` is the reward from which an episode passes; None for what :class:`~mcpgym_clients.summary.Summary` says.
    ``exact`` is whether the exact value is wanted; None where it costs no turn of the policy. ``agent`` is the product
    that plays, with the model that ``policy`` names (empty for a command without one); None for our own loop.
    ``agent_python`` and ``agent_env`` are for some of them: an interpreter, and names of variables. ``engine`` is where
    episodes are played: ``here``, or ``ray``, over ``shards`` processes of the cluster at ``ray_address``.

    Raises:
        UsageProblem: a number is none that can be.
    """

    environment: str
    policy: str
    split: str = "test"
    tasks: int = DEFAULT_TASKS
    fewer: bool = False
    repeats: int = 1
    seed: int = 0
    concurrency: int = 16
    out: Path | None = None
    overwrite: bool = False
    config: Sequence[str] = ()
    server: str | None = None
    secret_file: Path | None = None
    lane: str | None = None
    tool_mode: str | None = None
    think: bool = False
    temperature: float | None = None
    max_tokens: int | None = None
    max_turns: int | None = None
    timeout: float | None = None
    retries: int | None = None
    rate_limit: float | None = None
    max_cost: float | None = None
    max_total_tokens: int | None = None
    prices: Path | None = None
    resume: Path | None = None
    success: float | None = None
    exact: bool | None = None
    agent: str | None = None
    agent_python: Path | None = None
    agent_env: Sequence[str] = ()
    engine: str = "here"
    shards: int | None = None
    ray_address: str | None = None

    def __post_init__(self) -> None:
        for name in ("tasks", "repeats", "concurrency", "timeout", "rate_limit", "max_cost", "max_total_tokens"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise UsageProblem(f"--{name.replace('_', '-')} must be a number above 0, not {value}")
        self._check_agent()
        if self.engine == "here" and (self.shards is not None or self.ray_address is not None):
            raise UsageProblem("--shards and --ray-address go with --engine ray")
        if self.engine == "ray" and self.agent is not None:
            raise UsageProblem("--agent plays from this machine; --engine ray is for our own loop")
        if self.exact and (self.max_cost is not None or self.max_total_tokens is not None):
            raise UsageProblem("--exact asks the policy at every position of the game, and no budget counts that")
        if self.success is not None and not math.isfinite(self.success):
            raise UsageProblem(f"--success must be a reward, not {self.success}")

    def _check_agent(self) -> None:
        if self.agent is None:
            if self.agent_python is not None or self.agent_env:
                raise UsageProblem("--agent-python and --agent-env belong to --agent, which is not given")
            return
        ours = ("lane", "tool_mode", "think", "temperature", "max_tokens", "retries", "rate_limit", "exact")
        if given := [name for name in ours if getattr(self, name)]:
            names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            raise UsageProblem(f"{names}: that is for our own loop; {self.agent.partition(':')[0]} has its own")
        budgets = [name for name in ("max_cost", "max_total_tokens", "prices") if getattr(self, name) is not None]
        if budgets and self.agent.startswith("command:"):
            raise UsageProblem(
                f"--{budgets[0].replace('_', '-')}: a command: tells nothing of its tokens to be counted"
            )

    @property
    def planned(self) -> int:
        """How many episodes were asked for."""
        return self.tasks * self.repeats

    @property
    def policy_name(self) -> str:
        """The policy as it may be stored: a password in its URL is left out."""
        return without_password(self.policy)

    @property
    def policy_options(self) -> dict[str, Any]:
        """Those of the options that are the policy's, where they were given."""
        options = {
            "mode": self.tool_mode,
            "think": self.think or None,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "retries": self.retries,
            "rate_limit": self.rate_limit,
        }
        return {name: value for name, value in options.items() if value is not None}

    @property
    def at_once(self) -> int:
        """How many episodes are under way at once: no more than the rate limit lets ask within a minute."""
        return self.concurrency if self.rate_limit is None else max(1, min(self.concurrency, int(self.rate_limit)))

    @property
    def lane_name(self) -> str:
        """How calls travel: ``mcp`` or ``control``."""
        return self.lane or ("control" if self.server is None and self.agent is None else "mcp")

    def command(self) -> str:
        """What to type for the same run."""
        words = ["mcpgym", "eval", self.environment, *(["--policy", self.policy_name] if self.policy else [])]
        words += ["--split", self.split]
        words += ["-n", str(self.tasks), "-r", str(self.repeats), "--seed", str(self.seed)]
        words += ["--concurrency", str(self.concurrency)]
        for option in self.config:
            words += ["--config", option]
        for name in (
            *("server", "lane", "tool_mode", "temperature", "max_tokens", "max_turns", "timeout", "retries"),
            *("rate_limit", "max_cost", "max_total_tokens", "prices", "success", "agent", "agent_python"),
        ):
            if (value := getattr(self, name)) is not None:
                words += [f"--{name.replace('_', '-')}", without_password(str(value))]
        words += ["--engine", self.engine] if self.engine != "here" else []
        words += [] if self.shards is None else ["--shards", str(self.shards)]
        for name in self.agent_env:
            words += ["--agent-env", name]
        words += ["--think"] if self.think else []
        words += [] if self.exact is None else ["--exact" if self.exact else "--no-exact"]
        return shlex.join(words)
