"""What OpenTelemetry is told of a rollout: rollout → turn → sample and tool calls, and the score at its end."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from mcpgym.control import OpenedEpisode
from mcpgym.rewards import Score
from mcpgym.telemetry import switch
from mcpgym.telemetry.sections import NOTHING, Nothing, Section, Template, named, section
from mcpgym.telemetry.spans import Kind, Owner, Value, digest
from mcpgym_rl.lanes import EpisodeLane, McpEpisode
from mcpgym_rl.policy import Turn
from mcpgym_rl.record import Record

TURN = Template("turn")
SCORE = Template("score")


class RolloutSection(Section):
    """The span of a rollout; it says on leaving how the rollout ended."""

    __slots__ = ("_record",)

    def __init__(self, record: Record) -> None:
        assert switch.recorder is not None
        about = (
            ("gen_ai.operation.name", "invoke_agent"),
            ("gen_ai.agent.name", policy_name(record.policy)),
            ("mcpgym.environment", record.environment),
        )
        super().__init__(switch.recorder, named(f"rollout {record.environment}", about=about))
        self._record = record

    def __enter__(self) -> RolloutSection:
        super().__enter__()
        return self

    def opened(self, episode: OpenedEpisode) -> None:
        """The episode is open: from here on it has a name."""
        self.owner = Owner({"mcpgym.episode": digest(episode.token)}, self.context)

    def __exit__(self, *exception: Any) -> None:
        record = self._record
        self.note(
            {
                "mcpgym.task": record.task,
                "mcpgym.split": record.split,
                "mcpgym.turns": record.turns,
                "mcpgym.calls": len(record.calls),
                "mcpgym.stop_reason": "" if record.stop_reason is None else str(record.stop_reason.value),
            }
        )
        if record.error is not None:
            self.fail(record.error.kind)
        super().__exit__(*exception)


def watched(record: Record) -> RolloutSection | Nothing:
    """A span around a whole rollout; None comes of it while telemetry is off."""
    return NOTHING if switch.recorder is None else RolloutSection(record)


def section_of_sample(policy: str) -> Section | Nothing:
    """A span around what a policy takes for one turn."""
    return NOTHING if switch.recorder is None else section(_sample(policy), shared=True)


def section_of_call(tool: str, episode: EpisodeLane) -> Section | Nothing:
    """A span around one tool call, named as the way it goes has it. A name that is no tool's is not told."""
    if switch.recorder is None:
        return NOTHING
    known = any(tool == listed.get("name") for listed in episode.opened.tools)
    return section(_call(tool if known else "_unknown", isinstance(episode, McpEpisode)))


@lru_cache(256)
def _sample(policy: str) -> Template:
    name = policy_name(policy)
    return Template(f"chat {name}", Kind.CLIENT, {"gen_ai.operation.name": "chat", "gen_ai.request.model": name})


@lru_cache(1024)
def _call(tool: str, over_mcp: bool) -> Template:
    about = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
    if not over_mcp:
        return Template(f"execute_tool {tool}", Kind.CLIENT, about)
    return Template(f"tools/call {tool}", Kind.CLIENT, {"mcp.method.name": "tools/call", **about})


def tell_sample(span: Section | None, turn: Turn) -> None:
    """What a turn took."""
    if span is None:
        return
    usage = turn.usage
    told: dict[str, Value] = {"gen_ai.response.finish_reasons": (turn.finish,)}
    if usage.prompt_tokens or usage.completion_tokens:
        told |= {
            "gen_ai.usage.input_tokens": usage.prompt_tokens,
            "gen_ai.usage.output_tokens": usage.completion_tokens,
        }
    if usage.cached_tokens is not None:
        told["gen_ai.usage.cache_read.input_tokens"] = usage.cached_tokens
    span.note(told)


def tell_score(span: Section | None, score: Score) -> None:
    """The total, where there is one."""
    if span is not None and score.total is not None:
        span.note({"gen_ai.evaluation.score.value": score.total})


def policy_name(policy: str) -> str:
    """A policy's name without the address of its endpoint, in which a password may stand."""
    return policy.partition("@")[0]
