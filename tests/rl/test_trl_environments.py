"""``environment_factory``: what TRL shows, plays and scores of our environments, in a script of one's own."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from rl_toys import Counter

from mcpgym import Environment, Task, load_environment, reward, tool
from mcpgym.control import LocalControl
from mcpgym.episodes import Episodes
from mcpgym.errors import ConfigurationError
from mcpgym.messages import assistant, tool_call, user
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.policies.chat_format import native_tools
from mcpgym_rl.policies.script import ScriptedPolicy
from mcpgym_rl.rollout import rollout
from mcpgym_rl.trl import environment_factory

ENVIRONMENTS = ("tic-tac-toe", "wiki-search", "python-sandbox", "long-context")
SERVERS_OWN = {
    "additionalProperties",
    "default",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
}
"""What transformers' schemas cannot say, and the server checks all the same."""


def sayable(value: Any) -> Any:
    """A schema without what transformers cannot say; what is required in any order, no list as an empty one."""
    if isinstance(value, Mapping):
        made = {name: sayable(item) for name, item in value.items() if name not in SERVERS_OWN}
        return {**made, "required": sorted(made.get("required", []))} if "properties" in made else made
    return [sayable(item) for item in value] if isinstance(value, list) else value


class Odd(Environment[Task, dict[str, Any]]):
    """Every kind of parameter, and words that mean something in docstrings."""

    name = "odd"

    def tasks(self, split: str) -> Sequence[Task]:
        return [Task(f"{split}-0", split, [user("Go.")], {"hidden": "canary"})]

    def reset(self, task: Task, seed: int) -> dict[str, Any]:
        return {"seed": seed}

    @tool(inline=True)
    def everything(
        self,
        state: dict[str, Any],
        self_: Annotated[str, "Yourself (choices of words: many)."],
        kind: Annotated[Literal["a", "b"], "Which."],
        level: Annotated[Literal[1, 2], "How far."],
        many: Annotated[list[int], "Numbers: one or more."],
        share: Annotated[float, "A share."] = 0.5,
        flag: Annotated[bool, "Whether."] = False,
    ) -> str:
        """Do it.

        The second paragraph says how: well.
        """
        return json.dumps([self_, kind, level, many, share, flag])

    @reward
    def nothing(self, state: dict[str, Any]) -> float:
        return 0.0


@pytest.mark.parametrize("name", [*ENVIRONMENTS, "odd"])
def test_trl_makes_the_schemas_that_the_server_lists(name: str) -> None:
    from transformers.utils.chat_template_utils import get_json_schema

    environment = Odd() if name == "odd" else load_environment(name)
    instance = environment_factory(environment)()
    for found in environment.tools.values():
        made: Any = get_json_schema(getattr(instance, found.listing["name"]))
        assert sayable(made) == sayable(native_tools([found.listing])[0])


def test_a_policy_can_call_the_tools_and_nothing_else() -> None:
    factory = environment_factory(Odd())
    instance = factory()
    methods = inspect.getmembers(type(instance), predicate=inspect.isfunction)  # as TRL finds them
    assert {name for name, _ in methods if not name.startswith("_")} == {"everything", "reset"}
    row = factory.dataset(1)[0]
    assert set(row) == {"prompt", "split", "index", "seed"}
    assert "canary" not in json.dumps(row)
    assert row["prompt"] == [{"role": "user", "content": "Go."}]
    instance.reset(**row)
    said = instance.everything(self_="x", kind="b", level=2, many=[1])  # type: ignore[attr-defined]
    assert json.loads(said) == ["x", "b", 2, [1], 0.5, False]
    assert "kind" in instance.everything(self_="x", kind="c", level=2, many=[1])  # type: ignore[attr-defined]


def bad(name: str, parameter: str = "x") -> Environment[Any, Any, Any]:
    def work(self: Any, state: Any, **arguments: Any) -> str:
        """Work."""
        return ""

    parameters = [inspect.Parameter(word, inspect.Parameter.POSITIONAL_OR_KEYWORD) for word in ("self", "state")]
    hint = Annotated[int, "A number."]
    parameters.append(inspect.Parameter(parameter, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=hint))
    work.__name__ = name
    work.__annotations__ = {parameter: hint, "return": str}
    work.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return type("Bad", (Odd,), {name: tool(inline=True)(work)})()


