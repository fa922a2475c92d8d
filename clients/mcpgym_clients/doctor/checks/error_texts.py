"""Errors as a model reads them: said to it, about what it did, and nothing of the server's insides."""

from __future__ import annotations

import re
from typing import Any

from mcpgym_clients.doctor.calls import required_of
from mcpgym_clients.doctor.context import Context
from mcpgym_clients.doctor.findings import Outcome
from mcpgym_clients.doctor.wire import Answer, Connection, brief, call

INSIDES = re.compile(
    r"Traceback \(most recent|\.py\", line \d+|/site-packages/|at [\w.$]+ \([^)]*:\d+:\d+\)|/home/\w+/"
)
EMPTY = re.compile(r"(internal( server)? error|error|unknown error|something went wrong|request failed)[.!]?", re.I)


async def error_texts(context: Context, outcome: Outcome) -> None:
    """An unknown tool, a missing argument, one of the wrong kind, and JSON that is none."""
    async with context.client() as client:
        wrong = "no_such_tool_of_the_doctor"
        _judge(outcome, "an unknown tool", await call(client, wrong, {}), wrong)
        await _wrong_arguments(context, client, outcome)
        await _not_json(context, client, outcome)


async def _wrong_arguments(context: Context, client: Connection, outcome: Outcome) -> None:
    for tool in context.listed:
        required, name = required_of(tool), str(tool.get("name"))
        if not required or not context.permission.allows(tool):
            continue
        first = required[0]
        _judge(outcome, f"{name} without {first}", await call(client, name, {}), first)
        odd: dict[str, Any] = {each: {"an object": [1]} for each in required}
        _judge(outcome, f"{name} with objects for all arguments", await call(client, name, odd), first)
        return
    outcome.skip("no tool that may be called has a required argument, so none could be wrong")


async def _not_json(context: Context, client: Connection, outcome: Outcome) -> None:
    answer = await client.raw(b'{"jsonrpc": "2.0", "id": 9001, "method": ', patience=min(3.0, context.subject.timeout))
    if answer.code == -32700:
        outcome.passed(f"broken JSON: {answer.shown(60)}")
    elif answer.answered:
        outcome.warn(f"broken JSON: {answer.shown(80)}", "Answer with error -32700.")
    elif answer.status is not None and 400 <= answer.status < 500:
        outcome.passed(f"broken JSON: {answer.shown(60)}")
    else:
        why = answer.shown(80)
        outcome.warn(f"broken JSON: {why}", "Answer with error -32700, so that whoever sent it learns of it.")
    if gone := await context.alive(client):
        outcome.fail(f"after broken JSON: {gone}", "One bad message must not end a server.")


def _judge(outcome: Outcome, case: str, answer: Answer, mentioned: str) -> None:
    if not answer.answered:
        advice = "Answer it: as a tool's error (isError) or as error -32602, with a text that says what is wrong."
        outcome.fail(f"{case}: {answer.shown()}", advice)
    elif not answer.refused:
        outcome.warn(f"{case}: accepted: {answer.shown(80)}", "Refuse it, or a model will not learn what it did wrong.")
    elif INSIDES.search(answer.text):
        outcome.warn(
            f"{case}: the answer shows the server's insides: {answer.shown(200)}",
            "Say what was wrong with the call; keep stack traces and paths in the log.",
        )
    elif not answer.text.strip() or EMPTY.fullmatch(answer.text.strip()):
        outcome.warn(f"{case}: {answer.shown()}", "Say what was wrong: a model reads this and tries again.")
    elif mentioned.lower() not in answer.text.lower():
        outcome.warn(f"{case}: the answer does not name {mentioned}: {answer.shown()}", "Name what was wrong.")
    else:
        how = "as a tool's error" if answer.is_error else f"as error {answer.code}"
        outcome.passed(f"{case}: {how}: {brief(answer.text, 90)}")
