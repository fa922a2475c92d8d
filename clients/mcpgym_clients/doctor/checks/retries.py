"""Retries: clients send a call again when an answer is late, and a call must not be made twice for that."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping

from mcpgym import meta_keys
from mcpgym_clients.doctor.calls import PlannedCall
from mcpgym_clients.doctor.context import Context
from mcpgym_clients.doctor.findings import Outcome
from mcpgym_clients.doctor.wire import Connection, brief, call

ADVICE = (
    "Some clients send a late call up to six times. Take a key (the header Idempotency-Key, or _meta's "
    "claudecode/toolUseId) and give a repeated call the first one's answer; where a tool may be repeated, declare "
    "idempotentHint."
)


async def retries(context: Context, outcome: Outcome) -> None:
    """A call that changes state, sent twice with one key: one after the other, and both at once."""
    found = await _changing(context)
    if found is None:
        hints = [context.tool(planned.tool).get("annotations") for planned in context.plan]
        if any(isinstance(hint, Mapping) and hint.get("idempotentHint") is True for hint in hints):
            outcome.passed("tools declare idempotentHint, so a client knows that it may repeat them")
        outcome.skip(
            "no call was seen to change state, so making it twice cannot be seen either",
            "Name one whose second answer differs from its first: --call TOOL=JSON.",
        )
        return
    planned, first, second = found
    era = context.isolated or context.era
    for way, together in (("again after its answer", False), ("again while it is in flight", True)):
        place = await context.subject.new_place() if context.has_places else None
        async with context.alone(era, place) as client:
            key = secrets.token_hex(8)
            if together:
                answers = list(await asyncio.gather(*(_with_key(client, planned, key) for _ in range(2))))
            else:
                answers = [await _with_key(client, planned, key) for _ in range(2)]
        await context.subject.leave(place)
        texts = sorted(answers)
        if texts == [first, first]:
            outcome.passed(f"{planned.tool} sent {way}, with the same key: made once, answered twice")
        elif texts == sorted([first, second]):
            outcome.warn(f"{planned.tool} sent {way}, with the same key: made twice", ADVICE)
        else:
            outcome.warn(f"{planned.tool} sent {way}: unlike before: {brief(' | '.join(texts), 120)}", ADVICE)


async def _with_key(client: Connection, planned: PlannedCall, key: str) -> str:
    meta = {meta_keys.IDEMPOTENCY: key, "claudecode/toolUseId": f"toolu_{key}"}
    headers = {"Idempotency-Key": key}
    answer = await call(client, planned.tool, dict(planned.arguments), meta=meta, headers=headers)
    return answer.seen


async def _changing(context: Context) -> tuple[PlannedCall, str, str] | None:
    """A first call whose repetition, without a key, is answered differently, with both answers.

    Only where clients are apart: else the difference may be another client's doing.
    """
    if context.isolated is None:
        return None
    for planned in context.plan:
        place = await context.subject.new_place() if context.has_places else None
        async with context.alone(context.isolated, place) as client:
            first, second = [(await call(client, planned.tool, dict(planned.arguments))).seen for _ in range(2)]
        await context.subject.leave(place)
        if first != second:
            return planned, first, second
    return None
