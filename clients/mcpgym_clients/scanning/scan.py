"""The scan of an environment: serve it for real, plant canaries, play, attack, and look for what came through."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from mcpgym.asking import settle
from mcpgym.control import OpenedEpisode
from mcpgym.environment import Environment
from mcpgym.errors import McpgymError, UnknownNameError
from mcpgym.registry import load_environment
from mcpgym.serving import Serving, serving
from mcpgym_clients.scanning.attacks.headers import attack_headers
from mcpgym_clients.scanning.attacks.malformed import INNARDS, attack_malformed
from mcpgym_clients.scanning.attacks.methods import attack_names
from mcpgym_clients.scanning.attacks.routes import attack_routes
from mcpgym_clients.scanning.attacks.target import Inside, Target
from mcpgym_clients.scanning.attacks.tokens import attack_tokens
from mcpgym_clients.scanning.canaries import FIXES, Canaries, Kind
from mcpgym_clients.scanning.planting import Plan, planted
from mcpgym_clients.scanning.playing import Theatre, at_random, scripts
from mcpgym_clients.scanning.raw_http import Address
from mcpgym_clients.scanning.record import Exchange, Recording
from mcpgym_clients.scanning.rehearsal import rehearse
from mcpgym_clients.scanning.report import ScanReport
from mcpgym_clients.scanning.search import excerpt, search
from mcpgym_clients.scanning.stage import Place, Stage
from mcpgym_clients.scanning.stdio import ERRORS, scan_stdio
from mcpgym_clients.scanning.task_planting import is_named_secret, kind_of_place, leaves
from mcpgym_clients.scanning.watching import WatchedEpisodes
from mcpgym_clients.scanning.wires import LEGACY, MODERN, HttpWire, call, survey, text_of

ATTACKS = ("routes", "headers", "malformed", "tokens", "names")
PARTS = ("play", *ATTACKS, "stdio")
"""What a scan does: play over HTTP in every lane, each kind of attack from a player's URL, and play over stdio."""
LOG = "server's log"
VARIABLE = "MCPGYM_SCAN_CANARY"
PAST_THE_FAST_LANE = "application/json, text/event-stream, */*;q=0.1"
LANES = {
    "HTTP, 2026-07-28": (MODERN, "application/json, text/event-stream"),
    "HTTP, 2026-07-28, slow lane": (MODERN, PAST_THE_FAST_LANE),
    "HTTP, handshake era": (LEGACY, "application/json, text/event-stream"),
}
MANY_TASKS = 100
"""Tasks of each split whose answers are looked for in what never changes."""
SHORTEST_ANSWER = 5
"""Characters of such an answer; a shorter one is found by chance."""
OPERATORS = frozenset({LOG, ERRORS})
"""Channels that a server's operator reads: a canary may be there, unless it is the control plane's secret."""


def scan_environment(
    environment: Environment[Any, Any, Any] | str,
    *,
    config: Mapping[str, Any] | None = None,
    seed: int = 0,
    parts: Collection[str] = PARTS,
    allow: Sequence[str] = (),
) -> ScanReport:
    """Scan an environment for leaks.

    Args:
        environment: an instance, or the name of an installed one (or ``module:Class``).
        config: with a name, its configuration.
        seed: the same seed plants the same canaries and plays the same games.
        parts: which of ``PARTS`` to do: all, unless there is a hurry.
        allow: places of a task (``info.difficulty``) or a state (``state.board``), as a report names them, whose values
            players may see, though they are hidden by name.

    Returns:
        What was found and what was looked at; ``report.ok`` when nothing leaked.

    Raises:
        UnknownNameError, ConfigurationError: there is no such environment, configuration or part.
        McpgymError: it cannot be played at all.
    """
    if isinstance(environment, str):
        environment = load_environment(environment, config)
    for part in parts:
        if part not in PARTS:
            raise UnknownNameError("part of a scan", part, PARTS)
    return asyncio.run(_Scan(environment, seed, parts, allow).run())


