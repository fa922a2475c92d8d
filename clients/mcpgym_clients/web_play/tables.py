"""Making games: what was typed, as the games that a page begins with it."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Literal

from mcpgym.apps import App
from mcpgym.control import ControlPlane
from mcpgym.environment import Environment
from mcpgym.episodes import listings
from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym.registry import configure
from mcpgym.wire.apps import app_of
from mcpgym_clients.play import PlayOptions, again, which_episode
from mcpgym_clients.web_play.board_games import BoardGame, facing_points, rules_of
from mcpgym_clients.web_play.episode_games import OwnGame, WatchedGame
from mcpgym_clients.web_play.game import Game
from mcpgym_clients.web_play.sides import Side
from mcpgym_rl.certificate.lines import starting_points
from mcpgym_rl.certificate.twice import Player
from mcpgym_rl.lanes import McpLane
from mcpgym_rl.policies.endpoint import without_password
from mcpgym_rl.policy import EpisodeContext, Policy
from mcpgym_rl.rollout import DEFAULT_MAX_TURNS

Mode = Literal["own", "against", "watch", "match"]


@dataclass(frozen=True, slots=True)
class Table:
    """Where games are begun, all of the same kind.

    ``policies`` are those that play: none where the person plays the environment, one to play against or to watch, two
    that meet. ``seat`` is the first policy's in games on the tree.
    """

    options: PlayOptions
    mode: Mode
    environment: Environment[Any, Any, Any]
    control: ControlPlane
    lane: McpLane
    policies: Sequence[Policy] = ()
    specs: Sequence[str] = ()
    seat: str | None = None

    @property
    def app(self) -> App | None:
        """The environment's app."""
        return app_of(self.environment)

    @property
    def levels(self) -> Mapping[str, Mapping[str, Any]]:
        """The configurations that may be chosen on the page; none where the environment does not play."""
        return self.app.levels if self.app is not None and self.mode in ("own", "watch") else {}

    def check(self) -> None:
        """See whether such games can be begun at all, before a page is served.

        Raises:
            ConfigurationError: they cannot.
        """
        if self.mode in ("against", "match"):
            rules = rules_of(self.environment, self.environment.max_turns or DEFAULT_MAX_TURNS)
            if self.seat is not None and self.seat not in rules.tree.seats:
                raise UnknownNameError("seat", self.seat, rules.tree.seats)
            if self.mode == "match":
                if len(seats := rules.tree.seats) != 2:
                    raise ConfigurationError(
                        f"two policies that meet need two seats; {self.environment.name} has {', '.join(seats)} here"
                    )
                facing_points(*(starting_points(rules.tree, [seat]) for seat in seats))

    async def new(self, level: str) -> Game:
        """A new game.

        Raises:
            McpgymError: it cannot be begun; there is no such level.
        """
        if level and level not in self.levels:
            raise UnknownNameError("level", level, self.levels)
        if self.mode in ("against", "match"):
            return self._on_the_tree()
        environment, config = self.environment, self.levels.get(level, {})
        if config:
            environment = configure(type(environment), {**environment.config.model_dump(exclude_unset=True), **config})
        which = await which_episode(self.control, environment.name, self.options)
        episode = await self.lane.open(environment.name, **which, config=config)
        opened = episode.opened
        typed = replace(
            self.options, config=[*self.options.config, *(f"{key}={value}" for key, value in config.items())]
        )
        said = f"{again(typed, opened)} --web"
        title = f"task {opened.task}"
        if self.mode == "own":
            return OwnGame("policy", title, episode=episode, environment=environment, again=said)
        try:
            context = EpisodeContext(opened.environment, opened.tools, secrets.randbelow(2**31))
            session = self.policies[0].begin(context)
        except BaseException:
            await episode.aclose()
            raise
        title = f"{self.policies[0].name} plays {title}"
        said += f" --watch {shlex.quote(without_password(self.specs[0]))}"
        return WatchedGame("nobody", title, episode=episode, environment=environment, again=said, session=session)

    def _on_the_tree(self) -> BoardGame:
        environment = self.environment
        rules = rules_of(environment, environment.max_turns or DEFAULT_MAX_TURNS)
        seed = secrets.randbelow(2**31) if self.options.seed is None else self.options.seed
        random = Random(seed)
        seat = self.seat if self.seat is not None else random.choice(rules.tree.seats)
        seats = [seat, *(other for other in rules.tree.seats if other != seat)][: len(self.policies)]
        sides = []
        for number, (policy, place) in enumerate(zip(self.policies, seats, strict=True)):
            context = EpisodeContext(environment.name, listings(environment), seed + number)
            player = Player.begin(policy, [context])
            sides.append(Side(player, rules, place, starting_points(rules.tree, [place])))
        words = ["mcpgym", "play", self.options.environment, "--web"]
        for spec in self.specs:
            words += ["--against" if self.mode == "against" else "--watch", without_password(spec)]
        words += ["--seat", seat, "--seed", str(seed)]
        for option in self.options.config:
            words += ["--config", option]
        if self.mode == "against":
            title = f"{self.policies[0].name} has the seat {seat}; you are its opponent"
            return BoardGame("opponent", title, environment=environment, sides=sides, again=shlex.join(words))
        title = " against ".join(f"{side.name} ({side.seat})" for side in sides)
        return BoardGame("nobody", title, environment=environment, sides=sides, again=shlex.join(words))
