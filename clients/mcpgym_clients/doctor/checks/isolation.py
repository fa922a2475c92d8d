"""Isolation: whose state a call reaches. Equal calls are made by clients alone and interleaved; in what they read, any
trace of each other shows.

The difference between shared state and an answer by chance is proven, not guessed: by a client that was alone (in
another era, or at another address), by a text that only another client had sent, or by answers that count on across
clients. Where nothing proves it, the verdict is a warning.
"""

from __future__ import annotations

import asyncio
import secrets
from random import Random

from mcpgym_clients.doctor.calls import PlannedCall, example_arguments, string_parameters
from mcpgym_clients.doctor.checks.runs_compared import (
    ROUNDS,
    counts_on,
    in_turn,
    proof,
    run,
    seen,
    stateful,
    visible,
    where,
)
from mcpgym_clients.doctor.context import Context
from mcpgym_clients.doctor.findings import Outcome
from mcpgym_clients.doctor.http_wire import HttpConnection
from mcpgym_clients.doctor.wire import Answer, Era, brief, call

CALLS = 4
CROWD = 8
"""Clients that call at once."""
COUNTED = 5
"""Clients that make one call each, to see whether their answers count on from one to the next."""
OTHER_SEED = 1
LEAST_PLACES = 4
"""Addresses with a state of their own that are needed in each era."""

URL_ADVICE = (
    "In revision 2026-07-28 there are no sessions and a client may open a connection per call: name whose state it is "
    "in the URL's path (/e/TOKEN/mcp), or in an argument that a start tool gives out."
)


async def isolation(context: Context, outcome: Outcome) -> None:
    """All of it; leaves in the context what a client alone gets, for the check of retries."""
    if not context.plan:
        outcome.skip("no tool may be called, and without calls no state shows", "Name one: --call TOOL=JSON.")
        return
    context.sequence = _sequence(context)
    if context.subject.places != 0:
        await _places(context, outcome)
    elif context.subject.transport == "stdio":
        await _processes(context, outcome)
    else:
        await _one_address(context, outcome)


def _sequence(context: Context) -> list[PlannedCall]:
    """The calls of one client: each planned one, and one more with other arguments, several times over."""
    chosen = context.plan[:CALLS]
    if not chosen[0].named and len(chosen) < CALLS:
        for planned in chosen:
            other = example_arguments(context.tool(planned.tool), Random(OTHER_SEED))
            if other != dict(planned.arguments) and len(chosen) < CALLS:
                chosen = [*chosen, PlannedCall(planned.tool, other)]
    return [*chosen] * ROUNDS


async def _places(context: Context, outcome: Outcome) -> None:
    """Many addresses, each with a state of its own, in both eras; one client each, at once."""
    there = context.subject.places
    each = CROWD + 3 if there is None else there // len(context.eras)
    if each < LEAST_PLACES:
        wanted = LEAST_PLACES * len(context.eras)
        outcome.skip(f"{there} other URLs are too few to compare", f"Give {wanted} of them: --place URL.")
        return
    for era in context.eras:
        places = [await context.subject.new_place() for _ in range(each - 1)]
        clients = [await context.subject.connect(era, place=place) for place in places]
        try:
            first, second, *crowd = clients
            alone = await run(first, context.sequence)
            again = await run(second, context.sequence)
            if seen(alone) != seen(again):
                outcome.warn(
                    f"{era}: equal calls of the same task differ between two clients: {where(alone, again)}",
                    "Answers by chance? Then nothing can be said of isolation; seed them by the episode.",
                )
                continue
            context.solo = alone
            context.isolated = era
            together = await asyncio.gather(*(run(client, context.sequence) for client in crowd))
            if wrong := [answers for answers in together if seen(answers) != seen(alone)]:
                outcome.fail(
                    f"{era}: {len(wrong)} of {len(crowd)} clients at once read something else than one alone: "
                    f"{where(alone, wrong[0])}",
                    "The state of two addresses is mixed: keep it in what the address names, nowhere else.",
                )
            else:
                outcome.passed(
                    f"{era}: {len(crowd)} clients at once, each at an address of its own, read what one alone reads"
                    f"{visible(alone)}"
                )
            await _reconnects(context, outcome, era)
        finally:
            for client, place in zip(clients, places, strict=True):
                await client.close()
                await context.subject.leave(place)


async def _reconnects(context: Context, outcome: Outcome, era: Era) -> None:
    """At one address a new connection for each call, as some clients do."""
    assert context.solo is not None
    place = await context.subject.new_place()
    answers: list[Answer] = []
    for planned in context.sequence:
        async with context.alone(era, place) as client:
            answers.append(await call(client, planned.tool, dict(planned.arguments)))
    await context.subject.leave(place)
    if seen(answers) == seen(context.solo):
        outcome.passed(f"{era}: a new connection and session for each call reaches the same state")
    else:
        outcome.fail(
            f"{era}: a new connection for each call loses the state: {where(context.solo, answers)}", URL_ADVICE
        )


async def _processes(context: Context, outcome: Outcome) -> None:
    """Processes of a stdio server, side by side, calling in turn."""
    for era in context.eras[:1] if context.quick else context.eras:
        clients = [await context.subject.connect(era) for _ in range(2)]
        try:
            together = await in_turn(clients, context.sequence)
        finally:
            for client in clients:
                await client.close()
        async with context.alone(era) as client:
            alone = await run(client, context.sequence)
        first, second = together
        if seen(first) == seen(second) == seen(alone):
            context.solo, context.isolated = alone, era
            outcome.passed(f"{era}: two processes, calling in turn, read what one alone reads{visible(alone)}")
        elif why := proof([first, second, alone], None) or await _counting(context, era):
            outcome.fail(f"{era}: processes share state: {why}", "Keep state in the process, or name it in a call.")
        else:
            outcome.warn(
                f"{era}: equal calls differ between processes: {where(first, second, alone)}",
                "Answers by chance, or a file that processes share? Seed them, or name other calls: --call.",
            )


