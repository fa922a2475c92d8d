"""What an agent gets to see of us: the variables it needs and no others; and what is kept out of what it prints."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

PASSED_ON = (
    *("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
    *("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"),
    *("http_proxy", "https_proxy", "all_proxy"),
)
"""The user's variables that every agent gets, where they are set: how programs are found, and its API reached."""
LOOPBACK = "127.0.0.1,localhost,::1"
SHORTEST_SECRET = 6
"""What is shorter is no secret that could be told from other text."""
MARK = "MCPGYM_AGENT"
"""The variable by which an agent's processes are known; its value is another for each start."""
_PR_GET_DUMPABLE, _PR_SET_DUMPABLE = 3, 4


def passed_on(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Those of the user's variables that an agent gets; whatever is on this machine is reached without a proxy."""
    found = {name: variables[name] for name in PASSED_ON if variables.get(name)}
    apart = ",".join(filter(None, (variables.get("NO_PROXY") or variables.get("no_proxy"), LOOPBACK)))
    return {**found, "NO_PROXY": apart, "no_proxy": apart}


class Scrubber:
    """Takes secrets out of texts. A secret of a few characters is left: it would be found everywhere."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = sorted({one for one in secrets if len(one) >= SHORTEST_SECRET}, key=len, reverse=True)

    def text(self, text: str) -> str:
        """``text`` without them."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    def value(self, value: Any) -> Any:
        """A value of JSON without them; numbers that are not finite become null, as traces have them."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(name)): self.value(item) for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.value(item) for item in value]
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return value


@contextlib.contextmanager
def shielded() -> Iterator[None]:
    """Within it, other processes of this user cannot read this one's memory and variables from ``/proc`` (Linux).

    Root always can. What a child executes is not concerned.
    """
    if sys.platform != "linux":
        yield
        return
    system = ctypes.CDLL(None)
    before = system.prctl(_PR_GET_DUMPABLE, 0, 0, 0, 0)
    system.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    try:
        yield
    finally:
        system.prctl(_PR_SET_DUMPABLE, 1 if before == 1 else 0, 0, 0, 0)
