"""``mcpgym show``: the traces of a run, as a person reads them."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from mcpgym.messages import Message
from mcpgym_clients.boards import observation
from mcpgym_clients.console import clean, escaped, warn
from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.files import SUMMARY, find_traces
from mcpgym_clients.paging import pager
from mcpgym_clients.report import render
from mcpgym_rl.traces import Trace, read_traces

_THOUGHT = re.compile(r"<think>(.*?)</think>\s*", re.DOTALL)
_COLOURS = {"win": "green", "draw": "blue", "loss": "red"}


def run(path: Path, index: int | None, failed: bool) -> None:
    """Print the traces at ``path``: all, the one at ``index``, or those that went badly.

    Raises:
        UsageProblem: there are none, or not that one.
        ConfigurationError: the file is no trace file.
    """
    traces = read_traces(find_traces(path))
    if traces.torn:
        warn(traces.torn)
    chosen = _choose(traces, index, failed)
    with pager() as console:
        if index is None and not failed and (path / SUMMARY).is_file():
            with contextlib.suppress(
                ValueError, KeyError, TypeError, AttributeError
            ):  # another version's summary hides no trace
                console.print(render(json.loads((path / SUMMARY).read_text("utf-8"))))
                console.print()
        rules: list[Message] = []
        for place, trace in chosen:
            console.print(render_trace(trace, place, known=rules))
            console.print()
            rules = [message for message in trace.messages if message["role"] == "system"]
        if failed and not chosen:
            console.print(f"None of the {len(traces)} traces was lost, penalised or left unscored.")


def _choose(traces: Sequence[Trace], index: int | None, failed: bool) -> list[tuple[int, Trace]]:
    if not traces:
        raise UsageProblem("there is no whole trace in that file")
    numbered = [(place, trace) for place, trace in enumerate(traces) if not failed or went_badly(trace)]
    if index is None:
        return numbered
    if not -len(numbered) <= index < len(numbered):
        what = "traces that went badly" if failed else "traces"
        raise UsageProblem(f"--index {index}: there are {len(numbered)} {what}, 0 to {len(numbered) - 1}")
    return [numbered[index]]


def went_badly(trace: Trace) -> bool:
    """Whether a trace is worth looking into: unscored, lost, penalised, or paid nothing at all."""
    if trace.score is None or trace.score.total is None or trace.score.game_outcome == "loss":
        return True
    return trace.score.total <= 0 or any(value is not None and value < 0 for value in trace.score.components.values())


def render_trace(trace: Trace, place: int, known: Sequence[Message] = ()) -> Group:
    """One trace: what was asked, thought, called and answered, and what it was worth; without messages in ``known``."""
    title = f"[bold]{place}[/bold]  {escaped(trace.environment)} {escaped(trace.task)}, seed {trace.seed}"
    parts: list[Any] = [Rule(f"{title}  [dim]{escaped(trace.policy)}[/dim]", align="left", style="dim")]
    parts += [*(_message(message) for message in trace.messages if message not in known), _ending(trace)]
    return Group(*parts)


def _message(message: Message) -> Any:
    content = clean(message.get("content") or "")
    match message["role"]:
        case "system":
            return Padding(Text(content, style="dim"), (0, 0, 1, 0), expand=False)
        case "assistant":
            return Group(*_turn(message, content))
        case "tool":
            shown = observation(content, "yellow" if message.get("is_error") else "")
            return Padding(shown, (0, 0, 1, 2), expand=False)
        case _:
            return Padding(observation(content), (0, 0, 1, 0), expand=False)


def _turn(message: Message, content: str) -> Iterator[Any]:
    thoughts = [message.get("reasoning_content") or "", *_THOUGHT.findall(content)]
    for thought in filter(None, (thought.strip() for thought in thoughts)):
        yield Text(clean(thought), style="italic magenta")
    if said := _THOUGHT.sub("", content).strip():
        yield Text(said, style="bold")
    for call in message.get("tool_calls", []):
        yield Text.assemble(("→ ", "cyan"), (clean(_call(call)), "cyan"))


def _call(call: Any) -> str:
    """A call as ``name(argument=value)``; as it was written where it cannot be read so."""
    function = call.get("function", {}) if isinstance(call, dict) else {}
    name, arguments = function.get("name", "?"), function.get("arguments", "")
    with contextlib.suppress(ValueError, AttributeError, TypeError):
        pairs = json.loads(arguments).items()
        return f"{name}({', '.join(f'{key}={json.dumps(value, ensure_ascii=False)}' for key, value in pairs)})"
    return f"{name} {arguments}"


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
    if trace.error is not None:
        text.append(clean(f"\n{trace.error.kind}: {trace.error.message}"), "red")
    return text
