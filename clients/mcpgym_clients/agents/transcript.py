"""An agent's episode as a conversation: the calls are those that the server logged, in its order and with its answers;
from what the agent tells come the texts beside them."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from mcpgym.calls import CallRecord
from mcpgym.messages import Message, assistant, tool_answer, tool_call
from mcpgym_clients.agents.contract import Step, Told


@dataclass(slots=True)
class Conversation:
    """``messages`` follow the prompt; ``turns`` counts the assistant's. ``after`` is what it wrote after its last call.

    ``not_sent`` are calls that it tells of and that never came to the server; ``untold`` counts those that came and
    that it does not tell of.
    """

    messages: list[Message] = field(default_factory=list)
    turns: int = 0
    after: str = ""
    not_sent: list[Told] = field(default_factory=list)
    untold: int = 0


def conversation(log: Sequence[CallRecord], steps: Sequence[Step], first: int = 0) -> Conversation:
    """The conversation.

    A turn of the agent's is one message, with those of its calls that came to the server. A turn none of whose calls
    did has its text before that of the next, so that no message stands there to which an environment would have had to
    say something. Calls that the agent does not tell of are turns of their own, without text.

    Args:
        log: the calls of the episode.
        steps: what the agent tells, in order.
        first: the number of calls before these, so that no two calls have one id.
    """
    made = Conversation()
    waiting = [list(step.calls) for step in steps]
    places: dict[str, deque[int]] = {}  # a call, and the steps that tell of one like it
    for place, step in enumerate(steps):
        for call in step.calls:
            places.setdefault(_key(call.name, call.arguments), deque()).append(place)
    groups: list[tuple[int | None, list[CallRecord]]] = []
    at = 0
    for record in log:
        told = places.get(key := _key(record.name, record.arguments), deque())
        while told and told[0] < at:
            told.popleft()
        if not told:
            made.untold += 1
            groups.append((None, [record]))
            continue
        at = told.popleft()
        waiting[at].remove(next(call for call in waiting[at] if _key(call.name, call.arguments) == key))
        if groups and groups[-1][0] == at:
            groups[-1][1].append(record)
        else:
            groups.append((at, [record]))
    written = 0
    for step_of, records in groups:
        texts = []
        if step_of is not None and step_of >= written:
            texts = [step.text for step in steps[written : step_of + 1]]
            written = step_of + 1
        _add(made, _joined(texts), records, first)
        first += len(records)
    made.after = _joined([step.text for step in steps[written:]])
    made.not_sent = [call for calls in waiting for call in calls]
    return made


def _add(made: Conversation, text: str, records: Sequence[CallRecord], first: int) -> None:
    """A turn with its calls, and their answers."""
    calls = [
        tool_call(f"call_{number}", record.name, json.dumps(record.arguments, ensure_ascii=False))
        for number, record in enumerate(records, first)
    ]
    made.messages.append(assistant(text, calls))
    made.messages += [
        tool_answer(call, record.text, is_error=record.is_error) for call, record in zip(calls, records, strict=True)
    ]
    made.turns += 1


def _joined(texts: Sequence[str]) -> str:
    return "\n\n".join(filter(None, texts))


def _key(name: str, arguments: object) -> str:
    try:
        return json.dumps([name, arguments], sort_keys=True, default=repr)
    except (RecursionError, TypeError, ValueError):
        return f"{name} (unreadable)"
