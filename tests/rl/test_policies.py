"""Policies by name: what there is, what is not, and what each does."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
import rl_toys
from hypothesis import given
from hypothesis import strategies as st

from mcpgym import Environment
from mcpgym.errors import ConfigurationError
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.policies import make_policy
from mcpgym_rl.policies.random_calls import RandomCalls, sample
from mcpgym_rl.policies.script import ScriptedPolicy, read_script
from mcpgym_rl.rollout import rollout
from mcpgym_rl.stop_reason import StopReason
from mcpgym_rl.traces import Trace


def play(policy: Any, environment: str = "counter", seed: int = 0, repeat: int = 0) -> Trace:
    lane = ControlLane(rl_toys.control())
    return asyncio.run(rollout(policy, lane, environment=environment, split="train", seed=seed, repeat=repeat))


def test_reference_policies_of_the_environment_are_found_by_name() -> None:
    counter = rl_toys.Counter()
    assert play(make_policy("expert", counter)).turns == 3
    assert make_policy("random", counter).name == "random"


def test_case_27_the_same_seed_gives_the_same_random_game_and_repeats_differ() -> None:
    policy = make_policy("random", rl_toys.Counter())
    games = [play(policy, seed=seed, repeat=repeat).fingerprint for seed in (1, 2) for repeat in range(4)]
    again = [play(policy, seed=seed, repeat=repeat).fingerprint for seed in (1, 2) for repeat in range(4)]
    assert games == again
    assert len(set(games)) > 3


def test_an_environment_without_a_random_policy_gets_the_general_one() -> None:
    policy = make_policy("random", rl_toys.Chat())
    assert isinstance(policy, RandomCalls)
    assert play(policy, "chat").stop_reason == StopReason.ANSWERED


def test_the_general_random_policy_calls_tools_with_arguments_that_fit() -> None:
    trace = play(RandomCalls(), seed=3)
    assert trace.calls
    problems = [call.result for call in trace.calls if call.is_error]
    assert not any("Expected" in text for text in problems)


@given(st.integers(0, 2**32))
def test_sampled_arguments_fit_their_schema(seed: int) -> None:
    tools = rl_toys.Counter.tools
    for tool in tools.values():
        tool.parser.parse(sample(tool.listing["inputSchema"], Random(seed)))


def test_sampling_keeps_every_bound_of_a_schema() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "minimum": 3, "maximum": 4},
            "b": {"type": "number", "minimum": -1.5, "maximum": -1.0},
            "c": {"type": "string", "enum": ["x", "y"]},
            "d": {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 3},
            "e": {"type": "string", "minLength": 12},
            "f": {"type": "integer", "maximum": -100},
            "g": {"type": "object", "properties": {"h": {"type": "integer", "minimum": 7}}, "required": ["h"]},
            "i": {"type": "boolean"},
        },
        "required": ["a", "b", "c", "d", "e", "f", "g"],
    }
    optional = set()
    for seed in range(200):
        made = sample(schema, Random(seed))
        optional.add("i" in made)
        assert made["a"] in (3, 4)
        assert -1.5 <= made["b"] <= -1.0
        assert made["c"] in ("x", "y")
        assert 2 <= len(made["d"]) <= 3
        assert len(made["e"]) >= 12
        assert made["f"] <= -100
        assert made["g"]["h"] >= 7
    assert optional == {True, False}


@pytest.mark.parametrize(
    ("spec", "environment", "words"),
    [
        (
            "expert",
            rl_toys.Chat(),
            "no policy of chat 'expert': there is: anthropic:MODEL, llama:MODEL, local:PATH, openai-responses:MODEL,",
        ),
        ("exprt", rl_toys.Counter(), "did you mean 'expert'"),
        ("expert", None, "would come with its environment, which is not installed here"),
        ("opena:x@http://localhost", None, "did you mean 'openai'"),
        ("script:/nowhere/at/all.json", None, "cannot be read"),
        ("openai:model", None, "write openai:MODEL@BASE_URL"),
        ("openai:@http://localhost:1/v1", None, "write openai:MODEL@BASE_URL"),
        ("openai:m@ftp://x", None, "write openai:MODEL@BASE_URL"),
        ("openai:m@http://", None, "write openai:MODEL@BASE_URL"),
    ],
)
def test_a_policy_that_is_not_there_is_an_error_that_names_what_is(
    spec: str, environment: Environment[Any, Any, Any] | None, words: str
) -> None:
    with pytest.raises(ConfigurationError) as error:
        make_policy(spec, environment)
    assert words in str(error.value)


def test_options_are_for_endpoints_alone_and_checked() -> None:
    with pytest.raises(ConfigurationError, match=r"only openai:.* take temperature; the policy .random. does not"):
        make_policy("random", None, temperature=1.0)
    for wrong, words in [
        ({"mode": "magic"}, "there is: native, guided, text"),
        ({"temprature": 1.0}, "did you mean 'temperature'"),
        ({"temperature": -1.0}, "between 0 and 10"),
        ({"temperature": float("nan")}, "between 0 and 10"),
        ({"max_tokens": 0}, "max_tokens 0"),
    ]:
        with pytest.raises(ConfigurationError) as error:
            make_policy("openai:m@http://127.0.0.1:1/v1", None, **wrong)
        assert words in str(error.value)


def test_an_endpoint_beyond_this_machine_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    make_policy("openai:m@http://127.0.0.1:1/v1")
    make_policy("openai:m@http://localhost:1/v1")
    with pytest.raises(ConfigurationError, match="set OPENAI_API_KEY"):
        make_policy("openai:m@https://models.example.com/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert make_policy("openai:m@https://models.example.com/v1").name == "openai:m@https://models.example.com/v1"


def test_a_script_file_holds_turns_in_any_of_its_forms(tmp_path: Path) -> None:
    turns = [
        {"name": "add", "arguments": {"amount": 1}},
        {"text": "two", "calls": [{"name": "peek"}, {"name": "add", "arguments": "{bad"}]},
        {"role": "assistant", "content": "x", "tool_calls": []},
    ]
    listed, lined = tmp_path / "a.json", tmp_path / "b.jsonl"
    listed.write_text(json.dumps(turns, indent=2))
    lined.write_text("\n".join(json.dumps(turn) for turn in turns) + "\n\n")
    games = [play(make_policy(f"script:{path}")) for path in (listed, lined)]
    assert games[0].fingerprint == games[1].fingerprint
    assert [m["content"] for m in games[0].messages if m["role"] == "assistant"] == ["", "two", "x"]
    assert games[0].policy == "script:a.json"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no turns"),
        ("[]", "has no turns"),
        ("{", "is no JSON"),
        ('["ok", 7]', "turn 2: 7 is no turn"),
        ('[{"nmae": "add"}]', "turn 1"),
        ('[{"name": "add", "args": {}}]', "turn 1"),
        ('[{"calls": "add"}]', "turn 1"),
        ("[{}]", "turn 1"),
    ],
)
def test_a_script_that_will_not_do_says_where_and_what_would(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "s.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as error:
        read_script(str(path))
    assert words in str(error.value)
    assert "write a JSON list of turns" in str(error.value)


def test_a_script_starts_anew_in_each_rollout() -> None:
    policy = ScriptedPolicy(["no", "yes"])
    assert play(policy, "chat").fingerprint == play(policy, "chat").fingerprint


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys, mcpgym_rl.rollout, mcpgym_rl.run, mcpgym_rl.lanes, mcpgym_rl.traces, mcpgym_rl.policies\n"
        "mcpgym_rl.policies.make_policy('random')\n"
        "mcpgym_rl.policies.make_policy('openai:m@http://127.0.0.1:1/v1')\n"
        "print([name for name in ('openai', 'aiohttp', 'mcp', 'fastapi', 'uvicorn', 'torch') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
