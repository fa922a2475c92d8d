"""The examination itself: which checks there are, in which order, and that none of them can end it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from mcpgym_clients.doctor.checks.arguments import arguments
from mcpgym_clients.doctor.checks.cancellation import cancellation
from mcpgym_clients.doctor.checks.contents import contents
from mcpgym_clients.doctor.checks.dead_sessions import dead_sessions
from mcpgym_clients.doctor.checks.eras import eras, official_client
from mcpgym_clients.doctor.checks.error_texts import error_texts
from mcpgym_clients.doctor.checks.isolation import isolation
from mcpgym_clients.doctor.checks.leaks import leaks
from mcpgym_clients.doctor.checks.retries import retries
from mcpgym_clients.doctor.checks.schemas import schemas
from mcpgym_clients.doctor.checks.shutdown import shutdown
from mcpgym_clients.doctor.checks.waiting import waiting
from mcpgym_clients.doctor.checks.web_pages import web_pages
from mcpgym_clients.doctor.context import Context
from mcpgym_clients.doctor.findings import Examination, Outcome
from mcpgym_clients.failures import CommandFailed

HTTP = frozenset({"http"})
STDIO = frozenset({"stdio"})
BOTH = HTTP | STDIO


@dataclass(frozen=True)
class Check:
    """One check: its stable name, what it asks, how it is made, and of which servers."""

    name: str
    question: str
    run: Callable[[Context, Outcome], Awaitable[None]]
    transports: frozenset[str] = BOTH


CHECKS = (
    Check("eras", "Does it speak both eras of the protocol, and say the same in each?", eras),
    Check("sdk-client", "Does the official SDK's client connect, list and call?", official_client),
    Check("schemas", "Do all models see the tools as they were written?", schemas),
    Check("contents", "Do text and structured content say the same?", contents),
    Check("error-texts", "Can a model read what it did wrong?", error_texts),
    Check("arguments", "Does it survive big and odd arguments?", arguments),
    Check("isolation", "Are clients apart from each other, in every era?", isolation),
    Check("retries", "Is a call that is sent twice made once, and none of two lost?", retries),
    Check("cancellation", "Does it survive clients that leave in mid-call?", cancellation),
    Check("waiting", "Does it answer soon, and keep idle connections?", waiting),
    Check("dead-sessions", "Does it say so when a session is gone?", dead_sessions, HTTP),
    Check("web-pages", "Is it closed to web pages that point a name of theirs at it?", web_pages, HTTP),
    Check("leaks", "Do sessions leave nothing behind?", leaks),
    Check("shutdown", "Does it end with its client, and say nothing but protocol?", shutdown, STDIO),
)
"""Every check, in the order they are made: the first two find out what the others build on."""


async def examine(
    context: Context,
    only: Sequence[str] = (),
    starting: Callable[[str], None] = lambda question: None,
) -> Examination:
    """Make every check, or those in ``only`` (and ``eras``, which the others need).

    Raises:
        CommandFailed: nothing can be learnt of the server, for no client can connect.
    """
    made = Examination(
        context.subject.described, context.subject.transport, datetime.now(UTC).isoformat(timespec="seconds")
    )
    try:
        for check in CHECKS:
            if context.subject.transport not in check.transports:
                continue
            if only and check.name not in (*only, "eras"):
                continue
            starting(check.question)
            outcome = Outcome(check.name, check.question)
            made.outcomes.append(outcome)
            started = time.monotonic()
            try:
                await check.run(context, outcome)
            except (OSError, CommandFailed) as error:  # a server that does not start again, say
                outcome.fail(f"the check could not be ended: {error}", "See whether the server still runs.")
            except Exception as error:  # an answer that nobody thought of: the other checks are still worth making
                outcome.fail(
                    f"the check stumbled over an answer: {type(error).__name__}: {error}",
                    "See what the server answered; a report of it would mend the doctor.",
                )
            outcome.seconds = time.monotonic() - started
            if check.name == "eras" and not context.eras:
                raise CannotConnect("; ".join(found.evidence for found in outcome.findings))
    finally:
        await context.end()
    made.facts = dict(context.facts)
    return made


class CannotConnect(Exception):
    """No client can connect; the text says what happened instead."""