@dataclass
class _Scan:
    environment: Environment[Any, Any, Any]
    seed: int
    parts: Collection[str]
    allow: Sequence[str]
    recording: Recording = field(default_factory=Recording)

    async def run(self) -> ScanReport:
        began = time.monotonic()
        self.canaries = canaries = Canaries(self.seed)
        self.report = report = ScanReport(self.environment.name, self.environment.version, self.seed)
        self.places = _places(self.environment)
        known = {kind_of_place(path) for place in self.places for path, _ in leaves(self.environment.task_at(*place))}
        for name in self.allow:
            if name not in known and not name.startswith("state"):
                raise UnknownNameError("place of a task", name, known)
        with _log(Recording()):
            kept, self.bits = await rehearse(self.environment, self.places, canaries)
        self.plan = Plan(canaries)
        self.plan.tasks.kept = kept
        self.plan.tasks.allowed = set(self.allow)
        self._say_what_is_not_planted(kept)
        secret, variable = canaries.text("secret") * 2, canaries.text("variable")
        canaries.watch(Kind.SECRET, "the control plane's secret", secret)
        canaries.watch(Kind.VARIABLE, f"the environment variable {VARIABLE}", variable)
        canaries.watch(Kind.FAULT, "the text of an unexpected exception", self.plan.fault, unseen_by=OPERATORS)
        made = planted(self.environment, self.plan)
        episodes = WatchedEpisodes({made.name: made}, canaries)
        look_at_what_never_changes(self.environment, report)
        with _variable(variable), _log(self.recording):
            async with serving(episodes, secret=secret) as server:
                if "play" in self.parts:
                    await self._play(server, made)
                if not set(ATTACKS).isdisjoint(self.parts):
                    await self._attack(server, made)
            if "stdio" in self.parts:
                variables = {VARIABLE: variable, "MCPGYM_CONTROL_SECRET": secret}
                await scan_stdio(
                    self.environment, self.places[-1], canaries, self.recording, report,
                    kept=kept | set(self.allow), bits=self.bits, variables=variables, allowed=set(self.allow),
                )  # fmt: skip
        finish(report, self.recording, canaries)
        if left := [part for part in PARTS if part not in self.parts]:
            report.note(f"not done: {', '.join(left)}")
        report.seconds = round(time.monotonic() - began, 2)
        return report

    async def _play(self, server: Serving, made: Environment[Any, Any, Any]) -> None:
        """Every script over every lane, in both worlds; then the bare addresses; then with everything failing."""
        theatre = Theatre(server.control, made.name, self.recording, self.canaries)
        for number, (lane, (era, accept)) in enumerate(LANES.items()):

            def wire(opened: OpenedEpisode, lane: str = lane, era: str = era, accept: str = accept) -> HttpWire:
                address = Address.of(str(opened.url))
                return HttpWire(self.recording, lane, address, era, owner=opened.token, accept=accept)

            stage = Stage(theatre, self.plan, self.report, wire, self.bits)
            for turn, script in enumerate(scripts(self.environment, self.seed + number)):
                place = self.places[(turn + number) % len(self.places)]
                await stage.watch(script, place, look_around=turn == 0)
            for path in ("/mcp", f"/{made.name}/mcp"):
                await self._play_bare(Address.of(f"{server.url}{path}"), era, accept)
            await self._play_failing(server, wire, theatre)
        self.report.episodes = theatre.played

    async def _play_bare(self, address: Address, era: str, accept: str) -> None:
        """Two episodes at a bare address, one after the other, each with handles."""
        wire = HttpWire(self.recording, "HTTP, bare", address, era, owner=address.path, accept=accept)
        listed = await survey(wire)
        tools = [(tool["name"], tool.get("inputSchema", {})) for tool in listed if tool.get("name") != "start_episode"]
        for wanted in ({}, {"task": self.environment.task_at(*self.places[0]).id}):
            started = text_of(await call(wire, "start_episode", wanted))
            handle = started.partition("episode: ")[2].partition("\n")[0].strip()
            random = Random(self.seed)
            for _ in range(6 if tools else 0):
                turn = await settle(at_random(tools)([], random))
                (item,) = turn.get("tool_calls", [])
                name = item["function"]["name"]
                await call(wire, name, _arguments(item["function"]["arguments"]) | {"episode": handle})

    async def _play_failing(self, server: Serving, wire: Any, theatre: Theatre) -> None:
        """One episode in which whatever the environment is asked raises an exception with a canary in its text."""
        opened = await theatre.open(*self.places[0], self.canaries.integer("failing", bits=self.bits))
        connection = wire(opened)
        self.plan.failing = True
        try:
            await survey(connection, [f"env://{opened.environment}/task/{opened.task}"])
            for tool in opened.tools:
                await call(connection, tool["name"], {})
                turn = await settle(at_random([(tool["name"], tool["inputSchema"])])([], Random(0)))
                (item,) = turn.get("tool_calls", [])
                await call(connection, tool["name"], _arguments(item["function"]["arguments"]))
            bare = HttpWire(self.recording, "HTTP, bare", Address.of(f"{server.url}/mcp"), connection.era, owner="bare")
            await call(bare, "start_episode", {})
            await call(bare, "start_episode", {"task": opened.task})
        finally:
            self.plan.failing = False
        await server.control.close(opened.token)

    async def _attack(self, server: Serving, made: Environment[Any, Any, Any]) -> None:
        """From an episode's URL: everything that somebody tries who wants more."""
        split, index = self.places[-1]
        theatre = Theatre(server.control, made.name, self.recording, self.canaries)
        numbers = iter(range(1_000_000))

        async def another() -> OpenedEpisode:
            return await theatre.open(split, index, self.canaries.integer("attack", next(numbers), bits=self.bits))

        mine = await another()
        control = server.control_listener
        address = Address("localhost", 80, "/", socket=control.path) if control.path else Address.of(server.control_url)
        inside = Inside(server.control, address, server.secret, made.name, another)
        target = Target(Address.of(str(mine.url)), self.recording, self.report, inside, mine.token)
        self._look_at_the_socket(control.path)
        attacks: dict[str, Callable[[], Awaitable[None]]] = {
            "routes": lambda: attack_routes(target),
            "headers": lambda: attack_headers(target),
            "malformed": lambda: attack_malformed(target),
            "tokens": lambda: attack_tokens(target),
            "names": lambda: attack_names(target, made.tools, list(server.episodes.environments)),
        }
        for name in ATTACKS:
            if name in self.parts:
                opened = await another()  # what came before may have ended the last
                target.address, target.owner = Address.of(str(opened.url)), opened.token
                await attacks[name]()
        self.report.attacks = dict(target.attempts)
        self.report.episodes += theatre.played

    def _look_at_the_socket(self, path: Path | None) -> None:
        """Other users of the machine must not even connect to the control plane."""
        for found in () if path is None else (path, path.parent):
            if found.stat().st_mode & 0o077:
                fix = f"chmod {'700' if found.is_dir() else '600'} {found}"
                self.report.add("route", "others may open the control socket", "files", str(found), "", "its mode", fix)

    def _say_what_is_not_planted(self, kept: set[str]) -> None:
        watched = {kind for place in self.places for kind in self._short(place)}
        secret = {kind for kind in watched if is_named_secret(tuple(kind.split("."))[1:])} - set(self.allow)
        watched -= secret
        if secret:
            self.report.note(
                f"too short or plain to be looked for, though named as a secret: {', '.join(sorted(secret))}; whether "
                "a player can read it is not known"
            )
        if kept:
            self.report.note(
                f"kept as they are, for the environment does not play with canaries there: {', '.join(sorted(kept))}"
            )
        if watched:
            self.report.note(f"too short or plain to be looked for: {', '.join(sorted(watched))}")

    def _short(self, place: Place) -> set[str]:
        task = self.environment.task_at(*place)
        return self.plan.tasks.unwatchable(self.plan.tasks.planted(task))


