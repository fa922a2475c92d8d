"""Plays one episode with the OpenAI Agents SDK: a program of its own, which may run in another virtual environment.

It reads what to do from standard input, as one object of JSON (``url``, ``system``, ``text``, ``model``, ``api``,
``base_url``, ``call_seconds``, ``history``), and prints events, one object of JSON a line: ``init``, a ``turn`` for
each answer of the model, and ``end`` or ``failure``. It imports nothing of ours.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import agents
import openai
from agents.mcp import MCPServerStreamableHttp
from agents.version import __version__

MAX_TURNS = 100_000
"""The server's own limit on calls is the one that counts."""
GONE = (401, 402, 403, 404, 408, 409, 429)


def say(kind: str, **facts: Any) -> None:
    """Print an event."""
    print(json.dumps({"type": kind, **facts}), flush=True)


class Telling(agents.RunHooks):
    """Says what the model answered, as soon as it has."""

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        """One turn."""
        texts, calls = [], []
        for item in response.output:
            if item.type == "message":
                texts += [part.text for part in item.content if part.type == "output_text"]
            elif item.type == "function_call":
                calls.append({"name": item.name, "arguments": item.arguments})
        used = response.usage
        cached = getattr(used.input_tokens_details, "cached_tokens", 0)
        say("turn", text="".join(texts), calls=calls, read=used.input_tokens, written=used.output_tokens, cached=cached)


async def play(asked: dict[str, Any], before: list[Any]) -> list[Any]:
    """Play, as the SDK's documentation has it: an agent with one MCP server; the conversation from its beginning."""
    agents.set_tracing_disabled(True)
    client = openai.AsyncOpenAI(base_url=asked["base_url"])
    made = agents.OpenAIResponsesModel if asked["api"] == "openai-responses" else agents.OpenAIChatCompletionsModel
    seconds = asked["call_seconds"]
    server = MCPServerStreamableHttp(
        {"url": asked["url"], "timeout": seconds, "sse_read_timeout": seconds},
        cache_tools_list=True,
        client_session_timeout_seconds=seconds,
    )
    async with server:
        agent = agents.Agent(
            name="player",
            instructions=asked["system"] or None,
            model=made(model=asked["model"], openai_client=client),
            mcp_servers=[server],
        )
        said = [*before, {"role": "user", "content": asked["text"]}]
        result = await agents.Runner.run(agent, said, max_turns=MAX_TURNS, hooks=Telling())
    return list(result.to_input_list())


def main() -> int:
    """Read, play, tell."""
    say("init", version=__version__)
    asked = json.load(sys.stdin)
    history = Path(asked["history"])
    before = json.loads(history.read_text("utf-8")) if history.exists() else []
    try:
        whole = asyncio.run(play(asked, before))
        history.write_text(json.dumps(whole, default=str), "utf-8")
        say("end")
    except agents.MaxTurnsExceeded:
        say("end", out_of_turns=True)
    except openai.APIStatusError as error:
        gone = error.status_code in GONE or error.status_code >= 500
        say("failure", message=f"its endpoint answered {error.status_code}: {error.message}", everybody=gone)
    except openai.APIConnectionError as error:
        say("failure", message=f"its endpoint cannot be reached: {error.__cause__ or error}", everybody=True)
    except Exception as error:
        words = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        odd = isinstance(error, (AttributeError, TypeError, ValueError))  # what the SDK makes of an answer that is none
        hint = f"; is {asked['base_url'] or 'its endpoint'} one of the API {asked['api']}?" if odd else ""
        say("failure", message=f"the SDK failed ({words}){hint}")
        raise
    return 0


if __name__ == "__main__":
    sys.exit(main())
