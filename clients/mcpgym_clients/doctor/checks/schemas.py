"""Tools as models see them: valid schemas at the fixed point that no client rewrites, described, and stable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from mcpgym.schema import MAX_INSTRUCTIONS, canonical_json, schema_faults
from mcpgym_clients.doctor.context import Context, list_tools, tools_counted
from mcpgym_clients.doctor.findings import Outcome
from mcpgym_clients.doctor.wire import brief

FIXED = (
    "Write the schema by hand: an object, additionalProperties false, every property described, no title, no null; "
    "then every client passes it on as it is."
)
MOST = 12
"""Faults that are shown."""


async def schemas(context: Context, outcome: Outcome) -> None:
    """Every tool's listing."""
    tools = context.listed
    if not tools:
        outcome.warn("it lists no tools", "A server without tools is of no use to most clients.")
        return
    names = Counter(str(tool.get("name")) for tool in tools)
    if twice := [name for name, count in names.items() if count > 1]:
        outcome.fail(f"listed more than once: {', '.join(twice[:5])}", "Hosts refuse or lose tools of equal names.")
    server = (context.facts.get("server") or "server").split(" ")[0]
    faults: list[str] = []
    for tool in tools:
        name = str(tool.get("name"))
        for part in ("inputSchema", "outputSchema"):
            if (invalid := _invalid(tool.get(part))) and (part == "inputSchema" or tool.get(part) is not None):
                outcome.fail(f"{name}: {part} is no JSON Schema: {brief(invalid)}", "Providers refuse it altogether.")
        faults += schema_faults(server, tool)
    for fault in faults[:MOST]:
        outcome.warn(brief(fault, 240), FIXED)
    if len(faults) > MOST:
        outcome.warn(f"and {len(faults) - MOST} more of the kind", FIXED)
    if not faults:
        outcome.passed(f"{tools_counted(len(tools))} at the fixed point: what is sent is what every model sees")
    async with context.client() as client:
        instructions = (client.opening.result or {}).get("instructions")
        if isinstance(instructions, str) and (size := len(instructions.encode())) > MAX_INSTRUCTIONS:
            outcome.warn(f"its instructions have {size} bytes", f"Claude Code cuts them at {MAX_INSTRUCTIONS}.")
        again, _ = await list_tools(client)
        if canonical_json(list(tools)) != canonical_json(again):
            outcome.warn(
                "a second list of tools differs from the first",
                "Keep the list stable: a prompt is cached by its bytes, and results are compared by schemas.",
            )


def _invalid(schema: Any) -> str:
    from jsonschema import Draft202012Validator, SchemaError  # type: ignore[import-untyped]

    if not isinstance(schema, Mapping):
        return "it is no object"
    try:
        Draft202012Validator.check_schema(dict(schema))
    except SchemaError as error:
        return str(error.message)
    except RecursionError:
        return "it is too deep"
    return ""
