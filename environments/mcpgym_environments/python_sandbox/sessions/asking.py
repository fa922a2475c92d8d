"""What the code of a session may ask, and who answers it here.

A question is a list of prompts. It comes as a frame in the middle of a call, and the call's clock stands still until it
is answered. What code writes is hostile: a question that is none is refused in words that the code reads, like one that
is not allowed, and costs nobody else anything. Only what the agent itself adds (numbers, lengths) must be as agreed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from mcpgym.errors import ConfigurationError, InfrastructureError
from mcpgym_environments.python_sandbox.jail import frames
from mcpgym_environments.python_sandbox.sessions.answers import Odd, _object, _short, value_of

MOST = {"prompts": 4_096, "characters": 4_000_000, "bytes": frames.MAX_BLOB, "asks": 1_000_000}


class Refused(Exception):
    """A question is not answered; the text says why, for the code that asked."""


class Unanswered(InfrastructureError):
    """The model that was to answer failed: the episode has no score."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What may be asked.

    Args:
        prompts: of one question.
        characters: of one prompt.
        bytes: of one question, as JSON in UTF-8.
        asks: questions of one call, refused ones too; with one more the call is ended.

    Raises:
        ConfigurationError: a number is below 1 or too large for the frames.
    """

    prompts: int = 64
    characters: int = 16_000
    bytes: int = 4 << 20
    asks: int = 10_000

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if type(value) is not int or not 1 <= value <= MOST[name]:
                raise ConfigurationError(f"sandbox offer {name}: {value!r} is no whole number in 1 to {MOST[name]:,}")

    def as_json(self) -> dict[str, int]:
        """What the first frame says of it."""
        return asdict(self)


class Broker(Protocol):
    """Answers questions of one session. It counts: what may be asked in all is decided here and nowhere else."""

    offer: Offer

    async def answer(self, prompts: Sequence[str]) -> Sequence[str]:
        """One answer for each prompt, in order. Cancelled when nobody waits for it any more.

        Raises:
            Refused: it is not allowed, or was not understood; the code that asked goes on and reads why.
            InfrastructureError: who should answer cannot; the session ends, and its episode has no score.
        """
        ...


def ask_of(text: bytes, request: int, expected: int) -> bool:
    """Whether a frame in the middle of call ``request`` is the question with the number ``expected``.

    Raises:
        Odd: it is a question, and another one.
    """
    found = _object(text)
    if "ask" not in found:
        return False
    if type(found["ask"]) is not int or found["ask"] != expected or found.get("n") != request or len(found) != 2:
        raise Odd(f"its question is number {_short(found['ask'])}, and {expected} would be next")
    return True


def prompts_of(blob: bytes, offer: Offer) -> list[str]:
    """The prompts of a question, as code wrote them.

    Raises:
        Refused: it is none, or more than was offered.
    """
    try:
        prompts: Any = value_of(blob)
    except Odd:
        raise Refused("what was asked is no question") from None
    if type(prompts) is not list or not prompts or not all(type(prompt) is str for prompt in prompts):
        raise Refused("a question is a list of texts")
    if len(prompts) > offer.prompts:
        raise Refused(f"at most {offer.prompts} prompts can be asked at once, not {len(prompts)}")
    for prompt in prompts:
        if len(prompt) > offer.characters:
            raise Refused(f"a prompt may have {offer.characters:,} characters, not {len(prompt):,}")
        try:
            prompt.encode()
        except UnicodeEncodeError:
            raise Refused("a prompt has half of a surrogate pair in it") from None
    return list(prompts)


async def told(broker: Broker, blob: bytes) -> Mapping[str, Any]:
    """The answer to a question, as the asking code gets it.

    Raises:
        InfrastructureError: there is nobody who answers.
    """
    try:
        prompts = prompts_of(blob, broker.offer)
        answers = list(await broker.answer(prompts))
    except Refused as refused:
        return {"refused": str(refused)}
    except InfrastructureError:
        raise
    except Exception as error:
        raise Unanswered(f"the sub-model failed: {type(error).__name__}: {error}") from error
    if len(answers) != len(prompts) or not all(type(answer) is str for answer in answers):
        raise Unanswered(f"the sub-model gave {len(answers)} answers to {len(prompts)} prompts, or no texts")
    return {"answers": answers}


def told_frame(request: int, ask: int, said: Mapping[str, Any]) -> bytes:
    """The frame that answers a question; answers that no frame takes are refused."""
    blob = json.dumps(said).encode()
    if len(blob) > frames.MAX_BLOB:
        blob = json.dumps({"refused": "the answers are too long for one frame; ask for fewer at once"}).encode()
    return frames.encode({"op": "told", "n": request, "ask": ask}, blob)
