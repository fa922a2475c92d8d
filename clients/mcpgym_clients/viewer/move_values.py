"""What each legal move of a recorded game was worth, where the environment gives its tree (``Environment.game_tree``).

The trace is played again on the tree: what follows a call is the answer whose text is the recorded one. So the values
belong to what happened, or there are none: a trace that tells of another game than the one installed here loses the
way, and that is said.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mcpgym.environment import Environment
from mcpgym.errors import ConfigurationError, McpgymError
from mcpgym.game_tree import Answer, GameTree, LegalCall
from mcpgym.messages import Message
from mcpgym.registry import configure, environment_class, environment_names
from mcpgym_rl.certificate.values import GUARANTEED, NEVER_LOSES, Value, Values, average, values_of
from mcpgym_rl.parse import MalformedCall, parse
from mcpgym_rl.rollout import DEFAULT_MAX_TURNS
from mcpgym_rl.traces import Trace

Verdict = Literal["best", "inaccuracy", "missed_win", "blunder", "refused"]
"""How good a move was: as good as any; one that wins less often; one after which a win can no longer be forced; one
that gave a safe game away; none, for the call was refused."""


@dataclass(frozen=True, slots=True)
class Option:
    """One legal move: its label, the call that makes it, what it is worth, and whether no other is worth more."""

    act: str
    call: LegalCall
    value: Value
    best: bool

    def as_json(self) -> dict[str, Any]:
        """As a page reads it."""
        call = f"{self.call.tool}({_arguments(self.call.arguments)})"
        return {"act": self.act, "call": call, "best": self.best, **_plain(self.value)}


@dataclass(frozen=True, slots=True)
class Decision:
    """One call of a game: what the position was worth, every legal move of it, and what was made of it.

    ``played`` is the label of the move, None where the call was refused; ``after`` is what it was worth.
    """

    before: Value
    options: Sequence[Option]
    played: str | None
    after: Value
    verdict: Verdict

    def as_json(self) -> dict[str, Any]:
        """As the page reads it; a value is what can be forced, and the chances to win and to draw."""
        return {
            "before": _plain(self.before),
            "after": _plain(self.after),
            "played": self.played,
            "verdict": self.verdict,
            "moves": [option.as_json() for option in self.options],
        }


@dataclass(slots=True)
class Weighed:
    """The decisions of a trace: turn by turn, one for each call. ``note`` says why there are no further ones."""

    turns: list[list[Decision | None]] = field(default_factory=list)
    note: str = ""

    def count(self, verdict: Verdict) -> int:
        """How many moves were this."""
        return sum(item is not None and item.verdict == verdict for turn in self.turns for item in turn)


class Games:
    """The games of the environments that are installed here, or given, by name and configuration.

    Only names that packages have registered are ever looked up, whatever a trace says.
    """

    def __init__(self, given: Sequence[type[Environment[Any, Any, Any]]] = ()) -> None:
        self._classes = {cls.name: cls for cls in given}
        self._known: dict[str, Game | None] = {}
        self._why: dict[str, str] = {}
        self._lock = threading.Lock()

    def environment(self, name: str) -> type[Environment[Any, Any, Any]] | None:
        """The environment's class; None where none of that name is here."""
        if name not in self._classes:
            if ":" in name or name not in environment_names():
                return None
            try:
                self._classes[name] = environment_class(name)
            except McpgymError:
                return None
        return self._classes[name]

    def weigh(self, trace: Trace, max_turns: int | None = None) -> Weighed:
        """The values of the moves of ``trace``; none, and why, where they cannot be known. Safe in any thread.

        ``max_turns`` is the run's limit on turns, where it had one of its own.
        """
        with self._lock:
            key = _key(trace)
            game, why = self._game(trace, key)
            if game is None:
                return Weighed(note=why)
            try:
                return game.weigh(trace, max_turns)
            except (McpgymError, RecursionError) as error:  # a game that is too large is not begun again
                self._known[key], self._why[key] = None, f"the values of moves are not shown: {error}"
                return Weighed(note=self._why[key])

    def _game(self, trace: Trace, key: str) -> tuple[Game | None, str]:
        if key not in self._known:
            try:
                self._known[key], self._why[key] = self._make(trace)
            except (McpgymError, RecursionError) as error:
                self._known[key], self._why[key] = None, str(error)
        return self._known[key], self._why[key]

    def _make(self, trace: Trace) -> tuple[Game | None, str]:
        cls = self.environment(trace.environment)
        if cls is None or cls.game_tree is Environment.game_tree:
            return None, ""  # nobody misses the values of what may be no game at all
        environment = configure(cls, trace.config)
        if environment.game_tree() is None:
            return None, ""
        if environment.version != trace.environment_version:
            return None, (
                f"the values of moves are not shown: {cls.name} is version {environment.version} here, and the trace "
                f"is of version {trace.environment_version}"
            )
        return Game(environment), ""


