"""Rules about rewards: they hold their promises on played, empty and hostile transcripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcpgym.check.plays import Place, Plan, Player, show
from mcpgym.check.report import Report
from mcpgym.check.rules_plays import over
from mcpgym.check.rules_tasks import Make
from mcpgym.environment import Environment
from mcpgym.errors import McpgymError
from mcpgym.messages import Message, assistant, tool_answer, tool_call, user

_MISNAMED = {"messages", "completion", "completions", "prompt", "transcripts", "conversation"}


def check_rubric(environment: Environment[Any, Any, Any], report: Report) -> None:
    """There is something to be scored by, and each reward asks for what it means."""
    if not environment.rewards:
        fix = "give it at least one @reward: without one, every policy is as good"
        report.add("rewards", "there is none", environment.name, fix)
    for reward in environment.rewards.values():
        states = [need for need in reward.needs if need not in {"transcript", "task", "calls"}]
        if wrong := [need for need in states if need in _MISNAMED or len(states) > 1]:
            problem = f"{', '.join(wrong)} would get the episode's state"
            fix = "name the parameters transcript, task or calls; any other name means the state, once"
            report.add("rewards", problem, f"reward {reward.name}", fix)


async def check_rewards(make: Make, place: Place, plan: Plan, report: Report) -> None:
    """The score of one played episode and of one just opened, under every odd transcript."""
    environment = make()
    for length in (0, len(plan)):
        player = Player(over(environment), place, plan[:length])
        if await player.open():
            while await player.step():
                pass
            odd = {} if player.play.broken else odd_transcripts(player.play.transcript)
            for name, transcript in odd.items():
                try:
                    made, again = await player.score(transcript), await player.score(transcript)
                except McpgymError as error:
                    problem, fix = str(error), "cope with any transcript: the policy writes it"
                else:
                    if made == again:
                        continue
                    problem, fix = f"gave {made} and then {again}", "rewards must only look at the episode"
                report.add("rewards", problem, f"{place}, {length} acts, {name}", fix)
        await player.finish()
        report.episodes += 1


def odd_transcripts(played: Sequence[Message]) -> dict[str, list[Message]]:
    """What a policy may write, by what is odd about it; ``played`` is put before most of them."""
    call = tool_call("c", "no-such-tool", '{"truncated": [1, 2')
    texts = [
        "", " ", "\x00\x1b[31m", "<think>", "</think><think></think>", "<answer></answer>", "<reversed_text>" * 50,
        "🎲" * 3000, "9" * 5000, "nan", "-inf", "1e999", "[[[[", "{}", "\\boxed{}", "0/0", "a\n" * 2000,
    ]  # fmt: skip
    odd = {f"the answer {show(text, 20)!r}": [*played, assistant(text)] for text in texts}
    return odd | {
        "no message at all": [],
        "only the prompt": [message for message in played if message["role"] in {"system", "user"}][:1],
        "no assistant turn": [user("hello"), user("?")],
        "a call cut off": [*played, assistant("", [call])],
        "an answer without its call": [*played, tool_answer(call, "", is_error=True)],
        "many turns": [*played, *(assistant(f"turn {number}") for number in range(300))],
    }
