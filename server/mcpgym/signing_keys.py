"""Ed25519 keys (RFC 8032): the private one in a file that its owner alone can read, the public one as a short text.

A private key is a PEM file (PKCS #8, not encrypted), as ``openssl genpkey -algorithm ed25519`` writes it. A public key
is the text ``ed25519:`` and 32 bytes in base64. Its id is the beginning of their SHA-256: short enough to be read, and
no more than a name by which the key is found. ``cryptography`` is imported when a key is made, used or checked.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import os
import stat
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mcpgym.errors import ConfigurationError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

VARIABLE = "MCPGYM_SIGNING_KEY"
"""Names the file of this user's key in place of the default one; set to nothing, nothing is signed by default."""
PREFIX = "ed25519:"
_LARGEST = 16 * 1024
"""Bytes of a key's file beyond which it is none."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """What receipts are checked with: ``raw`` is the 32 bytes of the key."""

    raw: bytes

    @property
    def id(self) -> str:
        """16 hexadecimal digits: the beginning of the SHA-256 of the key's bytes."""
        return hashlib.sha256(self.raw).hexdigest()[:16]

    @property
    def text(self) -> str:
        """The key as it is passed on: ``ed25519:`` and its bytes in base64."""
        return PREFIX + base64.b64encode(self.raw).decode()

    def signed(self, signature: bytes, data: bytes) -> bool:
        """Whether ``signature`` is this key's for ``data``."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, data)
        except (InvalidSignature, ValueError):
            return False
        return True


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key in use; nothing here shows it."""

    public: PublicKey
    _private: Ed25519PrivateKey = field(repr=False)

    def sign(self, data: bytes) -> bytes:
        """The signature of ``data``, 64 bytes."""
        return self._private.sign(data)


def default_key_path() -> Path | None:
    """The file of this user's key, whether or not it exists; None where ``MCPGYM_SIGNING_KEY`` is set to nothing."""
    if (named := os.environ.get(VARIABLE)) is not None:
        return Path(named) if named.strip() else None
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        given = os.environ.get("XDG_DATA_HOME", "")
        base = Path(given) if given and Path(given).is_absolute() else Path.home() / ".local" / "share"
    return base / "mcpgym" / "signing.key"


def own_signing_key() -> SigningKey | None:
    """This user's key, made at its first use; None where ``MCPGYM_SIGNING_KEY`` is set to nothing.

    Raises:
        ConfigurationError: it cannot be made or read, or others can read it.
    """
    path = default_key_path()
    if path is None:
        return None
    if not path.exists():
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(f"no folder for a signing key: {error}; set {VARIABLE} to a file") from None
        with contextlib.suppress(FileExistsError):  # another process was faster: its key it is
            return _make(path)
    return load_signing_key(path)


def make_signing_key(path: Path) -> SigningKey:
    """A new key in a new file that its owner alone can read.

    Raises:
        ConfigurationError: there is such a file already, or it cannot be written.
    """
    try:
        return _make(path)
    except FileExistsError:
        raise ConfigurationError(f"{path} exists already, and no key is ever overwritten; name another file") from None


def load_signing_key(path: Path) -> SigningKey:
    """The key in the file at ``path``.

    Raises:
        ConfigurationError: it cannot be read, is no such key, or others can read it too.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    content = _secret_bytes(path)
    try:
        key = load_pem_private_key(content, password=None)
    except (ValueError, TypeError, AssertionError):
        key = None
    except Exception as error:  # an algorithm that this build of cryptography lacks
        raise ConfigurationError(f"{path} cannot be used as a signing key: {error}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigurationError(
            f"{path} is no Ed25519 private key in PEM without a password; make one: mcpgym key --new FILE"
        )
    return _signing_key(key)


def read_public_key(given: str) -> PublicKey:
    """The public key that ``given`` is, or that the file of that name holds (as text, or as PEM).

    Raises:
        ConfigurationError: it is neither; the message says what would be right.
    """
    given = given.strip()
    if given.startswith(PREFIX):
        return _public_key(given, "the key")
    try:
        with Path(given).open("rb") as file:
            content = file.read(_LARGEST + 1)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{given[:200]!r} is no public key ({PREFIX}… as `mcpgym key` shows it) and no file that holds one: {error}"
        ) from None
    if b"PRIVATE KEY" in content:
        raise ConfigurationError(f"{given} holds a private key; give its public one: mcpgym key {given}")
    if b"BEGIN PUBLIC KEY" in content:
        return _from_pem(content, given)
    words = content[:_LARGEST].decode("utf-8", "replace").split()
    return _public_key(words[0] if words else "", given)


def _public_key(text: str, where: str) -> PublicKey:
    encoded = text.removeprefix(PREFIX)
    with contextlib.suppress(binascii.Error, ValueError):
        raw = base64.b64decode(encoded, validate=True)
        if len(raw) == 32 and text == PublicKey(raw).text:
            return PublicKey(raw)
    raise ConfigurationError(f"{where}: a public key is {PREFIX} and 44 characters of base64, as `mcpgym key` shows it")


def _from_pem(content: bytes, where: str) -> PublicKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    with contextlib.suppress(Exception):
        key = load_pem_public_key(content)
        if isinstance(key, Ed25519PublicKey):
            return PublicKey(key.public_bytes_raw())
    raise ConfigurationError(f"{where} is no Ed25519 public key in PEM")


def _signing_key(private: Ed25519PrivateKey) -> SigningKey:
    return SigningKey(PublicKey(private.public_key().public_bytes_raw()), private)


def _secret_bytes(path: Path) -> bytes:
    """The content of a file that only its owner (this user, or root) can read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise ConfigurationError(f"the signing key {path} cannot be read: {error.strerror}") from None
    try:  # what is asked about is what is read, whatever happens to the path meanwhile
        _refuse_shared(path, os.fstat(descriptor))
        return os.read(descriptor, _LARGEST)
    finally:
        os.close(descriptor)


def _refuse_shared(path: Path, found: os.stat_result) -> None:
    """Refuse what is no file of this user alone.

    Raises:
        ConfigurationError: it says what to do.
    """
    if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
        raise ConfigurationError(f"{path} is no file with a signing key")
    if os.name != "posix":
        return
    if found.st_uid not in (os.getuid(), 0):
        raise ConfigurationError(f"{path} is another user's, who could sign with it; make a key of your own")
    others = 0o077 if found.st_uid == os.getuid() else 0o037  # root's may be there for a group, as a pod's secrets are
    if found.st_mode & others:
        raise ConfigurationError(
            f"{path}, a signing key, can be read by others ({stat.filemode(found.st_mode)}): whoever did can sign. "
            f"Make a new one (mcpgym key --new FILE), or if nobody has: chmod 600 {path}"
        )


def _make(path: Path) -> SigningKey:
    """A new key, in a file that is there whole or not at all.

    Raises:
        FileExistsError: there is such a file.
        ConfigurationError: it cannot be written.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    private = Ed25519PrivateKey.generate()
    content = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # 0600 from its first moment
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.link(name, path)  # unlike a rename, never over another
        finally:
            Path(name).unlink()
    except FileExistsError:
        raise
    except OSError as error:
        raise ConfigurationError(f"the signing key {path} cannot be written: {error.strerror or error}") from None
    return _signing_key(private)
