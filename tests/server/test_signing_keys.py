"""Signing keys: one that others can read is refused, none is overwritten, and a public key is what it says."""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from mcpgym.errors import ConfigurationError
from mcpgym.signing_keys import (
    SigningKey,
    _refuse_shared,
    default_key_path,
    load_signing_key,
    make_signing_key,
    own_signing_key,
    read_public_key,
)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def works(key: SigningKey) -> bool:
    signature = key.sign(b"data")
    return key.public.signed(signature, b"data") and not key.public.signed(signature, b"date")


def private_file(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    path.chmod(0o600)
    return path


def test_a_key_is_made_once_for_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(sys, "platform", "linux")
    before = os.umask(0)
    try:
        first = own_signing_key()
    finally:
        os.umask(before)
    path = tmp_path / "data" / "mcpgym" / "signing.key"
    assert default_key_path() == path
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)
    again = own_signing_key()
    assert first is not None
    assert again is not None
    assert first.public == again.public
    assert works(first)
    assert [item.name for item in path.parent.iterdir()] == ["signing.key"]
    assert "PRIVATE" not in repr(first)
    assert base64.b64encode(first._private.private_bytes_raw()).decode() not in repr(first)


def test_many_processes_that_need_a_key_at_once_make_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPGYM_SIGNING_KEY", str(tmp_path / "a folder" / "my.key"))
    found: list[str] = []
    start = threading.Barrier(8)

    def need() -> None:
        start.wait()
        key = own_signing_key()
        assert key is not None
        found.append(key.public.text)

    threads = [threading.Thread(target=need) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert [item.name for item in (tmp_path / "a folder").iterdir()] == ["my.key"]


def test_whoever_wants_no_key_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPGYM_SIGNING_KEY", "")
    assert default_key_path() is None
    assert own_signing_key() is None


def test_no_key_is_overwritten(tmp_path: Path) -> None:
    first = make_signing_key(tmp_path / "key")
    with pytest.raises(ConfigurationError, match="no key is ever overwritten"):
        make_signing_key(tmp_path / "key")
    assert load_signing_key(tmp_path / "key").public == first.public
    assert [item.name for item in tmp_path.iterdir()] == ["key"]
    with pytest.raises(ConfigurationError, match="cannot be written"):
        make_signing_key(tmp_path / "nowhere" / "key")


@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
@pytest.mark.parametrize("bits", [0o640, 0o604, 0o660, 0o601, 0o644])
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, bits: int) -> None:
    make_signing_key(tmp_path / "key")
    (tmp_path / "key").chmod(bits)
    with pytest.raises(ConfigurationError, match="can be read by others"):
        load_signing_key(tmp_path / "key")
    (tmp_path / "link").symlink_to(tmp_path / "key")
    with pytest.raises(ConfigurationError, match="can be read by others"):
        load_signing_key(tmp_path / "link")


@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
def test_roots_key_may_be_there_for_a_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a pod that is not root has one of its secrets."""
    monkeypatch.setattr(os, "getuid", lambda: 10001)
    for bits, taken in ((0o440, True), (0o400, True), (0o460, False), (0o444, False)):
        found = os.stat_result((stat.S_IFREG | bits, 1, 1, 1, 0, 10001, 100, 0, 0, 0))
        with contextlib.nullcontext() if taken else pytest.raises(ConfigurationError, match="can be read by others"):
            _refuse_shared(tmp_path / "key", found)


def test_what_is_no_key_is_refused_in_words(tmp_path: Path) -> None:
    other = X25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    locked = Ed25519PrivateKey.generate().private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"password")
    )
    for number, content in enumerate([b"", b"no key", other, locked, b"\0" * 100]):
        path = private_file(tmp_path / str(number), content)
        with pytest.raises(ConfigurationError, match="no Ed25519 private key"):
            load_signing_key(path)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_signing_key(tmp_path / "missing")
    with pytest.raises(ConfigurationError, match="no file with a signing key"):
        load_signing_key(private_file(tmp_path / "huge", b"x" * 20_000))
    with pytest.raises(ConfigurationError, match="no file with a signing key"):
        load_signing_key(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe", 0o600)
        with pytest.raises(ConfigurationError, match="no file with a signing key"):
            load_signing_key(tmp_path / "pipe")


def test_a_public_key_is_read_as_text_from_a_file_and_as_pem(tmp_path: Path) -> None:
    key = make_signing_key(tmp_path / "key")
    public = key._private.public_key()
    (tmp_path / "text").write_text(key.public.text + "\n")
    (tmp_path / "pem").write_bytes(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    for given in (key.public.text, f" {key.public.text}\n", str(tmp_path / "text"), str(tmp_path / "pem")):
        assert read_public_key(given) == key.public


def test_a_public_key_is_written_in_one_way_only(tmp_path: Path) -> None:
    text = make_signing_key(tmp_path / "key").public.text
    other = X25519PrivateKey.generate().public_key()
    (tmp_path / "other").write_bytes(other.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    (tmp_path / "empty").write_text("")
    bad = [text[:-1], text + "=", text[:-3] + "é==", "ed25519:", "ed25519:AAAA", text.replace("ed25519:", "ed25519: ")]
    for given in [*bad, str(tmp_path / "other"), str(tmp_path / "empty"), str(tmp_path), "nothing", "a\0b"]:
        with pytest.raises(ConfigurationError, match="public"):
            read_public_key(given)
    with pytest.raises(ConfigurationError, match="private key; give its public one"):
        read_public_key(str(tmp_path / "key"))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_openssl_reads_our_keys_and_makes_keys_that_we_read(tmp_path: Path) -> None:
    ours = make_signing_key(tmp_path / "ours")
    shown = subprocess.run(["openssl", "pkey", "-in", tmp_path / "ours", "-pubout"], capture_output=True, check=True)
    (tmp_path / "ours.pem").write_bytes(shown.stdout)
    assert read_public_key(str(tmp_path / "ours.pem")) == ours.public
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", tmp_path / "theirs"], check=True)
    (tmp_path / "theirs").chmod(0o600)
    assert works(load_signing_key(tmp_path / "theirs"))


def test_who_signs_nothing_imports_no_cryptography() -> None:
    code = "import sys, mcpgym.receipts, mcpgym.control_client, mcpgym.episodes; print('cryptography' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.strip() == b"False"
