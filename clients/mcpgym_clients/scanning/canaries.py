"""What must not be seen: canaries, each a value that nobody guesses, put where a secret is."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from mcpgym.tasks import derive_seed
from mcpgym_clients.scanning.forms import forms

Value = str | int | float | bytes


class Kind(StrEnum):
    """What a canary stands for."""

    REWARD = "reward"
    SEED = "seed"
    INFO = "hidden info"
    STATE = "hidden state"
    SECRET = "control secret"
    TOKEN = "episode token"
    OTHER = "other episode"
    VARIABLE = "process environment"
    FAULT = "exception text"
    GIVEN = "given canary"


FIXES = {
    Kind.REWARD: "leave rewards to the control plane: no tool, text, header or log of a player says a reward's value",
    Kind.SEED: "keep the seed out of what tools, prompts and logs say; who knows it knows the rest of the episode",
    Kind.INFO: "task.info is hidden: show what the task's messages hold; what may be seen, keep out of info or --allow",
    Kind.STATE: "show what the rules let the policy see, never a state's repr, dict or JSON; --allow what may be seen",
    Kind.SECRET: "the control secret belongs to harnesses alone: not in a tool's reach, a log or a header",
    Kind.TOKEN: "an episode's token is the right to play it: tell it to the harness that opened the episode alone",
    Kind.OTHER: "keep all that an episode changes in its own state: nothing on the class, the instance or the module",
    Kind.VARIABLE: "do not show os.environ, and start what a tool runs with a cleaned environment",
    Kind.FAULT: "answer unexpected errors with a fixed text; their own text may hold anything",
    Kind.GIVEN: "find where the server takes this text from, and keep it out of what players are answered",
}


@dataclass(frozen=True, slots=True)
class Canary:
    """One planted value. ``label`` says where it was put; ``owner`` is the episode in which it is no secret, if any.

    ``unseen_by`` are channels that may carry it: an operator's log may say what an exception said.
    """

    kind: Kind
    label: str
    value: Value
    owner: str = ""
    unseen_by: frozenset[str] = frozenset()

    @property
    def shown(self) -> str:
        """The value, for a report."""
        return self.value.hex() if isinstance(self.value, bytes) else str(self.value)


class Canaries:
    """The canaries of one scan, and how to make more. The same ``seed`` makes the same ones, in every process."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._found: dict[tuple[Kind, str, Value, str], Canary] = {}

    def __iter__(self) -> Iterator[Canary]:
        return iter(self._found.values())

    def __len__(self) -> int:
        return len(self._found)

    def watch(
        self, kind: Kind, label: str, value: Value, *, owner: str = "", unseen_by: frozenset[str] = frozenset()
    ) -> bool:
        """Look for ``value`` from now on; False where it has no form that could be told from chance."""
        key = (kind, label, value, owner)
        if key in self._found:
            return True
        if not forms(value):
            return False
        self._found[key] = Canary(kind, label, value, owner, unseen_by)
        return True

    def text(self, *where: object) -> str:
        """24 small letters and digits for this place."""
        drawn = self._drawn("text", *where)
        return drawn.choice("bcdfghjkmpqrtvwxz") + "".join(drawn.choices("bcdfghjkmpqrtvwxz2346789", k=23))

    def integer(self, *where: object, bits: int = 62) -> int:
        """A whole number of ``bits`` bits for this place."""
        return 1 << (bits - 1) | self._drawn("integer", *where).getrandbits(bits - 1)

    def share(self, *where: object) -> float:
        """A number between 0.1 and 0.9 with 13 digits for this place."""
        return round(self._drawn("share", *where).uniform(0.1, 0.9), 13)

    def _drawn(self, *where: object) -> random.Random:
        return random.Random(derive_seed(self.seed, *map(str, where)))
