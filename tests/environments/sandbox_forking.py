"""Runs a forked back-end by its frames, without sessions or pools; as a program it is a server that can be killed.

``python sandbox_forking.py BACKEND SESSIONS`` opens so many sessions, has each loop, prints ``ready`` and waits.
``python sandbox_forking.py BACKEND 0 CALL=ERRNO …`` first gives up system calls (by number) as a container's profile
would, and prints what starting says; ``docker`` gives up the capabilities that root of a container does not have.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from mcpgym_environments.python_sandbox.backends.forked import ForkedBackend
from mcpgym_environments.python_sandbox.backends.landlock import LandlockBackend
from mcpgym_environments.python_sandbox.backends.namespaces import NamespacesBackend
from mcpgym_environments.python_sandbox.jail import frames
from mcpgym_environments.python_sandbox.sessions.backend import SandboxSpec, Stream, Unavailable

BACKENDS: dict[str, type[ForkedBackend]] = {"namespaces": NamespacesBackend, "landlock": LandlockBackend}
SPEC = SandboxSpec()
OF_CONTAINERS = frozenset((0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31))
"""What Docker leaves to root; CAP_SYS_ADMIN is not among them."""


async def call(stream: Stream, header: dict[str, Any], blob: bytes = b"") -> tuple[dict[str, Any], bytes]:
    """One request and its answer."""
    await stream.send(frames.encode({"n": 1, **header}, blob))
    json_length, blob_length = frames.lengths(await stream.receive(frames.HEAD_BYTES))
    return frames.header(await stream.receive(json_length)), await stream.receive(blob_length)


async def opened(backend: ForkedBackend, spec: SandboxSpec = SPEC) -> Stream:
    """A session that has been greeted."""
    stream = await backend.open(spec)
    await call(stream, {"op": "hello", "spec": spec.as_json()})
    return stream


async def run(stream: Stream, code: str, seconds: float = 5.0) -> tuple[dict[str, Any], bytes]:
    """The answer to some code."""
    return await call(stream, {"op": "run", "seconds": seconds, "cpu_seconds": seconds}, code.encode())


async def told(name: str) -> dict[str, Any]:
    """What starting a back-end says: its facts, or why it does not start and what to do."""
    backend = BACKENDS[name]()
    try:
        return {"facts": dict(await backend.start(SPEC))}
    except Unavailable as error:
        return {"reason": error.reason, "remedy": error.remedy}
    finally:
        await backend.close()


async def serve(name: str, sessions: int) -> None:
    """Sessions that loop, until somebody kills us."""
    backend = BACKENDS[name]()
    try:
        await backend.start(SPEC)
    except Unavailable as error:
        print("refused", json.dumps({"reason": error.reason, "remedy": error.remedy}), sep="\n", flush=True)
        return
    streams = [await opened(backend) for _ in range(sessions)]
    calls = [asyncio.create_task(run(stream, "while True: pass", 60)) for stream in streams]
    await asyncio.sleep(0.1)
    print("ready", flush=True)
    await asyncio.gather(*calls)


def give_up(calls: dict[int, int]) -> None:
    """Have the kernel refuse these calls to us and to all that we start."""
    from mcpgym_environments.python_sandbox.jail import system_calls

    program = [(0x20, 0, 0, 0)]
    for number, why in calls.items():
        program += [(0x15, 0, 1, number), (0x06, 0, 0, 0x0005_0000 | why)]
    system_calls.prctl(system_calls.PR_SET_NO_NEW_PRIVS, 1)
    system_calls.Filter([*program, (0x06, 0, 0, 0x7FFF_0000)]).install()


def main() -> None:
    """See above."""
    name, sessions, *refused = sys.argv[1:]
    if int(sessions):
        asyncio.run(serve(name, int(sessions)))
    else:
        if "docker" in refused:
            from mcpgym_environments.python_sandbox.jail import system_calls

            refused.remove("docker")
            system_calls.set_capabilities(OF_CONTAINERS)
        give_up({int(pair.split("=")[0]): int(pair.split("=")[1]) for pair in refused})
        print(json.dumps(asyncio.run(told(name))))


if __name__ == "__main__":
    main()
