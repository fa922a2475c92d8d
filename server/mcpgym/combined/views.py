"""What one member sees of a combined rollout: what it would have seen alone, under its tools' own names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mcpgym.calls import CallRecord, too_deep_answer
from mcpgym.combined.naming import Tools, owner
from mcpgym.combined.parts import Part
from mcpgym.combined.prompts import addressed, own_prompt, own_reply
from mcpgym.messages import Message, Transcript


class Turn(NamedTuple):
    """One turn as a member sees it: the assistant's message, the answers to its calls, and what the user said then.

    ``calls`` are the answers' calls, and whether each is one of the member's tools.
    """

    message: Message
    answers: list[Message]
    own: list[bool]
    user: list[Message]


def own_turns(mount: str, transcript: Sequence[Message], tools: Tools) -> Iterator[Turn]:
    """The turns that concern a member: those that call its tools, those that call nobody's, and answers to it."""
    for message, answers, said in _turns(transcript):
        calls = message.get("tool_calls")
        if not isinstance(calls, list) or not calls:
            to = addressed(message["content"], tools)
            if to is None or mount in to:
                text = message["content"] if to is None else to[mount]
                yield Turn({**message, "content": text}, [], [], said)
            continue
        owners = [owner(_called(call), tools) for call in calls]
        mine = [place for place, whose in enumerate(owners) if whose is None or whose[0] == mount]
        if not mine:
            continue
        shown: Any = {**message, "tool_calls": [_renamed(calls[place], owners[place]) for place in mine]}
        kept: list[Message] = []
        own: list[bool] = []
        for number, answer in enumerate(answers):
            place = _place(number, answer, calls)
            if place in mine:
                whose = owners[place]
                kept.append({**answer, "name": whose[1]} if whose and "name" in answer else answer)
                own.append(whose is not None)
        yield Turn(shown, kept, own, said)


def own_transcript(
    part: Part, transcript: Sequence[Message], tools: Tools, calls: Sequence[CallRecord] | None = None
) -> Transcript:
    """What a member's ``respond`` and rewards get: its own prompt, its turns, and nothing after its part was over.

    Args:
        part: its part.
        transcript: what the whole episode said.
        tools: every member's tools.
        calls: the member's calls (:func:`own_calls`), by which the turn that ended it is known.
    """
    seen = list(part.messages)
    answered, said = 0, 0
    over = part.over is not None and not part.calls and not part.answers
    for turn in () if over else own_turns(part.mount, transcript, tools):
        seen.append(turn.message)
        if not turn.message.get("tool_calls"):
            if said < len(part.replies):
                seen += part.replies[said]
            said += 1
            if part.over is not None and not part.by_call and said >= part.answers:
                break
            continue
        ended = False
        for answer, own in zip(turn.answers, turn.own, strict=True):
            record = calls[answered] if calls is not None and own and answered < len(calls) else None
            text = answer["content"]
            if record is not None and text.removesuffix(part.note) == record.text:
                answered += 1
                ended |= part.by_call and answered == part.calls
                text = record.text
            seen.append({**answer, "content": text})
        if ended:
            break
    return Transcript(seen)


def own_calls(part: Part, calls: Sequence[CallRecord], tools: Tools) -> tuple[CallRecord, ...]:
    """The calls that reached a member, as its rewards would have had them alone."""
    found = []
    for record in calls:
        whose = owner(record.name, tools)
        if whose is not None and whose[0] == part.mount and record.text != too_deep_answer(record.name):
            found.append(record._replace(name=whose[1]))
    found = found[: part.calls]
    if part.by_call and len(found) == part.calls:
        found[-1] = found[-1]._replace(text=found[-1].text.removesuffix(part.note))
    return tuple(found)


def read_by_policy(mount: str, messages: Sequence[Message], tools: Tools) -> list[Message]:
    """What a member's own policy gets: its share of what was said, read out of the text alone."""
    prompt = [message for message in messages[: _began(messages)] if message["role"] != "tool"]
    seen = own_prompt(prompt, mount, tools)
    for turn in own_turns(mount, messages, tools):
        seen.append(turn.message)
        seen += [{**answer, "content": _OVER.sub("", answer["content"])} for answer in turn.answers]
        for said in turn.user:
            seen += own_reply(said, mount, tools)
    return seen


_OVER = re.compile(r"\n\(\w+ is over\.[^\n]*\)\Z")


def _turns(transcript: Sequence[Message]) -> Iterator[tuple[Message, list[Message], list[Message]]]:
    """Each assistant message with the tool answers and other messages that follow it."""
    at = _began(transcript)
    while at < len(transcript):
        message = transcript[at]
        answers: list[Message] = []
        said: list[Message] = []
        at += 1
        while at < len(transcript) and transcript[at]["role"] != "assistant":
            (answers if transcript[at]["role"] == "tool" else said).append(transcript[at])
            at += 1
        yield message, answers, said


def _began(transcript: Sequence[Message]) -> int:
    """Where the policy first speaks."""
    return next((at for at, message in enumerate(transcript) if message["role"] == "assistant"), len(transcript))


def _called(call: Any) -> object:
    function = call.get("function") if isinstance(call, Mapping) else None
    return function.get("name") if isinstance(function, Mapping) else None


def _renamed(call: Any, whose: tuple[str, str] | None) -> Any:
    return call if whose is None else {**call, "function": {**call["function"], "name": whose[1]}}


def _place(number: int, answer: Message, calls: Sequence[Any]) -> int:
    """Which of a turn's calls the ``number``-th answer belongs to; -1 for none. Ids may repeat: order comes first."""
    ids = [call.get("id") if isinstance(call, Mapping) else None for call in calls]
    wanted = answer.get("tool_call_id")
    if number < len(ids) and ids[number] == wanted:
        return number
    return ids.index(wanted) if wanted in ids else -1
