"""What a run costs, and the budgets that end it: prices, dollars, tokens, time, retries and the rate of requests."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_endpoint import small_endpoint

from mcpgym_clients.amounts import dollars
from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.prices import Price, price_of
from mcpgym_clients.report import render
from mcpgym_clients.spending import Spending
from mcpgym_rl.policies.openai_chat import ChatOptions, ChatPolicy
from mcpgym_rl.traces import TraceUsage, read_traces

USAGE = {"prompt_tokens": 1000, "completion_tokens": 100}
PRICES = '["m"]\ninput = 2.0\noutput = 10.0\n'  # an episode: 0.002 + 0.001 = 0.003 dollars


def summary_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "summary.json").read_text())


def policy(model: str = "m", url: str = "http://127.0.0.1:1/v1") -> ChatPolicy:
    return ChatPolicy(model, url, "key", ChatOptions())


def arguments(url: str, *more: str) -> list[str]:
    return ["eval", "reverse-text", "-p", f"openai:m@{url}", "-n", "20", "--concurrency", "1", "--out", "run", *more]


def test_a_run_ends_when_its_money_is_spent_and_goes_on_with_more(command: Callable, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(PRICES)
    with small_endpoint(USAGE) as endpoint:
        code, out, err = command(*arguments(endpoint.url, "--max-cost", "0.0119", "--prices", "prices.toml"))
        assert code == 1
        assert "the budget is spent (--max-cost 0.0119; it came to $0.012); 4 of 20 episodes were played" in err
        assert "mcpgym eval --resume run" in out
        assert "$0.012" in out
        made = summary_of(tmp_path / "run")
        assert (made["complete"], made["episodes"], made["scored"]) == (False, 4, 4)
        assert made["failure"].startswith("the budget is spent")
        assert made["cost"]["usd"] == pytest.approx(0.012)
        assert made["cost"]["prices"] == {
            "input": 2.0, "cached_input": 2.0, "output": 10.0, "source": "prices.toml: m"
        }  # fmt: skip
        code, _, err = command("eval", "--resume", "run")
        assert code == 1, "the budget is that of the run, not of its last stretch"
        assert len(endpoint.requests) == 4
        assert command("eval", "--resume", "run", "--max-cost", "0.021")[0] == 1
        assert len(endpoint.requests) == 7
        assert command("eval", "--resume", "run", "--max-cost", "1")[0] == 0
        assert len(endpoint.requests) == 20
    made = summary_of(tmp_path / "run")
    assert made["complete"] is True
    assert made["failure"] is None
    assert made["cost"]["usd"] == pytest.approx(0.06)


def test_what_was_played_again_is_paid_too(command: Callable, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(PRICES)
    with small_endpoint(USAGE, fails=frozenset({1, 2, 3})) as endpoint:
        more = ["--max-cost", "0.0089", "--prices", "prices.toml"]
        assert command(*arguments(endpoint.url, *more))[0] == 1
        assert len(endpoint.requests) == 3, "a request that failed is paid like any other, where the endpoint says so"
        assert command("eval", "--resume", "run", "--max-cost", "0.0179")[0] == 1
        assert len(endpoint.requests) == 6
    made = summary_of(tmp_path / "run")
    assert (made["episodes"], made["scored"]) == (3, 3)
    assert made["cost"]["usd"] == pytest.approx(0.018)
    assert made["cost"]["played_again"] == {"episodes": 3, "prompt": 3000, "completion": 300}


def test_a_run_ends_when_its_tokens_are_spent(command: Callable, tmp_path: Path) -> None:
    with small_endpoint(USAGE) as endpoint:
        code, _, err = command(*arguments(endpoint.url, "--max-total-tokens", "5500"))
        assert code == 1
        assert "(--max-total-tokens 5500; it came to 5,500); 5 of 20 episodes were played" in err
        assert summary_of(tmp_path / "run")["cost"] == {
            "usd": None, "prices": None, "cached_tokens": None,
            "played_again": {"episodes": 0, "prompt": 0, "completion": 0},
        }  # fmt: skip
        assert command("eval", "--resume", "run", "--max-total-tokens", "100000")[0] == 0


def test_a_budget_that_is_met_with_the_last_episode_was_enough(command: Callable, tmp_path: Path) -> None:
    with small_endpoint(USAGE) as endpoint:
        assert command(*arguments(endpoint.url, "--max-total-tokens", "22000"))[0] == 0
    assert summary_of(tmp_path / "run")["complete"] is True


def test_an_endpoint_that_counts_no_tokens_cannot_be_kept_to_a_budget(command: Callable, tmp_path: Path) -> None:
    with small_endpoint(None) as endpoint:
        code, _, err = command(*arguments(endpoint.url, "--max-total-tokens", "5500"))
        assert code == 1
        assert "does not say how many tokens it takes, so --max-total-tokens cannot be kept" in err
        assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["-p", "openai:m@http://127.0.0.1:1/v1", "--max-cost", "1"], '["m"]'),
        (["-p", "random", "--max-cost", "1"], "random costs nothing"),
        (["-p", "random", "--prices", "prices.toml"], "--prices: random costs nothing"),
        (["-p", "random", "--retries", "1"], "only openai"),
        (["-p", "random", "--rate-limit", "1"], "only openai"),
        (["-p", "openai:m@http://127.0.0.1:1/v1", "--max-cost", "-1"], "--max-cost must be a number above 0"),
        (["-p", "openai:m@http://127.0.0.1:1/v1", "--max-cost", "inf"], "--max-cost must be a number above 0"),
        (["-p", "openai:m@http://127.0.0.1:1/v1", "--rate-limit", "0"], "--rate-limit must be a number above 0"),
        (["-p", "openai:m@http://127.0.0.1:1/v1", "--timeout", "nan"], "--timeout must be a number above 0"),
        (["-p", "openai:m@http://127.0.0.1:1/v1", "--prices", "no.toml"], "--prices no.toml cannot be read"),
    ],
)
def test_a_limit_that_cannot_be_kept_is_refused(command: Callable, tmp_path: Path, more: list[str], says: str) -> None:
    code, _, err = command("eval", "reverse-text", *more, "--out", "run")
    assert code == 2
    assert says in err
    assert not (tmp_path / "run").exists()


def test_an_episode_that_takes_too_long_has_no_score_and_is_played_again(command: Callable, tmp_path: Path) -> None:
    with small_endpoint(USAGE) as endpoint:
        more = ["-n", "3", "--rate-limit", "600", "--timeout", "0.01"]
        assert command(*arguments(endpoint.url, *more))[0] in (0, 1)
        made = summary_of(tmp_path / "run")
        assert made["unscored"]["timed_out"] >= 2
        assert "longer than 0.01 s" in made["unscored_examples"]["timed_out"]
        assert command("eval", "--resume", "run", "--timeout", "30")[0] == 0
    assert summary_of(tmp_path / "run")["scored"] == 3


def test_the_rate_limit_is_kept_and_bounds_how_many_play_at_once(command: Callable, tmp_path: Path) -> None:
    with small_endpoint(USAGE) as endpoint:
        started = time.monotonic()
        more = ["-n", "6", "--rate-limit", "600", "--concurrency", "6"]
        assert command(*arguments(endpoint.url, *more))[0] == 0
        assert time.monotonic() - started >= 0.5 - 0.02
    run = summary_of(tmp_path / "run")["run"]
    assert run["policy_options"] == {"rate_limit": 600.0}
    assert "--rate-limit 600" in run["command"]


@pytest.mark.flaky(reruns=1)  # it measures time
def test_retries_are_the_users(command: Callable, tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}/v1"
        started = time.monotonic()
        code, _, err = command(*arguments(url, "--retries", "0"))
        assert time.monotonic() - started < 5
    assert code == 1
    assert "cannot be reached" in err


# Prices.


def test_published_prices_are_found_by_address_and_name_and_nothing_is_fetched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_network(*arguments: Any, **options: Any) -> None:
        raise AssertionError("a price was fetched")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    price = price_of(policy("gpt-5-mini", "https://api.openai.com/v1"), None)
    assert price is not None
    assert 0 < price.cached_input < price.input < price.output
    assert price.source.startswith("genai-prices ")
    assert price.source.endswith(": openai, gpt-5-mini")
    assert price.note == ""
    tiered = price_of(policy("gemini-2.5-pro", "https://generativelanguage.googleapis.com/v1beta/openai"), None)
    assert tiered is not None
    assert tiered.note == "requests with more than 200,000 tokens of prompt cost more than this"


@pytest.mark.parametrize(
    ("model", "url"),
    [
        ("gpt-5-mini", "http://127.0.0.1:8000/v1"),
        ("gpt-5-mini", "https://gateway.example/v1"),
        ("no-such-model", "https://api.openai.com/v1"),
    ],
)
def test_a_price_that_is_not_known_is_not_guessed(model: str, url: str) -> None:
    assert price_of(policy(model, url), None) is None


def test_the_users_prices_go_first_and_an_address_before_a_name(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text(
        '["gpt-5-mini"]\ninput = 1\noutput = 2\n["gpt-5-mini@http://a.example/v1"]\ninput = 3\ncached_input = 0\n'
        "output = 4.5\n"
    )
    assert price_of(policy("gpt-5-mini", "http://a.example/v1"), file) == Price(
        3.0, 0.0, 4.5, "p.toml: gpt-5-mini@http://a.example/v1"
    )
    assert price_of(policy("gpt-5-mini", "https://api.openai.com/v1"), file) == Price(
        1.0, 1.0, 2.0, "p.toml: gpt-5-mini"
    )
    other = price_of(policy("gpt-5", "https://api.openai.com/v1"), file)
    assert other is not None
    assert other.source.startswith("genai-prices")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("= 3", "is no TOML"),
        ("m = 3", "'m' is 3, not a table of prices"),
        ('["m"]\ninput = 1', "'m': output is missing"),
        ('["m"]\ninput = 1\noutput = 2\ncached = 1', "no price 'cached': did you mean 'cached_input'?"),
        ('["m"]\ninput = "1"\noutput = 2', "input is '1'; it must be a number of US dollars"),
        ('["m"]\ninput = -1\noutput = 2', "input is -1"),
        ('["m"]\ninput = nan\noutput = 2', "input is nan"),
        ('["m"]\ninput = inf\noutput = 2', "input is inf"),
        ('["m"]\ninput = true\noutput = 2', "input is True"),
        ('["x@http://me:hunter2@h/v1"]\ninput = 1', "'x@http://***@h/v1': output is missing"),
    ],
)
def test_a_price_file_that_is_wrong_is_refused_with_the_place_and_the_form(
    tmp_path: Path, text: str, says: str
) -> None:
    file = tmp_path / "p.toml"
    file.write_text(text)
    with pytest.raises(UsageProblem) as caught:
        price_of(policy(), file)
    assert says in str(caught.value)
    assert "hunter2" not in str(caught.value)


TOKENS = st.integers(0, 10**9)


@given(TOKENS, TOKENS, st.none() | TOKENS)
def test_cached_tokens_are_part_of_the_prompts_and_cost_their_own_price(
    prompt: int, completion: int, cached: int | None
) -> None:
    price = Price(3.0, 0.5, 7.0, "test")
    known = min(cached or 0, prompt)
    expected = ((prompt - known) * 3.0 + known * 0.5 + completion * 7.0) / 1e6
    assert price.of(TraceUsage(prompt, completion, cached)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("usd", "text"),
    [(0, "$0.00"), (12.345, "$12.35"), (1234.5, "$1,234.50"), (0.5, "$0.50"), (0.012, "$0.012"), (0.00031, "$0.00031")],
)
def test_amounts_are_written_as_people_read_them(usd: float, text: str) -> None:
    assert dollars(usd) == text


def test_the_cost_of_a_policy_that_is_no_endpoint_is_null(command: Callable, tmp_path: Path) -> None:
    assert command("eval", "reverse-text", "-p", "random", "-n", "2", "--out", "run")[0] == 0
    made = summary_of(tmp_path / "run")
    assert made["cost"] is None
    assert render(made)
    del made["cost"]
    assert render(made), "a summary from before it was counted"


def test_the_order_of_traces_changes_no_digit_of_the_cost(command: Callable, tmp_path: Path) -> None:
    with small_endpoint({"prompt_tokens": 333, "completion_tokens": 77}) as endpoint:
        assert command(*arguments(endpoint.url))[0] == 0
    traces = [
        replace(trace, usage=TraceUsage(trace.place * 7919 + 1, trace.place * 31, trace.place))
        for trace in read_traces(tmp_path / "run" / "traces.jsonl")
    ]
    made = []
    for order in (traces, traces[::-1]):
        spending = Spending(policy("gpt-5-mini", "https://api.openai.com/v1"))
        for trace in order:
            spending.add(trace)
        made.append(spending.as_json())
    assert made[0] == made[1]
    assert made[0] is not None
    assert made[0]["usd"] > 0
