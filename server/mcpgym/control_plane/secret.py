"""The secret of a control plane: given, read from the environment or a file, or made."""

from __future__ import annotations

import hmac
import logging
import os
import secrets
from pathlib import Path

from mcpgym.errors import ConfigurationError

logger = logging.getLogger(__name__)

VARIABLE = "MCPGYM_CONTROL_SECRET"
FILE_VARIABLE = "MCPGYM_CONTROL_SECRET_FILE"
SHORTEST = 16
LONGEST = 1024


def configured_secret(given: str | None = None, file: str | Path | None = None) -> str | None:
    """The secret from the argument, else the file, else the environment (itself or a file named there), else None.

    Raises:
        ConfigurationError: it is too short or not plain text, or the file cannot be read.
    """
    if given is not None:
        return checked_secret(given, "the secret that was passed")
    if file is not None:
        return _from_file(Path(file))
    if (value := os.environ.get(VARIABLE)) is not None:
        return checked_secret(value, VARIABLE)
    if named := os.environ.get(FILE_VARIABLE):
        return _from_file(Path(named))
    return None


def take_secret(given: str | None = None, file: str | Path | None = None) -> str | None:
    """:func:`configured_secret`, and the environment variables forgotten: what a tool starts does not inherit them.

    Raises:
        ConfigurationError: as there.
    """
    found = configured_secret(given, file)
    forget_secret()
    return found


def forget_secret() -> None:
    """Take the secret out of this process's environment."""
    for name in (VARIABLE, FILE_VARIABLE):
        os.environ.pop(name, None)


def new_secret() -> str:
    """256 random bits as text."""
    return secrets.token_urlsafe(32)


def checked_secret(value: str, where: str) -> str:
    """``value`` if it will do as a secret; the error never repeats it.

    Raises:
        ConfigurationError: it will not.
    """
    if not SHORTEST <= len(value) <= LONGEST:
        raise ConfigurationError(
            f"{where} has {len(value)} characters; a control secret has {SHORTEST} to {LONGEST}. "
            "Leave it out to have one made, or use: python -c 'import secrets; print(secrets.token_urlsafe(32))'"
        )
    if not all("!" <= character <= "~" for character in value):
        raise ConfigurationError(f"{where}: a control secret is plain ASCII without spaces, as it travels in a header")
    return value


def same_secret(header: bytes, secret: bytes) -> bool:
    """Whether an Authorization header carries ``secret``, told in a time that does not depend on it."""
    scheme, _, credentials = header.partition(b" ")
    return scheme.lower() == b"bearer" and hmac.compare_digest(credentials.strip(), secret)


def _from_file(path: Path) -> str:
    try:
        found = path.stat()
        value = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the control secret's file {path} cannot be read: {error}") from None
    ours = os.name == "posix" and found.st_uid == os.geteuid()  # of another's, a group may read what is meant for it
    if os.name == "posix" and found.st_mode & (0o077 if ours else 0o007):
        logger.warning("%s, the control secret's file, can be read by others; chmod 600 it", path)
    return checked_secret(value, str(path))
