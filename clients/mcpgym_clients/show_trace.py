"""One trace for a terminal: what was asked, thought, called and answered, and what each move was worth."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from rich.columns import Columns
from rich.console import Group
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from mcpgym.messages import Message
from mcpgym_clients.boards import observation
from mcpgym_clients.call_text import call_text
from mcpgym_clients.conditions_text import conditions_line
from mcpgym_clients.console import clean, escaped
from mcpgym_clients.viewer.move_values import Decision, Weighed
from mcpgym_rl.certificate.values import Value
from mcpgym_rl.traces import Trace

_THOUGHT = re.compile(r"<think>(.*?)</think>\s*", re.DOTALL)
_COLOURS = {"win": "green", "draw": "blue", "loss": "red"}
_FORCED = {1: ("W", "green"), 0: ("D", "blue"), -1: ("L", "red")}
_VERDICTS = {
    "best": ("best", "green"),
    "inaccuracy": ("weaker", "yellow"),
    "missed_win": ("missed win", "bold yellow"),
    "blunder": ("losing move", "bold red"),
    "refused": ("refused", "bold yellow"),
}


def render_trace(trace: Trace, place: int, known: Sequence[Message] = (), weighed: Weighed | None = None) -> Group:
    """One trace, with the values of its moves where they are known; without messages in ``known``."""
    title = f"[bold]{place}[/bold]  {escaped(trace.environment)} {escaped(trace.task)}, seed {trace.seed}"
    parts: list[Any] = [Rule(f"{title}  [dim]{escaped(trace.policy)}[/dim]", align="left", style="dim")]
    turn = 0
    for message in trace.messages:
        if message in known:
            continue
        if message["role"] != "assistant":
            parts.append(_message(message))
            continue
        decisions = weighed.turns[turn] if weighed is not None and turn < len(weighed.turns) else []
        turn += 1
        parts.append(Group(*_turn(message, decisions)))
    parts.append(_ending(trace))
    if weighed is not None and weighed.note:
        parts.append(Text(clean(weighed.note), "yellow"))
    return Group(*parts)


def _message(message: Message) -> Any:
    content = clean(message.get("content") or "")
    match message["role"]:
        case "system":
            return Padding(Text(content, style="dim"), (0, 0, 1, 0), expand=False)
        case "tool":
            shown = observation(content, "yellow" if message.get("is_error") else "")
            return Padding(shown, (0, 0, 1, 2), expand=False)
        case _:
            return Padding(observation(content), (0, 0, 1, 0), expand=False)


def _turn(message: Message, decisions: Sequence[Decision | None]) -> Iterator[Any]:
    content = clean(message.get("content") or "")
    thoughts = [message.get("reasoning_content") or "", *_THOUGHT.findall(content)]
    for thought in filter(None, (thought.strip() for thought in thoughts)):
        yield Text(clean(thought), style="italic magenta")
    if said := _THOUGHT.sub("", content).strip():
        yield Text(said, style="bold")
    for number, call in enumerate(message.get("tool_calls", [])):
        text = call_text(call)
        yield Text.assemble(("→ ", "cyan"), (clean(text.line), "cyan"))
        for block in text.blocks:
            if len(text.blocks) > 1:
                yield Padding(Text(f"{clean(block.name)}:", "dim"), (0, 0, 0, 2), expand=False)
            yield Padding(Text(clean(block.text.strip("\n")).expandtabs(4), "cyan"), (0, 0, 0, 4), expand=False)
        if number < len(decisions) and (decision := decisions[number]) is not None:
            yield from _values(decision)


def _values(decision: Decision) -> Iterator[Any]:
    """What the move was worth, and every legal one: what can be forced, and how often it wins against random play.

    ``>`` is the move that was made, ``*`` one that none is better than.
    """
    word, style = _VERDICTS[decision.verdict]
    text = Text("  ").append(word, style)
    if decision.played is not None:
        before, after = decision.before, decision.after
        text.append("  ").append_text(_forced(before)).append(" → ").append_text(_forced(after))
        text.append(f"  wins {100 * float(before.win):.1f} % → {100 * float(after.win):.1f} %", "dim")
    yield text
    moves = []
    for option in decision.options:
        mark = ">" if option.act == decision.played else "*" if option.best else " "
        move = Text(f"{mark}{clean(option.act)} ", "bold" if option.act == decision.played else "", no_wrap=True)
        moves.append(move.append_text(_forced(option.value)).append(f" {100 * float(option.value.win):.0f} %", "dim"))
    yield Padding(Columns(moves, padding=(0, 2)), (0, 0, 0, 2))


def _forced(value: Value) -> Text:
    return Text(*_FORCED[value.guaranteed])


def _ending(trace: Trace) -> Text:
    text = Text()
    if trace.score is not None:
        if trace.score.game_outcome is not None:
            text.append(clean(f"{trace.score.game_outcome}  "), f"bold {_COLOURS.get(trace.score.game_outcome, '')}")
        total = "none" if trace.score.total is None else f"{trace.score.total:.3g}"
        parts = (
            f"{name} {'none' if value is None else format(value, '.3g')}"
            for name, value in trace.score.components.items()
        )
        text.append(f"score {total}", "bold").append(clean(f" ({', '.join(parts)})"), "dim")
    else:
        text.append("unscored", "bold red")
    text.append(clean(f"  {trace.stop_reason.replace('_', ' ')} after {trace.turns} turns"), "dim")
    if trace.conditions:
        text.append(clean(f"\n{conditions_line(trace.conditions)}"), "dim")
    if trace.error is not None:
        text.append(clean(f"\n{trace.error.kind}: {trace.error.message}"), "red")
    return text
