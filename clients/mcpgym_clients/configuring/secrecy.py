"""Secrets: they come from the environment or from files of their own, and never from a configuration or a flag.

A configuration is committed and copied; a flag can be read by every user of the machine, in the list of processes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

HIDDEN = "***"
_ANYTHING = frozenset({"canary", "search"})
_NAME = re.compile(
    r"(^|[-_.])(secret|password|passwd|passphrase|credentials?|auth[-_]?token|access[-_]?token|token|bearer"
    r"|api[-_]?key|access[-_]?key|secret[-_]?key|private[-_]?key|apikey)$",
    re.IGNORECASE,
)
_IN_URL = re.compile(r"(?<=//)[^/\s:@]*:[^/\s]+(?=@)")
_HEADER = re.compile(
    r"^\s*((?:proxy-)?authorization|cookie|[\w-]*(?:api-?key|token|secret|password)[\w-]*)\s*:\s*\S", re.IGNORECASE
)
_SHAPES = re.compile(
    r"\bsk-(?:[A-Za-z0-9]{1,12}[-_])*[A-Za-z0-9_]{20,}|\bhf_[A-Za-z0-9]{20,}|\bgh[pousr]_[A-Za-z0-9]{20,}"
    r"|\bgithub_pat_\w{20,}|\bglpat-[\w-]{18,}|\bAKIA[0-9A-Z]{16}\b|\bAIza[\w-]{30,}|\bxox[abprs]-[\w-]{10,}"
    r"|\bpypi-[\w-]{32,}|\beyJ[\w-]{10,}\.[\w-]{10,}\.|\bBearer\s+\S{8,}|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
IN_FILE = (
    "a secret does not stand here: put it into the environment (MCPGYM_CONTROL_SECRET, OPENAI_API_KEY, "
    "ANTHROPIC_API_KEY, or the option's own variable), or into a file of its own, as secret-file names one"
)


def is_secret(key: str, value: object) -> bool:
    """Whether what ``key`` is set to has a secret in it.

    That is a password in a URL, a well-known kind of key, a header that lets somebody in, a field of a secret's name.
    What is searched for may look like anything.
    """
    text = str(value)
    if key in _ANYTHING:
        return False
    if key == "header" and _HEADER.match(text):
        return True
    if key in ("config", "set") and _names_a_secret(text):
        return True
    return any(shape.search(text) for shape in (_IN_URL, _SHAPES))


def is_secret_name(name: str) -> bool:
    """Whether a key of this name would hold a secret, and not a file with one."""
    return _NAME.search(name) is not None


def masked(key: str, value: str) -> str:
    """``value`` of ``key`` as it may be shown."""
    if key == "canary" or is_secret_name(key) or _SHAPES.search(value):
        return HIDDEN
    if key == "header":
        return f"{value.partition(':')[0]}: {HIDDEN}" if ":" in value else HIDDEN
    name, equals, rest = value.partition("=")
    if key in ("config", "set") and equals and is_secret_name(name.strip()) and rest:
        return f"{name}={HIDDEN}"
    return _IN_URL.sub(HIDDEN, value)


def secrets_in(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The paths of values in a file that are secrets, each with what to do about it."""
    for path, value in _leaves(data, ()):
        named = (is_secret_name(path[-1]) or path[-1] == "canary") and value not in ("", None, False)
        if named or is_secret(path[-1], value):
            yield path, IN_FILE


def holds_secret(key: str, value: Any) -> bool:
    """Whether what was given to the flag ``key`` holds a secret."""
    return any(is_secret(key, item) for item in (value if isinstance(value, list | tuple) else [value]))


def _names_a_secret(item: str) -> bool:
    """Whether it is ``name=value`` with the name of a secret."""
    name, equals, rest = item.partition("=")
    return bool(equals and rest.strip()) and is_secret_name(name.strip())


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, path)
    elif path:
        yield path, value
