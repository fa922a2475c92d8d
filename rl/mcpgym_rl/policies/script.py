"""Scripted policies: turns written down beforehand, in a test or in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, cast

from mcpgym.errors import ConfigurationError
from mcpgym.messages import Message, assistant
from mcpgym_rl.policy import EpisodeContext, PolicyError, Turn

FORMS = """write a JSON list of turns, or one turn a line (JSONL); a turn is
  "text"                                             an answer without a call
  {"name": "play", "arguments": {"position": 4}}     one call
  {"text": "…", "calls": [{"name": …}, …]}           text and calls
  {"role": "assistant", "content": "…", …}           a whole message"""


class ScriptedPolicy:
    """Plays the given turns in order, the same in every rollout; it fails when they run out.

    Args:
        turns: texts, calls, messages (the forms of ``FORMS``) or whole :class:`~mcpgym_rl.policy.Turn` objects.
        name: how traces name it.
    """

    deterministic = True

    def __init__(self, turns: Sequence[Turn | Mapping[str, Any] | str], name: str = "script") -> None:
        self.name = name
        self.turns = [turn if isinstance(turn, Turn) else Turn(scripted_message(turn)) for turn in turns]

    def begin(self, context: EpisodeContext) -> ScriptedSession:
        """A session at the script's beginning."""
        return ScriptedSession(self)

    async def aclose(self) -> None:
        """Nothing is held."""


class ScriptedSession:
    """A script at work on one rollout."""

    def __init__(self, policy: ScriptedPolicy) -> None:
        self._policy = policy
        self._next = 0

    async def act(self, messages: Sequence[Message]) -> Turn:
        """The next turn of the script."""
        turns = self._policy.turns
        if self._next == len(turns):
            raise PolicyError(f"{self._policy.name} has {len(turns)} turns, and the episode goes on after them")
        self._next += 1
        return turns[self._next - 1]

    def fork(self) -> ScriptedSession:
        """A session of its own from here on."""
        return copy(self)

    async def aclose(self) -> None:
        """Nothing is held."""


def scripted_message(turn: Any) -> Message:
    """The assistant message that one written turn means.

    Arguments given as text are sent as they are, so that a script can hold malformed ones.

    Raises:
        ConfigurationError: it is none of the forms.
    """
    if isinstance(turn, str):
        return assistant(turn)
    if isinstance(turn, Mapping):
        if turn.get("role") == "assistant":
            return cast(Message, {"content": "", **turn})
        unknown = set(turn) - ({"text", "calls"} if "name" not in turn else {"text", "name", "arguments"})
        calls = [turn] if "name" in turn else turn.get("calls", [])
        if not unknown and isinstance(calls, list) and all(isinstance(call, Mapping) for call in calls) and turn:
            return assistant(str(turn.get("text", "")), [_call(place, call) for place, call in enumerate(calls)])
    raise ConfigurationError(f"{json.dumps(turn, default=repr)[:120]} is no turn; {FORMS}")


def _call(place: int, call: Mapping[str, Any]) -> Any:
    arguments = call.get("arguments", {})
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    function = {"name": call.get("name", ""), "arguments": text}
    return {"id": call.get("id", f"call_{place}"), "type": "function", "function": function}


def read_script(path: str) -> ScriptedPolicy:
    """The policy in the file at ``path`` (see ``FORMS``).

    Raises:
        ConfigurationError: it cannot be read, or holds something else; the message names the turn.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"script {path!r} cannot be read: {error}; {FORMS}") from None
    try:
        turns = (
            json.loads(text)
            if text.lstrip().startswith("[")
            else [json.loads(x) for x in text.splitlines() if x.strip()]
        )
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"script {path!r} is no JSON: {error}; {FORMS}") from None
    if not turns:
        raise ConfigurationError(f"script {path!r} has no turns; {FORMS}")
    made = []
    for number, turn in enumerate(turns, 1):
        try:
            made.append(scripted_message(turn))
        except ConfigurationError as error:
            raise ConfigurationError(f"script {path!r}, turn {number}: {error}") from None
    return ScriptedPolicy([Turn(message) for message in made], f"script:{Path(path).name}")
