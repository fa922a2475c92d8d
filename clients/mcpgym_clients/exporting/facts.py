"""What an export writes down of an environment: its names, sizes and hash, and nothing that it hides."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from mcpgym import __version__
from mcpgym.combined.naming import is_combined
from mcpgym.environment import Environment
from mcpgym.own_server.naming import is_brought
from mcpgym.registry import load_environment
from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.options import parse_config
from mcpgym_rl.rollout import DEFAULT_MAX_TURNS

SERVER = "http://127.0.0.1:8000"
"""Where `mcpgym serve` is to be found by default."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is exported. ``config`` has the fields that were asked for, to be sent with every episode; ``answers`` says
    whether the environment may speak as the user; ``server`` is where its server is looked for. ``settings`` are all
    fields, so that a server which has others is noticed; without those that name a place on one machine."""

    environment: str
    version: str
    description: str
    schema_hash: str
    tools: Sequence[str]
    splits: Mapping[str, int]
    rewards: Mapping[str, float]
    max_turns: int
    answers: bool
    split: str
    seed: int
    server: str
    config: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    mcpgym: str = __version__

    def as_json(self) -> dict[str, Any]:
        """As it is written into a file."""
        return asdict(self)


def facts_of(name: str, options: Sequence[str], split: str | None, seed: int, server: str | None) -> Facts:
    """The facts of an environment that is installed here.

    Raises:
        ConfigurationError: there is no such environment or configuration.
        UsageProblem: there is no such split, or nothing that looks like a server's address.
    """
    config = parse_config(options, [name])[name]
    environment = load_environment(name, config)
    splits = {known: environment.size(known) for known in environment.splits}
    chosen = split if split is not None else ("test" if "test" in splits else next(iter(splits)))
    if chosen not in splits:
        raise UsageProblem(f"--split {chosen}: {environment.name} has {', '.join(splits)}")
    if server is not None and not server.startswith(("http://", "https://", "unix:/")):
        raise UsageProblem(f"--server {server}: write http://127.0.0.1:8000, or unix:/path/to/control.sock")
    full = environment.config.model_dump(mode="json")
    return Facts(
        environment=environment.name,
        version=environment.version,
        description=" ".join(environment.description.split()),
        schema_hash=environment.schema_hash,
        tools=list(environment.tools),
        splits=splits,
        rewards={reward: item.weight for reward, item in environment.rewards.items()},
        max_turns=environment.max_turns or DEFAULT_MAX_TURNS,
        answers=is_combined(name) or type(environment).respond is not Environment.respond,
        split=chosen,
        seed=seed,
        server=server or SERVER,
        config={} if is_brought(name) else {key: full[key] for key in config if key in full},
        settings=_without(full, {said.partition("=")[0] for said in environment.config.reaches()}),
    )


def _without(fields: Mapping[str, Any], places: Collection[str], above: str = "") -> dict[str, Any]:
    """The fields but those in ``places``, where a section's are called ``section.field``."""
    return {
        name: _without(value, places, f"{above}{name}.") if isinstance(value, Mapping) else value
        for name, value in fields.items()
        if f"{above}{name}" not in places
    }
