"""The packages that imported environments stand on: asked for late, and missed with the line that brings them."""

from __future__ import annotations

import importlib
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from types import ModuleType

from mcpgym import Requirement
from mcpgym.errors import MissingPackage


class Extra:
    """One package: the module that is imported, what the package is called, and how to install it.

    Args:
        environment: the environment that stands on it.
        module: its top-level module.
        package: its name on the index.
        install: the command that brings it, and all that it needs.
    """

    def __init__(self, environment: str, module: str, package: str, install: str) -> None:
        self.environment = environment
        self.module = module
        self.package = package
        self.install = install

    @property
    def installed(self) -> bool:
        """Whether it is there; nothing is imported."""
        return find_spec(self.module) is not None

    @property
    def version(self) -> str:
        """The installed version; empty if there is none."""
        try:
            return version(self.package)
        except PackageNotFoundError:
            return ""

    def check(self) -> None:
        """Refuse to go on without it.

        Raises:
            MissingPackage: it is not installed.
        """
        if not self.installed:
            raise MissingPackage(f"{self.environment} needs {self.package}, which is not here: {self.install}")

    def load(self, module: str = "") -> ModuleType:
        """Import it, or one of its modules (``.core``).

        Raises:
            MissingPackage: it, or something that it needs, is not installed.
        """
        self.check()
        try:
            return importlib.import_module(f"{self.module}{module}")
        except ImportError as error:
            raise MissingPackage(
                f"{self.environment}: {self.package} {self.version} cannot be imported here ({error}): {self.install}"
            ) from error

    def requirement(self) -> Requirement:
        """What ``mcpgym doctor --sandbox`` shows of it."""
        found = f"version {self.version}" if self.installed else "not installed"
        return Requirement(self.package, self.installed, found, "" if self.installed else self.install)
