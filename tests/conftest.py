"""What all tests share: what is kept for a user (a signing key, built libraries) goes to a folder of the tests' own."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so do runners start us that work in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def data_home() -> Iterator[None]:
    """Nothing of the user's is used or changed, by commands in processes of their own neither."""
    with tempfile.TemporaryDirectory(prefix="mcpgym-tests-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", folder)
        patch.setenv("MCPGYM_CACHE", f"{folder}/cache")
        patch.delenv("MCPGYM_SIGNING_KEY", raising=False)
        yield
