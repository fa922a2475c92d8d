"""Code that asks what it may not, or how it may not: a program for a cell.

``python sandbox_asking.py BACKEND`` runs each attack in a session of its own whose code may ask ``CALLS`` prompts, and
prints a JSON object with the faults: a budget that was exceeded, an infrastructure that broke instead of the code, a
session that is of no use afterwards, a neighbour that noticed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).parent))

CALLS, CHARACTERS, WINDOW, AT_ONCE = 6, 500, 100, 2
TOOLS = """
import json, os, struct, sys
def raw(blob, code=2, call={call}, text=0, size=None):
    os.write(3, struct.pack('>BIII', code, call, text, len(blob) if size is None else size) + blob)
def told():
    _, _, _, size = struct.unpack('>BIII', os.read(3, 13))
    data = b''
    while len(data) < size: data += os.read(3, size - len(data))
    return json.loads(data)
"""
ATTACKS: dict[str, tuple[str, str]] = {
    "too many": (
        "for i in range(20):\n    try: llm(str(i))\n    except RuntimeError as e: last = e\nprint(last)",
        "ok",
    ),
    "too many at once": ("try: llm_batch('x' * 20)\nexcept RuntimeError as e: print(e)", "ok"),
    "too long": ("try: llm('x' * 101)\nexcept ValueError as e: print(e)", "ok"),
    "too long in all": ("for i in range(20):\n    try: llm('x' * 100)\n    except RuntimeError as e: print(e)", "ok"),
    "threads": (
        "from threading import Thread\ndef ask():\n    for i in range(30):\n        try: llm('t')\n"
        "        except RuntimeError: pass\nall = [Thread(target=ask) for _ in range(8)]\n"
        "for t in all: t.start()\nfor t in all: t.join()",
        "ok",
    ),
    "what it is told, changed": (
        "asking = llm.__closure__[0].cell_contents\n"
        "asking._prompts = asking._characters = asking._bytes = 10**9\n"
        "for p in ('x' * 101, 'x' * 5000):\n    try: llm(p); print('answered')\n"
        "    except RuntimeError as e: print(e)\n"
        "try: llm_batch(['x'] * 65)\nexcept RuntimeError as e: print(e)",
        "ok",
    ),
    "no question": (
        "for q in (b'', b'{}', b'[]', b'1', b'[1]', b'[null]', b'not JSON', b'\\xff', b'[' * 9000,\n"
        "          b'[\"\\\\ud800\"]',\n"
        "          b'[\"' + b'x' * 200 + b'\"]', json.dumps(['x'] * 99).encode()):\n"
        "    raw(q); said = told(); assert list(said) == ['refused'], (q[:20], said)",
        "ok",
    ),
    "two at once": ("raw(b'[\"a\"]'); raw(b'[\"b\"]'); import time; time.sleep(5)", "crashed"),
    "two in one piece": (
        "one = struct.pack('>BIII', 2, {call}, 0, 5) + b'[\"a\"]'\nos.write(3, one * 2)\ntold()",
        "crashed",
    ),
    "far too large": ("raw(b'[', size=2**31)\ntold()", "crashed"),
    "a little too large": ("raw(b'[', size={bytes} + 1)\ntold()", "crashed"),
    "with a text": ("raw(b'[]', text=2**20)\ntold()", "crashed"),
    "another kind": ("raw(b'[]', code=3)\ntold()", "crashed"),
    "of the next call": ("raw(b'[\"a\"]', call={call} + 1)\ntold()", "crashed"),
    "of an earlier call": ("raw(b'[\"a\"]', call=0)\nllm('b')", "ok"),
    "half a question": ("raw(b'[\"a', size=100)\nimport time\ntime.sleep(60)", "killed timeout"),
    "asked, and done": ("raw(b'[\"slow\"]')\nraw(b'', code=0)", "ok"),
    "asked, and done, and asked": (
        "raw(b'[\"slow\"]')\nraw(b'', code=0)\nraw(b'[\"c\"]')",
        "ok",
    ),
    "asked, and gone": ("raw(b'[\"slow\"]')\nos._exit(3)", "crashed"),
    "asked, and shut": ("raw(b'[\"slow\"]')\nos.close(3)\nimport time\ntime.sleep(60)", "killed crashed timeout"),
    "asked, and never read": ("for i in range(9):\n    raw(b'[\"a\"]')\n    import time; time.sleep(0.05)", "any"),
    "asked, and busy": ("raw(b'[\"slow\"]')\nwhile True: pass", "timeout killed"),
    "asked, and large": ("raw(b'[\"slow\"]')\nx = []\nwhile True: x.append(bytearray(10**6))", "killed error"),
    "asks for ever": ("while True:\n    try: llm('x')\n    except RuntimeError: pass", "killed timeout"),
    "asks for ever, raw": ("while True:\n    raw(b'[]')\n    told()", "killed timeout"),
    "interrupted, and asks on": (
        "while True:\n    try:\n        while True: pass\n    except KeyboardInterrupt:\n        pass\n    llm('x')",
        "killed crashed timeout",
    ),
    "a child": (
        "try: child = os.fork()\nexcept OSError: child = None\nif child == 0:\n"
        "    try: llm('x')\n    except RuntimeError: os._exit(0)\n    os._exit(1)\n"
        "if child: assert os.waitpid(child, 0)[1] == 0",
        "ok",
    ),
    "a child that takes the answer": (
        "try: child = os.fork()\nexcept OSError: child = None\nif child == 0:\n"
        "    os.read(3, 99); os._exit(0)\nllm('slow')",
        "any",
    ),
    "a frame of the server's": (
        "lie = json.dumps(dict(op='told', n=2, ask=1)).encode()\nframe = struct.pack('>II', len(lie), 0) + lie\n"
        "for fd in range(3, 64):\n    try: os.write(fd, frame)\n    except OSError: pass",
        "any",
    ),
}


async def attack(pool: Any, name: str) -> list[str]:
    """What is wrong after one attack."""
    from mcpgym_environments.long_context.asking.budget import Allowance, Budget
    from mcpgym_environments.python_sandbox.sessions.backend import SessionLost

    running = most = asked = size = 0

    async def model(prompt: str) -> str:
        nonlocal running, most, asked, size
        running, asked, size = running + 1, asked + 1, size + len(prompt)
        most = max(most, running)
        try:
            await asyncio.sleep(2.5 if prompt == "slow" and name != "a child that takes the answer" else 0.01)
        finally:
            running -= 1
        return prompt.upper()

    budget = Budget(Allowance(CALLS, CHARACTERS, WINDOW, 100, AT_ONCE, 60), model)
    session = await pool.open(1, budget)
    faults = []
    try:
        assert (await session.run("x = 41")).status == "ok"
        code, wanted = ATTACKS[name]
        code = (TOOLS + code).replace("{call}", "2").replace("{bytes}", str(budget.offer.bytes))
        outcome = await session.run(code)
        if wanted != "any" and outcome.status not in wanted.split():
            faults.append(f"{outcome.status}, {outcome.why}: {outcome.output[-300:]!r}")
        used = budget.calls
        after = await session.run("try: print(llm('hi'))\nexcept RuntimeError as e: print('refused')")
        if after.output not in (b"HI\n", b"refused\n") or (after.output == b"refused\n") != (
            used >= CALLS or size + 2 > CHARACTERS
        ):
            faults.append(f"afterwards, {used} asked: {after.status}, {after.why}, {after.output[-300:]!r}")
        if not outcome.fresh and (await session.run("x + 1")).output != b"42\n":
            faults.append("its variables are gone")
        await asyncio.sleep(0.05)
        if running:
            faults.append(f"{running} prompts are still being answered")
    except SessionLost as lost:
        faults.append(f"the session was lost: {lost}")
    finally:
        session.kill()
    if budget.calls > CALLS or asked > CALLS or budget.characters > CHARACTERS or size > CHARACTERS or most > AT_ONCE:
        faults.append(f"{asked} prompts ({budget.calls} counted), {size} characters, {most} at once")
    return [f"{name}: {fault}" for fault in faults]


async def play(backend: str) -> dict[str, Any]:
    from mcpgym_environments.python_sandbox.sessions.backend import SandboxLimits, SandboxSpec
    from mcpgym_environments.python_sandbox.sessions.choosing import choose
    from mcpgym_environments.python_sandbox.sessions.pool import Pool

    limits = SandboxLimits(seconds=1.0, cpu_seconds=1.0, memory=200 * 2**20, processes=32)
    pool = Pool(choose(backend, "landlock"), SandboxSpec(limits), ready=8, executing=12)
    neighbour = await pool.open(2)
    gate = asyncio.Semaphore(12)

    async def one(name: str) -> list[str]:
        async with gate:
            return await attack(pool, name)

    faults = [fault for some in await asyncio.gather(*map(one, ATTACKS)) for fault in some]
    if (await neighbour.run("2 + 2")).output != b"4\n":
        faults.append("the neighbour does not answer")
    if "NameError" not in (await neighbour.run("llm")).output.decode():
        faults.append("a session without an offer can ask")
    neighbour.kill()
    await pool.close()
    await asyncio.sleep(0.3)
    left = [child.pid for child in psutil.Process().children(recursive=True)]
    if left:
        faults.append(f"processes left: {left}")
    return {"attacks": len(ATTACKS), "faults": faults}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(play(sys.argv[1]))))
