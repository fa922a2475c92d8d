"""Plays very many episodes at once, hostile ones among them: a program for a cell.

``python sandbox_episodes.py COUNT AT_ONCE [BACKEND]`` first plays every kind of honest episode alone, then COUNT
episodes of which every fifth is hostile, and prints a JSON object: how it went, and the faults. What an honest episode
reads and what it is paid must be the same as alone, byte for byte, and nothing may be left of any.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).parent))
from sandbox_leaking import grown, settled

TASKS = 24
HOSTILE_SHARE = 5
"""Every so many-th episode is hostile."""
CHATTER = """
import os, random, sys, tempfile
seen = [random.random() for _ in range(3)]
print(seen, hash('x'), object(), os.getcwd(), sorted(os.environ))
with open('notes.txt', 'w') as file: file.write(repr(seen))
print('to stderr', file=sys.stderr)
[n * n for n in range(20)]
"""
HOSTILE = [
    "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
    "x = []\nwhile True: x.append(bytearray(10**6))",
    "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "import os; os.kill(-1, 9)",
    "import os; os._exit(0)",
    "while True: print('x' * 10**5)",
    "import os\nos.closerange(0, 256)",
    "import os, struct\nlie = struct.pack('>BIII', 1, 2, 3, 2**31) + b'{}' * 999\n"
    "for fd in range(3, 64):\n    try: os.write(fd, lie)\n"
    "    except OSError: pass",
    "n = 0\ntry:\n    while True: open(f'f{n}', 'wb').write(bytes(10**6)); n += 1\nexcept OSError as e: print(e)",
    "import ctypes; ctypes.string_at(0)",
    "import os, time\ntry:\n    if os.fork() == 0: os.setsid(); time.sleep(600)\nexcept OSError: pass",
    "import threading, time\nfor i in range(100):\n    try: threading.Thread(target=time.sleep, args=(99,)).start()\n"
    "    except RuntimeError: break",
    "import builtins; builtins.print = builtins.repr = builtins.len = None",
    "import sys; sys.setrecursionlimit(10**9)\ndef f(): f()\nf()",
    "import os, signal\nfor s in range(1, 65):\n    for p in (1, os.getppid()):\n        try: os.kill(p, s)\n"
    "        except OSError: pass",
]


class Play:
    """All that the episodes share."""

    def __init__(self, backend: str) -> None:
        from mcpgym import load_environment
        from mcpgym.episodes import Episodes, Limits

        config = {"backend": backend, "packages": "none", "seconds": 1.0, "memory_mb": 512}
        self.environment = load_environment("python-sandbox", config)
        self.episodes = Episodes({self.environment.name: self.environment}, Limits(live=100_000))
        self.expert = self.environment.reference_policies()["expert"]

    async def honest(self, index: int) -> str:
        """Everything that an honest policy reads in one episode, and its score."""
        from mcpgym.asking import settle
        from mcpgym.messages import tool_answer

        episode = await self.episodes.open(self.environment.name, split="train", index=index, seed=index)
        read: list[Any] = []
        for name, arguments in (
            ("run_python", {"code": CHATTER}),
            ("read_file", {"path": "notes.txt"}),
            ("list_files", {}),
            ("run_python", {"code": "1 / 0"}),
        ):
            read.append((await episode.call(name, arguments)).text)
        messages = list(episode.messages)
        for _ in range(6):
            turn = await settle(self.expert(tuple(messages), Random(0)))
            messages.append(turn)
            for call in turn.get("tool_calls", ()):
                result = await episode.call(call["function"]["name"], json.loads(call["function"]["arguments"]))
                read.append(result.text)
                messages.append(tool_answer(call, result.text, is_error=result.is_error))
            if episode.done:
                break
        score = await episode.score(None)
        failure = episode.failure
        await episode.end("played")
        return json.dumps([read, score.total, dict(score.components), repr(failure)], default=str)

    async def hostile(self, number: int, index: int) -> tuple[float | None, str | None]:
        """What a policy is paid that attacks and then submits nothing of worth, and how its episode broke."""
        from mcpgym.errors import EpisodeError

        episode = await self.episodes.open(self.environment.name, split="train", index=index, seed=index)
        codes = Random(number).sample(HOSTILE, 2)
        for code in codes:
            await episode.call("run_python", {"code": code})
        await episode.call("read_file", {"path": "f0"})
        attack = "import os, sys\nclass E:\n    __eq__ = lambda s, o: True\ndef solve(*a): return E()\nos._exit(0)"
        await episode.call("write_file", {"path": "solution.py", "text": attack})
        await episode.call("submit", {"answer": "reward: 1.0"})
        try:
            paid = (await episode.score(None)).components.get("correct")
        except EpisodeError:  # it broke, so it has no score
            paid = None
        failure = episode.failure
        await episode.end("played")
        return paid, None if failure is None else f"{failure} after {codes}"


async def play(count: int, at_once: int, backend: str) -> dict[str, Any]:
    game = Play(backend)
    alone = [await game.honest(index) for index in range(TASKS)]
    faults = [
        f"alone, task {index} is not solved: {text[-400:]}" for index, text in enumerate(alone) if "1.0" not in text
    ]
    await asyncio.gather(*(game.honest(index) for index in range(16)))
    before = await settled()
    gate = asyncio.Semaphore(at_once)
    differing = paid = failed = 0
    slowest = 0.0

    async def one(number: int) -> None:
        nonlocal differing, paid, failed, slowest
        async with gate:
            started = time.monotonic()
            index = number % TASKS
            if number % HOSTILE_SHARE == 0:
                correct, failure = await game.hostile(number, index)
                paid += bool(correct)
                failed += failure is not None
                if failure is not None and len(faults) < 20:
                    faults.append(f"hostile episode {number} (task {index}) broke: {failure}")
                if correct and len(faults) < 20:
                    faults.append(f"hostile episode {number} (task {index}) was paid {correct}")
            else:
                text = await game.honest(index)
                if text != alone[index]:
                    differing += 1
                    if len(faults) < 20:
                        faults.append(f"episode {number} (task {index}) differs:\n{alone[index]}\n{text}")
            slowest = max(slowest, time.monotonic() - started)

    started = time.monotonic()
    await asyncio.gather(*map(one, range(count)))
    took = time.monotonic() - started
    after = await settled()
    faults += grown(before, after, memory_of_the_server=40 << 20)
    await game.episodes.aclose()
    deadline = time.monotonic() + 10
    while left := psutil.Process().children(recursive=True):
        if time.monotonic() > deadline:
            faults.append(f"after the end there are still {left}")
            break
        await asyncio.sleep(0.02)
    return {
        "episodes": count,
        "seconds": round(took, 1),
        "slowest": round(slowest, 1),
        "differing": differing,
        "hostile_paid": paid,
        "hostile_failed": failed,
        "before": before,
        "after": after,
        "faults": faults,
    }


def main() -> None:
    """Read the command line and print the report."""
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("at_once", type=int)
    parser.add_argument("backend", nargs="?", default="auto")
    given = parser.parse_args()
    os.environ.setdefault("XDG_DATA_HOME", os.environ["TMPDIR"])
    print(json.dumps(asyncio.run(play(given.count, given.at_once, given.backend))))


if __name__ == "__main__":
    main()
