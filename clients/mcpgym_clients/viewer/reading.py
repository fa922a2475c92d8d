"""One trace as a reader wants it: turn by turn, thoughts apart from words, calls with their answers, boards as boards.

Plain JSON values, so that the page and the terminal show the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mcpgym_clients.boards import read_board, words
from mcpgym_clients.call_text import call_text
from mcpgym_clients.conditions_text import conditions_line
from mcpgym_clients.viewer.move_values import Weighed
from mcpgym_rl.traces import Trace

_THOUGHT = re.compile(r"<think>(.*?)</think>\s*", re.DOTALL)


def read_trace(trace: Trace, weighed: Weighed | None = None, tokens: Sequence[Any] = ()) -> dict[str, Any]:
    """The trace for a reader.

    ``prompt`` are the messages before the first turn, ``turns`` what followed: ``thoughts``, ``said``, ``calls`` (each
    with its ``answer``, the ``board`` before it where there is one, and ``values`` where they are known), ``after``
    (what the environment said as the user), ``given`` where the policy did not write it, and ``tokens``. ``board`` is
    the last one.
    """
    turns: list[dict[str, Any]] = []
    prompt = [_message(message) for message in trace.messages[: trace.prompt_messages]]
    board = next((item["board"] for item in reversed(prompt) if item["board"]), None)
    waiting: list[dict[str, Any]] = []
    for message in trace.messages[trace.prompt_messages :]:
        if message["role"] == "assistant":
            turn = _turn(message)
            turn["given"] = len(turns) < trace.given_turns
            turns.append(turn)
            waiting = list(turn["calls"])
            continue
        item = _message(message)
        if message["role"] == "tool" and waiting:
            call = waiting.pop(0)
            call["board"] = board
            call["answer"] = item
        elif turns:
            turns[-1]["after"].append(item)
        else:
            prompt.append(item)
        board = item["board"] or board
    for number, turn in enumerate(turns):
        decisions = weighed.turns[number] if weighed is not None and number < len(weighed.turns) else []
        for call, decision in zip(turn["calls"], decisions, strict=False):
            call["values"] = None if decision is None else decision.as_json()
    own = [turn for turn in turns if not turn["given"]]
    if len(own) == len(tokens):
        for turn, sampled in zip(own, tokens, strict=True):
            turn["tokens"] = sampled
    score = trace.score
    return {
        "environment": trace.environment,
        "version": trace.environment_version,
        "task": trace.task,
        "split": trace.split,
        "seed": str(trace.seed),  # a browser's numbers end at 53 bits
        "repeat": trace.repeat,
        "place": trace.place,
        "policy": trace.policy,
        "stop": trace.stop_reason,
        "total": None if score is None else score.total,
        "outcome": None if score is None else score.game_outcome,
        "components": {} if score is None else dict(score.components),
        "signed": score is not None and score.receipt is not None,
        "error": None if trace.error is None else {"kind": trace.error.kind, "message": trace.error.message},
        "milliseconds": [call.milliseconds for call in trace.calls],
        "seconds": trace.seconds,
        "usage": {"prompt": trace.usage.prompt_tokens, "completion": trace.usage.completion_tokens},
        "prompt": prompt,
        "turns": turns,
        "board": board,
        "conditions": conditions_line(trace.conditions) if trace.conditions else "",
        "note": "" if weighed is None else weighed.note,
    }


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    """Something that was said to the policy. ``words`` is its text without the board that is drawn beside it."""
    board = read_board(message["content"])
    return {
        "role": message["role"],
        "text": message["content"],
        "words": message["content"] if board is None else words(message["content"]),
        "board": board,
        "error": bool(message.get("is_error")),
    }


def _turn(message: Mapping[str, Any]) -> dict[str, Any]:
    reasoning = message.get("reasoning_content")
    thoughts = [reasoning if isinstance(reasoning, str) else "", *_THOUGHT.findall(message["content"])]
    given = message.get("tool_calls")
    return {
        "thoughts": [thought.strip() for thought in thoughts if thought.strip()],
        "said": _THOUGHT.sub("", message["content"]).strip(),
        "calls": [_call(call) for call in given] if isinstance(given, list) else [],
        "after": [],
        "tokens": None,
    }


def _call(call: Any) -> dict[str, Any]:
    """A call: its line as ``name(argument=value)``, and the texts of several lines that belong below it."""
    text = call_text(call)
    blocks = [{"name": block.name, "text": block.text.strip("\n")} for block in text.blocks]
    return {
        "name": text.name,
        "shown": text.line,
        "blocks": blocks,
        "answer": None,
        "board": None,
        "values": None,
    }
