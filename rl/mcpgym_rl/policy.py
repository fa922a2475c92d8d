"""What a policy is to the rollout loop: messages and tools in, one assistant turn out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from mcpgym.messages import Message

if TYPE_CHECKING:
    from mcpgym_rl.lanes import EpisodeLane
    from mcpgym_rl.record import Record
    from mcpgym_rl.rollout import Limits
    from mcpgym_rl.stop_reason import StopReason


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens one turn took, where the policy counts them. ``cached_tokens`` of the prompt's were in a cache, where the
    policy says so (None where it does not): they may cost less."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int | None = None

    def __add__(self, other: Usage) -> Usage:
        cached = [usage.cached_tokens for usage in (self, other) if usage.cached_tokens is not None]
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            sum(cached) if cached else None,
        )


class PolicyError(Exception):
    """The policy could give no turn; the rollout is unscored, with this text as its reason.

    ``usage`` is what it took all the same.
    """

    usage: Usage = Usage()


class PolicyUnavailable(PolicyError):
    """The policy can give no turn to anybody now: its endpoint is gone, or refuses us. Several in a row end a run."""


class ContextFull(PolicyError):
    """The conversation no longer fits the policy's context: the rollout is truncated, which is the policy's own end."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a local policy sampled in one turn: ids of the whole context so far, which of them it sampled, and their
    log-probabilities (0.0 where not sampled) at the temperature they were sampled at. All have the same length.

    ``temperatures`` is that temperature for each token (0.0 where not sampled); None when all that was sampled had the
    policy's own.
    """

    ids: Sequence[int]
    mask: Sequence[bool]
    logprobs: Sequence[float]
    temperatures: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One assistant turn. ``finish`` is ``length`` when the token limit cut it off.

    ``message`` is what goes into the transcript; malformed calls stay in it as the policy wrote them.
    """

    message: Message
    finish: Literal["stop", "length"] = "stop"
    usage: Usage = field(default_factory=Usage)
    tokens: Tokens | None = None


@dataclass(frozen=True, slots=True)
class EpisodeContext:
    """What a policy may know when a rollout begins: nothing that is hidden.

    ``seed`` seeds the policy's own randomness for this rollout; it is not the episode's. ``given`` are the turns with
    which the rollout is resumed: they stand in the transcript, but this policy is not asked for them.
    ``temperatures`` are those of the first, second… turn that it is asked for; the turns after them have its own.
    """

    environment: str
    tools: Sequence[Mapping[str, Any]]
    seed: int
    given: Sequence[Turn] = ()
    temperatures: Sequence[float] = ()


class PolicySession(Protocol):
    """A policy at work on one rollout; it may keep what it needs (a KV cache, a generator) until it is closed.

    A session may also have ``fork() -> PolicySession``: an independent one that stands where this one stands.
    """

    async def act(self, messages: Sequence[Message]) -> Turn:
        """The next assistant turn after ``messages``.

        Raises:
            ContextFull: the conversation does not fit any more.
            PolicyUnavailable: there is none, and there would be none for any other conversation.
            PolicyError: there is none.
        """
        ...

    async def aclose(self) -> None:
        """Let go of what the session keeps."""
        ...


class Policy(Protocol):
    """Whatever produces assistant turns: a script, an endpoint, a local model.

    A policy may also say ``deterministic`` (whether it answers the same conversation always in the same way) and
    ``hash`` (of its weights, in hexadecimal): certificates state them.
    """

    name: str

    def begin(self, context: EpisodeContext) -> PolicySession:
        """A session for one rollout."""
        ...

    async def aclose(self) -> None:
        """Let go of connections and memory."""
        ...


@runtime_checkable
class OwnLoop(Protocol):
    """A policy that plays whole episodes by itself, as an agent product does: it is never asked for a turn.

    The rollout opens the episode, records what ``play`` writes down, has it scored and closes it.
    """

    async def play(self, episode: EpisodeLane, limits: Limits, record: Record) -> StopReason:
        """Play the episode to an end, within the limits on turns and time, and write down in ``record`` what happened.

        Raises:
            PolicyError: the policy broke, or could not play; the rollout is unscored.
        """
        ...
