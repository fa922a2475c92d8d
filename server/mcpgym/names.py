"""The names of servers that stand beside each other, and the tokens that say whose they are.

A token is ``<32 hexadecimal digits>``, or ``<name>-<32 hexadecimal digits>`` where its server has a name: whoever
stands before several servers (a front process, nginx) reads there which of them a URL belongs to. The digits are 128
random bits, so a name makes no token easier to guess.
"""

from __future__ import annotations

import re
import secrets

from mcpgym.errors import ConfigurationError

LONGEST_NAME = 63
"""What a label of DNS may have: a pod's name is one."""
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_DIGITS = 32


def new_token(name: str = "") -> str:
    """A token that nobody can guess, of the server ``name``."""
    digits = secrets.token_hex(_DIGITS // 2)
    return f"{name}-{digits}" if name else digits


def name_in(token: str) -> str:
    """The name of the server that made ``token``; empty where it has none, or ``token`` is none."""
    name, dash, digits = token.rpartition("-")
    return name if dash and len(digits) == _DIGITS else ""


def checked_name(name: str) -> str:
    """``name`` if a server may have it.

    Raises:
        ConfigurationError: it may not.
    """
    if name and (len(name) > LONGEST_NAME or not _NAME.fullmatch(name)):
        raise ConfigurationError(
            f"a server's name has up to {LONGEST_NAME} of a-z, 0-9 and '-', and neither begins nor ends with '-'; "
            f"{name[:80]!r} is none"
        )
    return name
