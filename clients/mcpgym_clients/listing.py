"""``mcpgym list``: what is installed, and everything about one environment."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mcpgym.environment import Environment
from mcpgym.errors import MissingPackage
from mcpgym.registry import environment_class, environment_names, load_environment
from mcpgym_clients.console import clean, escaped, out

_NARROW = 110
"""With fewer columns than this a table would leave its last column a word a line."""
_FEW = 8
"""Tools that are named in the list of all environments."""


def list_environments(name: str | None, as_json: bool) -> None:
    """Print every installed environment, or all about ``name``.

    Raises:
        UnknownNameError: ``name`` is not installed.
        ConfigurationError: ``name`` is, but is broken.
    """
    if name is not None:
        with contextlib.redirect_stdout(sys.stderr):  # what an environment prints at import is no result of ours
            about = describe(load_environment(name))
        _print_json(about) if as_json else _print_one(about)
        return
    with contextlib.redirect_stdout(sys.stderr):
        found = [_describe_or_say_why(item) for item in environment_names()]
    _print_json(found) if as_json else _print_all(found)


def describe(environment: Environment[Any, Any, Any]) -> dict[str, Any]:
    """All that can be said of an environment, as JSON values."""
    schema = type(environment).config_class.model_json_schema()
    return {
        "name": environment.name,
        "version": environment.version,
        "description": environment.description,
        "splits": {split: environment.size(split) for split in environment.splits},
        "max_turns": environment.max_turns,
        "reproducible": environment.reproducible,
        "schema_hash": environment.schema_hash,
        "tools": [dict(tool.listing) for tool in environment.tools.values()],
        "rewards": {
            name: {"weight": item.weight, "low": item.low, "high": item.high, "description": item.description}
            for name, item in environment.rewards.items()
        },
        "config": _fields(schema, schema),
        "reference_policies": sorted(environment.reference_policies()),
    }


def _describe_or_say_why(name: str) -> dict[str, Any]:
    try:
        return describe(environment_class(name)())
    except MissingPackage as error:
        return {"name": name, "error": str(error), "missing": True}
    except (Exception, SystemExit) as error:  # another package's fault, whatever it is, must not hide the rest
        return {"name": name, "error": str(error) or type(error).__name__}


def _fields(section: Mapping[str, Any], schema: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The fields by name; those of a combination's members with the member's name in front."""
    found: dict[str, Any] = {}
    for name, field in section.get("properties", {}).items():
        inner = schema["$defs"][field["$ref"].rsplit("/", 1)[-1]] if "$ref" in field else {}
        if "properties" in inner:
            found |= _fields(inner, schema, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = _field(field, schema)
    return found


def _field(field: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    if "$ref" in field:
        field = {**schema["$defs"][field["$ref"].rsplit("/", 1)[-1]], **field}
    kept = {key: value for key, value in field.items() if key not in {"title", "$ref"}}
    return {"type": _type(field), **{key: value for key, value in kept.items() if key != "type"}}


def _type(field: Mapping[str, Any]) -> str:
    if "enum" in field:
        return " | ".join(json.dumps(value) for value in field["enum"])
    if "anyOf" in field:
        return " | ".join(_type(item) for item in field["anyOf"])
    return str(field.get("type", "any"))


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def _print_all(found: Sequence[Mapping[str, Any]]) -> None:
    if not found:
        out().print("No environment is installed. A package offers one by the entry-point group mcpgym.environments.")
        return
    for item in found if out().width < _NARROW else ():
        if "error" not in item:
            out().print(_entry(item))
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("environment", style="cyan", no_wrap=True)
    table.add_column("version", no_wrap=True)
    table.add_column("tasks", no_wrap=True)
    table.add_column("tools")
    table.add_column("schema", style="dim", no_wrap=True)
    table.add_column("what it is")
    for item in found:
        if "error" in item or out().width < _NARROW:
            continue
        splits = "\n".join(f"{split} {size:,}" for split, size in item["splits"].items())
        tools = _some([tool["name"] for tool in item["tools"]])
        table.add_row(
            escaped(item["name"]),
            escaped(item["version"]),
            escaped(splits),
            escaped(tools),
            item["schema_hash"][:12],
            escaped(item["description"]),
        )
    if table.row_count:
        out().print(table)
    for item in found:
        if "error" in item:
            what = "[yellow]not here[/yellow]" if item.get("missing") else "[red]broken[/red]"
            out().print(f"{what} [cyan]{escaped(item['name'])}[/cyan]: {escaped(item['error'])}")
    out().print("\n[dim]mcpgym list NAME says more of one; mcpgym play NAME lets you try it.[/dim]")


def _some(names: Sequence[str]) -> str:
    """The names, or the first of very many."""
    more = f", … ({len(names)} in all)" if len(names) > _FEW else ""
    return f"{', '.join(names[:_FEW])}{more}" or "none"


def _entry(item: Mapping[str, Any]) -> Group:
    """An environment where there is no room for a table."""
    splits = ", ".join(f"{split} {size:,}" for split, size in item["splits"].items())
    tools = _some([tool["name"] for tool in item["tools"]])
    facts = f"version {item['version']}; tasks: {splits}; tools: {tools}; schema {item['schema_hash'][:12]}"
    return Group(
        Text(clean(item["name"]), "cyan"),
        Padding(Text(clean(item["description"])), (0, 0, 0, 2)),
        Padding(Text(clean(facts), "dim"), (0, 0, 0, 2)),
    )


def _print_one(about: Mapping[str, Any]) -> None:
    splits = ", ".join(f"{split} ({size:,} tasks)" for split, size in about["splits"].items())
    turns = "no limit of its own" if about["max_turns"] is None else f"at most {about['max_turns']}"
    facts = Table.grid(padding=(0, 2, 0, 0))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row("splits", escaped(splits))
    facts.add_row("turns", turns)
    facts.add_row("replays", "byte for byte" if about["reproducible"] else "by its own rule: it is not reproducible")
    facts.add_row("policies", escaped(", ".join(about["reference_policies"]) or "none of its own"))
    facts.add_row("schema hash", about["schema_hash"])
    parts: list[Any] = [
        Text.assemble((about["name"], "bold cyan"), clean(f"  version {about['version']}")),
        Text(clean(about["description"])),
        Text(),
        facts,
    ]
    parts += [Text(), Text("tools", style="bold"), _tools(about["tools"])]
    parts += [Text(), Text("rewards", style="bold"), _rewards(about["rewards"])]
    parts += [Text(), Text("configuration (--config name=value)", style="bold"), _config(about["config"])]
    out().print(Group(*parts))


def _grid(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, show_header=True, header_style="dim", padding=(0, 2, 0, 0))
    for index, column in enumerate(columns):
        table.add_column(column, style="cyan" if index == 0 else "", no_wrap=index == 0, overflow="fold")
    return table


def _tools(tools: Sequence[Mapping[str, Any]]) -> Any:
    if not tools:
        return Text("none: the policy answers in text")
    parts: list[Any] = []
    for tool in tools:
        properties = tool["inputSchema"].get("properties", {})
        required = tool["inputSchema"].get("required", [])
        names = ", ".join(name if name in required else f"{name}=…" for name in properties)
        parts.append(Text.assemble((clean(f"{tool['name']}"), "cyan"), clean(f"({names})  {tool['description']}")))
        grid = Table.grid(padding=(0, 2, 0, 0))
        for name, schema in properties.items():
            default = f" Default {json.dumps(schema['default'])}." if "default" in schema else ""
            grid.add_row("   ", escaped(name), escaped(_constrained(schema)), escaped(schema["description"] + default))
        parts.append(grid)
    return Group(*parts)


def _rewards(rewards: Mapping[str, Mapping[str, Any]]) -> Any:
    if not rewards:
        return Text("none")
    grid = _grid("name", "weight", "range", "what it pays for")
    for name, item in rewards.items():
        weight = "metric" if item["weight"] == 0 else f"{item['weight']:g}"
        grid.add_row(escaped(name), weight, f"{item['low']:g} to {item['high']:g}", escaped(item["description"]))
    return grid


def _config(config: Mapping[str, Mapping[str, Any]]) -> Any:
    if not config:
        return Text("none")
    grid = _grid("name", "type", "default", "what it is")
    for name, field in config.items():
        default = json.dumps(field["default"], ensure_ascii=False) if "default" in field else "required"
        grid.add_row(
            escaped(name), escaped(_constrained(field)), escaped(default), escaped(field.get("description", ""))
        )
    return grid


def _constrained(schema: Mapping[str, Any]) -> str:
    """The type with its bounds: ``integer 0 to 8``."""
    low, high = (schema.get(key) for key in ("minimum", "maximum"))
    bounds = ""
    if low is not None and high is not None:
        bounds = f" {_bound(low)} to {_bound(high)}"
    elif low is not None:
        bounds = f" ≥ {_bound(low)}"
    elif high is not None:
        bounds = f" ≤ {_bound(high)}"
    return _type(schema) + bounds


def _bound(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"
