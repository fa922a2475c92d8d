"""Inspect evaluates task files with its mock model, which plays as our policy does; logs go to a folder for each."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from exported_policy import answer
from inspect_ai import eval
from inspect_ai.model import ChatCompletionChoice, ChatMessageAssistant, ModelOutput, ModelUsage, get_model
from inspect_ai.tool import ToolCall


def plays(messages: Any, tools: Any, choice: Any, config: Any) -> ModelOutput:
    """What the policy would say, as Inspect's mock model says it."""
    errors = {message.id: message.error.message for message in messages if getattr(message, "error", None)}
    read = [{"role": message.role, "content": errors.get(message.id, message.text)} for message in messages]
    said = answer(read, careful=True) if tools else {"content": "<reversed_text>no idea</reversed_text>"}
    calls = []
    for call in said.get("tool_calls", []):
        calls.append(ToolCall(id=call["id"], function="play", arguments=json.loads(call["function"]["arguments"])))
    message = ChatMessageAssistant(content=said["content"], tool_calls=calls or None, source="generate")
    usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # else it counts them, with a file it downloads
    return ModelOutput(choices=[ChatCompletionChoice(message=message, stop_reason="stop")], usage=usage)


def main() -> int:
    """Evaluate the files that are named."""
    failed = 0
    for file in sys.argv[1:]:
        model = get_model("mockllm/model", custom_outputs=plays)
        folder = f"mock-{Path(file).stem}"
        limit, epochs = (12, 2) if "tic" in file else (4, 1)
        (log,) = eval(file, model=model, limit=limit, epochs=epochs, log_dir=folder, log_format="json", display="none")
        failed += log.status != "success"
        if log.error is not None:
            print(log.error.message)
    return failed
