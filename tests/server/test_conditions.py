"""What an environment says of its machine reaches harnesses, traces, receipts and metrics, and no policy; and an
episode whose machine failed has no score."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from mcpgym import Environment, InfrastructureError, Requirement, Task, reward, task_id, tool
from mcpgym.control import Call, LocalControl, OpenedEpisode
from mcpgym.control_plane.codec import encode
from mcpgym.episodes import Episodes
from mcpgym.errors import ConfigurationError, EpisodeError, RewardError
from mcpgym.messages import assistant, tool_call
from mcpgym.metrics import LoopLag, Metrics
from mcpgym.receipts import ReceiptRejected, Signer, canonical, check_receipt
from mcpgym.signing_keys import make_signing_key
from mcpgym_clients.receipt_checks import check_trace
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.policies.script import ScriptedPolicy
from mcpgym_rl.rollout import rollout
from mcpgym_rl.stop_reason import StopReason
from mcpgym_rl.traces import Trace

CONDITIONS = {"isolation": "namespaces", "python": "3.11.2", "packages": {"numpy": "2.1.0"}}


class Machine(Environment[Task, dict[str, Any]]):
    """Says what it runs under, and breaks when told to."""

    name = "machine"
    says: Any = CONDITIONS
    counts: Any = {"sessions": 3}

    def tasks(self, split: str) -> list[Task]:
        return [Task(task_id(split, 0), split, ({"role": "user", "content": "Work."},), {})]

    def reset(self, task: Task, seed: int) -> dict[str, Any]:
        if seed == 13:
            raise InfrastructureError("no machine left")
        return {"lost_at_scoring": seed == 7}

    def conditions(self) -> Mapping[str, Any]:
        return cast("Mapping[str, Any]", self.says)

    def gauges(self) -> Mapping[str, float]:
        return cast("Mapping[str, float]", self.counts)

    @classmethod
    def requirements(cls) -> list[Requirement]:
        return [Requirement("a machine", True, "this one")]

    @tool
    async def work(self, state: dict[str, Any]) -> str:
        """Work."""
        raise InfrastructureError("the session is gone")

    @tool(inline=True)
    def rest(self, state: dict[str, Any]) -> str:
        """Rest."""
        return "rested"

    @reward(weight=1.0)
    def worked(self, state: dict[str, Any]) -> float:
        if state["lost_at_scoring"]:
            raise InfrastructureError("the session is gone")
        return 1.0


class Plain(Machine):
    name = "plain"
    says: Any = {}
    counts: Any = {}


async def opened(control: LocalControl, name: str = "machine", seed: int = 0) -> OpenedEpisode:
    return await control.open(name, split="train", index=0, seed=seed)


def control_of(*environments: Environment[Any, Any, Any], signer: Signer | None = None) -> LocalControl:
    return LocalControl(Episodes({one.name: one for one in environments}), signer=signer)


def test_conditions_reach_who_opens_an_episode_and_stand_nowhere_where_there_are_none() -> None:
    async def work() -> None:
        control = control_of(Machine(), Plain())
        episode = await opened(control)
        assert episode.conditions == CONDITIONS
        assert json.loads(encode(episode))["conditions"] == CONDITIONS
        plain = await opened(control, "plain")
        assert plain.conditions == {}
        assert "conditions" not in json.loads(encode(plain))
        seen = json.dumps([list(episode.messages), list(episode.tools)])
        assert "namespaces" not in seen
        await control.aclose()

    asyncio.run(work())


def test_a_receipt_signs_the_conditions_and_has_none_where_there_are_none(tmp_path: Path) -> None:
    async def work() -> None:
        key = make_signing_key(tmp_path / "server.key")
        signer = Signer(key)
        control = control_of(Machine(), Plain(), signer=signer)
        signed = (await control.score((await opened(control)).token)).receipt
        plain = (await control.score((await opened(control, "plain")).token)).receipt
        assert signed is not None
        assert plain is not None
        assert check_receipt(signed, {key.public.id: key.public}).statement["conditions"] == CONDITIONS
        assert "conditions" not in plain["receipt"]
        await control.aclose()
        odd = {**signed["receipt"], "conditions": ["namespaces"]}
        forged = {**signed, "receipt": odd, "signature": base64.b64encode(key.sign(canonical(odd))).decode()}
        with pytest.raises(ReceiptRejected, match="'conditions' is of the wrong kind"):
            check_receipt(forged, {key.public.id: key.public})

    asyncio.run(work())


def test_a_trace_that_says_other_conditions_than_were_signed_is_rejected(tmp_path: Path) -> None:
    async def work() -> None:
        key = make_signing_key(tmp_path / "server.key")
        keys = {key.public.id: key.public}
        control = control_of(Machine(), signer=Signer(key))
        policy = ScriptedPolicy([assistant("Done.")])
        made = await rollout(policy, ControlLane(control), environment="machine", split="train", index=0)
        check_trace(made, keys)
        for other in ({}, {**CONDITIONS, "isolation": "vm"}):
            changed = Trace.from_dict({**made.to_dict(), "conditions": other})
            with pytest.raises(ReceiptRejected, match="conditions is"):
                check_trace(changed, keys)
        await control.aclose()

    asyncio.run(work())


@pytest.mark.parametrize(
    ("says", "why"),
    [
        (["namespaces"], "must return a mapping"),
        ({"load": float("nan")}, "no JSON"),
        ({"what": object()}, "no JSON"),
        ({1: "one"}, "must return a mapping"),
        ({"long": "x" * 5000}, "4096 at most"),
    ],
)
def test_conditions_that_are_no_small_json_are_the_environments_fault(says: Any, why: str) -> None:
    async def work() -> None:
        machine = Machine()
        machine.says = says
        control = control_of(machine)
        with pytest.raises(EpisodeError, match=why):
            await opened(control)
        await control.aclose()

    asyncio.run(work())


def test_a_tool_whose_machine_fails_ends_the_episode_and_leaves_it_without_a_score() -> None:
    async def work() -> None:
        control = control_of(Machine())
        episode = await opened(control)
        (answer,) = await control.step([Call(episode.token, "work", {})])
        assert answer.is_error
        assert answer.done
        assert answer.text == "work failed inside the environment"  # nothing of the machine
        status = await control.status(episode.token)
        assert status.stop_reason == "failed"
        assert status.failure == "work failed: InfrastructureError: the session is gone"
        (later,) = await control.step([Call(episode.token, "rest", {})])
        assert later.is_error
        assert later.done
        with pytest.raises(EpisodeError, match=r"no score, the environment broke: .*the session is gone"):
            await control.score(episode.token)
        await control.aclose()

    asyncio.run(work())


def test_a_reset_and_a_reward_whose_machine_fails_give_no_score() -> None:
    async def work() -> None:
        control = control_of(Machine())
        with pytest.raises(EpisodeError, match="no machine left"):
            await opened(control, seed=13)
        episode = await opened(control, seed=7)
        with pytest.raises(RewardError, match="the session is gone"):
            await control.score(episode.token)
        await control.aclose()

    asyncio.run(work())


def test_gauges_of_all_configurations_add_up_in_the_metrics_and_one_that_fails_hides_no_other() -> None:
    broken = Plain()
    broken.counts = {"sessions": "many"}
    episodes = Episodes({"machine": Machine(), "plain": broken})
    text = Metrics(episodes, LoopLag()).render().decode()
    assert 'mcpgym_environment{environment="machine",name="sessions"} 3.0' in text
    assert 'mcpgym_environment{environment="plain"' not in text
    assert "mcpgym_environment{" not in Metrics(Episodes({"plain": Plain()}), LoopLag()).render().decode()


def test_a_rollout_records_its_conditions_in_its_trace_and_nowhere_a_policy_sees() -> None:
    async def work() -> None:
        control = control_of(Machine(), Plain())
        policy = ScriptedPolicy([assistant("Done.")])
        made, plain = [
            await rollout(policy, ControlLane(control), environment=name, split="train", index=0)
            for name in ("machine", "plain")
        ]
        assert made.conditions == CONDITIONS
        assert made.scored
        assert Trace.from_dict(json.loads(made.to_json())).conditions == CONDITIONS
        assert "namespaces" not in json.dumps(list(made.messages))
        assert '"conditions"' not in plain.to_json()
        with pytest.raises(ConfigurationError, match="'conditions' cannot be"):
            Trace.from_dict({**made.to_dict(), "conditions": ["namespaces"]})
        await control.aclose()

    asyncio.run(work())


def test_a_rollout_whose_machine_fails_is_reported_as_the_environments_failure_with_no_score() -> None:
    async def work() -> None:
        control = control_of(Machine())
        lane = ControlLane(control)
        policy = ScriptedPolicy([assistant("", [tool_call("c", "work", "{}")]), assistant("Done.")])
        broken = await rollout(policy, lane, environment="machine", split="train", index=0)
        at_scoring = await rollout(
            ScriptedPolicy([assistant("Done.")]), lane, environment="machine", split="train", index=0, seed=7
        )
        at_reset = await rollout(policy, lane, environment="machine", split="train", index=0, seed=13)
        for trace, why in ((broken, "session is gone"), (at_scoring, "session is gone"), (at_reset, "no machine left")):
            assert trace.stop_reason == StopReason.ENVIRONMENT_FAILED
            assert trace.score is None
            assert trace.error is not None
            assert why in trace.error.message
        assert broken.turns == 1  # it did not play on for no score
        await control.aclose()

    asyncio.run(work())
