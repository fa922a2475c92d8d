"""Sessions of a policy that is asked at every point of a game tree; where need be twice, for it must answer alike."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mcpgym.errors import ConfigurationError
from mcpgym.messages import Message
from mcpgym_rl.failures import explain, leaves
from mcpgym_rl.parse import parse, write_text
from mcpgym_rl.policy import ContextFull, EpisodeContext, Policy, PolicyError, PolicySession, Turn

logger = logging.getLogger(__name__)


class NotDeterministic(ConfigurationError):
    """The policy answers the same conversation in more than one way, so no certificate can speak for it."""


def deterministic(policy: Policy) -> bool | None:
    """What a policy says of itself: ``deterministic``, or ``temperature`` (greedy at 0); None where it says neither."""
    said: Any = getattr(policy, "deterministic", None)
    if isinstance(said, bool):
        return said
    temperature: Any = getattr(policy, "temperature", None)
    return None if temperature is None else bool(temperature == 0)


@dataclass(frozen=True, slots=True)
class Player:
    """A policy at one point of its game: its session, and a second one where it is asked twice."""

    policy: Policy
    contexts: Sequence[EpisodeContext]
    sessions: Sequence[PolicySession]

    @classmethod
    def begin(cls, policy: Policy, contexts: Sequence[EpisodeContext]) -> Player:
        """A player at the beginning of a game; one session for each context.

        Raises:
            PolicyError: the policy cannot begin.
        """
        return cls(policy, contexts, [_begun(policy, context) for context in contexts])

    async def act(self, messages: Sequence[Message]) -> Turn | None:
        """The next turn; None where the conversation does not fit any more.

        Raises:
            PolicyError: there is none.
            NotDeterministic: there are two.
        """
        try:
            if len(self.sessions) == 1:
                return await _turn(self.policy, self.sessions[0], messages)
            turns = await asyncio.gather(*(_turn(self.policy, session, messages) for session in self.sessions))
        except ContextFull:
            return None
        told = [(turn.finish, _told(turn.message)) for turn in turns]
        if told[0] != told[1]:
            raise NotDeterministic(
                f"{self.policy.name} answers the same conversation in two ways: after {_last(messages)!r}, once "
                f"{_short(told[0][1])!r} and once {_short(told[1][1])!r}"
            )
        return turns[0]

    async def branch(self, turns: Sequence[Turn], count: int) -> list[Player]:
        """``count`` players at the point after ``turns``, this one among them where it may be.

        A session that cannot be forked is closed, and begun anew for each: it gets ``turns`` as given ones.
        """
        if not count:
            await self.aclose()
            return []
        forks = [getattr(session, "fork", None) for session in self.sessions]
        if count == 1 or all(fork is not None for fork in forks):
            others = [[fork() for fork in forks if fork is not None] for _ in range(count - 1)]
            return [self, *(replace(self, sessions=sessions) for sessions in others)]
        await self.aclose()
        contexts = [replace(context, given=tuple(turns)) for context in self.contexts]
        return [Player.begin(self.policy, contexts) for _ in range(count)]

    async def aclose(self) -> None:
        """Let go of the sessions."""
        for session in self.sessions:
            try:
                await session.aclose()
            except Exception as error:
                logger.info("a session of %s could not be closed: %s", self.policy.name, explain(error))


def _begun(policy: Policy, context: EpisodeContext) -> PolicySession:
    try:
        return policy.begin(context)
    except PolicyError:
        raise
    except Exception as error:
        raise PolicyError(
            f"{policy.name} could not begin: {type(leaves(error)[0]).__name__}: {explain(error)}"
        ) from error


async def _turn(policy: Policy, session: PolicySession, messages: Sequence[Message]) -> Turn:
    try:
        turn = await session.act(list(messages))
    except PolicyError:
        raise
    except Exception as error:
        raise PolicyError(f"{policy.name} failed: {_whole(error)}") from error
    message: Any = turn.message if isinstance(turn, Turn) else turn
    if not isinstance(turn, Turn) or not isinstance(message, Mapping) or message.get("role") != "assistant":
        raise PolicyError(f"a turn must be a Turn with an assistant message, not {str(message)[:200]}")
    return turn


def _whole(error: Exception) -> str:
    return f"{type(leaves(error)[0]).__name__}: {explain(error)}"


def _told(message: Message) -> str:
    """What a turn says; the ids of its calls are left out, for endpoints draw them."""
    return write_text(parse(message)[0])


def _last(messages: Sequence[Message]) -> str:
    return _short(messages[-1]["content"]) if messages else ""


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 120 else f"{line[:119]}…"
