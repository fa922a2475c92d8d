"""A server of tic-tac-toe whose every episode is watched, and an unreliable network between it and its players."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from mcpgym.calls import CallRecord
from mcpgym.control import LocalControl, OpenedEpisode
from mcpgym.episodes import Episodes
from mcpgym.errors import EpisodeError
from mcpgym.receipts import Signer
from mcpgym.registry import load_environment
from mcpgym.serving import serving
from mcpgym.signing_keys import make_signing_key
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.policies import make_policy
from mcpgym_rl.run import EpisodeSpec, run
from mcpgym_rl.traces import Trace

SECRET = "a-secret-that-nobody-may-read-anywhere"


@dataclass
class Watched:
    """``refuse`` are tasks that cannot be opened just now, ``unscored`` pairs of environment and task whose rewards
    have no input. ``episodes`` are those that were opened, in order."""

    url: str = ""
    control_url: str = ""
    proxy: str = ""
    refuse: set[str] = field(default_factory=set)
    unscored: set[tuple[str, str]] = field(default_factory=set)
    episodes: dict[str, OpenedEpisode] = field(default_factory=dict)
    calls: dict[str, Sequence[CallRecord]] = field(default_factory=dict)
    live: set[str] = field(default_factory=set)
    most: int = 0
    cut: int = 0

    def tokens(self, environment: str, task: str) -> list[str]:
        """The episodes of a task."""
        wanted = (environment, task)
        return [token for token, opened in self.episodes.items() if (opened.environment, opened.task) == wanted]


class WatchedControl(LocalControl):
    """Notes what is opened, and what was called in it when it is closed."""

    watched: Watched

    async def open(self, environment: str, **which: Any) -> OpenedEpisode:
        """Open an episode, if this task can be opened just now."""
        if which["task"] in self.watched.refuse:
            raise EpisodeError("it cannot be opened just now")
        opened = await super().open(environment, **which)
        self.watched.episodes[opened.token] = opened
        self.watched.live.add(opened.token)
        self.watched.most = max(self.watched.most, len(self.watched.live))
        return opened

    async def score(self, token: str, *given: Any, **named: Any) -> Any:
        """Score an episode, if its rewards have what they read."""
        score = await super().score(token, *given, **named)
        opened = self.watched.episodes[token]
        if (opened.environment, opened.task) in self.watched.unscored:
            return replace(score, total=None, components=dict.fromkeys(score.components))
        return score

    async def close(self, token: str) -> None:
        """Close an episode."""
        self.watched.calls[token] = await self.calls(token)
        self.watched.live.discard(token)
        await super().close(token)


@asynccontextmanager
async def watched_server(monkeypatch: Any, key: Path, *names: str, cut_every: int = 0) -> AsyncIterator[Watched]:
    """Such a server; ``cut_every`` so many calls, a connection is cut when the call is done and not yet answered."""
    made = {environment.name: environment for environment in map(load_environment, names)}
    watched = Watched()
    signer = Signer(make_signing_key(key))
    monkeypatch.setattr("mcpgym.serving.LocalControl", type("Control", (WatchedControl,), {"watched": watched}))
    async with serving(Episodes(made), secret=SECRET, control_port=0, bare=False, signer=signer) as server:
        watched.url, watched.control_url = server.url, server.control_url
        async with _between(watched, cut_every):
            yield watched


async def played_here(name: str, model: str, count: int, *seeds: int) -> dict[tuple[str, int], Trace]:
    """The first tasks of a split in our own loop, with a policy that is named as ``mcpgym eval`` names one."""
    environment = load_environment(name)
    lane = ControlLane(LocalControl(Episodes({name: environment})))
    policy = make_policy(model, environment)
    specs = [EpisodeSpec(name, split="test", index=index, seed=seed) for seed in seeds for index in range(count)]
    try:
        return {(trace.task, trace.seed): trace for trace in (await run(policy, lane, specs, concurrency=8)).traces}
    finally:
        await policy.aclose()
        await lane.aclose()


@asynccontextmanager
async def _between(watched: Watched, cut_every: int) -> AsyncIterator[None]:
    """A proxy that players go through."""
    seen = [0]
    async with aiohttp.ClientSession(auto_decompress=False) as session:

        async def pass_on(request: web.Request) -> web.StreamResponse:
            body = await request.read()
            headers = {name: value for name, value in request.headers.items() if name.lower() not in _OURS}
            url = watched.url + request.path_qs
            async with session.request(request.method, url, data=body, headers=headers) as answer:
                content = await answer.read()
            seen[0] += b'"tools/call"' in body
            if cut_every and b'"tools/call"' in body and seen[0] % cut_every == 0:
                watched.cut += 1
                assert request.transport is not None
                request.transport.close()
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in _THEIRS}
            return web.Response(status=answer.status, body=content, headers=kept)

        application = web.Application(client_max_size=64 * 2**20)
        application.router.add_route("*", "/{path:.*}", pass_on)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        watched.proxy = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield
        finally:
            await runner.cleanup()


_OURS = {"host", "content-length", "accept-encoding"}
_THEIRS = {"content-length", "transfer-encoding", "connection", "date", "server", "keep-alive"}
