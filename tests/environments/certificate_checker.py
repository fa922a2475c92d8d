"""Checks a tic-tac-toe certificate with OpenSpiel's engine, sharing no code with what made it.

    python tests/environments/certificate_checker.py certificate.json
    python tests/environments/certificate_checker.py certificate.json --policy local:runs/master

Without a policy, the games that stand in the certificate are replayed: is each of them legal, does it end as stated, is
every reply of the opponent there, and do the counts and chances follow from them? With a policy, its games are played
anew: the checker writes every prompt and answer itself, asks the policy, and compares the games with the certificate's.
Only asking the policy is our code. Prints what is wrong; exit 1 if anything is.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pyspiel

GAME = pyspiel.load_game("tic_tac_toe")
SEATS = {"first": 0, "second": 1}
Acts = tuple[int, ...]


# The game, by OpenSpiel.


@cache
def at(acts: Acts) -> pyspiel.State:
    """The state after these moves; never to be changed."""
    if not acts:
        return GAME.new_initial_state()
    before = at(acts[:-1])
    if before.is_terminal() or acts[-1] not in before.legal_actions():
        raise ValueError(f"{acts[-1]} cannot be played after {list(acts[:-1])}")
    return before.child(acts[-1])


def result(state: pyspiel.State, player: int) -> str:
    if not state.is_terminal():
        return "unfinished"
    return {1.0: "win", 0.0: "draw", -1.0: "loss"}[state.returns()[player]]


def rows(state: pyspiel.State) -> str:
    return str(state).replace("\n", "")


def as_the_policy_sees(state: pyspiel.State, seat: str) -> str:
    shown = rows(state).upper()
    return shown if seat == "first" else shown.translate(str.maketrans("XO", "OX"))


def score(state: pyspiel.State) -> int:
    """For the player who moves first: sooner wins and later losses are better."""
    shown = rows(state)
    if shown not in SCORES:
        if state.is_terminal():
            SCORES[shown] = round(state.returns()[0]) * (1 + shown.count("."))
        else:
            scores = [score(state.child(act)) for act in state.legal_actions()]
            SCORES[shown] = max(scores) if state.current_player() == 0 else min(scores)
    return SCORES[shown]


def perfect_replies(state: pyspiel.State) -> list[int]:
    return [act for act in state.legal_actions() if score(state.child(act)) == score(state)]


Best = tuple[bool, Fraction, Fraction]
SCORES: dict[str, int] = {}
BESTS: dict[tuple[str, int], Best] = {}


def best(state: pyspiel.State, player: int) -> Best:
    """Whether ``player`` can avoid a loss, and the chances to win and to draw against random play of the policy that
    does, and wins most often."""
    key = (rows(state), player)
    if key not in BESTS:
        after = [] if state.is_terminal() else [best(state.child(act), player) for act in state.legal_actions()]
        if not after:
            told = result(state, player)
            BESTS[key] = told != "loss", Fraction(told == "win"), Fraction(told == "draw")
        elif state.current_player() == player:
            BESTS[key] = max(after)
        else:
            safe = all(safe for safe, _, _ in after)
            BESTS[key] = safe, mean(win for _, win, _ in after), mean(draw for _, _, draw in after)
    return BESTS[key]


def mean(values: Iterable[Fraction]) -> Fraction:
    found = list(values)
    return sum(found, Fraction(0)) / len(found)


# What the certificate states.


def read_games(certificate: dict[str, Any]) -> dict[str, dict[Acts, str]]:
    """By seat: the moves of each game, and how it ended."""
    games: dict[str, dict[Acts, str]] = {seat: {} for seat in certificate["by_seat"]}
    for written in certificate["games"]:
        seat, _, rest = written.partition(": ")
        moves, _, outcome = rest.rpartition(" = ") if " = " in rest else ("", "", rest.removeprefix("= "))
        acts = tuple(int(move) for move in moves.split())
        if acts in games[seat]:
            raise ValueError(f"{written!r} stands there twice")
        games[seat][acts] = outcome
    return games


def problems(certificate: dict[str, Any]) -> list[str]:
    """What does not follow from the games that stand in the certificate."""
    try:
        games = read_games(certificate)
    except (ValueError, KeyError) as error:
        return [f"the games cannot be read: {error}"]
    moves = certificate["config"]["policy_moves"]
    wanted = ["first", "second"] if moves == "either" else [moves]
    found = [] if list(games) == wanted else [f"the seats are {list(games)}, not {wanted}"]
    for seat, lines in games.items():
        loses = certificate["config"]["illegal_move_loses"]
        found += [f"{seat}: {problem}" for problem in seat_problems(seat, lines, loses)]
    return found or list(count_problems(certificate, games))


def seat_problems(seat: str, lines: dict[Acts, str], loses: bool) -> Iterator[str]:
    """Illegal games, wrong ends, missing replies, and points at which the policy does two things."""
    follows: dict[Acts, set[int]] = {}
    for acts, outcome in lines.items():
        try:
            told = result(at(acts), SEATS[seat])
        except ValueError as error:
            yield str(error)
            continue
        forfeit = loses and outcome == "loss" and told == "unfinished"  # by an illegal move, which is no move
        if told != outcome and not forfeit:
            yield f"{acts} ends as {told}, not as {outcome}"
        for place, act in enumerate(acts):
            follows.setdefault(acts[:place], set()).add(act)
    if not lines:
        yield "there is no game"
    for acts, then in follows.items():
        if acts in lines:
            yield f"{acts} is the end of a game and goes on too"
        state = at(acts)
        if state.current_player() == SEATS[seat]:
            if len(then) > 1:
                yield f"the policy plays {sorted(then)} after {acts}: it must always do the same"
        elif then != set(state.legal_actions()):
            yield f"after {acts} the replies {sorted(set(state.legal_actions()) - then)} are missing"


def chances(seat: str, lines: dict[Acts, str], *, perfect: bool) -> dict[str, Fraction]:
    """How the games end against a random, or a perfect, opponent."""
    shares = dict.fromkeys(("win", "draw", "loss", "unfinished"), Fraction(0))
    for acts, outcome in lines.items():
        chance = Fraction(1)
        for place, act in enumerate(acts):
            state = at(acts[:place])
            if state.current_player() != SEATS[seat]:
                replies = perfect_replies(state) if perfect else state.legal_actions()
                chance *= Fraction(act in replies, len(replies))
        shares[outcome] += chance
    return shares


def count_problems(certificate: dict[str, Any], games: dict[str, dict[Acts, str]]) -> Iterator[str]:
    """Counts and chances that do not follow from the games."""

    def differs(where: str, stated: Any, derived: Any) -> Iterator[str]:
        if stated != derived:
            yield f"{where} is {stated}, and should be {derived}"

    both: dict[str, list[dict[str, Fraction]]] = {"versus_random": [], "versus_perfect": [], "optimum": []}
    everything = [outcome for lines in games.values() for outcome in lines.values()]
    for seat, lines in games.items():
        stated = certificate["by_seat"][seat]
        yield from tallies(seat, stated, list(lines.values()), differs)
        safe, win, draw = best(at(()), SEATS[seat])
        derived = {
            "versus_random": chances(seat, lines, perfect=False),
            "versus_perfect": chances(seat, lines, perfect=True),
            "optimum": {"win": win, "draw": draw, "loss": 1 - win - draw, "unfinished": Fraction(0)},
        }
        if not safe:
            yield f"{seat} can be forced to lose, which tic-tac-toe does not know"
        for name, shares in derived.items():
            both[name].append(shares)
            yield from shares_differ(f"{seat}: {name}", stated[name], shares, differs)
    yield from tallies("both", certificate, everything, differs)
    whole = {name: {k: mean(share[k] for share in shares) for k in shares[0]} for name, shares in both.items()}
    for name, shares in whole.items():
        yield from shares_differ(name, certificate[name], shares, differs)
    distance = float(whole["optimum"]["win"] - whole["versus_random"]["win"])
    yield from differs("distance", certificate["distance"], distance)
    bad = everything.count("loss") + everything.count("unfinished")
    yield from differs("certified", certificate["certified"], not bad)
    yield from shortest_problems(certificate, games)


def tallies(where: str, stated: dict[str, Any], outcomes: list[str], differs: Any) -> Iterator[str]:
    names = {"won_lines": "win", "drawn_lines": "draw", "lost_lines": "loss", "unfinished_lines": "unfinished"}
    yield from differs(f"{where}: lines", stated["lines"], len(outcomes))
    for name, outcome in names.items():
        yield from differs(f"{where}: {name}", stated[name], outcomes.count(outcome))


def shares_differ(where: str, stated: dict[str, Any], shares: dict[str, Fraction], differs: Any) -> Iterator[str]:
    for name, share in shares.items():
        yield from differs(f"{where}: {name}", stated[name], float(share))
        yield from differs(f"{where}: exact {name}", Fraction(stated["exact"][name]), share)


def shortest_problems(certificate: dict[str, Any], games: dict[str, dict[Acts, str]]) -> Iterator[str]:
    """Whether what is shown as the shortest lost line is one, and its positions are right."""
    shown = certificate["shortest_loss"]
    lost = [acts for lines in games.values() for acts, outcome in lines.items() if outcome == "loss"]
    if shown is None:
        if lost:
            yield "no lost line is shown"
        return
    acts = tuple(int(move.split()[1]) for move in shown["moves"])
    if games[shown["seat"]].get(acts) != "loss":
        yield f"{acts} is shown as lost, and is not"
    if len(acts) > min(map(len, lost), default=0):
        yield f"{acts} is shown as the shortest lost line, and is not"
    for place, move in enumerate(shown["moves"]):
        owner = "policy" if place % 2 == SEATS[shown["seat"]] else "opponent"
        if move.split()[0] != owner:
            yield f"move {place + 1} of the lost line is {owner}'s"
    for place, position in enumerate(shown["positions"]):
        if "".join(position.split("\n")[:3]).replace(" ", "") != as_the_policy_sees(at(acts[:place]), shown["seat"]):
            yield f"position {place} of the lost line is not the board"


def main() -> int:
    parser = argparse.ArgumentParser(description="Check a tic-tac-toe certificate with OpenSpiel.")
    parser.add_argument("certificate", type=Path)
    parser.add_argument("--policy", help="play this policy's games anew, too")
    options = parser.parse_args()
    certificate = json.loads(options.certificate.read_text("utf-8"))
    found = problems(certificate)
    if options.policy is not None:
        from certificate_replay import replay_problems

        from mcpgym import load_environment
        from mcpgym_rl.policies import make_policy

        environment = load_environment("tic-tac-toe", certificate["config"])
        policy = make_policy(options.policy, environment)
        tools = [tool.listing for tool in environment.tools.values()]
        found += asyncio.run(replay_problems(certificate, policy, tools))
    print("\n".join(found) or f"all is as it should be: {len(certificate['games'])} games")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
