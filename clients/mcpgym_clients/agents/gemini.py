"""Gemini CLI, by its documented non-interactive mode: ``gemini -p --output-format stream-json``."""

from __future__ import annotations

import json
from typing import Any

from mcpgym_clients.agents.contract import CALL_SECONDS, SERVER, Ask, Said, Start, Step, Told
from mcpgym_clients.agents.events import NOTHING, count, events, part, text_of
from mcpgym_clients.agents.product import Product
from mcpgym_clients.agents.programs import program, version_of
from mcpgym_rl.policy import Usage

_PREFIX = f"mcp_{SERVER}_"


class Gemini(Product):
    """The product, with our server's tools alone."""

    name = "gemini"
    kinds = ("gemini",)
    default_url = "https://generativelanguage.googleapis.com"
    key_variables = ("GEMINI_API_KEY",)
    goes_on = False

    async def prepare(self) -> None:
        """Find the program."""
        self._program = program("gemini", "npm install -g @google/gemini-cli")
        self.version = await version_of([self._program, "--version"])

    def start(self, ask: Ask) -> Start:
        """``gemini -p``, with the task on its standard input. It has no place for a system's message of others."""
        folder = ask.place.home / ".gemini"
        folder.mkdir(exist_ok=True)
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "mcpServers": {SERVER: {"httpUrl": ask.url, "trust": True, "timeout": int(CALL_SECONDS * 1000)}},
            "tools": {"core": [f"{_PREFIX}*"]},
            "skills": {"enabled": False},
            "telemetry": {"enabled": False},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        }
        (folder / "settings.json").write_text(json.dumps(settings), "utf-8")
        command = [self._program, "-p", "", "-m", self._model.name, "--output-format", "stream-json", "--skip-trust"]
        variables = {**self._keys, "NO_COLOR": "1"}
        if self._model.url is not None:
            variables["GOOGLE_GEMINI_BASE_URL"] = self._model.url
        return Start(command, "\n\n".join(filter(None, (ask.system, ask.text))), variables)

    def read(self, printed: bytes) -> Said:
        """Its events: pieces of text, calls, answers."""
        said = Said()
        text: list[str] = []
        calls: list[Told] = []

        def turn_ends() -> None:
            if text or calls:
                said.steps.append(Step("".join(text), tuple(calls)))
            text.clear()
            calls.clear()

        answered = False
        for event in events(printed):
            kind = event.get("type")
            if answered and kind in ("message", "tool_use"):
                turn_ends()
                answered = False
            if kind in ("message", "tool_use") and event.get("role") != "user":
                said.unanswered = None
            if kind == "init":
                said.model = text_of(event.get("model")) or None
                said.unanswered = NOTHING
            elif kind == "message" and event.get("role") == "assistant":
                text.append(text_of(event.get("content")))
            elif kind == "tool_use":
                name = text_of(event.get("tool_name")).removeprefix(_PREFIX)
                calls.append(Told(name, event.get("parameters")))
            elif kind == "tool_result":
                answered = True
            elif kind == "error" or (kind == "result" and event.get("status") == "error"):
                _fail(said, event)
            if kind == "result":
                said.usage = _usage(part(event, "stats"))
        turn_ends()
        return said


def _fail(said: Said, event: dict[str, Any]) -> None:
    error = part(event, "error")
    why = text_of(error.get("message")) or text_of(event.get("message")) or "it failed"
    if event.get("severity") == "warning":
        return
    if "turn" in text_of(error.get("type")).lower() or "max session turns" in why.lower():
        said.out_of_turns = True
        return
    said.failure = why[:500]
    said.everybody = any(
        sign in why for sign in ("API key", "quota", "ECONNREFUSED", "fetch failed", "status 5", "401")
    )


def _usage(told: dict[str, Any]) -> Usage:
    return Usage(count(told, "input_tokens"), count(told, "output_tokens"), count(told, "cached"))