async def _one_address(context: Context, outcome: Outcome) -> None:
    """Clients of one URL, in each era: the handshake first, because its sessions may keep clients apart."""
    for era in reversed(context.eras):
        clients = [await context.subject.connect(era) for _ in range(2)]
        try:
            together = await in_turn(clients, context.sequence)
        finally:
            for client in clients:
                await client.close()
        async with context.alone(era) as client:
            third = await run(client, context.sequence)
        runs = [*together, third]
        canary = await _canary(context, era)
        if canary:
            outcome.fail(f"{era}: what one client sent, another reads: {canary}", URL_ADVICE)
        elif len({seen(run) for run in runs}) == 1:
            if context.solo is None or seen(third) == seen(context.solo):
                await _apart(context, outcome, era, third)
            elif stateful(third):
                outcome.warn(
                    f"{era}: clients read something else than in the other era: {where(context.solo, third)}",
                    URL_ADVICE,
                )
            else:
                outcome.fail(
                    f"{era}: a client's state is lost from call to call (what it reads in the other era | here): "
                    f"{where(context.solo, third)}",
                    URL_ADVICE,
                )
        elif why := proof(runs, context.solo) or await _counting(context, era):
            outcome.fail(f"{era}: clients of one URL share state: {why}", URL_ADVICE)
        else:
            outcome.warn(
                f"{era}: equal calls of three clients differ: {where(*runs)}",
                "Answers by chance, or shared state? Name calls whose answers depend on state alone: --call TOOL=JSON.",
            )


async def _apart(context: Context, outcome: Outcome, era: Era, alone: list[Answer]) -> None:
    """Three clients read the same: are they apart, or is there no state to see?"""
    if not stateful(alone):
        outcome.passed(f"{era}: three clients read the same, and no call changed what a later one reads")
        return
    context.solo, context.isolated = alone, era
    clients = [await context.subject.connect(era) for _ in range(CROWD)]
    try:
        crowd = await asyncio.gather(*(run(client, context.sequence) for client in clients))
    finally:
        for client in clients:
            await client.close()
    if wrong := [answers for answers in crowd if seen(answers) != seen(alone)]:
        outcome.fail(
            f"{era}: {len(wrong)} of {CROWD} clients at once read something else: {where(alone, wrong[0])}",
            "The states of sessions get mixed under load: find what is keyed on less than the session.",
        )
        return
    outcome.passed(f"{era}: {CROWD} clients at once read what one alone reads{visible(alone)}")
    await _key(context, outcome, era, alone)


async def _key(context: Context, outcome: Outcome, era: Era, alone: list[Answer]) -> None:
    """What tells the clients of one URL apart: the session id, or the TCP connection."""
    half = len(context.sequence) // ROUNDS
    begin, rest = context.sequence[:half], context.sequence[half:]
    owner = await context.subject.connect(era)
    assert isinstance(owner, HttpConnection)
    await run(owner, begin)
    other = owner.beside(owner.session)
    same_session = seen(await run(other, rest)) == seen(alone[half:])
    await other.abandon()
    fresh = HttpConnection(owner.url, era, owner.headers, context.subject.timeout).through(owner)
    await fresh.open()
    same_connection = seen(await run(fresh, begin)) != seen(alone[:half])
    await fresh.close()
    await owner.close()
    if same_connection:
        outcome.fail(
            f"{era}: state hangs on the TCP connection: another client of the same connection reads it",
            "Proxies and pools share connections between clients. " + URL_ADVICE,
        )
    elif owner.session is not None and same_session:
        outcome.warn(
            f"{era}: state hangs on the session id (Mcp-Session-Id): it follows the id to another connection, "
            "and a client that opens a session for each call (as LangChain's does by default) loses it",
            URL_ADVICE,
        )
    else:
        outcome.warn(
            f"{era}: what holds the state was not found: neither the session id nor the connection", URL_ADVICE
        )


async def _canary(context: Context, era: Era) -> str:
    """A text that one client sends and another reads; empty if none is."""
    texts = [(planned, next(string_parameters(context.tool(planned.tool)), None)) for planned in context.plan]
    mark = f"canary{secrets.token_hex(6)}"
    async with context.alone(era) as writer, context.alone(era) as reader:
        sent = []
        for planned, parameter in texts:
            if parameter is not None and not planned.named:
                await call(writer, planned.tool, {**planned.arguments, parameter: mark})
                sent.append(planned.tool)
        if not sent:
            return ""
        for planned, _ in texts:
            answer = await call(reader, planned.tool, dict(planned.arguments))
            if mark in answer.seen:
                return f"{mark}, sent to {' or '.join(sent)}, came back from {planned.tool}: {brief(answer.text, 80)}"
    return ""


async def _counting(context: Context, era: Era) -> str:
    """Why clients that make one call each cannot be apart: their answers count on; empty if they do not."""
    for planned in context.plan[:CALLS]:
        texts = []
        for _ in range(COUNTED):
            async with context.alone(era) as client:
                texts.append((await call(client, planned.tool, dict(planned.arguments))).text)
        if counts_on(texts):
            return "each calls once, and the answers count on: " + " · ".join(brief(text, 30) for text in texts)
    return ""
