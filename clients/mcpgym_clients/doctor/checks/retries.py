"""Calls of one state that come together: a retry must not be made twice, and of two different ones none may be lost."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping

from mcpgym import meta_keys
from mcpgym_clients.doctor.calls import PlannedCall
from mcpgym_clients.doctor.context import Context
from mcpgym_clients.doctor.findings import Outcome
from mcpgym_clients.doctor.wire import Connection, Era, call

PAIRS = 3
"""How often two different calls are sent at once."""
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
    era = context.isolated or context.era
    pairs = 1 if context.quick and context.subject.transport == "stdio" else PAIRS  # each costs a start there
    lost = await _lost(context, found, era, pairs)
    if lost:
        outcome.fail(
            f"{found.tool}: two calls at once, each with a key of its own: in {lost} of {pairs} pairs both were "
            "answered alike, so one of them was lost",
            "Make the calls of one state one at a time: else both read it, and the last write wins.",
        )
    else:
        outcome.passed(f"{found.tool}: of {pairs} pairs of calls at once, each with a key of its own, none was lost")
    ways = [("again after its answer", False)]
    if not lost:  # else equal answers do not tell of one call
        ways.append(("again while it is in flight", True))
    for way, together in ways:
        place = await context.subject.new_place() if context.has_places else None
        async with context.alone(era, place) as client:
            key = secrets.token_hex(8)
            if together:
                answers = await asyncio.gather(*(_with_key(client, found, key) for _ in range(2)))
            else:
                answers = [await _with_key(client, found, key) for _ in range(2)]
        await context.subject.leave(place)
        if len(set(answers)) == 1:
            outcome.passed(f"{found.tool} sent {way}, with the same key: made once, answered twice")
        else:
            outcome.warn(f"{found.tool} sent {way}, with the same key: made twice", ADVICE)


async def _lost(context: Context, planned: PlannedCall, era: Era, pairs: int) -> int:
    """How many of some pairs of different calls, equal but for their keys and sent at once, were answered alike."""
    lost = 0
    for _ in range(pairs):
        place = await context.subject.new_place() if context.has_places else None
        async with context.alone(era, place) as client:
            pair = await asyncio.gather(*(_with_key(client, planned, secrets.token_hex(8)) for _ in range(2)))
        await context.subject.leave(place)
        lost += pair[0] == pair[1]
    return lost


async def _with_key(client: Connection, planned: PlannedCall, key: str) -> str:
    meta = {meta_keys.IDEMPOTENCY: key, "claudecode/toolUseId": f"toolu_{key}"}
    headers = {"Idempotency-Key": key}
    answer = await call(client, planned.tool, dict(planned.arguments), meta=meta, headers=headers)
    return answer.seen


async def _changing(context: Context) -> PlannedCall | None:
    """A call whose repetition, without a key, is answered differently.

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
            return planned
    return None
