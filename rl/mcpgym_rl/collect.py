"""Data for supervised fine-tuning: rollouts of a policy, the good ones of them, and a card that says what they are.

A folder of collected data has::

    traces.jsonl  every rollout, as it ended
    attempts.jsonl  those that ended without a score and were played again
    sft.jsonl     those that were kept, one conversation a line, in the order of the tasks
    card.json     what was played, kept and left out, with all that is needed to do it again
    card.md       the same, to be read

A line of ``sft.jsonl`` has ``messages`` and ``tools`` in the chat format: the arguments of calls are objects, as chat
templates want them, and ``tools`` is the JSON text of the list, for tables cannot hold schemas that differ (TRL and
prime-rl read it so). Turns that are not to be learnt have the ``weight`` 0. Where a model was named, there are ``ids``
and ``mask`` as well: the tokens of the conversation, and 1 for each that is to be learnt.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpgym import __version__
from mcpgym.errors import ConfigurationError
from mcpgym_rl.data_card import Card
from mcpgym_rl.files import write_atomically
from mcpgym_rl.lanes import Lane
from mcpgym_rl.locks import locked
from mcpgym_rl.policies.chat_format import native_tools
from mcpgym_rl.policy import EpisodeContext, Policy, PolicySession
from mcpgym_rl.resuming import ATTEMPTS, SYNC_SECONDS, TRACES, finished, settle
from mcpgym_rl.rollout import Limits
from mcpgym_rl.run import EpisodeSpec, run
from mcpgym_rl.traces import Trace, TraceWriter

if TYPE_CHECKING:
    from mcpgym_rl.local.directory import ModelDirectory

SFT, CARD, CARD_TEXT = "sft.jsonl", "card.json", "card.md"


@dataclass(frozen=True, slots=True)
class Collection:
    """What is to be played: ``count`` rollouts over the tasks of ``split`` from the first, over and over.

    Rollout k plays task k modulo ``size``, the split's; its seed is ``seed``, one more for each time around.
    """

    environment: str
    policy: str
    split: str
    size: int
    count: int
    seed: int = 0
    config: Mapping[str, Any] = field(default_factory=dict)
    policy_options: Mapping[str, Any] = field(default_factory=dict)
    max_turns: int | None = None

    def spec(self, place: int, config: Mapping[str, Any]) -> EpisodeSpec:
        """The rollout number ``place``; ``config`` is what its episode must ask for beyond what is served."""
        around, index = divmod(place, self.size)
        return EpisodeSpec(
            self.environment,
            split=self.split,
            index=index,
            seed=self.seed + around,
            repeat=around,
            config=config,
        )

    def identity(self) -> dict[str, Any]:
        """What must agree for rollouts to belong to one collection."""
        made = {name: getattr(self, name) for name in self.__slots__ if name != "count"}
        identity: dict[str, Any] = json.loads(json.dumps(made))
        return identity


class Collector:
    """A collection in ``folder``, begun or gone on with: rollouts that are there are not played again.

    Raises:
        ConfigurationError: the folder has something else in it, or a file of it is damaged.
    """

    def __init__(self, wanted: Collection, folder: Path) -> None:
        self.wanted, self.folder = wanted, folder
        self.failure: str | None = None
        folder.mkdir(parents=True, exist_ok=True)
        self.tools: list[Mapping[str, Any]] | None = None
        self._claim()
        self.traces: dict[int, Trace] = {trace.place: trace for trace in finished(folder)}
        self.found = len(self.traces)

    @property
    def complete(self) -> bool:
        """Whether every rollout that was asked for has ended."""
        return not self._missing()

    async def play(
        self,
        policy: Policy,
        lane: Lane,
        *,
        config: Mapping[str, Any] | None = None,
        concurrency: int = 16,
        limits: Limits | None = None,
        on_trace: Callable[[Trace], None] | None = None,
    ) -> None:
        """Play what is missing; each trace is on disk before ``on_trace`` has it. ``failure`` says why it ended early.

        Args:
            policy: what plays; its owner closes it.
            lane: where episodes are opened; closed by its owner too.
            config: what each episode must ask for, where ``lane`` does not serve the collection's configuration.
            concurrency: how many rollouts are under way at once.
            limits: of each rollout.
            on_trace: gets each trace as its rollout ends.

        Raises:
            ConfigurationError: an episode cannot be opened as asked, or another process is at work in the folder.
        """
        with locked(self.folder):
            settle(self.folder)
            self.traces = {trace.place: trace for trace in finished(self.folder)}
            await self._play(policy, lane, config or {}, concurrency, limits, on_trace)

    async def _play(
        self,
        policy: Policy,
        lane: Lane,
        config: Mapping[str, Any],
        concurrency: int,
        limits: Limits | None,
        on_trace: Callable[[Trace], None] | None,
    ) -> None:
        missing = self._missing()
        noting = _Noting(policy)
        with TraceWriter(self.folder / TRACES, sync=SYNC_SECONDS) as writer:

            def ended(trace: Trace) -> None:
                if self.tools is None and noting.tools is not None:
                    self.tools = noting.tools
                    self._write_card({"complete": False})
                trace = replace(trace, place=missing[trace.place])
                writer.write(trace)
                self.traces[trace.place] = trace
                if on_trace is not None:
                    on_trace(trace)

            def lost(trace: Trace) -> None:
                with TraceWriter(self.folder / ATTEMPTS, sync=SYNC_SECONDS) as attempts:
                    attempts.write(replace(trace, place=missing[trace.place]))

            specs = [self.wanted.spec(place, config) for place in missing]
            result = await run(
                noting,
                lane,
                specs,
                concurrency=concurrency,
                limits=limits,
                on_trace=ended,
                on_lost=lost,
                keep_traces=False,
            )
        self.failure = result.failure

    def finish(self, keep: Callable[[Trace], bool], keep_text: str, model: ModelDirectory | None = None) -> Card:
        """Write ``sft.jsonl`` and the card from the rollouts there are; the card.

        Args:
            keep: which rollouts are kept.
            keep_text: the same, as it was written.
            model: whose token ids the lines get; none without.
        """
        card = Card()
        traces = [self.traces[place] for place in sorted(self.traces) if place < self.wanted.count]
        kept = list(_chosen(traces, keep, card))
        tools = self.tools or []
        temporary = self.folder / f".{SFT}"
        with temporary.open("w", encoding="utf-8") as file:
            for trace in kept:
                row = sft_row(trace, tools)
                if model is not None:
                    from mcpgym_rl.games import game_of

                    ids, mask = game_of(model.chat, trace.messages, trace.prompt_messages, tools)
                    row |= {"ids": ids, "mask": [int(learnt) for learnt in mask]}
                    card.tokens += len(ids)
                    card.learnt_tokens += sum(mask)
                file.write(json.dumps(row, separators=(",", ":"), allow_nan=False) + "\n")
        temporary.replace(self.folder / SFT)
        first = traces[0] if traces else None
        card.about = {
            **self.wanted.identity(),
            "environment_version": None if first is None else first.environment_version,
            "schema_hash": None if first is None else first.schema_hash,
            "environment_config": None if first is None else dict(first.config),
            "count": self.wanted.count,
            "keep": keep_text,
            "model": None if model is None else model.name,
            "model_hash": None if model is None else model.hash,
            "mcpgym": __version__,
        }
        whole = self.complete and self.failure is None
        self._write_card({**card.as_json(), "complete": whole, "failure": self.failure})
        (self.folder / CARD_TEXT).write_text(card.as_text(complete=whole), "utf-8")
        return card

    def _missing(self) -> list[int]:
        return [place for place in range(self.wanted.count) if place not in self.traces]

    def _claim(self) -> None:
        """Make sure that what is in the folder is this collection."""
        path = self.folder / CARD
        if not path.exists():
            if any(not item.name.startswith(".") for item in self.folder.iterdir()):
                raise ConfigurationError(f"{self.folder} is not empty and has no {CARD}; name another folder")
            self._write_card({"complete": False})
        try:
            there = json.loads(path.read_text("utf-8"))
            self.tools = there["tools"]
        except (OSError, ValueError, KeyError, TypeError):
            raise ConfigurationError(f"{path} is no card of collected data; name another folder") from None
        own = self.wanted.identity()
        other = sorted(name for name in own if there.get(name) != own[name])
        if other:
            said = "; ".join(f"{name} is {there.get(name)!r} there, not {own[name]!r}" for name in other)
            raise ConfigurationError(f"{self.folder} has other data ({said}); name another folder")

    def _write_card(self, more: Mapping[str, Any]) -> None:
        write_atomically(self.folder / CARD, {**self.wanted.identity(), **more, "tools": self.tools})


def _chosen(traces: Iterable[Trace], keep: Callable[[Trace], bool], card: Card) -> Iterator[Trace]:
    """Those of ``traces`` that are kept, each different game once; counted on ``card``."""
    seen: set[str] = set()
    for trace in traces:
        card.played += 1
        if trace.score is None or trace.score.total is None:
            card.unscored[trace.stop_reason] += 1
            continue
        card.rewards.append(trace.score.total)
        if not trace.turns or not keep(trace):
            card.filtered += 1
            continue
        if trace.fingerprint in seen:
            card.duplicates += 1
            continue
        seen.add(trace.fingerprint)
        card.kept += 1
        card.kept_rewards.append(trace.score.total)
        if trace.score.game_outcome is not None:
            card.outcomes[trace.score.game_outcome] += 1
        turns = [message for message in trace.messages if message["role"] == "assistant"]
        card.turns += len(turns)
        card.slips += sum(message.get("weight") == 0 for message in turns)
        yield trace


def sft_row(trace: Trace, tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A rollout as a line of ``sft.jsonl``, without ids; ``tools`` as the server lists them."""
    from mcpgym_rl.local.chat import shown

    assert trace.score is not None
    return {
        "messages": shown(trace.messages),
        "tools": json.dumps(native_tools(tools), ensure_ascii=False),
        "task": trace.task,
        "split": trace.split,
        "seed": trace.seed,
        "reward": trace.score.total,
        "outcome": trace.score.game_outcome,
        "stop_reason": trace.stop_reason,
        "fingerprint": trace.fingerprint,
    }


class _Noting:
    """A policy that notes which tools it was shown."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.name = policy.name
        self.tools: list[Mapping[str, Any]] | None = None

    def begin(self, context: EpisodeContext) -> PolicySession:
        if self.tools is None:
            self.tools = [
                {name: tool[name] for name in ("name", "description", "inputSchema")} for tool in context.tools
            ]
        return self._policy.begin(context)

    async def aclose(self) -> None:
        """Its owner closes the policy."""
