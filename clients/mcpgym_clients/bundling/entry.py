"""Where a bundle starts: its ``src/server.py`` calls this, with what the person chose in the client's settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def words(environment: str, settings: Mapping[str, str], fixed: Sequence[str], given: Sequence[str]) -> list[str]:
    """What is typed to serve the environment.

    Args:
        environment: its name.
        settings: the configuration fields that a person may change, as they are without a change.
        fixed: further configuration, as ``name=value``.
        given: ``name=value`` as the client filled them in. What it left empty, or could not fill in, stays as it was.
    """
    values = dict(settings)
    for item in given:
        name, _, value = item.partition("=")
        if name in values and value.strip() and not value.startswith("${"):
            values[name] = value
    pairs = [*fixed, *(f"{name}={value}" for name, value in values.items())]
    return ["serve", environment, "--stdio", *(word for pair in pairs for word in ("--config", pair))]


def run(environment: str, settings: Mapping[str, str], fixed: Sequence[str], given: Sequence[str]) -> int:
    """Serve the environment on standard input and output until the client goes; the exit code."""
    from mcpgym_clients.cli import main

    return main(words(environment, settings, fixed, given))
