"""Text and structured content: hosts show a model one or the other, so both have to say the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mcpgym_clients.doctor.context import Context
from mcpgym_clients.doctor.findings import Outcome
from mcpgym_clients.doctor.wire import Answer, brief, call

ONE_OF_TWO = "Some hosts show the model only the structured content, others only the text: say the same in both."


async def contents(context: Context, outcome: Outcome) -> None:
    """The answers of the planned calls."""
    if not context.plan:
        outcome.skip("no tool may be called", "Name one: --call TOOL=JSON.")
        return
    async with context.fresh() as client:
        for planned in context.plan:
            answer = await call(client, planned.tool, dict(planned.arguments))
            if not answer.answered:
                outcome.fail(f"{planned.tool}: {answer.shown()}", "Answer every call, with isError when it went wrong.")
            elif answer.error is not None:
                outcome.skip(f"{planned.tool}: refused our arguments: {answer.shown(80)}", "Name some: --call.")
            else:
                _compare(outcome, planned.tool, answer, context.tool(planned.tool).get("outputSchema"))


def _compare(outcome: Outcome, tool: str, answer: Answer, declared: Any) -> None:
    result = answer.result or {}
    blocks = result.get("content")
    structured = result.get("structuredContent")
    if not isinstance(blocks, list) or not all(isinstance(block, Mapping) and "type" in block for block in blocks):
        outcome.fail(
            f"{tool}: its content is no list of blocks: {brief(json.dumps(blocks), 80)}", "See CallToolResult."
        )
        return
    kinds = {str(block["type"]) for block in blocks}
    if answer.is_error:
        if not answer.text:
            outcome.fail(f"{tool}: an error without text", "A model cannot mend what it is not told.")
        else:
            outcome.passed(f"{tool}: an error, with text: {brief(answer.text, 60)}")
        return
    if isinstance(declared, Mapping):
        if structured is None:
            outcome.fail(
                f"{tool}: declares an output schema and sends no structured content",
                "SDK clients refuse such a result: send it, or drop the schema.",
            )
            return
        if problem := _misfit(structured, declared):
            outcome.fail(f"{tool}: its structured content does not fit its schema: {problem}", "SDK clients refuse it.")
            return
    if structured is None:
        outcome.passed(f"{tool}: {' and '.join(sorted(kinds)) or 'no'} content, nothing structured: all see the same")
    elif not answer.text:
        outcome.warn(f"{tool}: structured content and no text", ONE_OF_TWO)
    elif _same(answer.text, structured, blocks):
        outcome.passed(f"{tool}: text and structured content say the same")
    else:
        told = f"{brief(answer.text, 70)!r} and {brief(json.dumps(structured), 70)}"
        outcome.warn(f"{tool}: text and structured content differ: {told}", ONE_OF_TWO)


def _same(text: str, structured: Any, blocks: list[Any]) -> bool:
    """Whether the text is the structured content as JSON, or what it wraps (``{"result": …}``)."""
    values = [structured]
    if isinstance(structured, Mapping) and len(structured) == 1:
        values.append(next(iter(structured.values())))
    texts = [str(block.get("text")) for block in blocks if isinstance(block.get("text"), str)]
    read = [_loaded(text), [_loaded(each) for each in texts], texts, text]
    return any(value == each for value in values for each in read)


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _misfit(value: Any, schema: Mapping[str, Any]) -> str:
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
    from jsonschema.exceptions import ValidationError  # type: ignore[import-untyped]

    try:
        Draft202012Validator(_harmless(dict(schema))).validate(value)
    except ValidationError as error:
        return brief(str(error.message), 100)
    except Exception as error:  # a reference that leads nowhere, a schema that is none: jsonschema raises what it likes
        return f"the schema itself is wrong: {brief(str(error), 80)}"
    return ""


def _harmless(schema: Any) -> Any:
    """A stranger's schema without what would fetch an address, or keep a regular expression busy for ever."""
    if isinstance(schema, list):
        return [_harmless(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept = {name: _harmless(each) for name, each in schema.items() if name not in ("pattern", "patternProperties")}
    if isinstance(reference := kept.get("$ref"), str) and not reference.startswith("#"):
        del kept["$ref"]
    kept.pop("$id", None)
    return kept
