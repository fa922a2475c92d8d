"""Tools and rewards of an environment that plays elsewhere: they look the same, and what they do is asked for there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mcpgym.errors import ToolError
from mcpgym.isolated.wire import decode_error
from mcpgym.rewards import Reward
from mcpgym.schema import ArgumentParser
from mcpgym.tools import Tool

if TYPE_CHECKING:
    from mcpgym.isolated.environment import IsolatedEpisode

LONGER_SECONDS = 5.0
"""How long after a tool's own limit its process must show that it is alive."""
SCORE_SECONDS = 300.0


class PassingParser(ArgumentParser):
    """Hands arguments on as they are: whether they fit is found, and said, where the environment is."""

    def __init__(self, tool: str, schema: dict[str, Any]) -> None:
        self.tool = tool
        self.schema = schema

    def parse(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """One keyword argument, ``arguments``."""
        return {"arguments": arguments}


def made_tools(described: Sequence[Mapping[str, Any]]) -> dict[str, Tool]:
    """The tools by name, in their order."""
    return {
        item["name"]: Tool(
            name=item["name"],
            description=item["description"],
            handler=_handler(item["name"], item["timeout"], item["is_async"]),
            title=item["title"],
            timeout=item["timeout"],
            read_only=item["read_only"],
            parser=PassingParser(item["name"], item["inputSchema"]),
        )
        for item in described
    }


def _handler(tool: str, timeout: float, is_async: bool) -> Callable[..., Any]:
    """What runs the tool there. One that cannot be cancelled there waits in a thread here, and cannot be either."""
    limit = timeout + LONGER_SECONDS

    def request(episode: IsolatedEpisode, arguments: Any) -> dict[str, Any]:
        return {"number": episode.number, "tool": tool, "arguments": arguments}

    async def on_the_loop(environment: Any, episode: IsolatedEpisode, /, arguments: Any) -> str:
        return _answer(episode, await episode.child.ask("call", _sendable(tool, request(episode, arguments)), limit))

    def in_a_thread(environment: Any, episode: IsolatedEpisode, /, arguments: Any) -> str:
        return _answer(episode, episode.child.ask_now("call", _sendable(tool, request(episode, arguments)), limit))

    return on_the_loop if is_async else in_a_thread


def _sendable(tool: str, request: dict[str, Any]) -> dict[str, Any]:
    from mcpgym.isolated.wire import encode

    try:
        encode(request["arguments"])
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolError(f"{tool}: its arguments are not JSON: {error}") from None
    return request


def _answer(episode: IsolatedEpisode, answer: Mapping[str, Any]) -> str:
    episode.stands(answer["after"])
    if (error := answer.get("error")) is not None:
        raise decode_error(error)
    text = str(answer["text"])
    if answer["is_error"]:
        raise ToolError(text)
    return text


def made_rewards(described: Sequence[Mapping[str, Any]]) -> dict[str, Reward]:
    """The rewards by name, in their order."""
    return {item["name"]: _reward(item) for item in described}


def _reward(item: Mapping[str, Any]) -> Reward:
    name = item["name"]

    async def function(environment: Any, episode: IsolatedEpisode, calls: Any, transcript: Any = None) -> Any:
        request = {
            "number": episode.number,
            "name": name,
            "calls": [list(call) for call in calls or ()],
            "transcript": None if transcript is None else list(transcript),
        }
        answer = await episode.child.ask("reward", request, SCORE_SECONDS)
        odd = answer.get("odd")
        return answer["value"] if odd is None else type(str(odd), (), {})()

    return Reward(
        name=name,
        function=function,
        weight=item["weight"],
        low=item["low"],
        high=item["high"],
        description=item["description"],
        needs=("episode", "calls", *(("transcript",) if item["needs_transcript"] else ())),
    )
