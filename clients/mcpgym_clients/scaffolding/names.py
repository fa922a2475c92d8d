"""What a new environment is called: on the command line, as a module, as a class."""

from __future__ import annotations

import keyword
import re
import sys
from dataclasses import dataclass
from importlib.util import find_spec

from mcpgym_clients.failures import UsageProblem

LONGEST = 40
"""Characters of a name, so that hosts can put it before a tool's."""
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Names:
    """One name in its three forms: ``my-env``, ``my_env``, ``MyEnv``."""

    name: str
    module: str
    class_name: str


def names_of(name: str) -> Names:
    """The forms of a name.

    Raises:
        UsageProblem: it is none that all three can be made of, or its module is there already.
    """
    if not _NAME.fullmatch(name) or len(name) > LONGEST:
        better = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:LONGEST].strip("-")
        hint = f", such as {better}" if _NAME.fullmatch(better) else ", such as my-game"
        raise UsageProblem(
            f"{name!r} is no name for an environment: small letters, digits and single hyphens, {LONGEST} at most{hint}"
        )
    module = name.replace("-", "_")
    if keyword.iskeyword(module) or module in sys.stdlib_module_names or find_spec(module) is not None:
        raise UsageProblem(
            f"a module {module} is there already, of Python or of an installed package: choose another name"
        )
    return Names(name, module, "".join(part.capitalize() for part in name.split("-")))
