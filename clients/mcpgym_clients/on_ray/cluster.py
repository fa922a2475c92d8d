"""The Ray cluster a command works with: one that runs, or one of its own on loopback for as long as it takes."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from mcpgym.control_plane.address import LOOPBACK
from mcpgym.control_plane.secret import FILE_VARIABLE, VARIABLE
from mcpgym.errors import ConfigurationError
from mcpgym_clients.failures import UsageProblem

NAMESPACE = "mcpgym"
"""Where our actors have their names."""
LOOPBACK_ALONE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Ray's variable by which, at 0, a machine of any system is 127.0.0.1 to it and not its address in the network."""
SECRETS = (VARIABLE, "OPENAI_API_KEY", "ANTHROPIC_API_KEY")
"""Variables whose values nobody else is to see."""
ANSWER_SECONDS = 10.0
"""How long a cluster may take to accept a connection."""
NO_RAY = "that needs Ray, which is not here: pip install 'mcpgym[ray]'"


def needed_ray(address: str | None = None) -> Any:
    """Ray, imported to work with the cluster at ``address``; it sends no statistics unless its variable asks for them.

    Raises:
        UsageProblem: it is not installed.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if urlsplit(f"//{(address or '').rpartition('//')[2]}").hostname in LOOPBACK:
        os.environ.setdefault(LOOPBACK_ALONE, "0")
    try:
        import ray
    except ImportError as error:
        raise UsageProblem(f"{NO_RAY} ({error})") from None
    return ray


@contextlib.contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Ray, connected: to ``address``, else to what ``RAY_ADDRESS`` names, else to a cluster on this machine, else to
    one that is started here on loopback and ends with this.

    A process that is connected already (an actor, a test) stays so.

    Raises:
        UsageProblem: Ray is not installed.
        ConfigurationError: nothing answers at the address.
    """
    wanted = address or os.environ.get("RAY_ADDRESS")
    if wanted is not None:
        _must_answer(wanted)
    ray = needed_ray(wanted)
    if ray.is_initialized():
        yield ray
        return
    options: dict[str, Any] = {"namespace": NAMESPACE, "logging_level": "warning", "log_to_driver": True}
    try:
        ray.init(address=wanted or "auto", **options)
    except (ConnectionError, ValueError, RuntimeError) as error:
        if wanted is not None:
            raise ConfigurationError(f"no Ray cluster answers at {wanted}: {error}") from None
        with loopback_alone(ray), _without_secrets():
            ray.init(include_dashboard=False, _node_ip_address="127.0.0.1", **options)
    try:
        yield ray
    finally:
        ray.shutdown()


def _must_answer(address: str) -> None:
    """See that something listens there: Ray itself would try for minutes.

    Raises:
        ConfigurationError: nothing does.
    """
    try:
        place = urlsplit(f"//{address.rpartition('//')[2]}")
        host, port = place.hostname, place.port
    except ValueError as error:
        raise ConfigurationError(f"no Ray cluster can be at {address}: {error}") from None
    if host is None or port is None:  # "auto", "local"
        return
    try:
        socket.create_connection((host, port), timeout=ANSWER_SECONDS).close()
    except OSError as error:
        raise ConfigurationError(f"no Ray cluster answers at {address}: {error.strerror or error}") from None


@contextlib.contextmanager
def loopback_alone(ray: Any) -> Iterator[None]:
    """Have what Ray starts meanwhile listen on loopback: else, whatever address it is given, it does on all of them."""
    before = os.environ.get(LOOPBACK_ALONE)
    if before is not None:  # somebody said it already
        yield
        return
    constants = ray._private.ray_constants
    read = constants.ENABLE_RAY_CLUSTER  # read from the variable when Ray was imported; its processes read it then
    constants.ENABLE_RAY_CLUSTER, os.environ[LOOPBACK_ALONE] = False, "0"
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = read
        del os.environ[LOOPBACK_ALONE]


@contextlib.contextmanager
def _without_secrets() -> Iterator[None]:
    """Keep keys and secrets out of the environment of what Ray starts meanwhile: who needs them gets them otherwise."""
    kept = {name: os.environ.pop(name) for name in (*SECRETS, FILE_VARIABLE) if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(kept)
