"""The policy that an agent product is: it plays each episode in its own loop, over MCP, at the episode's URL."""

from __future__ import annotations

import contextlib
import logging
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from mcpgym.calls import CallRecord
from mcpgym.errors import ConfigurationError, EpisodeEnded
from mcpgym.messages import Message, assistant
from mcpgym_clients.agents.contract import Agent, Ask, Said, Workplace
from mcpgym_clients.agents.places import workplace
from mcpgym_clients.agents.process import Ended, run
from mcpgym_clients.agents.shielding import Scrubber
from mcpgym_clients.agents.transcript import conversation
from mcpgym_rl.failures import explain, uninterrupted
from mcpgym_rl.lanes import EpisodeLane
from mcpgym_rl.policy import EpisodeContext, PolicyError, PolicySession, PolicyUnavailable, Usage
from mcpgym_rl.record import Record
from mcpgym_rl.rollout import Limits, why_ended
from mcpgym_rl.stop_reason import StopReason
from mcpgym_rl.traces import TraceCall, TraceUsage

logger = logging.getLogger(__name__)

LINGER_SECONDS = 30.0
"""How long an agent may go on (say its last words) once its episode is over."""
NOTED = 8
"""How many of the calls that never came to the server a trace names."""
NOTED_TEXT = 4_000
"""Characters of an agent's last words that are kept beside the conversation."""
_NO_KEY = re.compile(r"\b40[13]\b|API key|authentication", re.IGNORECASE)
"""How products say that their endpoint refused their key."""


class AgentPolicy:
    """An agent product that plays whole episodes.

    ``name`` says which agent and which model. ``model`` and ``base_url`` are for the price of its tokens.

    Args:
        agent: the product.
    """

    def __init__(self, agent: Agent) -> None:
        model = agent.model
        self.agent = agent
        self.model = "" if model is None else model.name
        own = getattr(agent, "default_url", "")
        self.base_url: str = own if model is None or model.url is None else model.url
        self.name = f"agent:{agent.name}({self.model})" if self.model else f"agent:{agent.name}"
        self.hidden = Scrubber(agent.secrets)

    @property
    def version(self) -> str | None:
        """Which version of the product it is, where that is known."""
        return self.agent.version

    def begin(self, context: EpisodeContext) -> PolicySession:
        """It is never asked for a turn.

        Raises:
            PolicyError: always.
        """
        raise PolicyError(f"{self.name} plays whole episodes in its own loop, and gives no single turn")

    async def play(self, episode: EpisodeLane, limits: Limits, record: Record) -> StopReason:
        """Play one episode; see :class:`mcpgym_rl.policy.OwnLoop`."""
        if episode.opened.url is None:
            raise ConfigurationError("this control plane states no URL for players, and an agent needs one")
        with workplace() as place:
            return await _Playing(self, episode, limits, record, place).play()

    async def aclose(self) -> None:
        """Nothing is held between episodes."""


