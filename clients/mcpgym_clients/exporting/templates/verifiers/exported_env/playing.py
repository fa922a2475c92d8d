"""One rollout's place at the server: its episode, what was said there, and its score."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from exported_env.control import Session, label

Messages = list[dict[str, Any]]
TRANSCRIPTS: OrderedDict[str, Messages] = OrderedDict()
"""What rollouts that are being played have said so far, by trace: the harness of this package writes it down, because
a trace does not hold the answers to the last turn's calls."""
MOST = 10_000
LARGEST_SEED = 2**31


def remember(trace_id: str, messages: Messages) -> None:
    """Keep the transcript of a rollout until it is scored."""
    TRANSCRIPTS[trace_id] = messages
    while len(TRANSCRIPTS) > MOST:
        TRANSCRIPTS.popitem(last=False)


class Seat:
    """Where one rollout plays a task. ``seed`` is its episodes' seed, or None for one that is drawn."""

    def __init__(self, session: Session, task: str, seed: int | None) -> None:
        self.session = session
        self.scored: Mapping[str, Any] | None = None
        self._task = task
        self._seed = secrets.randbelow(LARGEST_SEED) if seed is None else seed
        self._token: str | None = None
        self._url: str | None = None

    async def open(self) -> Messages:
        """Open an episode and leave the one before, if there was one; the prompt, which shows how it begins."""
        await self.close()
        self.scored = None
        opened = await self.session.open(self._task, self._seed)
        self._token, self._url = opened["token"], opened["url"]
        return list(opened["messages"])

    async def take_url(self) -> str:
        """The URL of an episode in which nobody has played: each attempt at a rollout gets another one."""
        if self._url is None:
            await self.open()
        url, self._url = self._url, None
        assert url is not None
        return url

    async def respond(self, trace: Any) -> Messages | None:
        """What the environment says next, as the user; None where the rollout is over."""
        messages = await self._transcript(trace)
        if self._token is None or not messages or messages[-1]["role"] != "assistant" or messages[-1].get("tool_calls"):
            return None
        return await self.session.respond(self._token, messages)

    async def score(self, trace: Any) -> Mapping[str, Any]:
        """The episode's score, with what the policy said.

        Raises:
            Unscored: it has none.
            ServerTrouble: the server is gone, or the environment broke.
        """
        assert self._token is not None, "no episode was opened"
        config = trace.agent.config
        claims = {"policy": label(f"verifiers:{config.model}"), "harness": label(f"verifiers/{config.harness.id}")}
        self.scored = await self.session.score(self._token, await self._transcript(trace), claims)
        TRANSCRIPTS.pop(trace.id, None)
        return self.scored

    async def close(self) -> None:
        """End the episode, if there is one."""
        token, self._token, self._url = self._token, None, None
        if token is not None:
            await self.session.close(token)

    async def _transcript(self, trace: Any) -> Messages:
        """The conversation as this package's harness kept it; with another harness, as the trace and the server do."""
        if trace.id in TRANSCRIPTS:
            return TRANSCRIPTS[trace.id]
        assert self._token is not None
        return completed(plain(trace.messages), await self.session.calls(self._token))


def plain(messages: Sequence[Any]) -> Messages:
    """Messages of a trace in the form that rewards read: text, calls, and which call an answer belongs to."""
    made: Messages = []
    for message in messages:
        one: dict[str, Any] = {"role": message.role, "content": _text(message.content)}
        if message.role == "assistant":
            if message.reasoning_content:
                one["reasoning_content"] = message.reasoning_content
            if message.tool_calls:
                one["tool_calls"] = [
                    {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                    for call in message.tool_calls
                ]
        if message.role == "tool":
            one |= {"tool_call_id": message.tool_call_id} | ({"name": message.name} if message.name else {})
        made.append(one)
    return made


def completed(messages: Messages, calls: Sequence[Mapping[str, Any]]) -> Messages:
    """``messages`` with the answers to the last turn's calls, which no model was asked to read any more."""
    last = max((place for place, one in enumerate(messages) if one["role"] == "assistant"), default=None)
    wanted = [] if last is None else messages[last].get("tool_calls", [])
    answered = {one.get("tool_call_id") for one in messages if one["role"] == "tool"}
    missing = [call for call in wanted if call["id"] not in answered]
    for call, answer in zip(missing, calls[-len(missing) :] if missing else [], strict=False):
        one = {"role": "tool", "content": answer["text"], "tool_call_id": call["id"], "name": call["function"]["name"]}
        messages.append(one | ({"is_error": True} if answer["is_error"] else {}))
    return messages


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part.text for part in content if getattr(part, "text", None))
