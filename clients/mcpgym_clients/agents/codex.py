"""Codex CLI, by its documented non-interactive mode: ``codex exec --json``."""

from __future__ import annotations

from typing import Any

import tomlkit

from mcpgym_clients.agents.contract import CALL_SECONDS, SERVER, Ask, Said, Start, Step, Told
from mcpgym_clients.agents.events import NOTHING, count, events, part, text_of
from mcpgym_clients.agents.product import Product
from mcpgym_clients.agents.programs import program, version_of
from mcpgym_rl.policy import Usage

_KEY = "OPENAI_API_KEY"
_PROVIDER = "endpoint"
OFF = ("shell_tool", "unified_exec", "multi_agent", "goals", "apps", "plugins", "browser_use", "computer_use", "hooks")
"""What it has of its own and may be without. What it keeps: it may read our server's resources, and ask nobody."""


class Codex(Product):
    """The product, read-only and without its shell, its agents and the web."""

    name = "codex"
    kinds = ("openai-responses",)
    default_url = "https://api.openai.com/v1"
    key_variables = (_KEY,)

    async def prepare(self) -> None:
        """Find the program."""
        self._program = program("codex", "npm install -g @openai/codex")
        self.version = await version_of([self._program, "--version"])

    def start(self, ask: Ask) -> Start:
        """``codex exec``, with the task on its standard input, or ``codex exec resume``."""
        home = ask.place.home / ".codex"
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(tomlkit.dumps(self._config(ask)), "utf-8")
        command = [self._program, "exec"]
        command += [] if ask.session is None else ["resume"]
        command += ["--json", "--skip-git-repo-check"]
        command += ["-"] if ask.session is None else [ask.session, "-"]
        return Start(command, ask.text, {**self._keys, "CODEX_HOME": str(home)})

    def _config(self, ask: Ask) -> dict[str, Any]:
        made: dict[str, Any] = {
            "model": self._model.name,
            "model_provider": _PROVIDER,
            "approval_policy": "never",
            "sandbox_mode": "read-only",
            "web_search": "disabled",
            "check_for_update_on_startup": False,
            "project_doc_max_bytes": 0,
            "analytics": {"enabled": False},
            "features": dict.fromkeys(OFF, False),
            "model_providers": {
                _PROVIDER: {
                    "name": _PROVIDER,
                    "base_url": self._model.url or self.default_url,
                    "env_key": _KEY,
                    "wire_api": "responses",
                }
            },
            "mcp_servers": {
                SERVER: {
                    "url": ask.url,
                    "required": True,
                    "tool_timeout_sec": int(CALL_SECONDS),
                    "default_tools_approval_mode": "approve",
                }
            },
        }
        if ask.system:
            made["developer_instructions"] = ask.system
        return made

    def read(self, printed: bytes) -> Said:
        """Its events: messages and calls as they are completed. It does not say which calls one turn made together."""
        said = Said(in_all=True)
        for event in events(printed):
            match event.get("type"):
                case "thread.started":
                    said.session = text_of(event.get("thread_id")) or None
                    said.unanswered = NOTHING
                case "item.completed":
                    item, said.unanswered = part(event, "item"), None
                    if item.get("type") == "agent_message":
                        said.steps.append(Step(text_of(item.get("text"))))
                    elif item.get("type") == "mcp_tool_call" and item.get("server") == SERVER:
                        said.steps.append(Step("", (Told(text_of(item.get("tool")), item.get("arguments")),)))
                case "turn.completed":
                    said.usage = _usage(part(event, "usage"))
                    said.failure, said.everybody = None, False  # it told of faults that it got over
                case "turn.failed":
                    _fail(said, text_of(part(event, "error").get("message")))
                case "error" if said.failure is None:
                    _fail(said, text_of(event.get("message")))
        return said


def _fail(said: Said, why: str) -> None:
    said.failure = why[:500] or "its turn failed"
    signs = (
        "unexpected status 4",
        "unexpected status 5",
        "exceeded retry limit",
        "stream disconnected",
        "error sending",
    )
    said.everybody = any(sign in why for sign in signs) and "status 400" not in why


def _usage(told: dict[str, Any]) -> Usage:
    return Usage(count(told, "input_tokens"), count(told, "output_tokens"), count(told, "cached_input_tokens"))
