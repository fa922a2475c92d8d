"""A server of the toys in a process of its own: prints where it is, and serves until it is killed."""

from __future__ import annotations

import asyncio
import sys

import rl_toys

from mcpgym.serving import serving


async def main() -> None:
    async with serving(rl_toys.episodes(), control_port=0, secret=sys.argv[1]) as server:
        print(server.control_url, flush=True)
        await asyncio.Event().wait()


asyncio.run(main())
