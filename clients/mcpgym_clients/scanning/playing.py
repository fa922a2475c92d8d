"""Episodes that are played to be watched: by the environment's own policies, at random, and with nonsense."""

from __future__ import annotations

import itertools
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from mcpgym.asking import settle
from mcpgym.check.arguments import extreme_arguments, hostile_arguments, valid_arguments
from mcpgym.control import LocalControl, OpenedEpisode
from mcpgym.environment import Environment, ReferencePolicy
from mcpgym.errors import McpgymError
from mcpgym.messages import Message, assistant, tool_answer, tool_call
from mcpgym_clients.scanning.canaries import Canaries, Kind
from mcpgym_clients.scanning.record import Exchange, Recording
from mcpgym_clients.scanning.wires import Wire, call, is_error, survey, text_of

MOST_TURNS = 100
"""Turns of one watched episode."""
HOSTILE = 24
"""Calls with nonsense for arguments that one episode gets."""
DONE_KEY = "mcpgym/done"


@dataclass(frozen=True, slots=True)
class Script:
    """Who plays: a ``name``, and what makes the next assistant message after the messages so far."""

    name: str
    policy: ReferencePolicy


@dataclass(slots=True)
class Played:
    """One episode as the policy saw it: ``lines`` are what it asked and read, in order."""

    opened: OpenedEpisode
    lines: list[tuple[str, str]] = field(default_factory=list)
    failure: str | None = None
    acts: list[Message] = field(default_factory=list)

    def difference(self, other: Played) -> tuple[str, str, str] | None:
        """Where two episodes first differ: what was asked, and what each was answered; None when they are equal."""
        nothing = ("the end", "")
        for mine, theirs in itertools.zip_longest(self.lines, other.lines, fillvalue=nothing):
            if mine != theirs:
                return mine[0], mine[1], theirs[1]
        return None


def scripts(environment: Environment[Any, Any, Any], seed: int) -> Iterator[Script]:
    """The policies that play: the environment's own, its teacher, one at random, one that only talks, one that sends
    nonsense, and one that makes a mistake twice and then looks around."""
    for name, policy in environment.reference_policies().items():
        yield Script(name, policy)
    if (teacher := environment.teacher(0.5)) is not None:
        yield Script("teacher", teacher)
    tools = [(tool.name, tool.parser.schema) for tool in environment.tools.values()]
    yield Script("anything", at_random(tools))
    if tools:
        yield Script("talk", at_random(()))
    yield Script("nonsense", planned(nonsense(tools, Random(seed))))
    yield Script("stubborn", planned(stubborn(tools, Random(seed))))


def at_random(tools: Sequence[tuple[str, Mapping[str, Any]]], word: str | None = None) -> ReferencePolicy:
    """A policy that makes random calls that fit the schemas; ``word`` stands in every text it may choose freely."""

    def act(messages: Sequence[Message], random: Random) -> Message:
        if not tools:
            return assistant(word or random.choice(("Done.", "<think>Hm.</think> 42", "<answer>x</answer>")))
        name, schema = random.choice(tools)
        arguments = valid_arguments(schema, random)
        if word is not None:
            arguments = {key: _worded(schema["properties"][key], value, word) for key, value in arguments.items()}
        return assistant(word or "", [tool_call("call", name, _json(arguments))])

    return act


def _worded(schema: Mapping[str, Any], value: Any, word: str) -> Any:
    free = schema.get("type") == "string" and "enum" not in schema and schema.get("maxLength", 1 << 20) >= len(word)
    return word if free else value


def nonsense(tools: Sequence[tuple[str, Mapping[str, Any]]], random: Random) -> list[Message]:
    """Calls that nobody should make: no such tool, no such arguments, extremes."""
    made = [("no_such_tool", "{}"), ("", "{}"), ("play\u0000", '{"a": 1}')]
    for name, schema in tools:
        odd = [*hostile_arguments(schema, random), *extreme_arguments(schema, random)]
        made += [(name, _json(item)) for item in random.sample(odd, min(HOSTILE, len(odd)))]
    random.shuffle(made)
    return [assistant("", [tool_call("call", name, text)]) for name, text in made]


def stubborn(tools: Sequence[tuple[str, Mapping[str, Any]]], random: Random) -> list[Message]:
    """Each call at an edge made twice, and then a plain call of every tool: what a second refusal says, and what a
    refusal leaves behind."""
    made: list[tuple[str, Any]] = []
    for name, schema in tools:
        for edge in itertools.islice(extreme_arguments(schema, random), HOSTILE):
            made += [(name, edge), (name, edge)]
            made += [(other, valid_arguments(theirs, random)) for other, theirs in tools[:4]]
    return [assistant("", [tool_call("call", name, _json(arguments))]) for name, arguments in made]


