"""Games that are episodes, played over MCP as any client plays them: by the person, or by a policy that one watches."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from mcpgym import meta_keys
from mcpgym.calls import CallResult
from mcpgym.environment import Environment
from mcpgym.errors import ConfigurationError, McpgymError
from mcpgym.messages import Message, ToolCall, assistant, tool_answer, tool_call
from mcpgym.rewards import Score
from mcpgym_clients.call_text import call_text
from mcpgym_clients.viewer.move_values import Game as ValuedGame
from mcpgym_clients.web_play.game import Game, Said
from mcpgym_rl.lanes import EpisodeLane
from mcpgym_rl.parse import MalformedCall, parse
from mcpgym_rl.policy import ContextFull, PolicySession
from mcpgym_rl.rollout import DEFAULT_MAX_TURNS

VERDICTS = {"win": "You won.", "draw": "A draw.", "loss": "You lost."}
WATCHED = {"win": "The policy won.", "draw": "A draw.", "loss": "The policy lost."}


@dataclass(slots=True, kw_only=True)
class EpisodeGame(Game):
    """An episode on the page. ``environment`` is asked for its game tree alone; ``again`` is how to begin the same."""

    episode: EpisodeLane
    environment: Environment[Any, Any, Any]
    again: str
    messages: list[Message] = field(default_factory=list)
    score: Score | None = None
    over: bool = False
    verdicts: ClassVar[Mapping[str, str]] = VERDICTS

    def __post_init__(self) -> None:
        self.messages = list(self.episode.opened.messages)
        self.said += [_said(message) for message in self.messages]

    async def view(self) -> dict[str, Any]:
        """With the tools; and with the score once it is over, not before."""
        base = await Game.view(self)
        texts = [message["content"] for message in self.messages if message["role"] in ("user", "tool")]
        base |= {"board": "\n".join(texts[-8:]), "turn": "over" if self.over else self._whose()}
        if self.over:
            base |= {"again": self.again, "score": None if self.score is None else _plain(self.score)}
            outcome = None if self.score is None else self.score.game_outcome
            base["verdict"] = self.verdicts.get(outcome or "", "The game is over.")
        elif self.part == "policy":
            base |= {"tools": list(self.episode.opened.tools), "words": True}
        return base

    def _whose(self) -> str:
        return "person"

    async def values(self) -> dict[str, Any]:
        """By the transcript, on the environment's tree."""
        if self.environment.game_tree() is None:
            return await Game.values(self)
        prompt = len(self.episode.opened.messages)
        moves, note = await asyncio.to_thread(_now, self.environment, list(self.messages), prompt)
        return {"moves": moves, "note": note}

    async def _called(self, name: str, arguments: Mapping[str, Any], call: ToolCall) -> CallResult:
        """Make a call whose assistant turn is in the transcript, and put its answer there."""
        result = await self.episode.call(name, arguments)
        self._answered(call, result.text, result.is_error)
        return result

    def _answered(self, call: ToolCall, text: str, wrong: bool) -> None:
        self.messages.append(tool_answer(call, text, is_error=wrong))
        self.said.append(Said("tool", text, call["function"]["name"], wrong))
        self.version += 1

    async def _responded(self) -> None:
        """What follows a turn in words: the environment's answer, or the end."""
        answer = await self.episode.respond(self.messages)
        self.version += 1
        if answer is None:
            return await self._finish()
        self.messages += answer
        self.said += [_said(message) for message in answer]
        return await self._look()

    async def _look(self) -> None:
        """Finish if the episode takes no more calls."""
        status = await self.episode.status()
        if status.stop_reason == "max_turns":
            self.said.append(Said("note", "That was the last turn there was."))
        if status.done:
            await self._finish()

    async def _finish(self) -> None:
        self.over = True
        self.version += 1
        try:
            self.score = await self.episode.score(self.messages)
        except McpgymError as error:
            self.said.append(Said("note", f"There is no score: {error}", wrong=True))

    async def aclose(self) -> None:
        """Close the episode."""
        with contextlib.suppress(McpgymError):
            await self.episode.aclose()


@dataclass(slots=True, kw_only=True)
class OwnGame(EpisodeGame):
    """The person plays, with the tools that a policy has."""

    async def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """One turn with one call."""
        if self.over:
            raise ConfigurationError("this game is over")
        call = tool_call(f"call_{len(self.messages)}", name, json.dumps(arguments))
        self.messages.append(assistant("", [call]))
        self.said.append(Said("you", "", _shown(call)))
        result = await self._called(name, arguments, call)
        await self._look()
        meta: dict[str, Any] = {meta_keys.DONE: True} if self.over else {}
        return {"content": [{"type": "text", "text": result.text}], "isError": result.is_error, "_meta": meta}

    async def say(self, text: str) -> None:
        """One turn in words."""
        if self.over:
            raise ConfigurationError("this game is over")
        self.messages.append(assistant(text))
        self.said.append(Said("you", text))
        await self._responded()


@dataclass(slots=True, kw_only=True)
class WatchedGame(EpisodeGame):
    """A policy plays, a turn whenever the page asks for one."""

    session: PolicySession
    turns: int = 0
    verdicts: ClassVar[Mapping[str, str]] = WATCHED

    def _whose(self) -> str:
        return "policy"

    async def step(self) -> None:
        """One turn of the policy.

        Raises:
            PolicyError: it gave none; it may be asked again.
        """
        if self.over:
            return None
        try:
            turn = await self.session.act(list(self.messages))
        except ContextFull:
            self.said.append(Said("note", "The conversation is too long for the policy.", wrong=True))
            return await self._finish()
        self.turns += 1
        message, calls = parse(turn.message)
        self.messages.append(message)
        if message["content"].strip():
            self.said.append(Said("policy", message["content"]))
        if turn.finish == "length":
            self.said.append(Said("note", "The policy's turn was cut off at its limit.", wrong=True))
            return await self._finish()
        if not calls:
            return await self._responded()
        for call in calls:
            self.said.append(Said("policy", "", _shown(call.call)))
            if isinstance(call, MalformedCall):
                self._answered(call.call, call.problem, True)
            else:
                await self._called(call.call["function"]["name"], call.arguments, call.call)
        if self.turns >= (self.episode.opened.max_turns or DEFAULT_MAX_TURNS):
            return await self._finish()
        return await self._look()

    async def aclose(self) -> None:
        """Close the episode and the policy's session."""
        await EpisodeGame.aclose(self)
        with contextlib.suppress(Exception):
            await self.session.aclose()


def _said(message: Message) -> Said:
    return Said("system" if message["role"] == "system" else "user", message["content"])


def _shown(call: ToolCall) -> str:
    """A call for people: texts of several lines below it, as the lines that they are."""
    shown = call_text(call)
    return "\n".join([shown.line, *(f"{block.name}:\n{block.text}" for block in shown.blocks)])


def _plain(score: Score) -> dict[str, Any]:
    return {"total": score.total, "components": dict(score.components)}


def _now(
    environment: Environment[Any, Any, Any], messages: Sequence[Message], prompt: int
) -> tuple[list[dict[str, Any]], str]:
    try:
        moves, note = ValuedGame(environment).now(messages, prompt)
    except (McpgymError, RecursionError) as error:
        return [], f"the values of moves are not known: {error}"
    return [move.as_json() for move in moves], note
