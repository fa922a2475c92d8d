"""Certificates of any game and any policy: what is asked, how often, of whom, and what is refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
import rl_toys
from fake_endpoint import call, completion, endpoint
from hypothesis import given, settings
from hypothesis import strategies as st
from nim_toy import Nim, NimConfig, stones_left, take

from mcpgym.control import LocalControl
from mcpgym.environment import Environment
from mcpgym.episodes import Episodes
from mcpgym.errors import ConfigurationError
from mcpgym.messages import Message, assistant, tool_call
from mcpgym_rl.certificate import Certification, NotDeterministic, Progress, certify
from mcpgym_rl.certificate.lines import Rules, starting_points
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.policies import make_policy
from mcpgym_rl.policies.script import ScriptedPolicy
from mcpgym_rl.policy import ContextFull, EpisodeContext, PolicyError, PolicyUnavailable, Turn
from mcpgym_rl.rollout import rollout
from mcpgym_rl.traces import Trace

Function = Callable[[Sequence[Message]], Message | Turn]


class Watched:
    """A policy over a function of the messages, whose sessions are watched: all must be closed in the end."""

    name = "watched"

    def __init__(self, function: Function, forks: bool = True) -> None:
        self.function, self.forks = function, forks
        self.begun: list[EpisodeContext] = []
        self.sessions: list[Session] = []
        self.asked: list[tuple[int, Sequence[Message]]] = []
        self.busy = self.most_busy = 0

    def begin(self, context: EpisodeContext) -> Session:
        self.begun.append(context)
        return ForkingSession(self, context.seed) if self.forks else Session(self, context.seed)

    async def aclose(self) -> None:
        pass

    @property
    def left_open(self) -> int:
        return sum(not session.closed for session in self.sessions)


class Session:
    def __init__(self, policy: Watched, seed: int, turn: int = 0) -> None:
        self.policy, self.seed, self.turn, self.closed = policy, seed, turn, 0
        policy.sessions.append(self)

    async def act(self, messages: Sequence[Message]) -> Turn:
        policy = self.policy
        assert not self.closed, "a closed session is asked"
        self.turn += 1
        policy.asked.append((self.seed, messages))
        policy.busy += 1
        policy.most_busy = max(policy.busy, policy.most_busy)
        await asyncio.sleep(0)
        policy.busy -= 1
        said = policy.function(messages)
        return said if isinstance(said, Turn) else Turn(said)

    async def aclose(self) -> None:
        assert not self.closed, "a session is closed twice"
        self.closed += 1


class ForkingSession(Session):
    def fork(self) -> ForkingSession:
        assert not self.closed
        return ForkingSession(self.policy, self.seed, self.turn)


def expert(messages: Sequence[Message]) -> Message:
    return Nim()._expert(messages, None)  # type: ignore[arg-type]


def one(messages: Sequence[Message]) -> Message:
    return take(1)


def certified(policy: Any, environment: Any = None, **options: Any) -> Certification:
    return asyncio.run(certify(policy, environment or Nim(), **options))


async def played(environment: Environment[Any, Any, Any], policy: Any, task: str) -> Trace:
    lane = ControlLane(LocalControl(Episodes({environment.name: environment})))
    return await rollout(policy, lane, environment=environment.name, task=task)


# What a certificate says, of a game that rl has never heard of.


def test_nim_is_certified_where_it_cannot_be_lost() -> None:
    """Six stones, one or two at a time: who moves second can always leave a multiple of three."""
    made = certified(Watched(expert)).certificate
    second, first = made["by_seat"]["second"], made["by_seat"]["first"]
    assert (second["lost_lines"], second["guaranteed"], second["versus_random"]["win"]) == (0, "win", 1)
    assert (first["guaranteed"], first["optimum"]["guaranteed"]) == ("loss", "loss")
    assert first["versus_perfect"]["loss"] == 1
    assert not made["certified"]
    assert made["blunders"] == 0
    assert (made["environment"], made["environment_version"]) == ("nim-toy", "3")
    assert (made["schema_hash"], made["config"]) == (Nim.schema_hash, {"stones": 6, "most": 2, "turns": 20})
    assert made["policy"] == "watched"
    json.dumps(made, allow_nan=False)


def exact(stones: int, most: int, policy: Callable[[int], int]) -> Fraction:
    """The chance to win against random play, the policy to move, without a tree."""

    @cache
    def wins(left: int) -> Fraction:
        left -= policy(left)
        if not left:
            return Fraction(1)
        replies = [left - count for count in range(1, min(most, left) + 1)]
        return sum((wins(after) if after else Fraction(0) for after in replies), Fraction(0)) / len(replies)

    return wins(stones)


@settings(max_examples=40, deadline=None)
@given(stones=st.integers(1, 9), most=st.integers(1, 3), table=st.lists(st.integers(1, 3), min_size=10, max_size=10))
def test_the_chances_are_those_of_the_game_worked_out_by_hand(stones: int, most: int, table: list[int]) -> None:
    def choice(left: int) -> int:
        return min(table[left], most, left)

    environment = Nim(NimConfig(stones=stones, most=most))
    found = certified(Watched(lambda messages: take(choice(stones_left(messages)))), environment)
    made = found.certificate
    first = exact(stones, most, choice)
    assert Fraction(made["by_seat"]["first"]["versus_random"]["exact"]["win"]) == first
    both = [first]
    if stones > most:
        openings = [exact(stones - opening, most, choice) for opening in range(1, most + 1)]
        both.append(sum(openings, Fraction(0)) / most)
    assert Fraction(made["versus_random"]["exact"]["win"]) == sum(both, Fraction(0)) / len(both)
    for line in found.lines:
        trace = asyncio.run(
            played(environment, Watched(lambda messages: take(choice(stones_left(messages)))), line.task)
        )
        assert list(trace.messages) == list(line.messages)


def test_the_shortest_lost_line_is_shown_position_by_position() -> None:
    made = certified(Watched(one)).certificate
    assert made["shortest_loss"]["moves"] == ["policy 1", "opponent 2", "policy 1", "opponent 2"]
    assert made["shortest_loss"]["positions"] == ["||||||", "|||||", "|||", "||", ""]
    assert made["shortest_loss"]["task"] == "first/1,2,1,2"


def test_a_game_that_can_be_won_with_two_moves_counts_the_one_that_throws_it_away() -> None:
    made = certified(Watched(one)).certificate
    blunders = [row for row in made["regrets"] if row["blunder"]]
    assert made["blunders"] == len(blunders) > 0
    assert all(row["guaranteed"] == ["win", "loss"] and row["best"] == "2" for row in blunders)


def test_games_read_as_written() -> None:
    found = certified(Watched(one), Nim(NimConfig(stones=2)))
    assert found.certificate["games"] == ["first: 1 1 = loss"]


# How the policy is asked.


def test_a_level_is_asked_at_once_and_sessions_are_forked() -> None:
    policy = Watched(expert)
    found = certified(policy, ask_twice=False)
    assert len(policy.asked) == found.certificate["decisions"]
    assert policy.most_busy > 3
    assert len(policy.begun) == 3, "one beginning for each start; all else is forked"
    assert policy.left_open == 0


def test_no_more_are_asked_at_once_than_wanted() -> None:
    policy = Watched(expert)
    wide = certified(policy)
    narrow = Watched(expert)
    assert certified(narrow, concurrency=1).certificate == wide.certificate
    assert narrow.most_busy == 2, "the two that must answer alike"


def test_a_session_without_a_fork_is_begun_anew_and_given_the_turns_so_far() -> None:
    policy = Watched(expert, forks=False)
    found = certified(policy)
    assert found.certificate == certified(Watched(expert)).certificate
    assert policy.left_open == 0
    resumed = [context for context in policy.begun if context.given]
    assert resumed
    assert {len(context.given) for context in resumed} == {1, 2}
    assert all(isinstance(turn, Turn) for context in resumed for turn in context.given)


def test_a_session_goes_on_where_the_game_does_not_branch() -> None:
    policy = Watched(stubborn, forks=False)
    found = certified(policy)
    assert found.certificate["decisions"] == 3 * 20
    assert len(policy.begun) == 3 * 2, "three starts, each played twice; no move, so no reply"
    assert {session.turn for session in policy.sessions} == {20}


def test_a_policy_that_says_nothing_of_itself_is_asked_twice_with_two_seeds() -> None:
    policy = Watched(expert)
    found = certified(policy)
    assert found.certificate["asked_twice"] is True
    assert len(policy.asked) == 2 * found.certificate["decisions"]
    assert len({seed for seed, _ in policy.asked}) == 2


@pytest.mark.parametrize(("name", "value", "times"), [("deterministic", True, 1), ("temperature", 0.0, 1)])
def test_a_policy_that_says_it_is_deterministic_is_believed(name: str, value: Any, times: int) -> None:
    policy = Watched(expert)
    setattr(policy, name, value)
    found = certified(policy)
    assert found.certificate["asked_twice"] is False
    assert len(policy.asked) == times * found.certificate["decisions"]
    assert len(certified(policy, ask_twice=True).lines) == len(found.lines)


@pytest.mark.parametrize(("name", "value"), [("deterministic", False), ("temperature", 0.7)])
@pytest.mark.parametrize("seed", [None, 3])
def test_a_policy_that_says_that_it_draws_is_refused(name: str, value: Any, seed: int | None) -> None:
    policy = Watched(expert)
    setattr(policy, name, value)
    with pytest.raises(NotDeterministic, match="watched draws its answers; certify it with temperature 0"):
        certified(policy, seed=seed)
    assert not policy.asked


def test_a_policy_that_answers_in_two_ways_is_refused_and_shown() -> None:
    turns = iter(range(100))
    policy = Watched(lambda messages: take(1 + next(turns) % 2))
    shown = r"after 'stones: 6', once .*\"count\": 1.* once .*\"count\": 2"
    with pytest.raises(NotDeterministic, match=shown) as found:
        certified(policy)
    assert "--seed 0" in str(found.value)
    assert policy.left_open == 0


def test_ids_of_calls_may_differ_for_endpoints_draw_them() -> None:
    ids = iter(range(10_000))

    def named(messages: Sequence[Message]) -> Message:
        return assistant("", [tool_call(f"call_{next(ids)}", "take", '{"count": 1}')])

    assert certified(Watched(named)).certificate["answers_hash"] == certified(Watched(one)).certificate["answers_hash"]


def test_a_policy_that_draws_is_certified_as_it_plays_with_one_seed() -> None:
    nim = Nim(NimConfig(stones=9))
    policy = make_policy("random", nim)
    with pytest.raises(NotDeterministic):
        certified(policy, nim)
    made = [certified(policy, nim, seed=seed).certificate for seed in (1, 1, 2)]
    assert made[0] == made[1]
    assert made[0]["answers_hash"] != made[2]["answers_hash"]
    assert made[0]["policy_seed"] == 1


def test_forks_of_a_drawing_policy_go_on_drawing_as_one_game_would() -> None:
    """The generator is forked with its session: on every line the policy plays as it does in a game of its own."""
    nim = Nim(NimConfig(stones=9))
    policy = make_policy("random", nim)
    for line in certified(policy, nim, seed=4).lines:
        session = policy.begin(EpisodeContext(nim.name, [], 4))
        messages = list(line.messages)
        places = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
        for place in places:
            turn = asyncio.run(session.act(messages[:place]))  # type: ignore[arg-type]
            assert turn.message == messages[place]


def test_a_script_is_forked_where_it_stands() -> None:
    """A script plays by the number of its turn, not by what it reads."""
    found = certified(ScriptedPolicy([{"name": "take", "arguments": {"count": count}} for count in (2, 1, 1, 1, 1)]))
    assert found.certificate["asked_twice"] is False
    for line in found.lines:
        mine = [act for act, mover in zip(line.acts, line.movers, strict=True) if mover == "policy"]
        assert mine == ["2", "1", "1"][: len(mine)]


def test_an_endpoint_is_certified_and_asked_as_much_at_once_as_wanted() -> None:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        left = int(body["messages"][-1]["content"].rpartition("stones: ")[2])
        return completion(calls=[call("take", json.dumps({"count": left % 3 or 1}), f"id{len(body['messages'])}")])

    async def main() -> tuple[Certification, Any]:
        async with endpoint(answer) as fake:
            policy = make_policy(f"openai:m@{fake.url}", temperature=0.0)
            found = await certify(policy, Nim(), concurrency=2)
            await policy.aclose()
            return found, fake

    found, fake = asyncio.run(main())
    assert found.certificate["asked_twice"] is True
    expected = certified(Watched(expert)).certificate
    assert {key: found.certificate[key] for key in ("lines", "lost_lines", "games", "versus_random")} == {
        key: expected[key] for key in ("lines", "lost_lines", "games", "versus_random")
    }
    assert len(fake.requests) == 2 * expected["decisions"]
    assert fake.most_busy <= 4, "two decisions, each asked twice"


def test_progress_ends_with_all_games() -> None:
    told: list[Progress] = []
    found = certified(Watched(expert), on_progress=told.append)
    shares = [progress.share for progress in told]
    assert shares == sorted(shares)
    assert told[-1] == Progress(found.certificate["decisions"], found.certificate["lines"], 1.0)


# How lines end.


def full(messages: Sequence[Message]) -> Message:
    if len(messages) > 1:
        raise ContextFull("no room")
    return take(1)


def cut(messages: Sequence[Message]) -> Turn:
    return Turn(take(1), finish="length")


def silent(messages: Sequence[Message]) -> Message:
    return assistant("I do not play")


def stubborn(messages: Sequence[Message]) -> Message:
    return take(9)


def flooding(messages: Sequence[Message]) -> Message:
    return assistant("", [tool_call(f"c{n}", "take", "{") for n in range(1_100)])


@pytest.mark.parametrize(
    ("function", "reason"),
    [(full, "truncated"), (cut, "truncated"), (silent, "answered"), (stubborn, "max_turns"), (flooding, "max_calls")],
)
def test_a_game_without_an_end_is_unfinished_as_its_episode_is(function: Function, reason: str) -> None:
    found = certified(Watched(function))
    made = found.certificate
    assert not made["certified"]
    assert made["shortest_unfinished"]["stop_reason"] == reason
    assert made["unfinished_lines"] > 0
    for line in found.lines[:5]:
        trace = asyncio.run(played(Nim(), Watched(function), line.task))
        assert trace.score is not None
        assert (trace.stop_reason, trace.score.game_outcome) == (line.stop_reason, line.outcome)
        assert list(trace.messages) == list(line.messages)


def test_two_calls_in_one_turn_use_up_two_of_the_turns_there_are() -> None:
    """Of three calls, two are made at once: with one left, nine stones cannot be taken any more."""
    nim = Nim(NimConfig(stones=9, turns=3))
    rules = Rules(nim.game_tree(), 3)
    (point,) = starting_points(nim.game_tree(), ["first"])
    twice = assistant("", [tool_call(name, "take", '{"count": 1}') for name in "ab"])
    after = rules.after(point, Turn(twice))
    assert {(rules.left(point), rules.left(each)) for each in after} == {(3, 1)}
    assert {each.end for each in after} == {None}
    last = [each for before in after for each in rules.after(before, Turn(take(1)))]
    assert {str(each.end) for each in last} == {"max_turns", "done"}


def test_turns_that_run_out_are_no_loss_and_no_certificate() -> None:
    short = Nim(NimConfig(turns=1))
    made = certified(Watched(expert), short).certificate
    assert (made["lost_lines"], made["certified"]) == (0, False)
    assert made["unfinished_lines"] == made["lines"]
    assert made["optimum"]["win"] == 0


@pytest.mark.parametrize("forks", [True, False])
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PolicyUnavailable("the endpoint is gone"), "the endpoint is gone"),
        (KeyError("stones"), "watched failed: KeyError: 'stones'"),
    ],
)
def test_a_policy_that_fails_in_the_middle_leaves_no_session_open(error: Exception, message: str, forks: bool) -> None:
    def failing(messages: Sequence[Message]) -> Message:
        if len(messages) > 2 and stones_left(messages) == 3:
            raise error
        return take(1)

    policy = Watched(failing, forks)
    with pytest.raises(PolicyError, match=message):
        certified(policy)
    assert len(policy.sessions) > 3
    assert policy.left_open == 0
    assert policy.busy == 0


def test_what_is_no_turn_is_refused() -> None:
    with pytest.raises(PolicyError, match="a turn must be a Turn with an assistant message"):
        certified(Watched(lambda messages: {"role": "user", "content": "?"}))


def test_a_certification_that_is_cancelled_leaves_no_session_open() -> None:
    policy = Watched(expert)

    async def main() -> None:
        task = asyncio.ensure_future(certify(policy, Nim(NimConfig(stones=12))))
        while len(policy.asked) < 20:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert policy.left_open == 0


# What cannot be certified.


def test_an_environment_without_a_tree_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="counter cannot be certified: it gives no game tree"):
        certified(Watched(expert), rl_toys.Counter())


def test_an_environment_that_answers_as_the_user_is_refused() -> None:
    class Talking(Nim):
        name = "talking"

        def respond(self, state: Any, transcript: Any) -> Any:
            return None

    with pytest.raises(ConfigurationError, match="talking cannot be certified: it answers as the user"):
        certified(Watched(expert), Talking())


def test_a_game_that_is_too_large_is_refused_before_memory_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpgym_rl.certificate.values.MAX_POSITIONS", 5)
    with pytest.raises(ConfigurationError, match="over 5 positions"):
        certified(policy := Watched(expert), Nim(NimConfig(stones=20)))
    assert not policy.asked
    monkeypatch.undo()
    monkeypatch.setattr("mcpgym_rl.certificate.certification.MAX_LINES", 3)
    with pytest.raises(ConfigurationError, match="over 3 lines"):
        certified(Watched(expert))


def test_the_hash_of_weights_stands_in_the_certificate() -> None:
    policy = Watched(expert)
    assert certified(policy).certificate["policy_hash"] is None
    policy.hash = "ab12"  # type: ignore[attr-defined]
    assert certified(policy).certificate["policy_hash"] == "ab12"