def planned(messages: Iterable[Message]) -> ReferencePolicy:
    """A policy that says these messages one after the other, whatever it is answered, and then stops."""
    rows = tuple(messages)

    def act(seen: Sequence[Message], random: Random) -> Message:
        turn = sum(message["role"] == "assistant" for message in seen)
        return rows[turn] if turn < len(rows) else assistant("Done.")

    return act


class Theatre:
    """Where episodes are played: a server of ours, whose control plane opens and scores them."""

    def __init__(self, control: LocalControl, environment: str, recording: Recording, canaries: Canaries) -> None:
        self.control, self.environment = control, environment
        self.recording, self.canaries = recording, canaries
        self.played = 0

    async def open(self, split: str, index: int, seed: int) -> OpenedEpisode:
        """Open an episode; its prompt is part of what the policy sees.

        Raises:
            McpgymError: the environment cannot.
        """
        opened = await self.control.open(self.environment, split=split, index=index, seed=seed)
        self.recording.add(Exchange("prompt", f"{split}[{index}]", _json(opened.messages).encode(), opened.token))
        self.recording.add(Exchange("tools", "the harness's list", _json(opened.tools).encode(), opened.token))
        self.played += 1
        return opened

    async def play(
        self,
        opened: OpenedEpisode,
        wire: Wire,
        script: Script,
        *,
        score_often: bool = False,
        between: Callable[[], Awaitable[None]] | None = None,
        look_around: bool = True,
    ) -> Played:
        """Play ``opened`` over ``wire`` until it is over, and a call further; score it, and close it.

        Args:
            opened: the episode.
            wire: the player's connection to it.
            script: who plays.
            score_often: score after each turn too, as a harness may.
            between: what else happens before each turn.
            look_around: ask for prompts and resources first, and for a call after the end.
        """
        played = Played(opened)
        if look_around:
            await survey(wire, [f"env://{self.environment}/task/{opened.task}"])
        messages, random = list(opened.messages), Random(opened.seed)
        played.lines.append(("prompt", _json(messages)))
        over = False
        for _ in range(MOST_TURNS):
            if between is not None:
                await between()
            turn = await settle(script.policy(tuple(messages), random))
            played.acts.append(turn)
            messages.append(turn)
            for item in turn.get("tool_calls", ()):
                over |= await self.answer(wire, item, messages, played)
            if not turn.get("tool_calls"):
                over |= not await self._respond(opened, messages, played)
            if score_often:
                await self.score(opened.token, messages)
            if over:
                break
        await self.score(opened.token, messages)
        status = await self.control.status(opened.token)
        played.failure = status.failure
        if look_around and opened.tools:
            await call(wire, opened.tools[0]["name"], {})
        await self.control.close(opened.token)
        if look_around:
            await call(wire, (opened.tools or [{"name": "x"}])[0]["name"], {})
        return played

    async def score(self, token: str, messages: Sequence[Message]) -> None:
        """Score an episode, with the transcript and without; what comes of it is a canary."""
        for transcript in (None, messages):
            try:
                score = await self.control.score(token, transcript)
            except McpgymError:
                continue  # an environment that broke has no score
            if score.total is not None:
                self.canaries.watch(Kind.REWARD, "the total reward", score.total)

    async def answer(self, wire: Wire, item: Any, messages: list[Message], played: Played) -> bool:
        """Make one call, put its answer among ``messages`` and on record; whether the episode is over."""
        name, text = item["function"]["name"], item["function"]["arguments"]
        try:
            arguments = json.loads(text)
        except ValueError:
            arguments = {}
        answer = await call(wire, name, arguments)
        read = text_of(answer)
        messages.append(tool_answer(item, read, is_error=is_error(answer)))
        shown = {key: value for key, value in answer.items() if key != "id"}
        line = f"{wire.head}\n{_json(shown)}".strip().replace(played.opened.token, "TOKEN")
        played.lines.append((f"{name}({text[:200]})", line))
        result = answer.get("result")
        meta = result.get("_meta") if isinstance(result, dict) else None
        return isinstance(meta, dict) and meta.get(DONE_KEY) is True

    async def _respond(self, opened: OpenedEpisode, messages: list[Message], played: Played) -> bool:
        """Whether the environment had something to say to a turn without calls."""
        try:
            said = await self.control.respond(opened.token, messages)
        except McpgymError as error:
            played.lines.append(("respond", type(error).__name__))
            return False
        text = _json(said)
        self.recording.add(Exchange("user turns", "respond", text.encode(), opened.token))
        played.lines.append(("respond", text))
        messages += said or ()
        return said is not None


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=True, default=repr)
    except (ValueError, RecursionError):
        return "{}"
