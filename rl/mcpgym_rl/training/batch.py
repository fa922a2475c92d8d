"""From traces to tensors: the sampled ids are the trained ids, and nothing is tokenised here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mcpgym_rl.traces import Trace, TraceTokens


@dataclass(frozen=True, slots=True)
class Sequences:
    """Some rollouts side by side, padded on the right. Causal attention never looks there, so no mask is needed.

    ``prefix``, (common,), is what all rollouts of the batch begin with; ``ids``, (rows, length), is what follows it in
    each. The others have one entry per sampled token, (tokens,): where the logits that chose it stand in the flattened
    ``ids`` (one place before it), its id, the log-probability it was sampled with, its temperature, its advantage.
    """

    prefix: Tensor
    ids: Tensor
    places: Tensor
    targets: Tensor
    logprobs: Tensor
    temperatures: Tensor
    advantages: Tensor


@dataclass(frozen=True, slots=True)
class Batch:
    """The rollouts of one update. ``tokens`` counts every sampled token of the scored ones, those without a signal
    included: it is the normaliser of the loss. ``rollouts`` are those that are trained on."""

    rollouts: Sequence[_Rollout]
    tokens: int

    def micro_batches(self, max_tokens: int, device: torch.device | str = "cpu") -> Iterator[Sequences]:
        """The batch in parts of at most ``max_tokens`` places, padding included, like lengths together.

        What is the same is computed once: the prefix, and rollouts whose ids are those of another, or its beginning.
        """
        common = _common(self.rollouts)
        rows = sorted(_rows(self.rollouts), key=lambda row: len(row[0].ids))
        waiting: list[list[_Rollout]] = []
        for row in rows:
            if waiting and (len(row[0].ids) - common) * (len(waiting) + 1) > max_tokens:
                yield _pad(waiting, common, device)
                waiting = []
            waiting.append(row)
        if waiting:
            yield _pad(waiting, common, device)


@dataclass(frozen=True, slots=True)
class _Rollout:
    """One rollout cut off after its last trained token; ``sampled`` are the places of its trained tokens."""

    ids: list[int]
    sampled: Sequence[int]
    logprobs: Sequence[float]
    temperatures: Sequence[float]
    advantages: Sequence[float]


def make_batch(
    traces: Sequence[Trace],
    advantages: Sequence[Sequence[float] | float | None],
    *,
    temperature: float,
    keep_without_signal: bool = False,
) -> Batch:
    """The batch of ``traces`` and their advantages: one number per rollout, or one per sampled turn; None to leave out.

    Args:
        traces: rollouts of a local policy, with tokens.
        advantages: as above, in the same order.
        temperature: of tokens whose trace does not say.
        keep_without_signal: whether tokens with an advantage of 0 are trained on too: they have no policy gradient,
            but what is said of entropy, and a KL term, reaches them.

    Raises:
        ValueError: a trace has no tokens, or another number of sampled turns than advantages.
    """
    rollouts: list[_Rollout] = []
    count = 0
    for trace, advantage in zip(traces, advantages, strict=True):
        if advantage is None or trace.turns == trace.given_turns:
            continue  # not scored, or the policy was never asked
        if trace.tokens is None:
            raise ValueError(
                f"the trace of {trace.task} has no token ids: only a local policy's rollouts can be trained on"
            )
        sampled = [place for place, own in enumerate(trace.tokens.mask) if own]
        count += len(sampled)
        per_token = _spread(trace.tokens, sampled, advantage, trace.task)
        kept = [at for at, value in enumerate(per_token) if value or keep_without_signal]
        if not kept:
            continue
        places = [sampled[at] for at in kept]
        given = trace.tokens.temperatures
        rollouts.append(
            _Rollout(
                list(trace.tokens.ids[: places[-1] + 1]),
                places,
                [trace.tokens.logprobs[place] for place in places],
                [temperature if given is None else given[place] for place in places],
                [per_token[at] for at in kept],
            )
        )
    return Batch(rollouts, count)


def _spread(
    tokens: TraceTokens, sampled: Sequence[int], advantage: Sequence[float] | float, task: str
) -> Sequence[float]:
    """The advantage of each sampled token: turns are the unbroken runs of sampled tokens."""
    if isinstance(advantage, (int, float)):
        return [float(advantage)] * len(sampled)
    made: list[float] = []
    turn = -1
    for place in sampled:
        turn += place == 0 or not tokens.mask[place - 1]
        if turn < len(advantage):
            made.append(advantage[turn])
    if turn + 1 != len(advantage):
        raise ValueError(
            f"the trace of {task} has {turn + 1} sampled turns, and {len(advantage)} advantages came with it"
        )
    return made


def _common(rollouts: Sequence[_Rollout]) -> int:
    """How many ids all rollouts begin with alike, short of the place whose logits chose a rollout's first token."""
    if not rollouts:
        return 0
    least, most = min(rollout.ids for rollout in rollouts), max(rollout.ids for rollout in rollouts)
    alike = next((at for at, (one, other) in enumerate(zip(least, most, strict=False)) if one != other), len(least))
    return min(alike, *(rollout.sampled[0] - 1 for rollout in rollouts))


def _rows(rollouts: Sequence[_Rollout]) -> list[list[_Rollout]]:
    """The rollouts by the row that computes them: the longest first, then those that are its beginning."""
    rows: list[list[_Rollout]] = []
    for rollout in sorted(rollouts, key=lambda item: item.ids, reverse=True):
        if rows and rows[-1][0].ids[: len(rollout.ids)] == rollout.ids:
            rows[-1].append(rollout)
        else:
            rows.append([rollout])
    return rows


def _pad(rows: Sequence[Sequence[_Rollout]], common: int, device: torch.device | str) -> Sequences:
    length = max(len(row[0].ids) for row in rows) - common
    ids = torch.zeros(len(rows), length, dtype=torch.long)
    places: list[int] = []
    for number, row in enumerate(rows):
        ids[number, : len(row[0].ids) - common] = torch.tensor(row[0].ids[common:])
        places += [number * length + place - common - 1 for rollout in row for place in rollout.sampled]
    targets = ids.flatten()[torch.tensor(places) + 1]

    def joined(name: str) -> Tensor:
        values = [value for row in rows for rollout in row for value in getattr(rollout, name)]
        return torch.tensor(values, dtype=torch.float32)

    numbers = (joined(name) for name in ("logprobs", "temperatures", "advantages"))
    made = (torch.tensor(rows[0][0].ids[:common], dtype=torch.long), ids, torch.tensor(places), targets, *numbers)
    return Sequences(*(tensor.to(device) for tensor in made))
