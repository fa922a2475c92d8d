"""Rollouts as a model's token ids, with a mask over the turns that are to be learnt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from mcpgym.control import LocalControl
from mcpgym.environment import Environment
from mcpgym.episodes import Episodes
from mcpgym.errors import EpisodeError
from mcpgym.messages import Message
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.local.chat import Chat
from mcpgym_rl.policy import Policy
from mcpgym_rl.rollout import Limits
from mcpgym_rl.run import EpisodeSpec, run
from mcpgym_rl.sft import Game
from mcpgym_rl.tiny.transcripts import in_own_loop
from mcpgym_rl.traces import Trace

BLOCK = 256
"""How many games a stream plays at a time."""


def game_of(chat: Chat, messages: Sequence[Message], prompt_messages: int, tools: Sequence[Mapping[str, Any]]) -> Game:
    """The ids of a conversation up to its last assistant turn, put together as a rollout of ``chat``'s model does it.

    What the assistant wrote is to be learnt, end tokens and all, but for turns of weight 0.

    Args:
        chat: the model's.
        messages: the whole conversation.
        prompt_messages: how many of them were there before the first turn.
        tools: as the server lists them.
    """
    ids = chat.opening(messages[:prompt_messages], tools)
    mask = [False] * len(ids)
    turns = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    for place, after in zip(turns, [*turns[1:], None], strict=True):
        turn = chat.turn_ids(messages[place])
        ids += turn
        mask += [messages[place].get("weight") != 0] * len(turn)
        if after is not None:
            said = chat.continuation(messages[: place + 1], messages[place + 1 : after])
            ids += said
            mask += [False] * len(said)
    return ids, mask


class PlayedGames:
    """Games that ``policy`` plays, in process, over the tasks of a split in order, without end.

    Each time it is gone through it begins anew, with the same games. Rollouts without a score, or without a turn to
    learn, are passed over.

    Args:
        environment: where it plays.
        policy: what plays; its owner closes it.
        chat: whose ids the games get.
        seed: of the episodes and the policy.
        split: whose tasks are played, from the first, over and over.
        keep: which rollouts are wanted.
        limits: of each rollout.
        concurrency: how many are under way at once.
    """

    def __init__(
        self,
        environment: Environment[Any, Any, Any],
        policy: Policy,
        chat: Chat,
        *,
        seed: int = 0,
        split: str = "train",
        keep: Callable[[Trace], bool] = lambda trace: True,
        limits: Limits | None = None,
        concurrency: int = 64,
    ) -> None:
        self.environment, self.policy, self.chat = environment, policy, chat
        self.seed, self.split, self.keep = seed, split, keep
        self.limits, self.concurrency = limits, concurrency
        self._size = environment.size(split)
        self._tools = [tool.listing for tool in environment.tools.values()]

    def __iter__(self) -> Iterator[Game]:
        """The games.

        Raises:
            EpisodeError: of ``BLOCK`` rollouts not one gave a game; the message says why.
        """
        for first in count(0, BLOCK):
            traces = self._play(range(first, first + BLOCK))
            wanted = [trace for trace in traces if trace.scored and self.keep(trace)]
            games = [game_of(self.chat, trace.messages, trace.prompt_messages, self._tools) for trace in wanted]
            games = [game for game in games if any(game[1])]
            if not games:
                who = f"{self.environment.name}: {BLOCK} rollouts of {self.policy.name}"
                raise EpisodeError(f"{who} gave no game: {_why(traces)}")
            yield from games

    def _play(self, places: Sequence[int]) -> list[Trace]:
        name, size = self.environment.name, self._size
        specs = [
            EpisodeSpec(name, split=self.split, index=place % size, seed=self.seed, repeat=place) for place in places
        ]

        async def play() -> list[Trace]:
            lane = ControlLane(LocalControl(Episodes({name: self.environment})))
            return (await run(self.policy, lane, specs, concurrency=self.concurrency, limits=self.limits)).traces

        return in_own_loop(play)


def _why(traces: Sequence[Trace]) -> str:
    """Why none of ``traces`` was wanted."""
    failed = next((trace.error.message for trace in traces if trace.error is not None), None)
    if any(trace.scored for trace in traces):
        return "none of those that were scored was to be kept, or had a turn to learn"
    return failed or "none was scored"
