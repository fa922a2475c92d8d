"""The page of what can be configured, made from the classes that read it: ``python -m tests.website.configuration``.

Types, bounds and defaults come from each class's JSON schema, the words from its docstrings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import distribution
from typing import Any

from mcpgym import load_environment
from mcpgym_clients.cards.tables import prose, table
from mcpgym_rl.training.recipe import Recipe

Schema = Mapping[str, Any]
COLUMNS = ["field", "default", "what it is"]
NO_DEFAULT, UNSET = object(), "unset"
BOUNDS = {
    "exclusiveMinimum": "> {}", "minimum": "≥ {}", "exclusiveMaximum": "< {}", "maximum": "≤ {}",
    "minLength": "≥ {} characters", "maxLength": "≤ {} characters",
}  # fmt: skip
WORDS = {"string": "text", "integer": "integer", "number": "number", "boolean": "true or false", "null": UNSET}
HEAD = """\
# Configuration of environments and training

This page is made from the classes that read the configuration whenever the site is built. Unknown fields are refused, with the
nearest name; so are values outside the bounds.

## Environments

Each field is set with `--config name=value`, wherever a command takes an environment, in the table `[config]` of a recipe, or in
Python: `load_environment("tic-tac-toe", {"max_random_move_prob": 0})`. `mcpgym list NAME` shows the same.

"""  # noqa: E501
RECIPE = """\
## Recipes

A recipe is a TOML file with everything that a training run depends on: `mcpgym train FILE`. Each heading is a table of it, and each
field is also set with `--set`, for example `--set rl.steps=2`. [Training](../training.md) says when to change what.

"""  # noqa: E501


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    ours = distribution("mcpgym").entry_points.select(group="mcpgym.environments")
    for name in sorted(ours.names):
        parts += _environment(name)
    parts.append(RECIPE)
    schema = Recipe.model_json_schema()
    parts += section(schema, schema["$defs"], "", {})
    return "".join(parts)


def _environment(name: str) -> Iterator[str]:
    """The fields of an environment's configuration."""
    schema = load_environment(name).config_class.model_json_schema()
    yield f"### {name}\n\n"
    fields = schema.get("properties", {})
    rows = [_row(field, of, of.get("default", NO_DEFAULT), schema.get("$defs", {})) for field, of in fields.items()]
    yield table(COLUMNS, rows) + "\n" if rows else "Nothing.\n\n"


def section(schema: Schema, definitions: Schema, path: str, defaults: Schema) -> Iterator[str]:
    """A table of a recipe, then the tables within it.

    Args:
        schema: the JSON schema of the table.
        definitions: what it refers to.
        path: its name in TOML; empty for what stands before any table.
        defaults: what the table around it puts into its fields, where that is not their own default.
    """
    yield f"### {'Before any table' if not path else f'[{path}]'}\n\n{_prose(schema.get('description', ''))}\n\n"
    rows, below = [], []
    for name, field in schema["properties"].items():
        default = defaults.get(name, field.get("default", NO_DEFAULT))
        inner = _table(field, definitions)
        if inner is None:
            rows.append(_row(name, field, default, definitions))
        elif field.get("type") == "array":
            rows.append([f"`[[{name}]]`<br>tables", "none", f"{_prose(field.get('description', ''))} As `[rl]`."])
        else:
            below.append((f"{path}.{name}" if path else name, inner, default if isinstance(default, dict) else {}))
    if rows:
        yield table(COLUMNS, rows) + "\n"
    for name, inner, values in below:
        yield from section(inner, definitions, name, values)


def _table(field: Schema, definitions: Schema) -> Schema | None:
    """The table that a field is, or None."""
    for one in [field, *field.get("anyOf", []), field.get("items", {})]:
        if isinstance(one, dict) and "$ref" in one:
            found: Schema = definitions[one["$ref"].rpartition("/")[2]]
            return found if "properties" in found else None
    return None


def _row(name: str, field: Schema, default: object, definitions: Schema) -> list[str]:
    shown = "required" if default is NO_DEFAULT else UNSET if default is None else f"`{_value(default)}`"
    takes = ", ".join(filter(None, (_kind(field, definitions), _bounds(field))))
    return [f"`{name}`<br>{takes}", shown, _prose(field.get("description", ""))]


def _value(value: object) -> str:
    """A default as TOML has it, which for these is JSON."""
    return json.dumps(value, ensure_ascii=False)


def _kind(field: Schema, definitions: Schema) -> str:
    """What a field takes, in words."""
    if "$ref" in field:
        return _kind(definitions[field["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in field:
        return " or ".join(_kind(one, definitions) for one in field["anyOf"] if one.get("type") != "null")
    if "enum" in field or "const" in field:
        return " or ".join(f"`{value}`" for value in field.get("enum", [field.get("const")]))
    if field["type"] == "array":
        inside = field.get("items") or field.get("prefixItems", [{"type": "string"}])[0]
        many = f"{len(field['prefixItems'])} " if "prefixItems" in field else "list of "
        return many + _kind(inside, definitions) + ("s" if inside.get("type") in WORDS else "")
    if field["type"] == "object":
        inside = field.get("additionalProperties")
        return f"table of {_kind(inside, definitions)}s" if isinstance(inside, dict) else "table"
    return WORDS[field["type"]]


def _bounds(field: Schema) -> str:
    """The bounds that a schema has, its alternatives' included."""
    of = [field, *field.get("anyOf", [])]
    return ", ".join(form.format(f"{one[key]:,}") for key, form in BOUNDS.items() for one in of if key in one)


def _prose(text: str) -> str:
    """A docstring as one line of Markdown: its roles are code."""
    return prose(re.sub(r":\w+:`~?([^`]+)`", r"`\1`", " ".join(text.replace("``", "`").split())))


if __name__ == "__main__":
    print(page(), end="")