class _Playing:
    """An agent at work on one episode."""

    def __init__(
        self, policy: AgentPolicy, episode: EpisodeLane, limits: Limits, record: Record, place: Workplace
    ) -> None:
        self.policy, self.agent, self.hidden = policy, policy.agent, policy.hidden
        self.episode, self.limits, self.record, self.place = episode, limits, record, place
        self._seen = 0
        self._answer = ""
        self._over_since: float | None = None

    async def play(self) -> StopReason:
        """Start it, and again for whatever the environment says, until something ends the episode.

        Raises:
            PolicyError: it broke.
            EpisodeEnded: the environment did.
        """
        deadline = None if self.limits.seconds is None else time.monotonic() + self.limits.seconds
        said, session = list(self.episode.opened.messages), None
        while True:
            told, ended = await self._once(said, session, deadline)
            reason, answer = await self._judged(told, ended)
            if reason is not None:
                return reason
            self.record.messages.append(assistant(answer))
            self.record.turns += 1
            more = await self.episode.respond(self.record.messages)
            if more is None:
                return await why_ended(self.episode)
            self.record.messages += more
            session = told.session
            if session is None or not self.agent.goes_on:
                self._note(limit="one prompt")  # the environment has more to say, and this product cannot be told
                return StopReason.TRUNCATED
            said = more

    async def _once(self, said: Sequence[Message], session: str | None, deadline: float | None) -> tuple[Said, Ended]:
        """One start of the product, from which the record grows whatever happens."""
        url = self.episode.opened.url
        assert url is not None
        system, text = _texts(said)
        try:
            start = self.agent.start(Ask(url, system, text, self.place, session))
            ended = await run(start, self.place, deadline, self._over)
        except OSError as error:
            raise PolicyError(f"{self.policy.name} cannot be started: {explain(error)}") from None
        except BaseException:
            with contextlib.suppress(Exception):  # what it did before the run was stopped
                await uninterrupted(self._write_down(Said(), None))
            raise
        told = self._read(ended.printed)
        await self._write_down(told, ended)
        return told, ended

    def _read(self, printed: bytes) -> Said:
        try:
            return self.agent.read(printed)
        except Exception as error:
            logger.debug("what %s printed cannot be read", self.policy.name, exc_info=error)
            return Said(failure=f"what it printed cannot be read ({type(error).__name__})")

    async def _over(self) -> bool:
        """Whether its episode has been over for long enough."""
        if not (await self.episode.status()).done:
            return False
        now = time.monotonic()
        self._over_since = self._over_since or now
        return now - self._over_since >= LINGER_SECONDS

    async def _write_down(self, told: Said, ended: Ended | None) -> None:
        record, version = self.record, told.version or self.agent.version
        log = await self._log()
        made = conversation(log, told.steps, self._seen)
        self._seen += len(log)
        record.messages += [self.hidden.value(message) for message in made.messages]
        record.calls += [TraceCall(one.name, one.arguments, one.text, one.is_error, round(one.milliseconds, 3))
                         for one in log]  # fmt: skip
        record.turns += made.turns
        record.add_usage(_less(told.usage, record.usage) if told.in_all else told.usage)
        after = self.hidden.text(made.after)
        self._answer = after
        self._note(
            name=self.agent.name,
            version=version,
            model=told.model or self.policy.model or None,
            endpoint=self.policy.base_url or None,
        )
        counts = {
            "untold_calls": made.untold,
            "not_sent": len(made.not_sent),
            "left_behind": ended.left if ended else 0,
        }
        for name, count in counts.items():
            if count:
                self._note(**{name: record.agent.get(name, 0) + count})
        if made.not_sent:
            self._note(not_sent_calls=[self.hidden.text(call.name[:100]) for call in made.not_sent[:NOTED]])
        if ended is not None:
            self._note(exit_code=ended.code, limit=ended.limit)
        if told.usd is not None:
            self._note(usd=told.usd)

    async def _log(self) -> list[CallRecord]:
        """The calls since the last start."""
        log = await self.episode.calls()
        hidden = self.hidden
        return [
            CallRecord(
                hidden.text(one.name),
                hidden.value(one.arguments) if isinstance(one.arguments, Mapping) else {},
                hidden.text(one.text),
                one.is_error,
                one.milliseconds,
            )
            for one in log[self._seen :]
        ]

    def _note(self, **facts: Any) -> None:
        self.record.agent = {**self.record.agent, **facts}

    async def _judged(self, told: Said, ended: Ended) -> tuple[StopReason | None, str]:
        """Why the episode is over; or None, and what the agent answered.

        Raises:
            PolicyError: the agent broke, or its endpoint did.
            EpisodeEnded: the environment broke, or the episode was closed.
        """
        status = await self.episode.status()
        if status.ended is not None or status.failure is not None:
            return await why_ended(self.episode), ""
        if status.done:
            if self._answer:
                self._note(last_words=self._answer[:NOTED_TEXT])  # in our own loop a policy says nothing after the end
            return StopReason(status.stop_reason or StopReason.DONE), ""
        if ended.broken is not None:
            raise PolicyError(self._failed(ended.broken, ended))
        silent = told.unanswered or (told.failure if told.everybody else None)
        if ended.limit == "time" and silent is not None:
            raise PolicyUnavailable(self._failed(f"{silent}, until the time limit", ended))
        if ended.limit in ("time", "output"):
            return StopReason.TRUNCATED, ""
        if ended.limit is not None:
            raise EpisodeEnded("the episode was over, and then was not")
        if told.out_of_turns:
            return StopReason.MAX_TURNS, ""
        if told.failure is not None:
            kind = PolicyUnavailable if told.everybody else PolicyError
            raise kind(self._failed(told.failure, ended))
        if ended.code != 0:
            how = f"exit code {ended.code}" if (ended.code or 0) >= 0 else f"signal {-(ended.code or 0)}"
            raise PolicyError(self._failed(f"it ended with {how}", ended))
        return None, self._answer

    def _failed(self, why: str, ended: Ended) -> str:
        """A failure in a sentence, with the last line that the agent wrote about it."""
        last = ended.errors.splitlines()[-1][:300] if ended.errors else ""
        text = f"{self.policy.name}: {why}" + (f" ({last})" if last and last not in why else "")
        if self.agent.key is not None and _NO_KEY.search(why):
            text += f" (is {self.agent.key} right?)"
        return self.hidden.text(text)[:1_000]


def _less(all_told: Usage, before: TraceUsage) -> Usage:
    """What came to ``before`` to make ``all_told``."""
    return Usage(
        max(0, all_told.prompt_tokens - before.prompt_tokens),
        max(0, all_told.completion_tokens - before.completion_tokens),
        None if all_told.cached_tokens is None else max(0, all_told.cached_tokens - (before.cached_tokens or 0)),
    )


def _texts(messages: Sequence[Message]) -> tuple[str, str]:
    """What the messages say as the system, and all else in one text: products take no conversation to go on with."""
    system = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
    others = [message for message in messages if message["role"] != "system"]
    if all(message["role"] == "user" for message in others):
        return system, "\n\n".join(message["content"] for message in others)
    named = {"user": "User", "assistant": "You", "tool": "Tool"}
    return system, "\n\n".join(f"{named[message['role']]}: {message['content']}" for message in others)
