"""What products that ask a model's endpoint have in common: a model, a key, and a version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mcpgym_clients.agents.contract import Model
from mcpgym_clients.agents.programs import keys_of, model_of


class Product:
    """The base of a product.

    Args:
        spec: the model, as it was typed.

    Raises:
        UsageProblem: that names no model of its APIs, or there is no key.
    """

    name: str
    kinds: ClassVar[Sequence[str]]
    """The APIs that it speaks, as ``--policy`` names them; the first is meant where none is named."""
    key_variables: ClassVar[Sequence[str]]
    """The variables that may hold its key; the first is asked for where there is none."""
    default_url: ClassVar[str]
    """Where it finds its API by itself."""
    goes_on: bool = True

    def __init__(self, spec: str) -> None:
        self._model = model_of(self.name, spec, self.kinds)
        self.model: Model | None = self._model
        self._keys = keys_of(self.name, self.key_variables, self._model, self.key_variables[0])
        self.secrets: Sequence[str] = list(self._keys.values())
        self.key: str | None = next(iter(self._keys))
        self.version: str | None = None
        self._program = ""
