"""A member inside a combination plays exactly as it does alone: texts, errors, ends, transcripts and rewards."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import dataclass
from typing import Any

import pytest
from combined_toys import members
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcpgym.combined import CombinedEnvironment, combine
from mcpgym.combined.environment import member_seed
from mcpgym.episode import Episode
from mcpgym.episodes import Episodes
from mcpgym.messages import Message, assistant, tool_answer, tool_call

CHOICES = members()


@dataclass
class Alone:
    """A member's episode outside, and what was said in it."""

    episode: Episode
    said: list[Message]


async def opened(environment: CombinedEnvironment, index: int, seed: int) -> tuple[Episode, dict[str, Alone]]:
    episodes = Episodes({environment.name: environment})
    together = await episodes.open(environment.name, split="train", index=index % environment.size("train"), seed=seed)
    alone = {}
    for mount, part in together.state.parts.items():
        own = Episodes({mount: type(environment.members[mount])(environment.members[mount].config)})
        one = await own.open(mount, task=part.task.id, seed=member_seed(seed, mount))
        alone[mount] = Alone(one, list(one.messages))
    return together, alone


acts = st.lists(
    st.one_of(
        st.tuples(st.just("call"), st.integers(0, 7), st.integers(0, 3), st.sampled_from([-1, 0, 1, 3, 4, 8, 99, "x"])),
        st.tuples(st.just("say"), st.sampled_from(["all", "first", "last"]), st.integers(0, 3), st.just(0)),
    ),
    max_size=25,
)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    chosen=st.lists(st.sampled_from(sorted(CHOICES)), min_size=2, max_size=4),
    plan=acts,
    index=st.integers(0, 1),
    seed=st.integers(0, 2**63 - 1),
)
def test_whatever_is_played_each_member_hears_and_is_paid_what_it_would_alone(
    chosen: list[str], plan: list[Any], index: int, seed: int
) -> None:
    asyncio.run(compare(combine(*(CHOICES[name] for name in chosen)), plan, index, seed))


@pytest.mark.parametrize(
    "over", [[8, 8], [-1] * 6, ["x"] * 6, [0, 0, "x", -1, 3, 99]], ids=["done", "errors", "invalid", "mixed"]
)
def test_nothing_that_is_said_after_a_part_is_over_reaches_its_rewards(over: list[Any]) -> None:
    counted = [("call", 0, number, count) for number, count in enumerate(over)]
    after = [("say", "all", 1, 0), ("call", 0, 0, 1), ("say", "first", 2, 0), ("call", 1, 0, 4), ("say", "last", 1, 0)]
    environment = combine(*(CHOICES[name] for name in ("counting", "tic-tac-toe", "asking")))
    asyncio.run(compare(environment, [("say", "last", 0, 0), *counted, *after], 0, 1))


async def compare(environment: CombinedEnvironment, plan: list[Any], index: int, seed: int) -> None:
    together, alone = await opened(environment, index, seed)
    said = list(together.messages)
    for number, (kind, first, second, third) in enumerate(plan):
        if together.done:
            break
        mounts = list(alone)
        if kind == "call":
            mount = mounts[first % len(mounts)]
            if not (tools := list(environment.members[mount].tools)):
                continue
            own = tools[second % len(tools)]
            parameter = next(iter(environment.members[mount].tools[own].parser.schema["properties"]), "x")
            arguments = {parameter: third}
            was_over = alone[mount].episode.done
            name = f"{mount}__{own}"
            result = await together.call(name, arguments)
            call = tool_call(f"c{number}", name, json.dumps(arguments))
            said += [assistant("so", [call]), tool_answer(call, result.text, is_error=result.is_error)]
            if was_over:
                assert result.is_error
                assert f"({mount} is over." in result.text
                continue
            one = alone[mount]
            wanted = await one.episode.call(own, arguments)
            call = tool_call(f"c{number}", own, json.dumps(arguments))
            one.said += [assistant("so", [call]), tool_answer(call, wanted.text, is_error=wanted.is_error)]
            text, note, _ = result.text.partition(f"\n({mount} is over.")
            assert (text, result.is_error, bool(note)) == (wanted.text, wanted.is_error, wanted.done)
            continue
        to = {"all": mounts, "first": mounts[:1], "last": mounts[-1:]}[first]
        heading = "" if first == "all" else f"## {to[0]}\n"
        said.append(assistant(f"{heading}word {second}"))
        answer = await together.respond(said)
        said += answer or []
        for mount in to:
            one = alone[mount]
            if one.episode.done:
                continue
            one.said.append(assistant(f"word {second}"))
            own_answer = await one.episode.respond(one.said)
            one.said += own_answer or []
            for message in own_answer or []:
                assert message["content"].replace("## asking", " ## asking") in str(answer[0]["content"])  # type: ignore[index]
    for mount, part in together.state.parts.items():
        assert (part.over is not None) == alone[mount].episode.done, mount
    await compare_scores(environment, together, said, alone)
    for one in alone.values():
        await one.episode.end("test")
    await together.end("test")


async def compare_scores(
    environment: CombinedEnvironment, together: Episode, said: list[Message], alone: dict[str, Alone]
) -> None:
    for transcript in (said, None):
        score = await together.score(transcript)
        totals = {}
        for mount, one in alone.items():
            own = await one.episode.score(one.said if transcript else None)
            assert {name: score.components[f"{mount}.{name}"] for name in own.components} == own.components, mount
            totals[mount] = own.total
        assert list(score.components) == [f"{m}.{name}" for m in alone for name in environment.members[m].rewards]
        if None in totals.values():
            assert score.total is None
        else:
            assert score.total == pytest.approx(math.fsum(totals.values()) / len(totals), abs=1e-12)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["expert", "random"])
def test_members_policies_play_their_parts_as_they_would_alone(name: str) -> None:
    async def play() -> None:
        from random import Random

        from mcpgym.asking import settle

        environment = combine(*CHOICES.values(), again=CHOICES["tic-tac-toe"])
        policy = environment.reference_policies()[name]
        together, _ = await opened(environment, 1, 5)
        said, random = list(together.messages), Random(0)
        for _ in range(120):
            if together.done:
                break
            turn = await settle(policy(said, random))
            said.append(turn)
            for call in turn.get("tool_calls", ()):
                result = await together.call(call["function"]["name"], json.loads(call["function"]["arguments"]))
                said.append(tool_answer(call, result.text, is_error=result.is_error))
            if not turn.get("tool_calls"):
                said += await together.respond(said) or []
        assert together.done
        assert all(part.over for part in together.state.parts.values())
        assert not [message for message in said if "Its tools do nothing" in message["content"]]
        score = await together.score(said)
        if name == "expert":
            assert score.components["reverse_text.exact"] == score.components["double_check.correct"] == 1
            assert score.components["tic_tac_toe.outcome"] >= 0.5  # type: ignore[operator]
            assert score.components["again.outcome"] >= 0.5  # type: ignore[operator]

    asyncio.run(play())
