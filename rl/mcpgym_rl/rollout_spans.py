"""What OpenTelemetry is told of a rollout: rollout → turn → sample and tool calls, and the score at its end."""

from __future__ import annotations

from typing import Any

from mcpgym.control import OpenedEpisode
from mcpgym.rewards import Score
from mcpgym.telemetry import switch
from mcpgym.telemetry.sections import NOTHING, Section, section
from mcpgym.telemetry.spans import Kind, Owner, digest
from mcpgym_rl.lanes import EpisodeLane, McpEpisode
from mcpgym_rl.policy import Turn
from mcpgym_rl.record import Record


class RolloutSection(Section):
    """The span of a rollout; it says on leaving how the rollout ended."""

    def __init__(self, record: Record) -> None:
        assert switch.recorder is not None
        super().__init__(switch.recorder, f"rollout {record.environment}", Kind.INTERNAL, shared=False)
        self._record = record
        self.note({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": policy_name(record.policy)})

    def opened(self, episode: OpenedEpisode) -> None:
        """The episode is open: from here on it has a name."""
        self.owner = Owner({"mcpgym.episode": digest(episode.token)}, self.context)

    def __exit__(self, *exception: Any) -> None:
        record = self._record
        self.note(
            {
                "mcpgym.environment": record.environment,
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


def watched(record: Record) -> Any:
    """A span around a whole rollout; None comes of it while telemetry is off."""
    return NOTHING if switch.recorder is None else RolloutSection(record)


def section_of_call(tool: str, episode: EpisodeLane) -> Any:
    """A span around one tool call, named as the way it goes has it. A name that is no tool's is not told."""
    if switch.recorder is None:
        return NOTHING
    known = any(tool == listed.get("name") for listed in episode.opened.tools)
    name = tool if known else "_unknown"
    over_mcp = isinstance(episode, McpEpisode)
    made = section(f"{'tools/call' if over_mcp else 'execute_tool'} {name}", Kind.CLIENT, shared=over_mcp)
    if isinstance(made, Section):
        made.note({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name})
        if over_mcp:
            made.note({"mcp.method.name": "tools/call"})
    return made


def tell_sample(span: Section | None, policy: str, turn: Turn) -> None:
    """What a turn took."""
    if span is None:
        return
    usage = turn.usage
    span.note(
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": policy_name(policy),
            "gen_ai.response.finish_reasons": (turn.finish,),
        }
    )
    if usage.prompt_tokens or usage.completion_tokens:
        span.note(
            {
                "gen_ai.usage.input_tokens": usage.prompt_tokens,
                "gen_ai.usage.output_tokens": usage.completion_tokens,
            }
        )
    if usage.cached_tokens is not None:
        span.note({"gen_ai.usage.cache_read.input_tokens": usage.cached_tokens})


def tell_score(span: Section | None, score: Score) -> None:
    """The total, where there is one."""
    if span is not None and score.total is not None:
        span.note({"gen_ai.evaluation.score.value": score.total})


def policy_name(policy: str) -> str:
    """A policy's name without the address of its endpoint, in which a password may stand."""
    return policy.partition("@")[0]
