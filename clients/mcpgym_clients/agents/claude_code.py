"""Claude Code, by its documented non-interactive mode: ``claude -p --output-format stream-json``."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mcpgym_clients.agents.contract import CALL_SECONDS, SERVER, Ask, Said, Start, Step, Told
from mcpgym_clients.agents.events import NOTHING, count, events, part, rows, text_of
from mcpgym_clients.agents.product import Product
from mcpgym_clients.agents.programs import program, version_of
from mcpgym_rl.policy import Usage

_INSTALL = "npm install -g @anthropic-ai/claude-code, or pip install claude-agent-sdk, which brings one"
_PREFIX = f"mcp__{SERVER}__"
_READ = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class ClaudeCode(Product):
    """The product, without tools, settings and memory of its own: our server's tools are all that it has."""

    name = "claude-code"
    kinds = ("anthropic",)
    default_url = "https://api.anthropic.com"
    key_variables = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")

    async def prepare(self) -> None:
        """Find the program: in PATH, or the one that claude-agent-sdk brings."""
        self._program = program("claude", _INSTALL, [_bundled()])
        self.version = await version_of([self._program, "--version"])

    def start(self, ask: Ask) -> Start:
        """``claude -p``, with the task on its standard input."""
        servers = ask.place.home / "mcp.json"
        servers.write_text(json.dumps({"mcpServers": {SERVER: {"type": "http", "url": ask.url}}}), "utf-8")
        command = [self._program, "-p", "--model", self._model.name, "--output-format", "stream-json", "--verbose"]
        command += ["--mcp-config", str(servers), "--strict-mcp-config", "--allowed-tools", f"mcp__{SERVER}"]
        command += ["--tools", "", "--permission-mode", "dontAsk", "--setting-sources", "", "--disable-slash-commands"]
        if ask.system:
            (ask.place.home / "system.txt").write_text(ask.system, "utf-8", errors="backslashreplace")
            command += ["--append-system-prompt-file", str(ask.place.home / "system.txt")]
        if ask.session is not None:
            command += ["--resume", ask.session]
        milliseconds = str(int(CALL_SECONDS * 1000))
        variables = {
            **self._keys,
            "CLAUDE_CONFIG_DIR": str(ask.place.home / ".claude"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "ENABLE_TOOL_SEARCH": "false",
            "MCP_TOOL_TIMEOUT": milliseconds,
        }
        if self._model.url is not None:
            variables["ANTHROPIC_BASE_URL"] = self._model.url.removesuffix("/v1")
        return Start(command, ask.text, variables)

    def read(self, printed: bytes) -> Said:
        """Its stream: blocks of text and of calls as they come, answers between them, the result at the end."""
        said = Said()
        text: list[str] = []
        calls: list[Told] = []
        uses: dict[str, Usage] = {}

        def turn_ends() -> None:
            if text or calls:
                said.steps.append(Step("\n\n".join(text), tuple(calls)))
            text.clear()
            calls.clear()

        result: dict[str, Any] | None = None
        for event in events(printed):
            kind = event.get("type")
            if kind == "system" and event.get("subtype") == "init":
                said.version, said.model = _text(event, "claude_code_version"), _text(event, "model")
                said.unanswered = NOTHING
            elif kind == "system" and event.get("subtype") == "api_retry":
                said.unanswered = f"its endpoint answered {event.get('error_status')} ({text_of(event.get('error'))})"
            elif kind == "assistant" and not event.get("parent_tool_use_id"):
                message, said.unanswered = part(event, "message"), None
                uses[text_of(message.get("id"))] = _usage(part(message, "usage"))
                for block in rows(message.get("content")):
                    if block.get("type") == "text":
                        text.append(text_of(block.get("text")))
                    elif block.get("type") == "tool_use":
                        calls.append(Told(text_of(block.get("name")).removeprefix(_PREFIX), block.get("input")))
            elif kind == "user" and not event.get("parent_tool_use_id"):
                turn_ends()
            elif kind == "result":
                result = event
            said.session = _text(event, "session_id") or said.session
        turn_ends()
        said.usage = sum(uses.values(), Usage())
        if result is not None:
            _end(said, result)
        return said


def _end(said: Said, result: dict[str, Any]) -> None:
    """What the last line says of the whole."""
    said.usage = _usage(part(result, "usage"))
    cost = result.get("total_cost_usd")
    said.usd = float(cost) if isinstance(cost, (int, float)) and 0 <= cost < 1e9 else None
    if result.get("subtype") == "error_max_turns":
        said.out_of_turns = True
    elif result.get("is_error"):
        status = result.get("api_error_status")
        why = text_of(result.get("result")) or text_of(result.get("subtype")) or "it failed"
        said.failure = why[:500]
        said.everybody = status in (401, 402, 403, 404, 429) or (isinstance(status, int) and status >= 500)
        said.everybody |= "onnection error" in why or "Unable to connect" in why


def _usage(told: dict[str, Any]) -> Usage:
    return Usage(count(told, *_READ), count(told, "output_tokens"), count(told, "cache_read_input_tokens"))


def _text(event: dict[str, Any], name: str) -> str | None:
    return text_of(event.get(name)) or None


def _bundled() -> str | None:
    """The program that claude-agent-sdk brings; None without it."""
    found = find_spec("claude_agent_sdk")
    if found is None or found.origin is None:
        return None
    there = Path(found.origin).parent / "_bundled" / "claude"
    return str(there) if there.exists() else None
