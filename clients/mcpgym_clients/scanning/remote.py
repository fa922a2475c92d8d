"""The scan of a server that is not ours to open: from its URL alone, with such canaries as its owner knows.

What a server hides can be told only by who put it there. Without canaries this finds what should not answer at all:
routes, tools, methods, other hosts' names, the server's inside.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import re
import time
from collections.abc import Sequence
from random import Random

from mcpgym.asking import settle
from mcpgym_clients.failures import CommandFailed, UsageProblem
from mcpgym_clients.scanning.attacks.headers import attack_headers
from mcpgym_clients.scanning.attacks.malformed import attack_malformed
from mcpgym_clients.scanning.attacks.methods import attack_names
from mcpgym_clients.scanning.attacks.routes import attack_routes
from mcpgym_clients.scanning.attacks.target import Target
from mcpgym_clients.scanning.canaries import Canaries, Kind
from mcpgym_clients.scanning.forms import SHORTEST, squeezed
from mcpgym_clients.scanning.playing import at_random
from mcpgym_clients.scanning.raw_http import Address, send
from mcpgym_clients.scanning.record import Recording
from mcpgym_clients.scanning.report import ScanReport
from mcpgym_clients.scanning.scan import finish
from mcpgym_clients.scanning.wires import LEGACY, MODERN, HttpWire, call, survey

VARIABLE = "MCPGYM_SCAN_CANARIES"
"""The environment variable that may hold canaries, one a line: what is typed as an option, other users can read."""
PLAYED = 30
"""Random calls of the server's own tools, where they are asked for."""
_TELLING = re.compile(
    r"(?:^|[._\- ])(reward|score|answer|solution|seed|secret|hidden|ground_?truth)s?(?:$|[._\- ])", re.I
)


def scan_url(
    url: str, *, canaries: Sequence[str] = (), play: bool = False, headers: Sequence[str] = (), seed: int = 0
) -> ScanReport:
    """Scan the MCP server at ``url``.

    Its tools are not called unless ``play`` says so; tools that it does not list are.

    Args:
        url: its MCP endpoint (``/mcp`` where it has no path).
        canaries: texts or numbers that no answer may hold; besides those in ``MCPGYM_SCAN_CANARIES``.
        play: whether to call its tools with random arguments that fit their schemas.
        headers: ``NAME: VALUE``, sent with each request.
        seed: of the random arguments.

    Raises:
        UsageProblem: the URL is none, or a canary is too short to be told from chance.
        ServerUnavailable: nobody answers there.
    """
    return asyncio.run(_scan(url, canaries, play, headers, seed))


async def _scan(url: str, given: Sequence[str], play: bool, headers: Sequence[str], seed: int) -> ScanReport:
    began = time.monotonic()
    address = dataclasses.replace(Address.of(url), headers=tuple(map(_header, headers)))
    recording, report, canaries = Recording(), ScanReport(url, seed=seed), Canaries(seed)
    watched = [*given, *os.environ.get(VARIABLE, "").splitlines()]
    for place, text in enumerate(filter(None, map(str.strip, watched)), 1):
        _watch(canaries, text, place)
    await send(address, method="GET", path="/")  # fails with a sentence where nobody listens
    listed: set[str] = set()
    for era, channel in ((MODERN, "HTTP, 2026-07-28"), (LEGACY, "HTTP, handshake era")):
        wire = HttpWire(recording, channel, address, era)
        tools = await survey(wire)
        listed |= {str(tool.get("name")) for tool in tools}
        if play and tools:
            await _play(wire, [(tool["name"], tool.get("inputSchema", {})) for tool in tools], seed)
    if not listed and not any(b"jsonrpc" in text.encode() for text in recording.texts):
        raise CommandFailed(f"{url} does not answer as an MCP server does; give the URL of its endpoint, with its path")
    _look_at_names(recording, report)
    target = Target(address, recording, report)
    await attack_routes(target)
    await attack_headers(target)
    await attack_malformed(target)
    await attack_names(target, listed)
    report.attacks = dict(target.attempts)
    _say_what_was_not_done(report, len(canaries), play)
    finish(report, recording, canaries)
    report.seconds = round(time.monotonic() - began, 2)
    return report


async def _play(wire: HttpWire, tools: Sequence[tuple[str, dict[str, object]]], seed: int) -> None:
    policy, random = at_random([(name, {"properties": {}, **schema}) for name, schema in tools]), Random(seed)
    for _ in range(PLAYED):
        try:
            turn = await settle(policy([], random))
        except (KeyError, TypeError, ValueError):
            continue  # a schema that is not at the fixed point: random arguments cannot be made of it
        for item in turn.get("tool_calls", ()):
            await call(wire, item["function"]["name"], json.loads(item["function"]["arguments"]))


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name.strip()) or re.search(r"[\r\n]", value):
        raise UsageProblem(f"--header {text!r}: write it as NAME: VALUE")
    return name.strip(), value.strip()


def _watch(canaries: Canaries, text: str, place: int) -> None:
    if len(squeezed(text)) < SHORTEST:
        raise UsageProblem(
            f"canary {place} is too short to be told from chance; give {SHORTEST} letters and digits or more"
        )
    canaries.watch(Kind.GIVEN, f"canary {place}", text)
    if re.fullmatch(r"-?\d{1,40}", text):
        canaries.watch(Kind.GIVEN, f"canary {place}", int(text))
    elif re.fullmatch(r"-?\d*\.\d{1,20}", text):
        canaries.watch(Kind.GIVEN, f"canary {place}", float(text))


def _look_at_names(recording: Recording, report: ScanReport) -> None:
    """Members of results, and headers, whose names say that they carry what a player is not to know."""
    for text, places in recording.texts.items():
        for place in places:
            names = place.path == "header names" or (
                place.path.endswith(" member name") and re.search(r"_meta|structuredContent", place.path)
            )
            if names and _TELLING.search(text):
                report.add(
                    "telling name", f"{text!r} is sent to players", place.exchange.channel,
                    f"{place.exchange.asked}: {place.path}", text, "a header or a member of that name",
                    "leave it out: rewards, answers and seeds belong to whoever scores, not to the policy's channel",
                )  # fmt: skip


def _say_what_was_not_done(report: ScanReport, canaries: int, play: bool) -> None:
    if not canaries:
        report.note(
            f"no canaries were given (--canary, or {VARIABLE}), so a leak of what this server hides could not be told; "
            "plant values of your own in its rewards, seeds and answers, and give them here"
        )
    if not play:
        report.note("its own tools were not called; --play calls them with random arguments")
    report.note(
        "only what a URL shows was scanned. Whether episodes can reach each other, and whether rewards show in another "
        "form, is found by scanning the environment itself: mcpgym scan ENV"
    )
