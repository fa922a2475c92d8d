"""The first frame, sent to an agent by whoever tries whether a back-end works: what does it run?"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from mcpgym_environments.python_sandbox.jail import frames
from mcpgym_environments.python_sandbox.sessions.answers import Odd, checked_answer, checked_facts
from mcpgym_environments.python_sandbox.sessions.backend import JSON, SandboxSpec, Stream, Unavailable

SECONDS = 60.0
"""How long an agent may take from its first byte to its first answer: a busy machine, a package to import."""


async def facts_of(stream: Stream, spec: SandboxSpec) -> Mapping[str, JSON]:
    """The ``python`` and the ``packages`` of a fresh agent.

    Raises:
        Unavailable: it does not answer as ours do, or lacks what the specification asks for.
    """
    try:
        async with asyncio.timeout(SECONDS):
            await stream.send(frames.encode({"op": "hello", "n": 0, "spec": spec.as_json()}))
            json_length, blob_length = frames.lengths(await stream.receive(frames.HEAD_BYTES))
            text = await stream.receive(json_length)
            await stream.receive(blob_length)
            answer = checked_answer(text, 0)
            if answer["status"] != "ok":
                raise Unavailable(f"the sandbox's agent does not begin: {answer['why']}", _MISSING)
            return checked_facts(answer)
    except TimeoutError:
        raise Unavailable(f"the sandbox's agent gave no answer within {SECONDS:g} s", _REMEDY) from None
    except (EOFError, OSError) as error:
        raise Unavailable(f"the sandbox's agent ended at once ({error})", _REMEDY) from None
    except (frames.FrameError, Odd) as error:
        raise Unavailable(f"the sandbox's agent does not answer in frames ({error})", _REMEDY) from None


_MISSING = "If a package is missing, use an image or an interpreter that has it, or ask for no packages."
_REMEDY = "Is there a Python of 3.11 or later, called python3, in the image?"
