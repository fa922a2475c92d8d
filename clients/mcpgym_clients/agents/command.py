"""Any program as an agent: ``--agent 'command:my-agent --mcp {url} --task {prompt_file}'``."""

from __future__ import annotations

import shlex
import string
from collections.abc import Mapping, Sequence
from pathlib import Path

from mcpgym_clients.agents.contract import Ask, Model, Said, Start, Step
from mcpgym_clients.agents.programs import program
from mcpgym_clients.failures import UsageProblem

KNOWN = ("url", "prompt_file", "system_file", "model", "home")
MAX_ANSWER = 1_000_000
"""Characters of what it prints that are taken for its answer."""


class AnyCommand:
    """A program that plays an episode at a URL, given in its arguments (and in ``MCPGYM_URL``).

    The task is in ``{prompt_file}``, and on its standard input; what it prints is its answer. Exit code 0 says that it
    has done what it would.

    Args:
        template: the command, with ``{url}`` and other names in braces.
        model: what the model is called, if one was named.
        variables: the user's variables that it is to have besides, by value.

    Raises:
        UsageProblem: the template has an unknown name, or is no command.
    """

    goes_on = False
    version: str | None = None
    key: str | None = None

    def __init__(self, template: str, model: str | None = None, variables: Mapping[str, str] | None = None) -> None:
        try:
            self._words = shlex.split(template)
            named = {
                name for word in self._words for _, name, _, _ in string.Formatter().parse(word) if name is not None
            }
        except ValueError as error:
            raise UsageProblem(f"--agent command:{template}: no command can be read from it: {error}") from None
        if not self._words:
            raise UsageProblem("--agent command:… needs a command, for example 'command:my-agent {url} {prompt_file}'")
        if unknown := sorted(named - set(KNOWN)):
            known = ", ".join(f"{{{name}}}" for name in KNOWN)
            raise UsageProblem(
                f"--agent command: {{{unknown[0]}}} stands for nothing; there is {known}; {{{{ is a brace"
            )
        if "model" in named and model is None:
            raise UsageProblem("--agent command: {model} stands for the model: name it with -p MODEL")
        self.name = f"command:{_label(self._words)}"
        self.model = None if model is None else Model(model)
        self._variables = dict(variables or {})
        self.secrets: Sequence[str] = list(self._variables.values())

    async def prepare(self) -> None:
        """Find the program."""
        self._words[0] = program(self._words[0], "what follows command: must be one, which is yours to bring")
        self._words[1:] = map(_absolute, self._words[1:])  # it is started in another folder

    def start(self, ask: Ask) -> Start:
        """The command with what its names stand for."""
        prompt, system = ask.place.home / "prompt.txt", ask.place.home / "system.txt"
        prompt.write_text(ask.text, "utf-8", errors="backslashreplace")
        system.write_text(ask.system, "utf-8", errors="backslashreplace")
        meanings = {
            "url": ask.url,
            "prompt_file": str(prompt),
            "system_file": str(system),
            "model": "" if self.model is None else self.model.name,
            "home": str(ask.place.home),
        }
        command = [word.format_map(meanings) for word in self._words]
        whole = "\n\n".join(filter(None, (ask.system, ask.text)))
        return Start(command, whole, {**self._variables, "MCPGYM_URL": ask.url})

    def read(self, printed: bytes) -> Said:
        """What it printed is what it answered."""
        text = printed[: 4 * MAX_ANSWER].decode("utf-8", "replace").strip()
        return Said([Step(text[:MAX_ANSWER])] if text else [])


def _label(words: Sequence[str]) -> str:
    """The program's name: of an interpreter's script, where there is one."""
    names = [Path(word).name for word in words]
    script = next((name for name in names[1:] if name.endswith((".py", ".js", ".mjs", ".sh", ".ts"))), None)
    return (script if script is not None and names[0].startswith(("python", "node", "sh", "bash")) else names[0])[:80]


def _absolute(word: str) -> str:
    """A word that names a file here, wherever it is used."""
    return str(Path(word).absolute()) if word and Path(word).exists() else word
