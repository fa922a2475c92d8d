"""BFCL's API classes, an instance of each for each episode.

BFCL keeps instances in the global names of a module and evaluates texts of Python on them. Here a call is a method, its
arguments are values, and an instance belongs to one episode. The modules are loaded a second time for us alone, so that
a day on which a passenger turns eighteen can be told them without changing BFCL for anybody else.
"""

from __future__ import annotations

import contextlib
import copy
import datetime
import importlib.util
import inspect
import json
import sys
from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import Any

from mcpgym.errors import MissingPackage
from mcpgym_environments.imported.bfcl.data import Row
from mcpgym_environments.imported.bfcl.guards import restored_precision
from mcpgym_environments.imported.bfcl.package import EXTRA, folder

FILES = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "TwitterAPI": "posting_api",
    "VehicleControlAPI": "vehicle_control",
}
"""The file of each API, without its ending: of its code, and of what is said about its functions."""
STATELESS = frozenset({"MathAPI"})
_HERE = "mcpgym_environments.imported.bfcl.theirs"


class _Day(datetime.datetime):
    """BFCL's clock stands: its trading day is the first of September 2024, and so it is everywhere."""

    @classmethod
    def today(cls) -> _Day:
        return cls(2024, 9, 1, 10, 30)

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> _Day:
        return cls(2024, 9, 1, 10, 30, tzinfo=tz)


class Apis:
    """The instances that one task involves, as its initial configuration has them."""

    def __init__(self, row: Row) -> None:
        self.instances: dict[str, Any] = {}
        for name in row.apis:
            made = api_class(name)()
            if name not in STATELESS:
                made._load_scenario(copy.deepcopy(row.initial.get(name, {})), long_context=row.long_context)
            self.instances[name] = made

    def call(self, api: str, function: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """What a call answers, as BFCL would write it, and whether it failed inside the API."""
        try:
            with restored_precision() if api == "MathAPI" else contextlib.nullcontext():
                found = getattr(self.instances[api], function)(**copy.deepcopy(dict(arguments)))
                return _text(found), False
        except Exception as error:
            return f"Error during execution: {error}", True


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        try:
            return json.dumps(value)
        except (TypeError, ValueError, RecursionError):
            return str(value)
    return str(value)


@cache
def api_class(name: str) -> Any:
    """The class of an API.

    Raises:
        MissingPackage: BFCL is not installed, or lacks it.
    """
    return getattr(_module(FILES[name]), name)


@cache
def parameters(api: str, function: str) -> tuple[str, ...]:
    """The names of a function's parameters, in their order."""
    return tuple(inspect.signature(getattr(api_class(api), function)).parameters)[1:]


@cache
def _module(name: str) -> ModuleType:
    path = folder() / "eval_checker" / "multi_turn_eval" / "func_source_code" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"{_HERE}.{name}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise MissingPackage(f"bfcl: {EXTRA.package} {EXTRA.version} has no {name}.py: {EXTRA.install}")
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    try:
        spec.loader.exec_module(made)
    except ImportError as error:
        del sys.modules[spec.name]
        raise MissingPackage(f"bfcl: {name}.py cannot be imported here ({error}): {EXTRA.install}") from error
    if getattr(made, "datetime", None) is datetime.datetime:
        made.datetime = _Day  # type: ignore[attr-defined]
    return made
