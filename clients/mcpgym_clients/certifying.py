"""``mcpgym certify``: a policy against every reply of its opponent; ``certificate.json`` and what it says."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcpgym.registry import load_environment
from mcpgym_clients.certificate_report import render
from mcpgym_clients.console import escaped, out, talk
from mcpgym_clients.failures import FAILURE, CommandFailed
from mcpgym_clients.files import require_place
from mcpgym_clients.options import parse_config
from mcpgym_rl.certificate import Certification, Progress, certify
from mcpgym_rl.files import write_atomically
from mcpgym_rl.policies import asks_endpoint, make_policy
from mcpgym_rl.policy import PolicyError

ENDPOINT_CONCURRENCY = 16
"""Turns asked of an endpoint at once, where nothing else is said."""


@dataclass(frozen=True, slots=True)
class CertifyOptions:
    """What was typed. ``concurrency`` is None for the policy's own best."""

    environment: str
    policy: str
    out: Path | None = None
    config: Sequence[str] = ()
    seed: int | None = None
    once: bool = False
    concurrency: int | None = None
    policy_options: Mapping[str, Any] = field(default_factory=dict)


def run(options: CertifyOptions) -> int:
    """Certify; 0 when no line was lost or left unfinished, else 1.

    Raises:
        UsageProblem, ConfigurationError: what was asked for cannot be.
        CommandFailed: the policy failed.
    """
    if options.out is not None:
        require_place("--out", options.out, "certificate.json")
    found = asyncio.run(_certify(options))
    if options.out is not None:
        write_atomically(options.out, found.certificate)
    out().print(render(found.certificate))
    if options.out is not None:
        out().print(f"[dim]written to {escaped(options.out)}[/dim]", soft_wrap=True)
    return 0 if found.certified else FAILURE


async def _certify(options: CertifyOptions) -> Certification:
    config = parse_config(options.config, [options.environment])[options.environment]
    environment = load_environment(options.environment, config)
    policy = make_policy(options.policy, environment, **options.policy_options)
    concurrency = options.concurrency
    if concurrency is None and asks_endpoint(options.policy):
        concurrency = ENDPOINT_CONCURRENCY
    try:
        with talk().status(f"certifying {escaped(policy.name)}") as status:

            def told(progress: Progress) -> None:
                status.update(
                    f"certifying {escaped(policy.name)}: {progress.decisions} decisions, {progress.lines} lines, "
                    f"{100 * progress.share:.0f} % of all games"
                )

            return await certify(
                policy,
                environment,
                seed=options.seed,
                ask_twice=False if options.once else None,
                concurrency=concurrency,
                on_progress=told,
            )
    except PolicyError as error:
        raise CommandFailed(f"{policy.name} gave no turn: {error}") from error
    finally:
        await policy.aclose()
