"""What is known of a rollout while it is under way, and the trace that it becomes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcpgym.control import OpenedEpisode
from mcpgym.messages import Message
from mcpgym.rewards import Score
from mcpgym_rl.parse import MalformedCall, ParsedCall, parse
from mcpgym_rl.policy import Tokens, Turn, Usage
from mcpgym_rl.stop_reason import StopReason
from mcpgym_rl.traces import Trace, TraceCall, TraceError, TraceScore, TraceTokens, TraceUsage


@dataclass(slots=True)
class Record:
    """What is known of a rollout so far. ``tried`` counts its tool calls, those that were not run included."""

    policy: str
    environment: str
    task: str
    split: str
    seed: int
    config: Mapping[str, Any]
    environment_version: str = ""
    schema_hash: str = ""
    prompt_messages: int = 0
    messages: list[Message] = field(default_factory=list)
    calls: list[TraceCall] = field(default_factory=list)
    stop_reason: StopReason | None = None
    score: Score | None = None
    error: TraceError | None = None
    tokens: Tokens | None = None
    usage: TraceUsage = field(default_factory=TraceUsage)
    turns: int = 0
    given_turns: int = 0
    tried: int = 0
    repeat: int = 0
    place: int = 0
    conditions: Mapping[str, Any] = field(default_factory=dict)
    agent: Mapping[str, Any] = field(default_factory=dict)
    began: bool = False
    started: float = field(default_factory=time.monotonic)

    def opened(self, episode: OpenedEpisode) -> None:
        """The episode is open."""
        self.task, self.split, self.config = episode.task, episode.split, episode.config
        self.environment_version, self.schema_hash = episode.environment_version, episode.schema_hash
        self.conditions = episode.conditions
        self.began = True
        self.messages = list(episode.messages)
        self.prompt_messages = len(self.messages)

    def add_turn(self, turn: Turn, *, given: bool = False) -> list[ParsedCall | MalformedCall]:
        """Append a turn; its calls. What a given one cost, and its tokens, are another rollout's."""
        message, calls = parse(turn.message)
        self.messages.append(message)
        self.turns += 1
        if given:
            self.given_turns += 1
            return calls
        self.add_usage(turn.usage)
        self.tokens = turn.tokens or self.tokens
        return calls

    def add_usage(self, usage: Usage) -> None:
        """What a turn took, also one that came to nothing."""
        own = self.usage
        made = Usage(own.prompt_tokens, own.completion_tokens, own.cached_tokens) + usage
        self.usage = TraceUsage(made.prompt_tokens, made.completion_tokens, made.cached_tokens)

    def fail(self, reason: StopReason, kind: str, message: str) -> None:
        """The rollout has no score, for this reason."""
        self.stop_reason, self.score, self.error = reason, None, TraceError(kind, message)

    def trace(self) -> Trace:
        """The trace as things stand."""
        score, tokens = self.score, self.tokens
        return Trace(
            environment=self.environment,
            environment_version=self.environment_version,
            task=self.task,
            split=self.split,
            seed=self.seed,
            config=self.config,
            schema_hash=self.schema_hash,
            policy=self.policy,
            messages=self.messages,
            calls=self.calls,
            stop_reason=self.stop_reason or StopReason.CANCELLED,
            score=None
            if score is None
            else TraceScore(score.total, score.components, score.game_outcome, score.receipt),
            error=self.error,
            tokens=None if tokens is None else _trace_tokens(tokens),
            repeat=self.repeat,
            place=self.place,
            prompt_messages=self.prompt_messages,
            turns=self.turns,
            given_turns=self.given_turns,
            usage=self.usage,
            seconds=round(time.monotonic() - self.started, 6),
            conditions=self.conditions,
            agent=self.agent,
        )


def _trace_tokens(tokens: Tokens) -> TraceTokens:
    return TraceTokens(tokens.ids, tokens.mask, tokens.logprobs, tokens.temperatures)
