"""Sessions that are gone: one that never was, and one that was deleted. A client must learn to begin anew."""

from __future__ import annotations

from mcpgym_clients.doctor.context import Context, list_page
from mcpgym_clients.doctor.findings import Outcome
from mcpgym_clients.doctor.http_wire import HttpConnection
from mcpgym_clients.doctor.wire import Answer, Era

STATUS_ADVICE = "Answer HTTP 404 to a session you do not know: that is what makes clients begin a new one."


async def dead_sessions(context: Context, outcome: Outcome) -> None:
    """A made-up session, a deleted one, and whether one is given at all."""
    if Era.HANDSHAKE not in context.eras:
        outcome.skip("there are no sessions without the handshake")
        return
    async with context.client(Era.HANDSHAKE) as client:
        assert isinstance(client, HttpConnection)
        if client.session is None:
            outcome.passed("it gives out no session ids, so none can be lost")
            ghost = client.beside("made-up-by-the-doctor")
            answer = await list_page(ghost)
            await ghost.abandon()
            if answer.result is None and answer.status != 404:
                outcome.warn(f"a session id it never gave: {answer.shown(80)}", STATUS_ADVICE)
            return
        if not client.session.isascii() or not client.session.isprintable():
            outcome.fail("its session id has characters that a header may not have", "Use visible ASCII characters.")
        if len(client.session) < 16:
            outcome.warn(f"its session ids have {len(client.session)} characters", "Make them 128 random bits or more.")
        ghost = client.beside("made-up-by-the-doctor")
        _judge(outcome, "a session id it never gave", await list_page(ghost))
        await ghost.abandon()
        async with context.client(Era.HANDSHAKE) as other:
            assert isinstance(other, HttpConnection)
            if other.session == client.session:
                outcome.fail("two clients were given one session id", "Make a new one for each, 128 random bits.")
            session = other.session
            deleted = await other.send("DELETE", None, {}, patience=5)
            if deleted.status == 405:
                outcome.passed("it does not let clients end sessions (405), as it may")
            else:
                after = other.beside(session)
                _judge(outcome, "a session that was deleted", await list_page(after))
                await after.abandon()
            other.session = None
        if gone := await context.alive(client):
            outcome.fail(f"then its living session: {gone}", "A dead session must not harm another.")


def _judge(outcome: Outcome, case: str, answer: Answer) -> None:
    if answer.status == 404:
        outcome.passed(f"{case}: {answer.shown(60)}")
    elif answer.status is None:
        outcome.fail(f"{case}: {answer.shown()}", STATUS_ADVICE)
    elif answer.result is not None:
        outcome.warn(f"{case} is served all the same", STATUS_ADVICE)
    else:
        outcome.warn(f"{case}: {answer.shown(80)}", STATUS_ADVICE)
