"""Where a control plane is: ``unix:/path`` or ``http://host:port``, and where the socket of a player's port lies."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from mcpgym.control_plane.secret import VARIABLE, configured_secret
from mcpgym.errors import ConfigurationError

PREFIX = "/control/v1"
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
HAS_UNIX_SOCKETS = hasattr(socket, "AF_UNIX")
LONGEST_PATH = 107 if sys.platform == "linux" else 103
"""Bytes a unix socket's path may have (``sun_path`` less its closing zero)."""


class ControlAddress(NamedTuple):
    """A control plane's address (``unix:/path`` or ``http://host:port``) and its secret."""

    url: str
    secret: str


def socket_directory() -> Path:
    """The folder of this user's control sockets; it need not exist yet."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_absolute() and _is_private(Path(runtime)):
        return Path(runtime) / "mcpgym"
    return Path(tempfile.gettempdir()) / f"mcpgym-{os.getuid()}"


def default_socket(port: int) -> Path:
    """The control socket of the server whose players connect to ``port``."""
    return socket_directory() / f"control-{port}.sock"


def is_live(path: Path) -> bool:
    """Whether a process listens on the unix socket ``path``."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(os.fspath(path))
        except (TimeoutError, BlockingIOError):
            return True  # it is there, and too busy to answer
        except OSError:
            return False
    return True


def split_address(text: str) -> tuple[Path | None, str]:
    """The socket's path (None over TCP) and the base URL of requests for a control address.

    Raises:
        ConfigurationError: it is neither ``unix:/path`` nor ``http://host:port``.
    """
    if text.startswith("unix:"):
        path = text.removeprefix("unix:")
        path = path.removeprefix("//") if path.startswith("///") else path
        if not path.startswith("/"):
            raise ConfigurationError(f"{text!r}: write the socket's whole path: unix:/path/to/control.sock")
        if not HAS_UNIX_SOCKETS:
            raise ConfigurationError(f"{text!r}: there are no unix sockets here; serve with --control-port")
        return Path(path), "http://control"
    parts = _split_url(text)
    path = parts.path.rstrip("/")
    if path not in ("", PREFIX):
        raise ConfigurationError(
            f"{text!r} is not the address of a control plane: it has the path {path!r}, as players' URLs do. Pass the "
            "control address that the server printed: unix:/path or http://host:port"
        )
    return None, f"http://{parts.netloc}"


def resolve_control_address(text: str, secret: str | None = None) -> ControlAddress:
    """The control plane that ``text`` means: ``unix:/path``, ``http://host:port``, or a player's URL on this machine.

    For a player's URL (``http://127.0.0.1:8000``, with or without a path) it is the default socket of that port, when
    a server of this user listens there.

    Args:
        text: what a user gave.
        secret: the secret; by default from ``MCPGYM_CONTROL_SECRET``, or the file ``MCPGYM_CONTROL_SECRET_FILE`` names.

    Raises:
        ConfigurationError: it is no address, or there is no secret.
    """
    secret = configured_secret(secret)
    if secret is None:
        raise ConfigurationError(f"no control secret: set {VARIABLE} to the one that `mcpgym serve` printed")
    if not text.startswith("unix:"):
        parts = _split_url(text)
        if HAS_UNIX_SOCKETS and parts.hostname in LOOPBACK and parts.port:
            path = default_socket(parts.port)
            if _is_private(path.parent) and is_live(path):
                return ControlAddress(f"unix:{path}", secret)
        if parts.path.rstrip("/") not in ("", PREFIX):
            raise ConfigurationError(
                f"{text!r} is a player's URL, and no control socket of yours belongs to it. Pass the control address "
                "that the server printed: unix:/path or http://host:port"
            )
    split_address(text)
    return ControlAddress(text.rstrip("/").removesuffix(PREFIX), secret)


def make_private(directory: Path) -> None:
    """Create ``directory`` for this user alone, or make sure that it is.

    Raises:
        ConfigurationError: it is somebody else's, or no folder.
    """
    fix = "move it away, set XDG_RUNTIME_DIR, or choose a path with --control-socket"
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = directory.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise ConfigurationError(f"{directory} should be a folder of yours for control sockets, and is not; {fix}")
        if stat.S_IMODE(found.st_mode) != 0o700:
            directory.chmod(0o700)
    except OSError as error:
        raise ConfigurationError(f"no folder for control sockets: {error}; {fix}") from None


def _is_private(directory: Path) -> bool:
    with contextlib.suppress(OSError):
        found = directory.lstat()
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
    return False


def _split_url(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        _ = parts.port  # raises for one that is no number
    except ValueError:
        parts = urlsplit("")
    if parts.scheme == "http" and parts.hostname and not (parts.query or parts.fragment or parts.username):
        return parts
    raise ConfigurationError(
        f"{text!r} is no control address; write unix:/path/to/control.sock or http://127.0.0.1:8001"
    )
