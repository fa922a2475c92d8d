"""Bound sockets for both listeners: a TCP port, or a unix socket that only this user can open."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mcpgym.background import BACKLOG
from mcpgym.control_plane.address import LONGEST_PATH, default_socket, is_live, make_private
from mcpgym.errors import ConfigurationError


@dataclass(eq=False)
class Listener:
    """A listening socket and the URL it is reached at; ``close`` also removes a unix socket's file."""

    socket: socket.socket
    url: str
    path: Path | None = None
    _identity: tuple[int, int] | None = field(default=None, repr=False)

    def close(self) -> None:
        """Stop listening; remove the file unless another server has put its own there. May be called twice."""
        self.remove_file()
        self.socket.close()

    def remove_file(self) -> None:
        """Remove a unix socket's file if it is still ours."""
        if self.path is None or self._identity is None:
            return
        with contextlib.suppress(OSError):
            if _identity(self.path) == self._identity:
                self.path.unlink()
        self._identity = None


def listen_tcp(host: str, port: int, option: str) -> Listener:
    """Listen on ``host`` and ``port`` (0: a free one). ``option`` names the port's option in errors.

    Raises:
        ConfigurationError: the port is taken or not allowed, or the host is none of this machine's.
    """
    if not 0 <= port <= 65535:
        raise ConfigurationError(f"{option} {port}: a port lies in 0 to 65535 (0 takes a free one)")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError) as error:
        raise ConfigurationError(f"host {host!r} cannot be resolved ({error}); use 127.0.0.1 or an address") from None
    family, kind, protocol, _, address = min(found, key=lambda item: item[0] != socket.AF_INET)
    made = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(BACKLOG)
        made.setblocking(False)
    except OSError as error:
        made.close()
        raise ConfigurationError(_explain(error, host, port, option)) from None
    bound_host, bound_port = made.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(bound_host, bound_host)
    return Listener(made, f"http://[{shown}]:{bound_port}" if ":" in shown else f"http://{shown}:{bound_port}")


def _explain(error: OSError, host: str, port: int, option: str) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return f"port {port} on {host} is in use; choose another with {option}, or 0 for a free one"
        case errno.EACCES:
            return f"port {port} on {host} is not allowed for this user; choose one above 1023 with {option}"
        case errno.EADDRNOTAVAIL:
            return f"host {host!r} is no address of this machine; use 127.0.0.1, or 0.0.0.0 for all of them"
        case _:
            return f"cannot listen on {host} port {port}: {error.strerror or error}"


def listen_unix(path: Path | None, player_port: int) -> Listener:
    """Listen on a unix socket of mode 0600: at ``path``, or at the default one of ``player_port``.

    A socket file that nobody listens on (its server was killed) is replaced, and in the default folder all such are
    swept away; a live one is left alone.

    Raises:
        ConfigurationError: the path is too long, taken, or cannot be used.
    """
    chosen, path = path, path or default_socket(player_port)
    if chosen is None:
        make_private(path.parent)
    path = path.absolute()
    if (length := len(os.fsencode(path))) > LONGEST_PATH:
        raise ConfigurationError(
            f"control socket {path}: {length} bytes, and a unix socket's path has {LONGEST_PATH} at most; choose a "
            "shorter one with --control-socket, or use a port with --control-port"
        )
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _alone_in(path.parent):
            _clear(path)
            if chosen is None:
                _sweep(path.parent)
            with contextlib.suppress(OSError):
                os.fchmod(made.fileno(), 0o600)  # on Linux the file is born with this mode; elsewhere chmod gives it
            made.bind(os.fspath(path))
            path.chmod(0o600)
            made.listen(BACKLOG)
            made.setblocking(False)
            return Listener(made, f"unix:{path}", path, _identity(path))
    except OSError as error:
        made.close()
        raise ConfigurationError(f"control socket {path}: {error.strerror or error}") from None
    except ConfigurationError:
        made.close()
        raise


def _clear(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise ConfigurationError(f"control socket {path}: there is a file that is no socket; choose another path")
    if is_live(path):
        raise ConfigurationError(
            f"control socket {path}: another server listens there; stop it, or choose another with --control-socket"
        )
    path.unlink()


def _sweep(directory: Path) -> None:
    """Remove what killed servers left; whoever holds the folder's lock sees only sockets that are live or dead."""
    for left in directory.glob("control-*.sock"):
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(left.lstat().st_mode) and not is_live(left):
                left.unlink()


@contextlib.contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    """Hold the folder's lock, so that of two servers starting at once one finds the other's live socket."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _identity(path: Path) -> tuple[int, int]:
    found = path.lstat()
    return found.st_dev, found.st_ino
