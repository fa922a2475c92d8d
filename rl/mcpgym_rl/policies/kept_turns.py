"""An endpoint's own turns as it wrote them, so that they go back to it unchanged: thoughts that are signed or encrypted
are worth something only then, and no transcript has a place for them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from mcpgym.messages import Message
from mcpgym_rl.parse import parse
from mcpgym_rl.policies.endpoint import EndpointPolicy, EndpointSession
from mcpgym_rl.policy import EpisodeContext

Parts = Sequence[Mapping[str, Any]]


@dataclass(slots=True)
class KeptTurns:
    """Turns by their place in the transcript."""

    _turns: dict[int, tuple[Message, Parts]] = field(default_factory=dict)

    def keep(self, place: int, message: Message, parts: Parts) -> None:
        """The turn that will stand at ``place`` in the transcript is made of these parts.

        Parts that hold what no request can (half of a surrogate pair) are not kept: the transcript has that replaced.
        """
        with contextlib.suppress(ValueError):
            json.dumps(parts, ensure_ascii=False, allow_nan=False).encode()
            self._turns[place] = parse(message)[0], parts

    def of(self, place: int, message: Message) -> Parts | None:
        """The parts of the message at ``place``; None where it is another's, or was changed."""
        kept = self._turns.get(place)
        return kept[1] if kept is not None and kept[0] == message else None

    def copy(self) -> KeptTurns:
        """One that goes its own way from here."""
        return KeptTurns(dict(self._turns))


class KeepingSession(EndpointSession):
    """A conversation with an endpoint over one rollout. The model's turns go back to it as it wrote them."""

    def __init__(self, policy: EndpointPolicy, context: EpisodeContext) -> None:
        super().__init__(policy, context)
        self._options = policy.endpoint_options
        self._kept = KeptTurns()

    def fork(self) -> Self:
        """A session of its own from here on."""
        other = super().fork()
        other._kept = self._kept.copy()
        return other
