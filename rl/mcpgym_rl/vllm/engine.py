"""vLLM in the place of a local model's own engine: the same lines and sessions, so the same ids, masks and checks.

Nothing but ids is sent, everything that was said before included; vLLM's prefix cache knows what it has computed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from mcpgym_rl.local.engine import Engine
from mcpgym_rl.local.line import Line, Sampled
from mcpgym_rl.local.sampling import derived
from mcpgym_rl.policy import ContextFull, PolicyError, PolicyUnavailable
from mcpgym_rl.vllm.adapters import LiveAdapters
from mcpgym_rl.vllm.server import Served, VllmServer

if TYPE_CHECKING:
    from mcpgym_rl.local.chat import Chat

PROCESSED = (
    "states log-probabilities before the temperature, which are not those it sampled with; "
    "start it with --logprobs-mode processed_logprobs, or sample at temperature 1"
)
OTHER_TOKENS = (
    "has another tokenizer: what we write as {ours!r} is {theirs!r} there. The directory must be that of the model "
    "which it serves"
)
_WORDS = 'Your turn: {"name": "play", "arguments": {"position": 4}}, the 9th of 16.'
_ANYTHING = 1 << 20
_APART = 1e-4
"""By how much the likeliest token's log-probability must change with the temperature, in nats."""
_LOOKS = 8
"""How many turns are looked at where the model is sure of its next token."""


class VllmEngine(Engine):
    """Serves lines through a server's token-level endpoint.

    Args:
        server: the server.
        end_ids: tokens that end a turn.
        model: its name there; None for the one that it serves.
        adapters: what is trained upon that model; taken anew after each :meth:`refresh`.
        chat: whose ids must mean there what they mean here; None is not looked at.
    """

    def __init__(
        self,
        server: VllmServer,
        end_ids: Iterable[int],
        model: str | None = None,
        adapters: LiveAdapters | None = None,
        chat: Chat | None = None,
    ) -> None:
        self._chat = chat
        self.server, self.model, self.adapters = server, model, adapters
        self.positions = _ANYTHING  # until it is asked
        self.expected: set[Line] = set()
        self._end_ids = frozenset(end_ids)
        self._served: Served | None = None
        self._unsure: dict[float, int] = {0.0: _LOOKS, 1.0: _LOOKS}
        self._knowing = asyncio.Lock()

    def open(self, seed: int) -> Line:
        """A new conversation."""
        return Line(self, seed)

    async def serve(self, line: Line, limit: int, temperature: float, min_p: float) -> Sampled:
        """Sample a turn of ``line``; the random numbers are vLLM's, from a seed of the turn's own."""
        if min_p > 0:
            raise PolicyError("vLLM states log-probabilities without what min_p takes away: sample without min_p")
        served = await self.served()
        room = served.positions - len(line.ids)
        if room < 1:
            raise ContextFull(f"the conversation has {len(line.ids)} tokens; vLLM takes {served.positions}")
        await self._require_honesty(served.name, line, temperature)
        made = await self.server.generate(
            served.name,
            line.ids,
            {
                "max_tokens": min(limit, room),
                "temperature": temperature,
                "seed": derived(line.seed, len(line.ids)) >> 33,
                "stop_token_ids": sorted(self._end_ids),
                # all said: what is not would be taken from the model's generation_config
                **{"top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0},
                **{"presence_penalty": 0.0, "frequency_penalty": 0.0, "detokenize": False},
            },
        )
        ended = made.ids[-1] in self._end_ids
        if not ended and made.finish != "length":
            raise PolicyError(f"vLLM stopped ({made.finish}) at token {made.ids[-1]}, which ends no turn of this model")
        line.ids.extend(made.ids)
        return Sampled(made.ids, made.logprobs, "stop" if ended else "length")

    async def served(self) -> Served:
        """The model that is asked.

        Raises:
            PolicyUnavailable: the server is not there, has no such model, or another tokenizer.
        """
        async with self._knowing:
            if self._served is None:
                found = await self.server.models()
                wanted = [item for item in found if self.model is None or item.name == self.model]
                if not wanted:
                    names = ", ".join(item.name for item in found) or "none"
                    raise PolicyUnavailable(f"vLLM at {self.server.shown} has no model {self.model!r}; it has: {names}")
                await self._require_our_tokens(wanted[0].name)
                name = wanted[0].name if self.adapters is None else await self.adapters.load(self.server)
                self._served = Served(name, wanted[0].positions)
                self.positions = wanted[0].positions
            return self._served

    async def _require_our_tokens(self, model: str) -> None:
        """See once that ids mean the same on both sides; a server without a tokenizer is believed."""
        chat = self._chat
        if chat is None:
            return
        ids = chat.tokenizer.encode(_WORDS, add_special_tokens=False).ids
        ours, theirs = chat.decode(ids), await self.server.text(model, ids)
        if theirs is not None and "".join(theirs.split()) != "".join(ours.split()):
            problem = OTHER_TOKENS.format(ours=ours, theirs=theirs[:80])
            raise PolicyUnavailable(f"vLLM at {self.server.shown} {problem}")
        self._chat = None

    async def _require_honesty(self, model: str, line: Line, temperature: float) -> None:
        """See once for each temperature but 0 and 1 that the log-probabilities are those at that temperature.

        The likeliest token's must change with it; in the middle of a prompt, where a model is seldom sure. Where it is
        all the same, the next turns are looked at, some of them: a trainer compares what it trains on anyhow.
        """
        if self._unsure.get(temperature, 0) >= _LOOKS:
            return
        ids = line.ids[: max(1, len(line.ids) // 2)]
        cold, hot = [await self.server.likeliest(model, ids, heat) for heat in (temperature / 2, temperature)]
        if abs(cold - hot) >= _APART:
            self._unsure[temperature] = _LOOKS
        elif -hot > _APART:
            raise PolicyUnavailable(f"vLLM at {self.server.shown} {PROCESSED}")
        else:
            self._unsure[temperature] = self._unsure.get(temperature, 0) + 1

    def release(self, line: Line) -> None:
        """Nothing is kept of a line."""

    def refresh(self) -> None:
        """Take live adapters as they are now, before the next turn. Other weights are the server's."""
        if self.adapters is not None:
            self._served = None

    async def aclose(self) -> None:
        """Close the connections."""
        if self.adapters is not None:
            await self.adapters.unload(self.server)
            self._served = None
        await self.server.aclose()
