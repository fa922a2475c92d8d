"""The life of a combined episode: how it begins, ends, breaks and lets go; its score; its configuration."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from combined_toys import Asking, Counting, CountingConfig

from mcpgym import ConfigurationError, Environment, check_environment, load_environment
from mcpgym.combined import CombinedEnvironment, combine
from mcpgym.control import LocalControl
from mcpgym.episode import Episode
from mcpgym.episodes import Episodes, Limits
from mcpgym.errors import EpisodeEnded, EpisodeError, UnknownNameError
from mcpgym.messages import assistant
from mcpgym.registry import configure, is_installed, merged_config


def counting(**config: Any) -> Counting:
    return Counting(CountingConfig(**config))


async def begin(environment: CombinedEnvironment, index: int = 0, seed: int = 0) -> tuple[Episodes, Episode]:
    episodes = Episodes({environment.name: environment})
    return episodes, await episodes.open(environment.name, split="train", index=index, seed=seed)


@pytest.fixture(autouse=True)
def nothing_released() -> None:
    Counting.released.clear()
    Counting.shut.clear()


def test_tools_have_their_members_name_in_front_and_are_else_unchanged() -> None:
    made = combine(Counting, "tic-tac-toe", again="tic-tac-toe")
    play = load_environment("tic-tac-toe").tools["play"].listing
    assert list(made.tools) == [
        "counting__add", "counting__add_later", "counting__add_beside", "tic_tac_toe__play", "again__play",
    ]  # fmt: skip
    for mount in ("tic_tac_toe", "again"):
        assert made.tools[f"{mount}__play"].listing == {**play, "name": f"{mount}__play"}
    assert made.schema_hash not in (Environment.schema_hash, load_environment("tic-tac-toe").schema_hash)
    assert list(load_environment("tic-tac-toe+tic-tac-toe").tools) == ["tic_tac_toe__play", "tic_tac_toe_2__play"]


def test_two_members_of_one_class_get_different_tasks_and_seeds() -> None:
    made = combine("reverse-text", "reverse-text", Counting, Counting)
    assert made.size("train") == 2  # five tasks for two
    for index in range(2):
        task: Any = made.task_at("train", index)
        assert task.id == f"train-{index}"
        assert [part.id for part in task.parts] == [f"train-{2 * index}", f"train-{2 * index + 1}"] * 2

    async def seeds() -> list[int]:
        _, episode = await begin(made)
        return [part.seed for part in episode.state.parts.values()]

    assert len(set(asyncio.run(seeds()))) == 4


def test_a_split_is_as_long_as_its_shortest_member_or_as_its_longest() -> None:
    assert combine(Counting, Asking).size("train") == 5
    longest = combine(Counting, Asking, lengths="longest")
    assert longest.size("train") == 7
    ids = [[part.id for part in task.parts] for task in longest.tasks("train")]  # type: ignore[attr-defined]
    assert ids[6] == ["train-1", "train-6"]
    assert combine(counting(tasks_count=0), Asking, lengths="longest").size("train") == 0
    with pytest.raises(UnknownNameError, match="split"):
        longest.tasks("dev")


@pytest.mark.parametrize(("ends", "done"), [("all", False), ("any", True)])
def test_a_part_that_is_over_refuses_calls_and_the_others_go_on(ends: Any, done: bool) -> None:
    async def play() -> None:
        _, episode = await begin(combine(Counting, other=Counting, ends=ends))
        result = await episode.call("counting__add", {"count": 10})
        assert result.text.endswith("\n(counting is over." + " Still open: other.)")
        assert result.done is done
        if done:
            return
        before = episode.state.parts["counting"].state.total
        for arguments in ({"count": 1}, {"count": "x"}, {}):
            again = await episode.call("counting__add_later", arguments)
            assert again.is_error
            assert not again.done
            assert again.text == "(counting is over. Still open: other.) Its tools do nothing any more."
        assert episode.state.parts["counting"].state.total == before
        assert episode.state.parts["counting"].state.wrong == 0
        assert (await episode.call("other__add_beside", {"count": 9})).done is False or True
        last = await episode.call("other__add", {"count": 10})
        assert last.done

    asyncio.run(play())


def test_an_answer_is_for_all_parts_or_for_those_it_has_a_heading_for() -> None:
    async def play() -> None:
        _, episode = await begin(combine(Asking, Counting, other=Asking))
        said = [*episode.messages, assistant("<think>hm</think>\n## other\nfirst\n## nobody\nx")]
        answer = await episode.respond(said)
        parts = episode.state.parts
        assert parts["other"].state.heard == ["<think>hm</think>\nfirst\n## nobody\nx"]
        assert parts["asking"].state.heard == []
        assert parts["counting"].over is None
        assert answer is not None
        assert answer[0]["content"].startswith("## other\nAgain, 2?")
        answer = await episode.respond([*said, *answer, assistant("to all")])
        assert parts["counting"].over == "answered"
        assert parts["asking"].state.heard == ["to all"]
        assert answer is not None
        assert "(counting is over. Still open: asking, other.)" in answer[0]["content"]
        said += [*answer, assistant("## counting\nmore")]
        assert (await episode.respond(said)) == [
            {"role": "user", "content": "(counting is over. Still open: asking, other.)"}
        ]
        await episode.respond([*said, assistant("again")])
        assert await episode.respond([*said, assistant("and again")]) is None
        assert episode.stop_reason == "answered"

    asyncio.run(play())


def test_a_reward_that_is_unknown_makes_its_component_and_the_total_unknown_and_never_0() -> None:
    async def play(environment: CombinedEnvironment) -> Any:
        _, episode = await begin(environment)
        return await episode.score([*episode.messages, assistant("x")])

    made = asyncio.run(play(combine(counting(broken="reward"), Asking)))
    assert made.components["counting.reached"] is None
    assert made.components["asking.heard"] is not None
    assert made.total is None
    unweighed = asyncio.run(play(combine(counting(broken="reward"), Asking, weights={"counting": 0})))
    assert unweighed.total == unweighed.components["asking.heard"]


def test_the_score_is_the_mean_of_the_members_totals_by_their_weights() -> None:
    made = combine(Counting, "tic-tac-toe", weights={"counting": 3})
    assert made.rewards["counting.mistakes"].weight == pytest.approx(0.5 * 3 / 4)
    assert made.rewards["tic_tac_toe.format"].weight == pytest.approx(0.2 / 4)
    assert made.rewards["counting.used"].weight == 0
    assert (made.rewards["counting.mistakes"].low, made.rewards["counting.mistakes"].high) == (-1, 0)


@pytest.mark.parametrize("broken", ["reset", "tool", "close"])
def test_whatever_breaks_every_member_is_released_once(broken: str) -> None:
    async def play() -> None:
        made = combine(Counting, bad=counting(broken=broken), third=Counting)
        episodes = Episodes({made.name: made})
        if broken == "reset":
            with pytest.raises(EpisodeError, match="nothing to count with"):
                await episodes.open(made.name, split="train", index=0)
            assert [state.closed for state in Counting.released] == [True]
            return
        episode = await episodes.open(made.name, split="train", index=0)
        result = await episode.call("bad__add", {"count": 1})
        assert result.is_error is (broken == "tool")
        if broken == "tool":
            assert "abacus" not in result.text
            assert episode.stop_reason == "failed"
            with pytest.raises(EpisodeError, match="the abacus broke"):
                await episode.score(None)
        await episodes.close(episode.token)
        assert len(Counting.released) == 3
        assert all(state.closed for state in Counting.released)

    asyncio.run(play())


@pytest.mark.parametrize("how", ["close", "expire", "server"])
def test_however_an_episode_ends_each_member_lets_go(how: str) -> None:
    async def play() -> None:
        made = combine(counting(broken="shutdown"), other=Counting, third=counting(broken="close"))
        episodes = Episodes({made.name: made}, Limits(idle_seconds=0.0 if how == "expire" else 100))
        episode = await episodes.open(made.name, split="train", index=0)
        await asyncio.sleep(0.01)
        if how == "close":
            await episodes.close(episode.token)
        elif how == "expire":
            assert await episodes.expire() == 1
        await episodes.aclose()
        assert len(Counting.released) == 3
        assert len(Counting.shut) == 3
        with pytest.raises(EpisodeEnded):
            episodes.get(episode.token)

    asyncio.run(play())


def test_64_episodes_at_once_stay_apart() -> None:
    async def one(control: LocalControl, name: str, number: int) -> tuple[list[str], float | None]:
        opened = await control.open(name, split="train", index=number % 2, seed=number // 2)
        texts = []
        for step in range(4):
            for tool in ("counting__add_later", "x__add", "x__add_beside"):
                from mcpgym.control import Call

                (result,) = await control.step([Call(opened.token, tool, {"count": step % 3})])
                texts.append(result.text)
        score = await control.score(opened.token, [*opened.messages])
        return texts, score.total

    async def play() -> None:
        made = combine(Counting, x=Counting)
        control = LocalControl(Episodes({made.name: made}))
        at_once = await asyncio.gather(*(one(control, made.name, number) for number in range(64)))
        alone = [await one(control, made.name, number) for number in range(64)]
        assert at_once == alone
        assert len({str(texts) for texts, _ in at_once}) == 64

    asyncio.run(play())


def test_turns_a_member_may_have_are_its_own_and_the_whole_has_room_for_all() -> None:
    async def play() -> None:
        made = combine(counting(goal=99, most=2), other=counting(goal=99, most=3))
        assert made.max_turns == 7
        assert combine(Counting, Asking).max_turns is None
        _, episode = await begin(made)
        for mount, turns in (("counting", 2), ("other", 3)):
            for number in range(turns):
                result = await episode.call(f"{mount}__add", {"count": 1})
                assert (f"({mount} is over." in result.text) is (number == turns - 1)
        assert episode.stop_reason == "done"
        assert {part.over for part in episode.state.parts.values()} == {"max_turns"}

    asyncio.run(play())


class Talking(Asking):
    """Another with tools whose name is too long."""

    name = "talking"
    version = "7"


def test_what_a_member_is_stands_in_the_version_the_config_and_the_conditions() -> None:
    made = combine(Talking, Counting)
    assert made.version == "1:7+1"
    assert made.config.model_dump()["counting"]["goal"] == 10
    assert made.conditions() == {}
    sandbox = load_environment("tic-tac-toe+python-sandbox")
    assert not sandbox.reproducible
    assert sandbox.same_observation("x", "x")
    assert not sandbox.same_observation("x", "y")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("tic-tac-toe+", "names no combination"),
        ("+tic-tac-toe", "names no combination"),
        ("=tic-tac-toe+wiki-search", "names no combination"),
        ("x=tic-tac-toe", "has one member"),
        ("+".join(["tic-tac-toe"] * 9), "has 9 members"),
        ("x=tic-tac-toe+x=wiki-search", "two members are called 'x'"),
        ("x__y=tic-tac-toe+wiki-search", "'x__y' cannot be a member's name"),
        ("x_=tic-tac-toe+wiki-search", "cannot be a member's name"),
        ("weights=tic-tac-toe+wiki-search", "'weights' is taken"),
        ("copy=tic-tac-toe+wiki-search", "'copy' is taken"),
        ("tic-tac-to+wiki-search", "did you mean 'tic-tac-toe'"),
        (f"{'x' * 42}=python-sandbox+tic-tac-toe", "64 at most: mount it under 39 or fewer"),
        ("nowhere.toml", "there is no file nowhere.toml"),
    ],
)
def test_a_spec_that_cannot_be_is_refused_and_says_what_would_be_right(spec: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said.replace("(", r"\(")):
        load_environment(spec)


def test_one_combination_has_one_name() -> None:
    named = [
        load_environment(spec).name
        for spec in ("tic_tac_toe=tic-tac-toe+wiki-search", "tic-tac-toe+wiki_search=wiki-search")
    ]
    assert set(named) == {"tic-tac-toe+wiki-search"}
    assert load_environment("a=tic-tac-toe+tic-tac-toe").name == "a=tic-tac-toe+tic-tac-toe"
    assert type(load_environment("tic-tac-toe+x=wiki-search")) is type(load_environment("tic-tac-toe+x=wiki-search"))
    assert combine("tic-tac-toe", "wiki-search").name == "tic-tac-toe+wiki-search"
    assert is_installed("tic-tac-toe+x=wiki-search")
    assert not is_installed("tic-tac-toe+os:path")
    with pytest.raises(ConfigurationError, match="combination itself"):
        combine(combine("tic-tac-toe", "wiki-search"), "tic-tac-toe")


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"tic_tac_to.max_turns": 1}, "did you mean 'tic_tac_toe'"),
        ({"tic_tac_toe.max_turn": 1}, "did you mean 'max_turns'"),
        ({"tic_tac_toe": {"max_turn": 1}}, "did you mean 'max_turns'"),
        ({"weights": {"counter": 1}}, "did you mean 'counting'"),
        ({"weights.counting": "-1"}, "greater than or equal to 0"),
        ({"weights": {"counting": "nan"}}, "finite number"),
        ({"weights": {"counting": 0, "tic_tac_toe": 0}}, "add up to 0"),
        ({"tic_tac_toe": "x"}, "valid dictionary"),
        ({"ends": "some"}, "'all' or 'any'"),
    ],
)
def test_a_configuration_is_strict_and_offers_the_nearest_name(config: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        configure(type(combine(Counting, "tic-tac-toe")), config)


def test_configurations_are_merged_section_by_section() -> None:
    cls = type(combine(Counting, "tic-tac-toe"))
    first = {"counting.goal": "7", "tic_tac_toe": {"max_turns": 3}}
    merged = merged_config(cls, first, {"counting": {"most": 2}, "ends": "any"})
    assert merged == {"counting": {"goal": "7", "most": 2}, "tic_tac_toe": {"max_turns": 3}, "ends": "any"}
    episodes = Episodes({"it": configure(cls, first)})
    changed: Any = episodes.environment("it", {"counting.most": 2})
    assert (changed.config.counting.goal, changed.config.counting.most, changed.members["tic_tac_toe"].max_turns) == (
        7, 2, 3,
    )  # fmt: skip


FILE = """
ends = "any"
[members.game]
environment = "tic-tac-toe"
weight = 2
config = { max_turns = 4 }
[members.mirror]
environment = "reverse-text"
"""


def test_a_file_describes_a_combination(tmp_path: Any) -> None:
    path = tmp_path / "desk+1.toml"
    path.write_text(FILE)
    made: Any = load_environment(str(path), {"game.best_move": "first", "ends": "all"})
    assert made.name == "game=tic-tac-toe+mirror=reverse-text"
    assert (made.config.game.max_turns, made.config.game.best_move, made.config.ends) == (4, "first", "all")
    assert made.config.weights.model_dump() == {"game": 2.0, "mirror": 1.0}
    for old, new, said in (
        ("weight =", "wait =", "did you mean 'weight'"),
        ("ends", "end", "did you mean 'ends'"),
        ("max_turns", "max_turn", "did you mean 'max_turns'"),
        ("members.mirror", "members.mirror__x", "cannot be a member's name"),
        ('"reverse-text"', '"tic-tac-toe+reverse-text"', "a member is one environment"),
        ("= 2", "= =", "cannot be read"),
        ('[members.mirror]\nenvironment = "reverse-text"', "", "1 members"),
    ):
        assert old in FILE
        path.write_text(FILE.replace(old, new))
        with pytest.raises(ConfigurationError, match=said):
            load_environment(str(path))


def test_a_combination_of_anybodys_environments_keeps_the_contract() -> None:
    made = combine(Counting, Asking, "reverse-text")
    check_environment(made, episodes=2, second_process=False).raise_for_findings()


def test_instances_that_are_given_are_the_members() -> None:
    mine = counting(goal=3)
    made = combine(mine, Asking)
    assert made.members["counting"] is mine
    other: Any = configure(type(made), {"counting.goal": 4})
    assert other.members["counting"] is not mine
    assert other.config.counting.goal == 4
