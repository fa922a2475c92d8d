"""What a person may change in a client's settings: the configuration fields that a form can show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcpgym.environment import Config
from mcpgym.errors import UnknownNameError

_KINDS = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean"}
_EXACT = 2**53
"""Beyond this a number in JSON may be another to the client."""


@dataclass(frozen=True, slots=True)
class Settings:
    """``form`` is what the manifest's ``user_config`` says, ``values`` each field as it is without a change, and
    ``fixed`` the ``name=value`` of what was configured and is not in the form."""

    form: Mapping[str, Mapping[str, Any]]
    values: Mapping[str, str]
    fixed: Sequence[str]


def settings_of(config: Config, given: Mapping[str, str], wanted: Sequence[str] | None) -> Settings:
    """The settings of a bundle.

    Args:
        config: the configuration that the bundle starts from.
        given: what of it was chosen on the command line.
        wanted: the fields to offer; None for all that a form can show.

    Raises:
        UnknownNameError: one of those wanted is no field, or a form cannot show it.
    """
    fields = type(config).model_json_schema().get("properties", {})
    form = {}
    for name, schema in fields.items():
        if (shown := _shown(name, schema, getattr(config, name))) is not None:
            form[name] = shown
    if wanted is not None:
        for name in wanted:
            if name not in form:
                raise UnknownNameError("field that settings can show", name, form)
        form = {name: form[name] for name in form if name in wanted}
    values = {name: _text(getattr(config, name)) for name in form}
    return Settings(form, values, [f"{name}={value}" for name, value in given.items() if name not in form])


def _shown(name: str, schema: Mapping[str, Any], value: Any) -> dict[str, Any] | None:
    kind = _KINDS.get(str(schema.get("type", "string" if "enum" in schema or "const" in schema else "")))
    if kind is None or not isinstance(value, (str, int, float)):
        return None
    description = " ".join(str(schema.get("description") or name).split())
    if choices := schema.get("enum"):
        description = f"{description} One of: {', '.join(map(str, choices))}."
    made: dict[str, Any] = {
        "type": kind,
        "title": name.replace("_", " ").capitalize(),
        "description": description,
        "required": False,
    }
    if not isinstance(value, str) or (
        value.isprintable() and "${" not in value
    ):  # clients fill in what ${…} stands for
        made["default"] = value
    for limit, field in (("min", "minimum"), ("max", "maximum")):
        if kind == "number" and abs(schema.get(field, _EXACT)) < _EXACT:
            made[limit] = schema[field]
    return made


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
