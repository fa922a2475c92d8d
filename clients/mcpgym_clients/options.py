"""``--config`` on the command line: for one environment, or for several with the environment's name in front."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcpgym_clients.failures import UsageProblem


def parse_config(options: Iterable[str], environments: Sequence[str]) -> dict[str, dict[str, str]]:
    """The options of each environment in ``environments``.

    ``key=value`` belongs to the only environment there is; with several, ``environment.key=value`` says whose it is. Of
    a combination, ``member.key=value`` is a field of a member's, and where a configuration has sections,
    ``section.key=value`` of a section's.

    Raises:
        UsageProblem: it is not said whose option it is, or the environment is not among them.
        ConfigurationError: an option has no ``=``, or a key comes twice.
    """
    from mcpgym.combined.naming import is_combined
    from mcpgym.registry import parse_options

    whose: dict[str, list[str]] = {name: [] for name in environments}
    for option in options:
        key = option.partition("=")[0].strip()
        combined = [name for name in environments if is_combined(name)]
        if named := [name for name in combined if option.strip().startswith(f"{name}.")]:
            whose[max(named, key=len)].append(option.strip()[len(max(named, key=len)) + 1 :])
            continue
        if "." in key and len(environments) == 1 and (combined or key.partition(".")[0] not in whose):
            whose[environments[0]].append(option)
            continue
        prefix, dot, rest = option.strip().partition(".")
        if "=" in prefix:  # the dot belongs to the value
            prefix, dot = "", ""
        if dot:
            if prefix not in whose:
                raise UsageProblem(
                    f"--config {option!r}: {prefix!r} is not one of the environments here ({', '.join(environments)})"
                )
            whose[prefix].append(rest)
        elif len(environments) == 1:
            whose[environments[0]].append(option)
        else:
            raise UsageProblem(
                f"--config {option!r}: which environment's? Write environment.{option} with one of: "
                + ", ".join(environments)
            )
    return {name: parse_options(items) for name, items in whose.items()}
