"""Who signs the scores of a command's server, and ``mcpgym key``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpgym.errors import ConfigurationError
from mcpgym_clients.console import escaped, talk, warn
from mcpgym_clients.failures import CommandFailed, UsageProblem

if TYPE_CHECKING:
    from mcpgym.receipts import Signer


def own_signer(file: Path | None = None) -> Signer | None:
    """What signs with the key in ``file``, or else with this user's own; None where nothing is to be signed.

    A default key that cannot be used costs no run: a warning says that nothing is signed.

    Raises:
        ConfigurationError: the key was named, here or by ``MCPGYM_SIGNING_KEY``, and cannot be used.
    """
    from mcpgym.receipts import Signer
    from mcpgym.signing_keys import VARIABLE, load_signing_key, own_signing_key

    if file is not None:
        return Signer(load_signing_key(file))
    try:
        key = own_signing_key()
    except ConfigurationError as error:
        if VARIABLE in os.environ:
            raise
        warn(f"scores are not signed: {error}")
        return None
    return None if key is None else Signer(key)


def claims(policy: str, options: Mapping[str, Any]) -> dict[str, str]:
    """What an evaluation says of itself, for its receipts: its policy, the options that make it another, and itself.

    Args:
        policy: the policy's name.
        options: name to value; None for one that was not given.
    """
    from mcpgym import __version__
    from mcpgym.receipts import MAX_CLAIM, canonical

    said = {"policy": policy[:MAX_CLAIM], "harness": f"mcpgym eval {__version__}"}
    if given := {name: value for name, value in options.items() if value is not None}:
        said["options"] = canonical(given).decode()[:MAX_CLAIM]
    return said


def show_key(file: Path | None, new: Path | None) -> None:
    """Print the public key: of ``file``, of a key made in ``new``, or this user's own.

    Raises:
        UsageProblem: both are given.
        ConfigurationError: the file is no key that can be used, or exists already.
        CommandFailed: this user is to have none.
    """
    from mcpgym.signing_keys import VARIABLE, default_key_path, load_signing_key, make_signing_key, own_signing_key

    if file is not None and new is not None:
        raise UsageProblem("--new makes another key: drop FILE, or --new")
    if new is not None:
        key, where = make_signing_key(new), new
    elif file is not None:
        key, where = load_signing_key(file), file
    else:
        path, own = default_key_path(), own_signing_key()
        if path is None or own is None:
            raise CommandFailed(
                f"{VARIABLE} is set to nothing, so that nothing is signed; name a file: mcpgym key FILE"
            )
        key, where = own, path
    talk().print(
        f"[dim]key[/dim] {key.public.id}[dim]; the private one is in {escaped(where)}, and stays there. "
        "The public one, for --key of verify and leaderboard:[/dim]",
        soft_wrap=True,
    )
    print(key.public.text)
