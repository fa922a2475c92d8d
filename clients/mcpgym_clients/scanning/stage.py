"""The same episode played twice: what the policy reads may depend on nothing but the episode and what it did.

The second time rewards have other values and a neighbour plays beside it. If anything then reads otherwise, it is
played again with one change at a time, to tell which of them got through.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random

from mcpgym.asking import settle
from mcpgym.control import OpenedEpisode
from mcpgym.errors import McpgymError
from mcpgym.messages import Message
from mcpgym_clients.scanning.canaries import FIXES, Kind
from mcpgym_clients.scanning.planting import Plan, World
from mcpgym_clients.scanning.playing import Played, Script, Theatre, at_random
from mcpgym_clients.scanning.report import ScanReport
from mcpgym_clients.scanning.wires import Wire

Place = tuple[str, int]


@dataclass(slots=True)
class Stage:
    """Plays and compares. ``wire`` makes a player's connection to an episode; ``bits`` is how large seeds may be."""

    theatre: Theatre
    plan: Plan
    report: ScanReport
    wire: Callable[[OpenedEpisode], Wire]
    bits: int = 62

    async def watch(self, script: Script, place: Place, *, look_around: bool) -> None:
        """Play one episode in both worlds, and tell the difference; ``look_around`` asks for all else there is, too."""
        first = await self._play(script, place, "near", beside=False, score_often=True, look_around=look_around)
        second = await self._play(script, place, "far", beside=True)
        if first is None or second is None:
            return
        self.report.compared += 1
        if first.failure is not None:
            self.report.note(f"{script.name}, {place[0]}[{place[1]}]: the environment broke: {first.failure}")
        if first.difference(second) is not None:
            await self._explain(script, place, first)

    async def _explain(self, script: Script, place: Place, first: Played) -> None:
        again = await self._play(script, place, "near", beside=False, score_often=True)
        if again is not None and (odd := first.difference(again)) is not None:
            self.report.note(
                f"{script.name}, {place[0]}[{place[1]}]: played twice alike, it is answered otherwise ({odd[0]}), so "
                "leaks of rewards and between episodes are looked for by their canaries alone"
            )
            return
        causes: list[tuple[Kind, Played | None]] = [
            (Kind.OTHER, await self._play(script, place, "near", beside=True, score_often=True)),
            (Kind.REWARD, await self._play(script, place, "far", beside=False)),
        ]
        for kind, played in causes:
            if played is not None and (odd := first.difference(played)) is not None:
                self._tell(kind, script, place, odd)

    def _tell(self, kind: Kind, script: Script, place: Place, odd: tuple[str, str, str]) -> None:
        what = {
            Kind.OTHER: "what a player reads depends on what another episode does",
            Kind.REWARD: "what a player reads depends on a reward's value, or on whether it was asked for",
        }[kind]
        asked, was, became = odd
        mine, theirs = _apart(was, became)
        self.report.add(
            kind=kind.value,
            what=what,
            channel="two plays compared",
            where=f"{script.name}, {place[0]}[{place[1]}]: {asked}",
            excerpt=f"{mine} became {theirs}",
            how="the same episode and calls, answered otherwise",
            fix=FIXES[kind],
        )

    async def _play(
        self,
        script: Script,
        place: Place,
        world: World,
        *,
        beside: bool,
        score_often: bool = False,
        look_around: bool = False,
    ) -> Played | None:
        """One whole episode; None where the policy or the environment could not go on."""
        self.plan.world = world
        seed = self.theatre.canaries.integer("seed", script.name, place[0], place[1], bits=self.bits)
        try:
            opened = await self.theatre.open(place[0], place[1], seed)
            between: Callable[[], Awaitable[None]] | None = None
            if beside:
                between = Neighbour(self, place, seed).step
            return await self.theatre.play(
                opened, self.wire(opened), script, score_often=score_often, between=between, look_around=look_around
            )
        except McpgymError as error:
            self.report.note(f"{script.name}, {place[0]}[{place[1]}]: not played: {error}")
        except Exception as error:  # a policy of the environment's, on what it did not expect
            self.report.note(
                f"{script.name}, {place[0]}[{place[1]}]: the policy failed: {type(error).__name__}: {error}"
            )
        finally:
            self.plan.world = "near"
        return None


class Neighbour:
    """Another episode of the same environment that plays beside the watched one, a turn at a time.

    Every text it may choose freely is a canary, which is nobody's business but its own.
    """

    def __init__(self, stage: Stage, place: Place, seed: int) -> None:
        self._stage, self._place, self._seed = stage, place, seed
        self._opened: OpenedEpisode | None = None
        self._wire: Wire | None = None
        self._messages: list[Message] = []
        self._random = Random(seed)
        self._played: Played | None = None

    async def step(self) -> None:
        """One turn, of a new episode where the last is over."""
        theatre = self._stage.theatre
        if self._opened is None or self._wire is None or self._played is None:
            self._seed = self._seed ^ 1
            self._opened = await theatre.open(self._place[0], self._place[1], self._seed)
            self._wire, self._messages = self._stage.wire(self._opened), list(self._opened.messages)
            self._played = Played(self._opened)
        word = theatre.canaries.text("word", self._opened.token)
        theatre.canaries.watch(Kind.OTHER, "what another episode's player said", word, owner=self._opened.token)
        tools = [(tool["name"], tool["inputSchema"]) for tool in self._opened.tools]
        turn = await settle(at_random(tools, word)(self._messages, self._random))
        self._messages.append(turn)
        over = not tools
        for item in turn.get("tool_calls", ()):
            over |= await theatre.answer(self._wire, item, self._messages, self._played)
        if over:
            await theatre.score(self._opened.token, self._messages)
            await theatre.control.close(self._opened.token)
            self._opened = None


def _apart(was: str, became: str, around: int = 30) -> tuple[str, str]:
    """Two texts from a little before the place where they part."""
    at = next((i for i, (a, b) in enumerate(zip(was, became, strict=False)) if a != b), min(len(was), len(became)))
    start = max(0, at - around)
    return repr(was[start : at + around]), repr(became[start : at + around])