def _key(trace: Trace) -> str:
    """Equal for traces of the same game."""
    what = [trace.environment, trace.environment_version, trace.schema_hash, trace.config]
    return json.dumps(what, sort_keys=True, default=str)


class Game:
    """One game under one configuration. What has been worked out about a position is kept."""

    def __init__(self, environment: Environment[Any, Any, Any]) -> None:
        self._environment = environment
        self._max_turns = environment.max_turns or DEFAULT_MAX_TURNS
        self._values: Values = values_of(environment, self._max_turns)
        self._tree: GameTree[Any] = self._values.tree
        self._starts: dict[tuple[tuple[str, str], ...], Hashable] = {}
        for seat in self._tree.seats:
            for start in self._tree.starts(seat):
                self._starts[_prompt(start.messages)] = start.state
        self._options: dict[tuple[Hashable, int], list[Option]] = {}
        self._answers: dict[tuple[Hashable, str, str], Sequence[Answer[Any]]] = {}
        self._following: dict[tuple[Hashable, str, str], dict[tuple[str, bool], Answer[Any]]] = {}
        self._decisions: dict[tuple[Hashable, int, str, str], Decision] = {}

    def weigh(self, trace: Trace, max_turns: int | None = None) -> Weighed:
        """The decisions of one trace, of a run with this limit on turns."""
        return self._walk(trace.messages, trace.prompt_messages, max_turns)[0]

    def now(self, messages: Sequence[Message], prompt_messages: int) -> tuple[Sequence[Option], str]:
        """The legal moves where this transcript has come to, and their values; or none, and why.

        A game that is not the policy's own run has no other limit than the environment's, on calls.
        """
        made, state, served = self._walk(messages, prompt_messages, None)
        left = self._max_turns - served
        if made.note or state is None or left <= 0 or self._tree.outcome(state) is not None:
            return (), made.note
        return self.options(state, left), ""

    def _walk(
        self, messages: Sequence[Message], prompt_messages: int, max_turns: int | None
    ) -> tuple[Weighed, Hashable | None, int]:
        """The decisions on the way through a transcript, where it has led, and how many calls were served on it."""
        made = Weighed()
        state = self._starts.get(_prompt(messages[:prompt_messages]))
        if state is None:
            made.note = "the values of moves are not shown: no game of this environment begins like this one"
            return made, None, 0
        served, place = 0, prompt_messages
        while place < len(messages):
            message = messages[place]
            place += 1
            if message.get("role") != "assistant":
                continue
            decisions: list[Decision | None] = []
            made.turns.append(decisions)
            for call in parse(message)[1]:
                if place >= len(messages) or messages[place].get("role") != "tool":
                    break
                answer = messages[place]
                place += 1
                left = min((max_turns or self._max_turns) - len(made.turns) + 1, self._max_turns - served)
                refused = bool(answer.get("is_error"))
                if isinstance(call, MalformedCall) or self._tree.outcome(state) is not None or left <= 0:
                    decisions.append(self._decision(state, left, None, None))
                    continue
                name = call.call["function"]["name"]
                found = self._follow(state, name, call.arguments, str(answer.get("content")), refused)
                if found is None and refused:  # it never reached the environment: a limit of the rollout's own
                    decisions.append(self._decision(state, left, None, None))
                    continue
                if found is None:
                    made.note = "the game goes on otherwise here than the trace tells: no values from there on"
                    return made, None, served
                decisions.append(self._decision(state, left, name, call.arguments, found.act))
                state, served = found.state, served + 1
        return made, state, served

    def _follow(
        self, state: Hashable, name: str, arguments: Mapping[str, Any], text: str, refused: bool
    ) -> Answer[Any] | None:
        """What followed the call: the answer with the recorded text."""
        key = state, name, _arguments(arguments)
        if (known := self._following.get(key)) is None:
            answers = reversed(self._all(state, name, arguments))
            known = self._following[key] = {(item.text, item.is_error): item for item in answers}
        return known.get((text, refused))

    def _all(self, state: Hashable, name: str, arguments: Mapping[str, Any]) -> Sequence[Answer[Any]]:
        key = state, name, _arguments(arguments)
        if (known := self._answers.get(key)) is None:
            known = self._answers[key] = self._tree.answers(state, name, arguments)
        return known

    def _decision(
        self, state: Hashable, left: int, name: str | None, arguments: Mapping[str, Any] | None, act: str | None = None
    ) -> Decision | None:
        if self._tree.outcome(state) is not None or left <= 0:
            return None
        made = ("", "") if act is None or name is None or arguments is None else (name, _arguments(arguments))
        if (known := self._decisions.get((state, left, *made))) is None:
            options, before = self.options(state, left), self._values.of(state, left)
            if act is None or name is None or arguments is None:
                known = Decision(before, options, None, before, "refused")
            else:
                after = self._worth(self._all(state, name, arguments), left)
                known = Decision(before, options, act, after, _verdict(before, after))
            self._decisions[state, left, *made] = known
        return known

    def options(self, state: Hashable, left: int) -> list[Option]:
        """The legal moves of a position with so many turns left, and what each is worth."""
        if (known := self._options.get((state, left))) is None:
            worth = []
            for call in self._tree.legal(state):
                answers = self._all(state, call.tool, call.arguments)
                worth.append((answers[0].act or "?", call, self._worth(answers, left)))
            best = max((_merit(value) for _, _, value in worth), default=None)
            known = [Option(act, call, value, _merit(value) == best) for act, call, value in worth]
            self._options[state, left] = known
        return known

    def _worth(self, answers: Sequence[Answer[Any]], left: int) -> Value:
        return average((item.chances.random, self._values.of(item.state, left - 1)) for item in answers)


