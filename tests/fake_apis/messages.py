"""The Anthropic Messages API, version 2026-10-21, as far as a client with tools of its own meets it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.fake_apis.serving import Json

_FIELDS = {"model", "max_tokens", "messages", "system", "tools", "thinking", "output_config", "temperature", "top_p"}
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_THOUGHTS = ("thinking", "redacted_thinking")


def text(words: str) -> Json:
    """A block of text."""
    return {"type": "text", "text": words}


def use(name: Any, arguments: Any, call_id: Any = "toolu_1") -> Json:
    """A block that calls a tool."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def thought(words: str, signature: str = "signed") -> Json:
    """A block of thought, signed."""
    return {"type": "thinking", "thinking": words, "signature": signature}


def reply(*blocks: Json, stop: str | None = None, **extra: Any) -> Json:
    """The body of an answer."""
    calls = any(block.get("type") == "tool_use" for block in blocks)
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(blocks),
        "stop_reason": stop or ("tool_use" if calls else "end_turn"),
        "stop_sequence": None,
        "usage": {
            "input_tokens": 9,
            "cache_read_input_tokens": 2,
            "cache_creation_input_tokens": 0,
            "output_tokens": 5,
        },
        **extra,
    }


class MessagesAPI:
    """Refuses with the real one's words, in short. It knows the thoughts that it signed, and in which turn."""

    path = "/v1/messages"

    def __init__(self) -> None:
        self.turns: list[list[Json]] = []

    def issue(self, answer: Json) -> Json:
        """Remember the answer's blocks."""
        if isinstance(answer.get("content"), list):
            self.turns.append([block for block in answer["content"] if isinstance(block, dict)])
        return answer

    def refusal(self, message: str) -> Json:
        """The body of a refusal."""
        return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}

    def fault(self, body: Json, headers: Mapping[str, str]) -> str | None:
        """What is wrong with a request."""
        if headers.get("anthropic-version") is None or not headers.get("authorization", "").startswith("Bearer "):
            return "anthropic-version or the key is missing"
        if unknown := set(body) - _FIELDS:
            return f"{unknown}: extra inputs are not permitted"
        if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
            return "max_tokens: field required"
        if "system" in body and not body["system"].strip():
            return "system: text content blocks must be non-empty"
        for tool in body.get("tools", []):
            if set(tool) != {"name", "description", "input_schema"} or not _NAME.fullmatch(tool["name"]):
                return f"tools: {tool.get('name')}"
            if tool["input_schema"].get("type") != "object":
                return "tools: input_schema.type: field required"
        return self._messages(body["messages"], bool(body.get("tools")))

    def _messages(self, messages: list[Json], tools: bool) -> str | None:
        if not messages or messages[-1]["role"] not in ("user", "system"):
            paused = messages and messages[-1]["content"] in self._paused()
            if not paused:
                return "messages: the conversation must end with a user message"
        seen: set[str] = set()
        wanted: list[str] = []
        before = None
        for place, message in enumerate(messages):
            where = f"messages.{place}"
            if set(message) != {"role", "content"} or message["role"] not in ("user", "assistant", "system"):
                return f"{where}: {message}"
            if message["role"] == before:
                return f"{where}: roles must alternate"  # more than the real one asks
            before = message["role"]
            blocks = message["content"]
            if not isinstance(blocks, list) or not blocks:
                return f"{where}: all messages must have non-empty content"
            kinds = [block["type"] for block in blocks]
            for block in blocks:
                if block["type"] == "text" and not block["text"].strip():
                    return f"{where}: text content blocks must contain non-whitespace text"
            if wanted or "tool_result" in kinds:
                given = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
                if given != wanted or kinds[: len(given)] != ["tool_result"] * len(given):
                    return f"{where}: tool_result blocks {given} where {wanted} had been called"
                for block in blocks[: len(given)]:
                    if not set(block) <= {"type", "tool_use_id", "content", "is_error"}:
                        return f"{where}: {block}"
                wanted = []
            for block in blocks:
                if block["type"] != "tool_use":
                    continue
                if not _ID.fullmatch(block["id"]) or block["id"] in seen:
                    return f"{where}: tool_use ids must be unique and match {_ID.pattern}: {block['id']}"
                if not _NAME.fullmatch(block["name"]) or not isinstance(block["input"], dict):
                    return f"{where}: {block}"
                seen.add(block["id"])
                wanted.append(block["id"])
            if message["role"] == "assistant":
                if kinds[-1] in _THOUGHTS:
                    return f"{where}: the final block in an assistant message cannot be thinking"
                if (fault := self._thoughts(blocks)) is not None:
                    return f"{where}: {fault}"
        if seen and not tools:
            return "tools: requests which include tool_use blocks must define tools"
        return f"tool_use ids {wanted} were found without tool_result blocks" if wanted else None

    def _paused(self) -> list[list[Json]]:
        """What may stand at the end of a conversation: the last turns, one after another."""
        return [[block for turn in self.turns[start:] for block in turn] for start in range(len(self.turns))]

    def _thoughts(self, blocks: list[Json]) -> str | None:
        """Thoughts must come back as they were signed, and where a turn had one, it must come back with it."""
        for block in blocks:
            if block["type"] in _THOUGHTS and not any(block in turn for turn in self.turns):
                return f"invalid signature in thinking block {block}"
        for turn in self.turns:
            calls = {block.get("id") for block in turn if block.get("type") == "tool_use"}
            mine = {block["id"] for block in blocks if block["type"] == "tool_use"}
            if calls and calls == mine and turn[0].get("type") in _THOUGHTS and blocks[0]["type"] not in _THOUGHTS:
                return "expected thinking or redacted_thinking, but found tool_use"
        return None
