"""What an endpoint's tokens cost: from the table of genai-prices, which is never fetched, and from the user's own.

The user's is a TOML file with a table for each model, in US dollars per million tokens. A name may have the endpoint's
address, for a model that costs something else there::

    ["my-model"]
    input = 0.25
    cached_input = 0.025  # where left out: as input
    output = 2.0

    ["my-model@https://gateway.example/v1"]
    input = 0.3
    output = 2.4
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from mcpgym.errors import UnknownNameError
from mcpgym_clients.failures import UsageProblem
from mcpgym_rl.policies.endpoint import without_password
from mcpgym_rl.traces import TraceUsage

_REQUIRED, _OPTIONAL = ("input", "output"), ("cached_input",)
_FORM = (
    'write, for each model: ["MODEL"], input = USD, output = USD (per million tokens), and cached_input if it differs'
)


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens. ``source`` says where they are from, ``note`` what they leave out."""

    input: float
    cached_input: float
    output: float
    source: str
    note: str = ""

    def of(self, usage: TraceUsage) -> float:
        """What so many tokens cost, in US dollars."""
        cached = min(usage.cached_tokens or 0, usage.prompt_tokens)
        fresh = usage.prompt_tokens - cached
        return (fresh * self.input + cached * self.cached_input + usage.completion_tokens * self.output) / 1e6

    def as_json(self) -> dict[str, Any]:
        """The price as ``summary.json`` has it."""
        made = asdict(self)
        return made if self.note else {name: value for name, value in made.items() if name != "note"}


@runtime_checkable
class Priced(Protocol):
    """A policy whose tokens may have a price: it asks a model, at an endpoint (empty for one that is not known)."""

    name: str
    model: str
    base_url: str


def price_of(policy: Priced, file: Path | None) -> Price | None:
    """The price of a policy's tokens; None where it is not known.

    Args:
        policy: the endpoint.
        file: the user's own prices, which go before others.

    Raises:
        UsageProblem: the file cannot be read, or holds something else; the message says what, and what would be right.
    """
    if file is not None:
        own = _read(file)
        for name in (f"{policy.model}@{policy.base_url}", policy.model):
            if name in own:
                return _own(own[name], file, name)
    return _published(policy)


def _read(file: Path) -> Mapping[str, Mapping[str, Any]]:
    try:
        read = tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageProblem(f"--prices {file} cannot be read: {error}") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageProblem(f"--prices {file} is no TOML: {error}; {_FORM}") from None
    for model, price in read.items():
        where = f"--prices {file}, {without_password(model)!r}"
        if not isinstance(price, dict):
            raise UsageProblem(f"{where} is {price!r:.40}, not a table of prices; {_FORM}")
        for name in price:
            if name not in (*_REQUIRED, *_OPTIONAL):
                raise UsageProblem(f"{where}: {UnknownNameError('price', name, (*_REQUIRED, *_OPTIONAL))}; {_FORM}")
        for name in _REQUIRED:
            if name not in price:
                raise UsageProblem(f"{where}: {name} is missing; {_FORM}")
        for name, value in price.items():
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number or not math.isfinite(value) or value < 0:
                raise UsageProblem(f"{where}: {name} is {value!r:.40}; it must be a number of US dollars, 0 or more")
    return read


def _own(price: Mapping[str, Any], file: Path, name: str) -> Price:
    source = f"{file.name}: {without_password(name)}"
    cached = price.get("cached_input", price["input"])
    return Price(float(price["input"]), float(cached), float(price["output"]), source)


def _published(policy: Priced) -> Price | None:
    """The provider's, known by its address; a model of that name elsewhere has another price, or none."""
    from datetime import UTC, datetime

    import genai_prices
    from genai_prices.data_snapshot import get_snapshot

    try:
        provider, model = get_snapshot().find_provider_model(policy.model, None, None, policy.base_url)
    except LookupError:
        return None
    found = model.get_prices(datetime.now(UTC))
    rates = [getattr(found, name, None) for name in ("input_mtok", "cache_read_mtok", "output_mtok")]
    base = [getattr(rate, "base", rate) for rate in rates]
    if base[0] is None or base[2] is None:
        return None
    tiers = [tier.start for rate in rates for tier in getattr(rate, "tiers", ())]
    note = f"requests with more than {min(tiers):,} tokens of prompt cost more than this" if tiers else ""
    read, written = float(base[0]), float(base[2])
    cached = read if base[1] is None else float(base[1])
    source = f"genai-prices {genai_prices.__version__}: {provider.id}, {model.id}"
    return Price(read, cached, written, source, note)
