"""The OpenAI Responses API, used without its storage, as far as a client with tools of its own meets it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tests.fake_apis.serving import Json

_FIELDS = {"model", "input", "instructions", "tools", "store", "include", "temperature", "top_p", "max_output_tokens"}
_FIELDS |= {"text", "reasoning"}
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def words(text: str, kind: str = "output_text") -> Json:
    """A message of the model's."""
    field = "refusal" if kind == "refusal" else "text"
    part: Json = {"type": kind, field: text, **({"annotations": []} if field == "text" else {})}
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}


def function_call(name: Any, arguments: Any, call_id: Any = "call_1") -> Json:
    """A call of a function."""
    item = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name, "arguments": arguments}
    return {**item, "status": "completed"}


def reasoning(secret: str | None, *summary: str) -> Json:
    """Reasoning, encrypted."""
    parts = [{"type": "summary_text", "text": text} for text in summary]
    return {"type": "reasoning", "id": f"rs_{secret}", "summary": parts, "encrypted_content": secret}


def response(*items: Json, status: str = "completed", **extra: Any) -> Json:
    """The body of an answer."""
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": status,
        "output": list(items),
        "error": None,
        "incomplete_details": None,
        "usage": {
            "input_tokens": 11,
            "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0},
            "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 3},
            "total_tokens": 16,
        },
        **extra,
    }


class ResponsesAPI:
    """Refuses with the real one's words, in short. It stores nothing, and knows the reasoning that it encrypted.

    Args:
        reasons: whether its model reasons; one that does not refuses to give its reasoning.
    """

    path = "/v1/responses"

    def __init__(self, reasons: bool = True) -> None:
        self.reasons = reasons
        self.issued: list[Json] = []

    def issue(self, answer: Json) -> Json:
        """Remember the reasoning."""
        output = answer.get("output")
        self.issued += [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
        return answer

    def refusal(self, message: str) -> Json:
        """The body of a refusal."""
        return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}

    def fault(self, body: Json, headers: Mapping[str, str]) -> str | None:
        """What is wrong with a request."""
        if not headers.get("authorization", "").startswith("Bearer "):
            return "You didn't provide an API key"
        if unknown := set(body) - _FIELDS:
            return f"Unknown parameter: {unknown}"
        if body.get("store") is not False:
            return "store must be false here"
        include = body.get("include", [])
        if include and not self.reasons:
            return "Encrypted content is not supported with this model."
        if include not in ([], ["reasoning.encrypted_content"]):
            return f"include: {include}"
        for tool in body.get("tools", []):
            if set(tool) != {"type", "name", "description", "parameters", "strict"} or not _NAME.fullmatch(
                tool["name"]
            ):
                return f"tools: {tool}"
            schema = tool["parameters"]
            if tool["strict"] is not False and set(schema["required"]) != set(schema["properties"]):
                return "'required' is required to be supplied and to be an array including every key in properties"
        return self._input(body.get("input"))

    def _input(self, items: Any) -> str | None:
        if not isinstance(items, list) or not items:
            return "One of input, previous_response_id, prompt or conversation_id must be provided"
        called: dict[str, bool] = {}
        for place, item in enumerate(items):
            where, kind = f"input[{place}]", item.get("type", "message")
            if kind == "message":
                if item.get("role") not in ("user", "assistant", "system", "developer"):
                    return f"{where}: role {item.get('role')}"
                if not isinstance(item["content"], str) and item not in self.issued:
                    return f"{where}: content {item['content']}"
            elif kind == "function_call":
                if not _NAME.fullmatch(item["name"]) or not isinstance(json.loads(item["arguments"]), dict):
                    return f"{where}: {item}"
                if item["call_id"] in called or len(item["call_id"]) > 64:
                    return f"{where}: call_id {item['call_id']} twice, or too long"
                called[item["call_id"]] = False
            elif kind == "function_call_output":
                if called.get(item["call_id"]) is not False or set(item) != {"type", "call_id", "output"}:
                    return f"No tool call found for function call output with call_id {item['call_id']}."
                called[item["call_id"]] = True
            elif kind == "reasoning":
                if not item.get("encrypted_content") or item not in self.issued:
                    return f"Item with id '{item['id']}' not found. Items are not persisted when `store` is false."
                if place + 1 == len(items) or items[place + 1].get("type") not in (
                    "function_call",
                    "message",
                    "reasoning",
                ):
                    return f"Item '{item['id']}' of type 'reasoning' was provided without its required following item."
            else:
                return f"{where}: invalid type {kind}"
        missing = [call_id for call_id, answered in called.items() if not answered]
        return f"No tool output found for function call {missing[0]}." if missing else None
