"""Big and odd arguments, as models and broken clients send them: each must be answered, and the server live on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from mcpgym_clients.doctor.calls import example_arguments, properties_of, schema_of, string_parameters
from mcpgym_clients.doctor.context import Context
from mcpgym_clients.doctor.findings import Outcome
from mcpgym_clients.doctor.wire import Answer, Connection, Era, brief, encode, envelope

MEGABYTE = 1_000_000
DEEP = 500
"""Levels of a nest; JSON's own limits are lower in some servers, so any refusal is good."""


@dataclass(frozen=True, slots=True)
class Case:
    """Odd arguments: what they are called, their JSON, and whether a tool may take them (None: that is up to it)."""

    name: str
    json: bytes
    may_pass: bool | None = None


async def arguments(context: Context, outcome: Outcome) -> None:
    """Each case once, to the tool that takes most kinds of them."""
    tool = _chosen(context)
    if tool is None:
        outcome.skip("no tool may be called", "Name one: --call TOOL=JSON.")
        return
    name = str(tool["name"])
    good = {**example_arguments(tool, Random(0))}
    for planned in context.plan:
        if planned.tool == name:
            good = dict(planned.arguments)
    answered = 0
    for case in cases(tool, good):
        async with context.client() as client:
            answer = await client.raw(_request(client, name, case.json), tool=name)
            if _one(outcome, name, case, answer):
                answered += 1
            if not answer.answered and (gone := await context.alive(client)):
                outcome.fail(f"{name}, {case.name}: then the server was gone: {gone}", "No argument may end a server.")
                if context.subject.transport == "http":
                    return
    if answered:
        outcome.passed(f"{name}: {answered} odd arguments answered, and the server lives")


def cases(tool: Mapping[str, Any], good: Mapping[str, Any]) -> Iterator[Case]:
    """Arguments near those that are ``good``, and far from them."""
    deep = b"[" * DEEP + b"0" + b"]" * DEEP
    closed = schema_of(tool).get("additionalProperties") is False
    yield Case("no arguments at all", b"null")
    yield Case("a list for arguments", b"[1, 2]", False)
    yield Case("a text for arguments", b'"play"', False)
    yield Case("an unknown argument", encode({**good, "no_such_argument": 1}), False if closed else None)
    yield Case("a nest of 500 lists", _with(good, "no_such_argument", deep))
    yield Case("an argument named __proto__", encode({**good, "__proto__": {"a": 1}}))
    for parameter, schema in properties_of(tool).items():
        kind = schema.get("type")
        typed = isinstance(kind, str)
        yield Case(f"{parameter}: a nest of 500 lists", _with(good, parameter, deep), False if typed else None)
        yield Case(f"{parameter}: a list", encode({**good, parameter: [[]]}), False if kind in _PLAIN else None)
        if kind in ("integer", "number"):
            yield Case(f"{parameter}: 10 to the 400th", _with(good, parameter, b"1" + b"0" * 400))
            yield Case(f"{parameter}: 1e999", _with(good, parameter, b"1e999"))
            yield Case(f"{parameter}: NaN", _with(good, parameter, b"NaN"))
            yield Case(f"{parameter}: -1e308", _with(good, parameter, b"-1e308"))
            yield Case(f"{parameter}: a text", encode({**good, parameter: "four"}), False)
        break
    for parameter in string_parameters(tool):
        for words, text in _TEXTS.items():
            yield Case(f"{parameter}: {words}", encode({**good, parameter: text}))
        yield Case(f"{parameter}: a megabyte", encode({**good, parameter: "x" * MEGABYTE}))
        break
    else:
        yield Case("an unknown argument of a megabyte", encode({**good, "no_such_argument": "x" * MEGABYTE}))


_PLAIN = ("string", "integer", "number", "boolean")
_TEXTS = {
    "an empty text": "",
    "emoji and right-to-left": "🎲 \u202eabc\u202c ÄÖ 日本",
    "NUL and other control characters": "a\x00b\x1b[31mc\x07",
    "half a surrogate pair": "\ud800",
    "what a shell, SQL or a path would read": "'; DROP TABLE x; -- $(true) ../../../etc/passwd",
    "line ends of every kind": "a\r\nb\u2028c\u2029d\x85e",
}


def _one(outcome: Outcome, tool: str, case: Case, answer: Answer) -> bool:
    """Judge one answer; whether it was a good one."""
    told = f"{tool}, {case.name}"
    if answer.status is not None and answer.status >= 500:
        outcome.fail(
            f"{told}: {answer.shown()}", "A wrong argument is the caller's fault: answer it, do not fail on it."
        )
    elif not answer.answered:
        if answer.status is not None and 400 <= answer.status < 500:
            return True
        outcome.fail(f"{told}: {answer.shown()}", "Answer every request; bound what a request may weigh.")
    elif case.may_pass is False and not answer.refused:
        outcome.warn(
            f"{told}: accepted: {brief(answer.text, 60)}",
            "Refuse what the schema does not allow (additionalProperties false, strict types), and say so.",
        )
    elif answer.code == -32603:
        outcome.warn(f"{told}: {answer.shown(80)}", "Say what was wrong with the argument: -32602 or a tool's error.")
    else:
        return True
    return False


def _chosen(context: Context) -> Mapping[str, Any] | None:
    """Of the tools that may be called, one with text among its arguments, else one with any, else the first."""
    tools = [context.tool(planned.tool) for planned in context.plan]
    tools = [tool for tool in tools if tool]
    tools.sort(key=lambda tool: (not list(string_parameters(tool)), not properties_of(tool)))
    return tools[0] if tools else None


def _request(client: Connection, tool: str, arguments: bytes) -> bytes:
    meta = envelope(client.era, None)
    extra = b',"_meta":' + encode(meta) if client.era is Era.MODERN else b""
    return (
        b'{"jsonrpc":"2.0","id":7001,"method":"tools/call","params":{"name":'
        + encode(tool)
        + b',"arguments":'
        + arguments
        + extra
        + b"}}"
    )


def _with(good: Mapping[str, Any], name: str, value: bytes) -> bytes:
    rest = encode({key: kept for key, kept in good.items() if key != name})
    return rest[:-1] + (b"," if len(rest) > 2 else b"") + encode(name) + b":" + value + b"}"
