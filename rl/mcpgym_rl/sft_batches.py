"""Games as tensors: their order, and how a batch is cut so that little padding is computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

import torch
from torch import Tensor

from mcpgym.errors import ConfigurationError
from mcpgym_rl.sft import Game

OVERHEAD = 100
"""What a further part of a batch costs, in tokens."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some games side by side, padded on the right; causal attention never looks there, so there is no mask.

    ``ids`` is (games, length); ``places`` says where in the flattened ``ids`` each learnt token is predicted (one place
    before it stands), and ``targets`` which token that is: both (learnt tokens,).
    """

    ids: Tensor
    places: Tensor
    targets: Tensor


def trimmed(game: Game, vocabulary: int) -> Game:
    """``game`` up to its last learnt token; what follows teaches nothing. A first token cannot be learnt.

    Raises:
        ConfigurationError: it is no game that a model with so many tokens can learn from.
    """
    ids, mask = game
    if len(ids) != len(mask):
        raise ConfigurationError(f"a game has {len(ids)} ids and a mask of {len(mask)}; they must be as many")
    last = max((place for place in range(1, len(mask)) if mask[place]), default=0)
    if not last:
        raise ConfigurationError("a game has no token to be learnt")
    ids = ids[: last + 1]
    if not 0 <= min(ids) <= max(ids) < vocabulary:
        raise ConfigurationError(
            f"a game has the token {max(ids)}, and the model knows {vocabulary}: were the ids made with its tokenizer?"
        )
    return ids, [False, *(bool(learnt) for learnt in mask[1 : last + 1])]


def shuffled(count: int, seed: int, start: int) -> Iterator[int]:
    """Places of ``count`` games without end, each epoch in an order of its own, from the ``start``-th on."""
    epoch, passed = divmod(start, count)
    while True:
        order = list(range(count))
        Random(f"{seed} {epoch}").shuffle(order)
        yield from order[passed:]
        epoch, passed = epoch + 1, 0


def parts_of(batch: Sequence[Game], max_tokens: int) -> list[Part]:
    """``batch`` in the parts that cost least: games of like lengths together, at most ``max_tokens`` places each.

    Dynamic programming over the games by length: a part costs its padded size and ``OVERHEAD``. A single game that is
    longer than ``max_tokens`` has a part of its own.
    """
    games = sorted(batch, key=lambda game: len(game[0]))
    best = [0.0]
    cut = [0]
    for end in range(1, len(games) + 1):
        length = len(games[end - 1][0])
        choices = [
            (best[start] + length * (end - start) + OVERHEAD, start)
            for start in range(end - 1, -1, -1)
            if start == end - 1 or length * (end - start) <= max_tokens
        ]
        cost, start = min(choices)
        best.append(cost)
        cut.append(start)
    made = []
    end = len(games)
    while end:
        made.append(_pad(games[cut[end] : end]))
        end = cut[end]
    return made[::-1]


def _pad(games: Sequence[Game]) -> Part:
    length = max(len(ids) for ids, _ in games) - 1  # the last token is only a target
    whole = torch.zeros(len(games), length, dtype=torch.long)
    places: list[int] = []
    targets: list[int] = []
    for row, (ids, mask) in enumerate(games):
        whole[row, : len(ids) - 1] = torch.tensor(ids[:-1])
        for place, learnt in enumerate(mask):
            if learnt:
                places.append(row * length + place - 1)
                targets.append(ids[place])
    return Part(whole, torch.tensor(places), torch.tensor(targets))