def look_at_what_never_changes(environment: Environment[Any, Any, Any], report: ScanReport) -> None:
    """Answers of the first tasks in schemas and instructions: those are written before any canary is planted."""
    texts = {
        "a tool's schema": json.dumps([tool.listing for tool in environment.tools.values()], ensure_ascii=False),
        "the instructions": environment.instructions,
        "the description": environment.description,
    }
    for split in environment.splits:
        for task in environment.tasks_at(split, 0, MANY_TASKS):
            for path, value in leaves(task):
                text = str(value)
                if len(text) < SHORTEST_ANSWER or isinstance(value, bool) or not is_named_secret(path):
                    continue
                for channel, shown in texts.items():
                    if text in shown:
                        label = f"{kind_of_place(path)} of a task"
                        report.add(
                            Kind.INFO.value, label, channel, channel, excerpt(shown, text), "as it is", FIXES[Kind.INFO]
                        )


def finish(report: ScanReport, recording: Recording, canaries: Canaries) -> None:
    """Look through all that was recorded, and count it."""
    search(recording, canaries, report, operators=OPERATORS)
    for text, places in recording.texts.items():
        if (found := INNARDS.search(text)) is None:
            continue
        for place in places:
            if place.exchange.channel not in OPERATORS and found[0].encode() not in place.exchange.sent:
                where = f"{place.exchange.asked}: {place.path}"
                report.add(
                    "inside", "the inside of the server shows", place.exchange.channel, where,
                    excerpt(text, found[0]), "a traceback, a path or an object's address", FIXES[Kind.FAULT],
                )  # fmt: skip
    report.canaries = dict(Counter(canary.kind.value for canary in canaries))
    report.channels = {
        channel: {"exchanges": count, "bytes": recording.size[channel]}
        for channel, count in recording.exchanges.items()
    }


def _places(environment: Environment[Any, Any, Any]) -> list[Place]:
    """Two tasks of each split, where there are as many.

    Raises:
        McpgymError: there is no task at all.
    """
    found = [(split, index) for split in environment.splits for index in range(min(2, environment.size(split)))]
    if not found:
        raise McpgymError(f"{environment.name} has no tasks, so nothing can be played. See: mcpgym check")
    return found


def _arguments(text: str) -> dict[str, Any]:
    found = json.loads(text)
    return found if isinstance(found, dict) else {}


@contextlib.contextmanager
def _variable(value: str) -> Iterator[None]:
    """A canary in this process's environment, where a tool that shows ``os.environ`` would find it."""
    os.environ[VARIABLE] = value
    try:
        yield
    finally:
        os.environ.pop(VARIABLE, None)


@contextlib.contextmanager
def _log(recording: Recording) -> Iterator[None]:
    """Record what the server logs, and keep it off the terminal: the scan makes it fail on purpose."""

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            recording.add(Exchange(LOG, record.name, self.format(record).encode("utf-8", "backslashreplace")))

    loggers = [logging.getLogger(name) for name in ("mcpgym", "mcp", "uvicorn", "asyncio")]
    handler, before = Keep(), [(one.propagate, one.level) for one in loggers]
    for one in loggers:
        one.addHandler(handler)
        one.propagate = False
    try:
        yield
    finally:
        for one, (propagate, _) in zip(loggers, before, strict=True):
            one.removeHandler(handler)
            one.propagate = propagate
