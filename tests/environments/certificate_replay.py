"""A policy's games played anew for the certificate's checker: every text that the policy reads is written here."""

from __future__ import annotations

import json
from typing import Any

from certificate_checker import SEATS, Acts, as_the_policy_sees, at, read_games, result

SYSTEM = (
    "You play tic-tac-toe. You are X, your opponent is O. The cells are numbered row by row:\n0 1 2\n3 4 5\n6 7 8\n"
    "Three of your marks in a row, column or diagonal win. If the board fills up first, it is a draw.\n\n"
    "In every turn, think first, briefly, inside <think> and </think>: Can I complete a line now? If not, must I "
    "block O? If not, which free cell is best? Then call the tool `play` once, with the number of a free cell. The "
    "answer shows what O played and the new board. "
)
RULE = {
    False: "Playing a cell that is not free changes nothing on the board and counts against you.",
    True: "Playing a cell that is not free loses the game.",
}


def lists(shown: str) -> str:
    told = {mark: " ".join(str(n) for n in range(9) if shown[n] == mark) or "none" for mark in "XO."}
    return f"X {told['X']} · O {told['O']} · free {told['.']}"


def board(shown: str) -> str:
    return "\n".join([*(" ".join(shown[n : n + 3]) for n in (0, 3, 6)), lists(shown)])


def opening(acts: Acts, seat: str, loses: bool) -> list[dict[str, Any]]:
    moved = f"O moved first and played {acts[0]}. Your turn." if acts else "You move first."
    shown = board(as_the_policy_sees(at(acts), seat))
    return [
        {"role": "system", "content": SYSTEM + RULE[loses]},
        {"role": "user", "content": f"A new game begins. {moved}\n{shown}"},
    ]


def after_moves(acts: Acts, played: int, reply: int | None, seat: str) -> str:
    state = at(acts)
    shown = as_the_policy_sees(state, seat)
    triples = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]
    lines = [" ".join(map(str, t)) for t in triples if len({shown[n] for n in t}) == 1 and shown[t[0]] != "."]
    stands = {
        "win": f"Game over: you won with {lines[0] if lines else ''}.",
        "loss": f"Game over: O won with {lines[0] if lines else ''}.",
        "draw": "Game over: the board is full, a draw.",
        "unfinished": "Your turn.",
    }[result(state, SEATS[seat])]
    told = f"You played {played}." + ("" if reply is None else f" O played {reply}.")
    return f"{told} {stands}\n{board(shown)}"


def refusal(acts: Acts, position: int, seat: str, loses: bool) -> str:
    shown = as_the_policy_sees(at(acts), seat)
    if 0 <= position <= 8:
        problem = f"Cell {position} is taken by {shown[position]}."
    else:
        told = position if abs(position) < 1_000_000 else "that number"
        problem = f"There is no cell {told}; cells are 0 to 8."
    follows = "An illegal move loses: game over, O won." if loses else "Nothing was played; it is still your turn."
    return f"{problem} {follows}\n{lists(shown)}"


class Replay:
    """The games of a policy, asked again move by move; each game from its beginning, in a session of its own."""

    def __init__(self, policy: Any, begin: Any, config: dict[str, Any], seat: str) -> None:
        self.policy, self.begin, self.seat = policy, begin, seat
        self.loses, self.max_turns = config["illegal_move_loses"], config["max_turns"]
        self.games: dict[Acts, str] = {}
        self.invalid: set[str] = set()

    async def play(self) -> None:
        """Every line: one is played to its end with the first replies that are left, until none is left."""
        waiting: list[Acts] = [(cell,) for cell in range(9)] if self.seat == "second" else [()]
        while waiting:
            waiting += await self.game(waiting.pop())

    async def game(self, steered: Acts) -> list[Acts]:
        """Play one game along ``steered``, then on with the first free cells; the games that branch off it there."""
        acts: Acts = steered[:1] if self.seat == "second" else ()
        messages, branches = opening(acts, self.seat, self.loses), []
        session = self.begin()
        outcome = "unfinished"
        for _ in range(self.max_turns):
            turn = await session.act(list(messages))
            messages.append(turn.message)
            calls = turn.message.get("tool_calls", [])
            if turn.finish == "length" or not calls:
                break
            if len(calls) > 1 or calls[0]["function"]["name"] != "play":
                raise ValueError("this checker follows turns with one call of play alone")
            arguments = json.loads(calls[0]["function"]["arguments"])
            if list(arguments) != ["position"] or type(arguments["position"]) is not int:
                raise ValueError(f"this checker does not follow the call {arguments}")
            position = arguments["position"]
            error = position not in at(acts).legal_actions()
            if error:
                self.invalid.add(json.dumps([m["content"] for m in messages]))
                text = refusal(acts, position, self.seat, self.loses)
                over = self.loses
                outcome = "loss" if over else outcome
            else:
                acts = (*acts, position)
                reply = None
                if not at(acts).is_terminal():
                    free = at(acts).legal_actions()
                    if len(steered) > len(acts):
                        reply = steered[len(acts)]
                    else:
                        reply, *others = free
                        branches += [(*acts, other) for other in others]
                    acts = (*acts, reply)
                text = after_moves(acts, position, reply, self.seat)
                over = at(acts).is_terminal()
                outcome = result(at(acts), SEATS[self.seat])
            answer = {"role": "tool", "content": text, "tool_call_id": calls[0]["id"], "name": "play"}
            messages.append({**answer, "is_error": True} if error else answer)
            if over:
                break
        await session.aclose()
        self.games[acts] = outcome
        return branches


async def replay_problems(certificate: dict[str, Any], policy: Any, tools: Any) -> list[str]:
    """How the policy's games, played anew, differ from those in the certificate."""
    from mcpgym_rl.policy import EpisodeContext

    context = EpisodeContext("tic-tac-toe", tools, certificate["policy_seed"] or 0)
    found: list[str] = []
    for seat, games in read_games(certificate).items():
        replay = Replay(policy, lambda: policy.begin(context), certificate["config"], seat)
        await replay.play()
        for acts in sorted(replay.games.keys() | games.keys()):
            played, stated = replay.games.get(acts), games.get(acts)
            if played != stated:
                found.append(f"{seat}: the game {acts} ends as {played} and stands there as {stated}")
        stated_invalid = certificate["by_seat"][seat]["invalid_moves"]
        if len(replay.invalid) != stated_invalid:
            found.append(f"{seat}: {len(replay.invalid)} illegal moves, and {stated_invalid} stand there")
    return found
