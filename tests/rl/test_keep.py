"""Conditions on rollouts: what they mean, and that they can do nothing else."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgym.errors import ConfigurationError
from mcpgym.messages import assistant, tool_answer, tool_call, user
from mcpgym_rl.keep import parse_keep
from mcpgym_rl.traces import Trace, TraceCall, TraceScore


def trace(total: float | None = 1.0, outcome: str | None = "win", **changed: Any) -> Trace:
    call = tool_call("c", "play", "{}")
    fields: dict[str, Any] = {
        "environment": "e",
        "environment_version": "1",
        "task": "train-3",
        "split": "train",
        "seed": 5,
        "config": {},
        "schema_hash": "h",
        "policy": "p",
        "messages": [user("x"), assistant("", [call]), tool_answer(call, "no", is_error=True), assistant("y")],
        "calls": [TraceCall("play", {}, "no", True, 1.0)],
        "stop_reason": "done",
        "score": TraceScore(total, {"outcome": 1.0, "format": None, "invalid": -0.1}, outcome),
        "turns": 2,
        "prompt_messages": 1,
    }
    return Trace(**{**fields, **changed})


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("", True),
        ("reward >= 0.5", True),
        ("reward > 1", False),
        ("0.5 <= reward <= 1.5", True),
        ("0.5 <= reward < 1", False),
        ("reward == 1.0 and stop_reason == 'done'", True),
        ("reward > 2 or outcome == 'win'", True),
        ("not outcome == 'win'", False),
        ("outcome in ('win', 'draw')", True),
        ("outcome not in ['loss']", True),
        ("outcome in {'loss'}", False),
        ("components.outcome > 0.9", True),
        ("components['invalid'] < 0", True),
        ("components.invalid >= -0.1", True),
        ("components.format > 0", False),
        ("components.format <= 0", False),
        ("components.format == None", True),
        ("turns == 2 and calls == 1 and refused == 1", True),
        ("split == 'train' and task == 'train-3' and seed == 5", True),
        ("(reward > 2 or turns > 1) and not (calls > 3)", True),
        ("reward >= 0.5 and reward <= 0.6 or turns == 2", True),
        ("True", True),
    ],
)
def test_what_a_condition_means(text: str, kept: bool) -> None:
    assert parse_keep(text, ["outcome", "format", "invalid"])(trace()) is kept


def test_what_has_no_score_is_never_kept() -> None:
    for text in ("", "True", "turns == 2", "not reward > 0"):
        assert not parse_keep(text)(trace(score=None))
        assert not parse_keep(text)(trace(total=None))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rewrd > 1", "did you mean 'reward'"),
        ("components.outcme > 1", "did you mean 'outcome'"),
        ("components > 1", "write components.NAME"),
        ("reward", "'reward' is no condition"),
        ("reward > ", "cannot be read"),
        ("reward = 1", "cannot be read"),
        ("reward is None", "compare with"),
        ("reward + 1 > 2", r"'reward \+ 1' is no value"),
        ("__import__('os').system('touch /tmp/x') == 0", "is no value"),
        ("(lambda: 1)() > 0", "is no value"),
        ("reward.__class__ == 1", "is no value"),
        ("components.__class__ == 1", "no component for --keep"),
        ("[x for x in (1,)] == 1", "is no value"),
        ("reward > f'{1}'", "is no value"),
        ("(a := 1) > 0", "is no value"),
        ("reward if True else 1", "is no condition"),
        ("reward > 1\x00", "cannot be read"),
        ("(" * 900 + "True" + ")" * 900, "nested too deeply|cannot be read"),
        ("reward > 1 " * 400, "2000 at most"),
    ],
)
def test_anything_else_is_refused_with_an_example(text: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        parse_keep(text, ["outcome"])


def test_what_cannot_be_compared_says_so_when_it_is_met() -> None:
    condition = parse_keep("stop_reason > 3")
    with pytest.raises(ConfigurationError, match="compares 'done' with 3"):
        condition(trace())
    condition = parse_keep("3 in seed")
    with pytest.raises(ConfigurationError, match="compares 3 with 5"):
        condition(trace())


@given(st.text(max_size=60))
def test_no_text_does_anything_but_answer_or_be_refused(text: str) -> None:
    with contextlib.suppress(ConfigurationError):
        assert parse_keep(text, ["outcome"])(trace()) in (True, False)
