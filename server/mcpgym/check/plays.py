"""Playing episodes by plan, and keeping everything that the policy saw, so that two plays can be compared."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from mcpgym.calls import CallResult
from mcpgym.check.arguments import valid_arguments
from mcpgym.environment import Environment
from mcpgym.episode import Episode
from mcpgym.episodes import Episodes
from mcpgym.errors import CannotBegin, McpgymError
from mcpgym.messages import Message, assistant, tool_answer, tool_call
from mcpgym.rewards import Score

SAYINGS = ("Done.", "<think>Let me see.</think> 42", "I do not know.", "<answer>x</answer>")


@dataclass(frozen=True, slots=True)
class Act:
    """One act of a plan: a call of the tool ``name``, or (``name`` None) a turn without a call, with this text."""

    name: str | None
    arguments: Any = None
    text: str = ""


Plan = tuple[Act, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Which episode: the task at ``index`` of ``split``, and the seed."""

    split: str
    index: int
    seed: int

    def __str__(self) -> str:
        return f"{self.split}[{self.index}], seed {self.seed}"


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that happened: its ``label`` ("call 2: play"), the text the policy saw, and what it did not see.

    ``said`` are the messages that ``seen`` is made of, where it is not the answer to a call.
    """

    label: str
    seen: str
    hidden: str = ""
    is_error: bool = False
    act: Act | None = None
    said: tuple[Message, ...] = ()


@dataclass(slots=True)
class Play:
    """All of one episode, line by line; ``broken`` maps a rule to how the environment broke it on the way.

    ``same`` is an environment's own rule of which texts count as the same; None where all must be the same bytes.
    """

    place: Place
    same: Callable[[str, str], bool] | None = None
    lines: list[Line] = field(default_factory=list)
    broken: dict[str, str] = field(default_factory=dict)
    score: Score | None = None
    transcript: list[Message] = field(default_factory=list)
    acts: list[Act] = field(default_factory=list)

    def difference(self, other: Play) -> str | None:
        """Where the two first differ, and how; None when they are equal."""
        for mine, theirs in zip(self.lines, other.lines, strict=False):
            if mine.label != theirs.label:
                return f"{mine.label!r} became {theirs.label!r}"
            if mine.hidden != theirs.hidden or not self.agree(mine, theirs):
                return f"{mine.label}: {show(mine.seen + mine.hidden)} became {show(theirs.seen + theirs.hidden)}"
        if len(self.lines) != len(other.lines):
            return f"{len(self.lines)} events became {len(other.lines)}"
        return None

    def agree(self, mine: Line, theirs: Line) -> bool:
        """Whether the policy saw the same in both: the same bytes, or what the environment says is the same."""
        if mine.seen == theirs.seen:
            return True
        if self.same is None:
            return False
        if not mine.said and not theirs.said:
            return self.same(mine.seen, theirs.seen)
        return len(mine.said) == len(theirs.said) and all(
            {**old, "content": ""} == {**new, "content": ""} and self.same(old["content"], new["content"])
            for old, new in zip(mine.said, theirs.said, strict=True)
        )


class Player:
    """Plays one plan over one episode, an act at a time, so that several can be interleaved.

    ``ask_often`` asks ``is_done`` and ``game_outcome`` again after every act, which must change nothing.
    """

    def __init__(self, episodes: Episodes, place: Place, plan: Sequence[Act], *, ask_often: bool = False) -> None:
        self.episodes = episodes
        self.plan = plan
        (environment,) = episodes.environments.values()
        self.play = Play(place, None if environment.reproducible else environment.same_observation)
        self.ask_often = ask_often
        self._episode: Episode | None = None
        self._at = 0

    @property
    def environment(self) -> Environment[Any, Any, Any]:
        """The one that is played."""
        (environment,) = self.episodes.environments.values()
        return environment

    async def open(self) -> bool:
        """Open the episode; False if the environment cannot."""
        place = self.play.place
        try:
            self._episode = await self.episodes.open(
                self.environment.name, split=place.split, index=place.index, seed=place.seed
            )
        except CannotBegin:
            raise  # no fault of the environment's: what it stands on is missing here
        except Exception as error:
            self._break("reset", f"opening the episode raised {_named(error)}")
            return False
        self.play.transcript = [*self._episode.messages]
        said = tuple(self.play.transcript)
        self.play.lines.append(Line("prompt", dump(self.play.transcript), said=said))
        self._ask()
        return True

    async def step(self) -> bool:
        """Do the next act; False when the plan or the episode has come to its end."""
        episode = self._episode
        if episode is None or episode.done or self._at >= len(self.plan):
            return False
        act = self.plan[self._at]
        self._at += 1
        return await self.act(act)

    async def act(self, act: Act) -> bool:
        """Do one act; False when the episode is over after it."""
        episode = self._episode
        assert episode is not None
        self.play.acts.append(act)
        if act.name is None:
            return await self._say(episode, act)
        call = tool_call(f"call-{len(self.play.acts)}", act.name, dump(act.arguments))
        label = f"call {len(self.play.acts)}: {act.name}({show(call['function']['arguments'], 80)})"
        try:
            result = await episode.call(act.name, act.arguments)
        except Exception as error:
            self._break("tools", f"{label} raised {_named(error)}")
            return False
        if episode.failure is not None:
            self._break("tools", f"{label}: {episode.failure}")
            return False
        self._see(label, result, act)
        self.play.transcript += [assistant(act.text, [call]), tool_answer(call, result.text, is_error=result.is_error)]
        self._ask()
        return not episode.done

    async def finish(self) -> Play:
        """Score the episode without and with its transcript, close it, and give the record."""
        episode = self._episode
        if episode is None:
            return self.play
        self.play.lines.append(Line("end", "", f"{episode.stop_reason} after {episode.turns}"))
        if not self.play.broken:
            await self._score(episode)
        raised: list[BaseException] = []
        close = episode.environment.close

        async def watched(state: Any) -> None:
            try:
                made = close(state)
                if made is not None:
                    await made
            except Exception as error:
                raised.append(error)

        episode.environment.close = watched  # type: ignore[method-assign]
        try:
            await self.episodes.close(episode.token)
        finally:
            del episode.environment.close
        if raised:
            self._break("close", f"close raised {_named(raised[0])}")
        self._episode = None
        return self.play

    async def score(self, transcript: Sequence[Message] | None) -> Score:
        """The score with another transcript than the played one."""
        assert self._episode is not None
        return await self._episode.score(transcript)

    async def _score(self, episode: Episode) -> None:
        try:
            bare = await episode.score(None)
            made = await episode.score(self.play.transcript)
            again = await episode.score(self.play.transcript)
        except McpgymError as error:
            self._break("rewards", str(error))
            return
        self.play.score = made
        self.play.lines.append(Line("score", "", f"{bare} {made}"))
        if made != again:
            self._break("rewards", f"scoring twice gave {made} and then {again}")

    async def _say(self, episode: Episode, act: Act) -> bool:
        self.play.transcript.append(assistant(act.text))
        label = f"answer {len(self.play.acts)}: {show(act.text, 40)}"
        try:
            answer = await episode.respond(self.play.transcript)
        except Exception as error:
            self._break("respond", f"{label}: {_named(error)}")
            return False
        self.play.transcript += answer or ()
        seen, said = ("", ()) if answer is None else (dump(answer), tuple(answer))
        self.play.lines.append(Line(label, seen, f"done {episode.done}", act=act, said=said))
        self._ask()
        return not episode.done

    def _see(self, label: str, result: CallResult, act: Act) -> None:
        if not isinstance(result.text, str):
            self._break("tools", f"{label} answered {type(result.text).__name__}, not text")
            return
        flags = f" error {result.is_error} done {result.done}"
        self.play.lines.append(Line(label, result.text, flags, result.is_error, act))

    def _ask(self) -> None:
        if not self.ask_often or self._episode is None:
            return
        environment, state = self._episode.environment, self._episode.state
        try:
            answers = {bool(environment.is_done(state)) for _ in range(3)}
            outcome = environment.game_outcome(state)
        except Exception as error:
            self._break("done", f"is_done or game_outcome raised {_named(error)}")
            return
        if outcome is not None and True not in answers:
            self._break("done", f"game_outcome said {outcome!r} of a game that is not done")
        if len(answers) > 1:
            self._break("done", "is_done gave True and False for one state")
        if self._episode.stop_reason == "done" and False in answers:
            self._break("done", "is_done said True, and later False")

    def _break(self, rule: str, how: str) -> None:
        self.play.broken.setdefault(rule, how)
        self.play.lines.append(Line(f"broken {rule}", "", how))


async def play(episodes: Episodes, place: Place, plan: Sequence[Act], *, ask_often: bool = False) -> Play:
    """One whole episode by plan."""
    player = Player(episodes, place, plan, ask_often=ask_often)
    if await player.open():
        while await player.step():
            pass
    return await player.finish()


async def interleave(players: Sequence[Player]) -> list[Play]:
    """Several episodes at once, act by act in turn."""
    going = [player for player in players if await player.open()]
    while going:
        going = [player for player in going if await player.step()]
    return [await player.finish() for player in players]


async def at_once(players: Sequence[Player]) -> list[Play]:
    """Several episodes at once, each as fast as it can: what one tool awaits, or does in a thread, overlaps others'."""

    async def whole(player: Player) -> None:
        if await player.open():
            while await player.step():
                pass

    await asyncio.gather(*(whole(player) for player in players))
    return [await player.finish() for player in players]


def random_plan(environment: Environment[Any, Any, Any], random: Random, length: int) -> Plan:
    """Valid calls at random, and a few turns without one."""
    tools = list(environment.tools.values())
    acts = []
    for _ in range(length if tools else 0):
        tool = random.choice(tools)
        acts.append(Act(tool.name, valid_arguments(tool.parser.schema, random), random.choice(SAYINGS)))
    return (*acts, *(Act(None, text=random.choice(SAYINGS)) for _ in range(4)))


def dump(value: Any) -> str:
    """``value`` as JSON text that never fails."""
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True, default=repr)
    except (TypeError, ValueError, RecursionError):
        return f"<{type(value).__name__}>"


def show(text: str, limit: int = 160) -> str:
    """``text``, short enough for a report."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
