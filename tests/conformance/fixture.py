"""What the conformance scenarios ask a server for by name, on our own server.

The scenarios call tools, read resources and get prompts of fixed names. The tools are an environment's, like any
other. Our resources and prompts have names of their own (``env://…``, one prompt per episode), so those that the
scenarios name are added where the server looks them up: as texts, for that is what goes through there. All else is the
players' listener as it is: its URLs, checks, both lanes, the MCP server, its answers.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from unittest.mock import patch

from starlette.types import Receive, Scope, Send
from tests.server.wire_toys import served

from mcpgym import Config, Environment, Message, Task, ToolError, task_id, tool
from mcpgym.episode import Episode
from mcpgym.episodes import Episodes
from mcpgym.wire import PlayerApp, resources
from mcpgym.wire.players import EpisodePlayer, Player, PromptInfo

STATIC = {"test://static-text": "This is the content of the static text resource."}
TEMPLATE = "test://template/{id}/data"
PROMPTS = {
    "test_simple_prompt": PromptInfo("test_simple_prompt", "Simple", "A prompt without arguments.", {}),
    "test_prompt_with_arguments": PromptInfo(
        "test_prompt_with_arguments", "Arguments", "A prompt of two.", {"arg1": "The first.", "arg2": "The second."}
    ),
}


class Scenarios(Environment[Task, None, Config]):
    """The tools of the scenarios that a tool of ours can be: text comes back, or an error."""

    name = "scenarios"
    description = "What the MCP conformance scenarios call."
    instructions = "Call any tool."
    icon = "data:image/svg+xml,%3Csvg%20xmlns='http://www.w3.org/2000/svg'/%3E"

    def tasks(self, split: str) -> Sequence[Task]:
        return [Task(task_id(split, 0), split, ({"role": "user", "content": "Call any tool."},))]

    def reset(self, task: Task, seed: int) -> None:
        return None

    @tool
    def test_simple_text(self, state: None) -> str:
        """Say a text."""
        return "This is a simple text response for testing."

    @tool
    def test_error_handling(self, state: None) -> str:
        """Fail."""
        raise ToolError("This tool intentionally returns an error for testing")

    @tool
    def test_logging_tool(self, state: None) -> str:
        """Work without a word to the client's log."""
        return "done"

    @tool
    def test_streaming_elicitation(self, state: None) -> str:
        """Answer without asking anything back."""
        return "done"


class ScenarioPlayer(EpisodePlayer):
    """An episode's player with the prompts of the scenarios."""

    def prompts(self) -> Sequence[PromptInfo]:
        return [*super().prompts(), *PROMPTS.values()]

    def prompt(self, name: str, arguments: Mapping[str, str]) -> Sequence[Message]:
        if name == "test_simple_prompt":
            return [{"role": "user", "content": "This is a simple prompt for testing."}]
        if name == "test_prompt_with_arguments":
            given = ", ".join(f"{key}='{arguments.get(key, '')}'" for key in ("arg1", "arg2"))
            return [{"role": "user", "content": f"Prompt with arguments: {given}"}]
        return super().prompt(name, arguments)


class ScenarioApp(PlayerApp):
    """The players' listener, at whose episodes the scenarios' prompts are to be had."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._calls = dict(scope.get("headers", ())).get(b"mcp-method") == b"tools/call"
        await super().__call__(scope, receive, send)

    def _player(self, path: str) -> Player | None:
        player = super()._player(path)
        if isinstance(player, EpisodePlayer) and not self._calls:  # plain calls keep the fast lane they have
            return ScenarioPlayer(player.episode)
        return player


@contextlib.contextmanager
def scenario_resources() -> Any:
    """The scenarios' resources, among those of the server."""
    listing, templates, reading = resources.resource_list, resources.template_list, resources.read

    def resource_list(environments: Any) -> list[dict[str, Any]]:
        texts = [{"uri": uri, "name": "a text", "mimeType": "text/plain"} for uri in STATIC]
        return [*listing(environments), *texts]

    def template_list(environments: Any) -> list[dict[str, str]]:
        return [*templates(environments), {"uriTemplate": TEMPLATE, "name": "a text", "mimeType": "application/json"}]

    def read(player: Any, uri: str) -> dict[str, Any]:
        if uri in STATIC:
            return {"mimeType": "text/plain", "text": STATIC[uri]}
        if (found := re.fullmatch(r"test://template/([^/]+)/data", uri)) is not None:
            return {"mimeType": "application/json", "text": json.dumps({"id": found[1], "templateTest": True})}
        return reading(player, uri)

    with patch.multiple(resources, resource_list=resource_list, template_list=template_list, read=read):
        yield


@contextlib.asynccontextmanager
async def scenario_server() -> AsyncIterator[str]:
    """Our server with all of that; yields the URL of an episode."""
    episodes = Episodes({"scenarios": Scenarios()})
    episode: Episode = await episodes.open("scenarios", split="test", index=0, seed=0)
    with scenario_resources():
        async with served(ScenarioApp(episodes)) as url:
            yield f"{url}/e/{episode.token}/mcp"
