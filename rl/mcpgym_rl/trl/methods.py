"""A tool as a method of the kind TRL makes tool schemas from: a signature, type hints and a Google-style docstring.

TRL asks transformers' ``get_json_schema`` what a method takes. That knows names, descriptions, types, choices and what
is required; of bounds, defaults and the fields of nested objects it knows nothing (the server checks them all
the same). What it makes of each method is compared with what the server lists, so that nothing else is lost on the way.
"""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Mapping
from typing import Any, Literal

from mcpgym.errors import ConfigurationError

_TYPES: Mapping[str, Any] = {"integer": int, "number": float, "string": str, "boolean": bool, "object": dict}
_TAKEN = frozenset({"reset", "get_reward"})


def method_of(listing: Mapping[str, Any]) -> Callable[..., str]:
    """The method for a tool as the server lists it; its class must have ``_call(name, arguments)``.

    Raises:
        ConfigurationError: TRL has no way to name or describe it; the message says what stands in the way.
    """
    name, properties = str(listing["name"]), listing["inputSchema"]["properties"]
    for what, word in (("tool", name), *(("parameter", parameter) for parameter in properties)):
        if not word.isidentifier() or keyword.iskeyword(word):
            raise ConfigurationError(f"{name}: TRL's tools are Python methods, which can have no {what} named {word!r}")
    if name in _TAKEN or name.startswith("_"):
        raise ConfigurationError(f"TRL takes no method named {name!r} for a tool; rename the tool")

    def call(self: Any, /, **arguments: Any) -> Any:
        return self._call(name, arguments)

    required = listing["inputSchema"].get("required", ())
    hints = {parameter: _hint(schema) for parameter, schema in properties.items()}
    call.__name__, call.__qualname__ = name, name
    call.__annotations__ = hints
    call.__doc__ = _docstring(listing)
    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)]
        + [
            inspect.Parameter(
                parameter,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=hint,
                default=inspect.Parameter.empty if parameter in required else properties[parameter].get("default"),
            )
            for parameter, hint in hints.items()
        ]
    )
    if lost := lost_on_the_way(call, listing):
        raise ConfigurationError(f"{name}: TRL would show the policy another {lost} than the server lists")
    return call


def lost_on_the_way(method: Callable[..., Any], listing: Mapping[str, Any]) -> str | None:
    """What of a listed tool transformers' schema of ``method`` shows otherwise; None where all it can show is right."""
    from transformers.utils.chat_template_utils import get_json_schema

    try:
        made = get_json_schema(method)["function"]
    except Exception as error:
        return f"schema ({error})"
    wanted = listing["inputSchema"]
    parts = {
        "name": (made["name"], listing["name"]),
        "description": (_words(made["description"]), _words(listing["description"])),
        "list of required parameters": (
            sorted(made["parameters"].get("required", ())),
            sorted(wanted.get("required", ())),
        ),
        "list of parameters": (list(made["parameters"]["properties"]), list(wanted["properties"])),
    }
    for parameter, schema in wanted["properties"].items():
        shown = made["parameters"]["properties"].get(parameter, {})
        parts[f"description of {parameter}"] = (_words(shown.get("description")), _words(schema["description"]))
        parts[f"type of {parameter}"] = (_type(shown), _type(schema))
    return next((what for what, (one, other) in parts.items() if one != other), None)


def _hint(schema: Mapping[str, Any]) -> Any:
    if choices := schema.get("enum"):
        return Literal[tuple(choices)]
    if schema.get("type") == "array":
        return list[_hint(schema.get("items", {}))]  # type: ignore[misc]
    return _TYPES.get(str(schema.get("type")), Any)


def _type(schema: Mapping[str, Any]) -> Any:
    """What both sides can say of a type."""
    items = _type(schema["items"]) if "items" in schema else None
    return schema.get("type"), tuple(schema.get("enum", ())), items


def _docstring(listing: Mapping[str, Any]) -> str:
    lines = [str(listing["description"])]
    if properties := listing["inputSchema"]["properties"]:
        lines += ["", "Args:", *(f"    {name}: {_words(schema['description'])}" for name, schema in properties.items())]
    return "\n".join(lines)


def _words(text: Any) -> str:
    return " ".join(str(text).split())
