"""How an endpoint is asked: its rate limit, and what every request took, those that came to nothing included."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest
import rl_toys
from fake_endpoint import FakeEndpoint, Fault, call, completion, endpoint, error_body
from hypothesis import given
from hypothesis import strategies as st

from mcpgym.errors import ConfigurationError
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.policies import make_policy
from mcpgym_rl.policies.asking import usage_of
from mcpgym_rl.policy import Usage
from mcpgym_rl.run import EpisodeSpec, run
from mcpgym_rl.stop_reason import StopReason
from mcpgym_rl.traces import Trace, TraceUsage

ADD = completion(calls=[call("add", '{"amount": 1}')])


def play(answers: list[Any], episodes: int = 1, **options: Any) -> tuple[list[Trace], FakeEndpoint, list[float]]:
    """Play counter, whose episodes take three turns; the traces, the endpoint, and when it was asked."""
    times: list[float] = []

    def timed(answer: Any) -> Any:
        def give(body: Any) -> Any:
            times.append(time.monotonic())
            return answer

        return give

    async def main() -> tuple[list[Trace], FakeEndpoint]:
        async with endpoint(*map(timed, answers)) as fake:
            policy = make_policy(f"openai:m@{fake.url}", **options)
            specs = [EpisodeSpec("counter", split="train", index=index) for index in range(episodes)]
            result = await run(policy, ControlLane(rl_toys.control()), specs)
            await policy.aclose()
            return result.traces, fake

    traces, fake = asyncio.run(main())
    return traces, fake, times


def test_requests_of_all_rollouts_together_are_spread_over_the_minute() -> None:
    traces, fake, times = play([ADD], episodes=4, rate_limit=1200)  # one in 50 ms
    assert {trace.stop_reason for trace in traces} == {StopReason.DONE}
    assert len(fake.requests) == 12
    assert times[-1] - times[0] >= 11 * 0.05 - 0.03


def test_repeated_requests_count_as_any_other() -> None:
    fault = Fault(503, headers={"Retry-After-Ms": "1"})
    _, fake, times = play([fault, fault, ADD], rate_limit=300)
    assert len(fake.requests) == 5
    assert times[-1] - times[0] >= 4 * 0.2 - 0.05


def test_the_deadline_of_a_turn_does_not_count_the_waiting_for_the_rate_limit() -> None:
    traces, _, times = play([ADD], episodes=3, rate_limit=300, timeout=0.15)  # one in 200 ms: the third waits 400 ms
    assert times[-1] - times[0] > 1.5
    assert {trace.stop_reason for trace in traces} == {StopReason.DONE}


def test_the_deadline_holds_beside_a_rate_limit() -> None:
    traces, _, _ = play([Fault(200, "{}", delay=5)], rate_limit=6000, timeout=0.2, retries=0)
    assert traces[0].error is not None
    assert "did not answer within 0.2 s" in traces[0].error.message


@pytest.mark.parametrize("limit", [0, -1, 1e9])
def test_a_rate_limit_that_cannot_be_is_refused(limit: float) -> None:
    with pytest.raises(ConfigurationError, match="rate_limit"):
        make_policy("openai:m@http://127.0.0.1:1/v1", rate_limit=limit)


def used(prompt: int, written: int, cached: int | None = None) -> dict[str, Any]:
    made: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": written}
    return made if cached is None else made | {"prompt_tokens_details": {"cached_tokens": cached}}


def test_what_a_repeated_request_took_is_counted_where_the_endpoint_says_so() -> None:
    body = json.dumps({"error": {"message": "overloaded"}, "usage": used(100, 7)})
    (trace,), _, _ = play([Fault(503, body), ADD])
    assert trace.usage == TraceUsage(100 + 3 * 11, 7 + 3 * 5)


@pytest.mark.parametrize(
    ("last", "spent"),
    [
        (completion("no", finish="content_filter"), (11, 5)),
        ({"object": "chat.completion", "choices": [], "usage": used(50, 3)}, (50, 3)),
        (Fault(422, json.dumps({"error": "no", "usage": used(9, 0)})), (9, 0)),
        (Fault(422, "no"), (0, 0)),
        (Fault(400, error_body("maximum context length")), (0, 0)),
    ],
    ids=["filtered", "no choice", "refused", "refused without a word", "context full"],
)
def test_a_turn_that_came_to_nothing_is_counted_too(last: Any, spent: tuple[int, int]) -> None:
    (trace,), _, _ = play([ADD, last], retries=0)
    assert trace.stop_reason in (StopReason.POLICY_FAILED, StopReason.TRUNCATED)
    assert (trace.usage.prompt_tokens, trace.usage.completion_tokens) == (11 + spent[0], 5 + spent[1])


def test_cached_tokens_are_kept_where_the_endpoint_has_them_and_only_there() -> None:
    (trace,), _, _ = play([ADD | {"usage": used(11, 5, 4)}, ADD, ADD | {"usage": used(11, 5, 9)}])
    assert trace.usage == TraceUsage(33, 15, 13)
    assert Trace.from_dict(json.loads(trace.to_json())) == trace
    (trace,), _, _ = play([ADD])
    assert trace.to_dict()["usage"] == {"prompt_tokens": 33, "completion_tokens": 15}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(["prompt_tokens", "completion_tokens", "prompt_tokens_details"]), JSON) | JSON)
def test_whatever_an_endpoint_says_of_its_usage_it_is_whole_numbers_from_0(given_usage: Any) -> None:
    made = usage_of(given_usage)
    assert made.prompt_tokens >= 0
    assert made.completion_tokens >= 0
    assert all(type(value) is int for value in (made.prompt_tokens, made.completion_tokens))
    assert made + Usage() == made