@pytest.mark.parametrize(
    ("name", "said"),
    [("get_reward", "TRL takes no method named 'get_reward'"), ("_x", "TRL takes no method named '_x'")],
)
def test_a_tool_that_trl_has_no_name_for_is_refused(name: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        environment_factory(bad(name))


def test_an_environment_that_answers_as_the_user_is_for_our_rollouts() -> None:
    with pytest.raises(ConfigurationError, match="mcpgym train --engine trl"):
        environment_factory("double-check")


@pytest.mark.parametrize(
    ("asked", "said"),
    [({"count": 0}, "at least 1"), ({"count": 1, "split": "tset"}, "tset"), ({"count": 1, "first": 10_000}, "10000")],
    ids=["none", "split", "end"],
)
def test_a_data_set_that_cannot_be_had_is_refused(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        environment_factory("tic-tac-toe").dataset(**asked)


def said_by_trl(calls: Sequence[Mapping[str, Any]], answers: Sequence[str]) -> list[dict[str, Any]]:
    """A rollout as TRL hands it to reward functions, with a turn after the end."""
    made: list[dict[str, Any]] = []
    for call, answer in zip(calls, answers, strict=True):
        made.append({"role": "assistant", "content": "so", "tool_calls": [{"type": "function", "function": call}]})
        made.append({"role": "tool", "name": call["name"], "content": answer})
    return [*made, {"role": "assistant", "content": "goodbye"}]


def test_scores_are_those_of_our_rollouts_with_what_the_policy_wrote_and_without_what_came_after_the_end() -> None:
    calls = [{"name": "add", "arguments": {"amount": amount}} for amount in (1, -1, 2, 5)]  # over after the third
    factory = environment_factory(Counter())
    played, idle = factory(), factory()
    rows = factory.dataset(2)
    for instance, row in zip((played, idle), rows, strict=True):
        instance.reset(**row)
    answers = [played.add(**call["arguments"]) for call in calls]  # type: ignore[attr-defined]
    assert "no more calls" in answers[3]
    logged: dict[str, float] = {}
    completions = [said_by_trl(calls, answers), [{"role": "assistant", "content": ""}], []]
    made = factory.reward(completions, [played, idle, object()], log_metric=logged.__setitem__, prompts=[])

    turns = [assistant("so", [tool_call("c", "add", json.dumps(call["arguments"]))]) for call in calls]
    policy = ScriptedPolicy(turns)
    lane = ControlLane(LocalControl(Episodes({"counter": Counter()})))
    trace = asyncio.run(rollout(policy, lane, environment="counter", split="train", index=0))
    assert trace.score is not None
    assert made == [trace.score.total, 0.0, None]
    assert logged == {"counter/reached": 0.5, "counter/spoke": 0.5}
    assert trace.messages[-1]["content"] == answers[2], "the same words, and the end is the same"


def test_an_episode_that_broke_has_no_reward_and_a_reset_begins_anew() -> None:
    factory = environment_factory(Counter(), worth=lambda score: score.components["reached"])
    instance = factory()
    instance.reset(split="train", index=0)
    instance.explode()  # type: ignore[attr-defined]
    assert factory.reward([[]], [instance]) == [None]
    instance.reset(split="train", index=1)
    instance.add(amount=3)  # type: ignore[attr-defined]
    assert factory.reward([[]], [instance]) == [1.0]
    assert len(factory._episodes) == 1


@pytest.mark.slow
def test_trl_trains_with_it(tmp_path: Path) -> None:
    trl = pytest.importorskip("trl")
    from transformers import AutoTokenizer

    from mcpgym_rl.local.policy import shipped_models
    from mcpgym_rl.training.models import load_model
    from mcpgym_rl.training.sections import ModelSection

    factory = environment_factory("tic-tac-toe")
    path = shipped_models(factory.environment)["default"]
    model, chat = load_model(path, ModelSection())
    config = trl.GRPOConfig(
        output_dir=str(tmp_path), use_cpu=True, bf16=False, gradient_checkpointing=False, report_to="none",
        per_device_train_batch_size=8, num_generations=4, max_steps=2, max_completion_length=200, logging_steps=1,
        max_tool_calling_iterations=factory.max_turns, save_strategy="no", disable_tqdm=True, learning_rate=1e-3,
    )  # fmt: skip
    trainer = trl.GRPOTrainer(
        model=model, args=config, processing_class=AutoTokenizer.from_pretrained(str(path)),
        environment_factory=factory, train_dataset=factory.dataset(8), reward_funcs=factory.reward,
    )  # fmt: skip
    factory.show_tools_as_served(trainer)
    prompts = [row["prompt"] for row in factory.dataset(2)]
    trainer._batch_environments = [None, None]
    shown, _, _ = trainer._tokenize_prompts(prompts)
    tools = [found.listing for found in factory.environment.tools.values()]
    assert [list(ids) for ids in shown] == [chat.opening(prompt, tools) for prompt in prompts], "the prompts are ours"
    before = {name: value.clone() for name, value in model.named_parameters()}
    trainer.train()
    rows = [row for row in trainer.state.log_history if "loss" in row]
    assert len(rows) == 2
    assert all(row["tools/call_frequency"] > 1 and -1 < row["reward"] < 1.2 for row in rows)
    assert all(row["tools/failure_frequency"] == 0 for row in rows)
    assert rows[0]["tic-tac-toe/outcome"] > 0, "the packaged model wins and draws, sampled too"
    assert any(not value.equal(before[name]) for name, value in model.named_parameters())