def _verdict(before: Value, after: Value) -> Verdict:
    if before.guaranteed >= NEVER_LOSES > after.guaranteed:
        return "blunder"
    if before.guaranteed > NEVER_LOSES >= after.guaranteed:
        return "missed_win"
    return "best" if _merit(after) >= _merit(before) else "inaccuracy"


def _merit(value: Value) -> tuple[Any, ...]:
    """As certificates rank moves: not to lose comes first, then to win often, then to draw often."""
    return value.guaranteed >= NEVER_LOSES, value.win, value.draw, value.guaranteed


def _prompt(messages: Sequence[Message]) -> tuple[tuple[str, str], ...]:
    return tuple((str(message.get("role")), str(message.get("content"))) for message in messages)


def _plain(value: Value) -> dict[str, Any]:
    return {
        "forced": GUARANTEED[value.guaranteed],
        "win": round(float(value.win), 6),
        "draw": round(float(value.draw), 6),
    }


def _arguments(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())


def given_environments(names: Sequence[str]) -> list[type[Environment[Any, Any, Any]]]:
    """The classes that a user names, ``module:Class`` too.

    Raises:
        ConfigurationError: there is no such environment.
    """
    found = [environment_class(name) for name in names]
    if clash := {cls.name for cls in found if [other.name for other in found].count(cls.name) > 1}:
        raise ConfigurationError(f"--environment: {', '.join(sorted(clash))} is given twice")
    return found
