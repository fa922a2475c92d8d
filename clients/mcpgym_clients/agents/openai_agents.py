"""The OpenAI Agents SDK: its own loop, in a process of its own, by a program of ours that uses it as documented."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path

from mcpgym_clients.agents.contract import CALL_SECONDS, Ask, Said, Start, Step, Told
from mcpgym_clients.agents.events import NOTHING, count, events, rows, text_of
from mcpgym_clients.agents.product import Product
from mcpgym_clients.agents.programs import version_of
from mcpgym_clients.failures import UsageProblem
from mcpgym_rl.policy import Usage

RUNNER = Path(__file__).with_name("openai_agents_runner.py")
_VERSION = "from importlib.metadata import version; print(version('openai-agents'))"
"""Without an import of the SDK, which takes seconds."""


class OpenAIAgents(Product):
    """The SDK's ``Runner`` with one agent and our server.

    Args:
        spec: the model, as it was typed.
        python: the interpreter that has the SDK; this one without.

    Raises:
        UsageProblem: it names no model of its APIs, there is no key, or the SDK is not installed here.
    """

    name = "openai-agents"
    kinds = ("openai", "openai-responses")
    default_url = "https://api.openai.com/v1"
    key_variables = ("OPENAI_API_KEY",)

    def __init__(self, spec: str, python: Path | None = None) -> None:
        super().__init__(spec)
        self._python = sys.executable if python is None else str(python.absolute())
        if python is None and find_spec("agents") is None:
            raise UsageProblem(
                f"--agent {self.name} needs a package more: pip install 'mcpgym[openai-agents]', or name the Python of "
                "a virtual environment that has openai-agents: --agent-python PATH"
            )
        if python is not None and not python.is_file():
            raise UsageProblem(f"--agent-python {python}: there is no such program")

    async def prepare(self) -> None:
        """Look which version there is."""
        self.version = await version_of([self._python, "-I", "-c", _VERSION])

    def start(self, ask: Ask) -> Start:
        """The runner, with what to do on its standard input."""
        asked = {
            "url": ask.url,
            "system": ask.system,
            "text": ask.text,
            "model": self._model.name,
            "api": self._model.kind,
            "base_url": self._model.url,
            "call_seconds": CALL_SECONDS,
            "history": str(ask.place.home / "history.json"),
        }
        return Start([self._python, "-I", str(RUNNER)], json.dumps(asked), self._keys)

    def read(self, printed: bytes) -> Said:
        """The runner's events."""
        said = Said()
        for event in events(printed):
            match event.get("type"):
                case "init":
                    said.version = text_of(event.get("version")) or None
                    said.unanswered = NOTHING
                case "turn":
                    said.unanswered = None
                    calls = [Told(text_of(row.get("name")), _arguments(row.get("arguments"))) for row in
                             rows(event.get("calls"))]  # fmt: skip
                    said.steps.append(Step(text_of(event.get("text")), tuple(calls)))
                    said.usage += Usage(count(event, "read"), count(event, "written"), count(event, "cached"))
                case "end":
                    said.session = "history"
                    said.out_of_turns = event.get("out_of_turns") is True
                case "failure":
                    said.failure = text_of(event.get("message"))[:500] or "it failed"
                    said.everybody = event.get("everybody") is True
        return said


def _arguments(text: object) -> object:
    """Arguments as the model wrote them, read; an empty text is none."""
    try:
        return json.loads(text) if isinstance(text, str) and text.strip() else {}
    except (ValueError, RecursionError):
        return text
