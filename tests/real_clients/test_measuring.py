"""What lets clients play and judges them sees the faults that clients may have."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcp.client.client import Client as SdkClient
from tests.real_clients import table
from tests.real_clients.clients import CannotPlay, Client, Played, Seat, Way
from tests.real_clients.measuring import Cell, Row, measure
from tests.real_clients.programs.player import next_call
from tests.real_clients.schema_differences import additions, differences, prefix_of, told

SCHEMA = {
    "type": "object",
    "properties": {"count": {"type": "integer", "minimum": 1, "description": "How many."}},
    "required": ["count"],
    "additionalProperties": False,
}
TOOL = {"name": "take", "description": "Take some.", "inputSchema": SCHEMA}


async def play(seat: Seat, moves: int = 20) -> Played:
    """The official SDK in this process; no more than so many calls."""
    async with SdkClient(seat.url) as client:
        tools = [
            {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
            for tool in (await client.list_tools()).tools
        ]
        texts: list[str] = []
        while len(texts) < moves and (wanted := next_call(seat.way, seat.task, seat.cells, texts)) is not None:
            texts.append("".join(part.text for part in (await client.call_tool(*wanted)).content))
        return Played(tools, texts)


def measured(tmp_path: Path, **faults: Any) -> Mapping[Way, Cell]:
    """A client with such faults, measured; it has no stdio."""

    async def play_all(seats: Sequence[Seat]) -> Sequence[Played | Exception]:
        first = {seat.way: seat for seat in reversed(seats)}
        done: list[Played | Exception] = []
        for seat in seats:
            if seat.way == "stdio":
                done.append(CannotPlay("no stdio"))
                continue
            if faults.get("crossed"):
                seat = replace(seat, url=first[seat.way].url, task=first[seat.way].task)
            played = await play(seat, faults.get("moves", 20))
            done.append(faults.get("change", lambda it: it)(played))
        return done

    return asyncio.run(measure(Client("toy", lambda: "toy 1", play_all), tmp_path)).cells


def test_a_sound_client_is_seen_to_be_one(tmp_path: Path) -> None:
    cells = measured(tmp_path)
    assert cells["episode"] == cells["bare"] == Cell(plays=True, isolated=True, same_hash=True)
    assert cells["stdio"].cannot == "no stdio"


def test_a_client_whose_games_are_one_game_is_not_isolated(tmp_path: Path) -> None:
    cells = measured(tmp_path, crossed=True)
    assert not cells["episode"].isolated
    assert not cells["bare"].isolated


def test_a_client_that_stops_early_has_not_played(tmp_path: Path) -> None:
    cells = measured(tmp_path, moves=2)
    assert not cells["episode"].plays
    assert not cells["bare"].plays


def test_a_client_that_changes_an_answer_or_a_schema_is_found_out(tmp_path: Path) -> None:
    def other_answers(played: Played) -> Played:
        return replace(played, texts=[text.replace("You played", "I played") for text in played.texts])

    def other_schema(played: Played) -> Played:
        return replace(played, tools=[tool | {"description": tool["description"] + "!"} for tool in played.tools])

    assert not measured(tmp_path / "answers", change=other_answers)["episode"].isolated
    cell = measured(tmp_path / "schema", change=other_schema)["episode"]
    assert (cell.plays, cell.isolated, cell.same_hash) == (True, True, False)


def test_what_a_client_changed_in_a_schema_is_told() -> None:
    count = {"type": "number", "description": "How many.", "title": "Count"}
    theirs = [TOOL | {"inputSchema": SCHEMA | {"properties": {"count": count}}, "strict": True}]
    assert differences([TOOL], theirs) == ["adds `title`", "changes `type`", "drops `minimum`"]
    assert told([*differences([TOOL], theirs), *additions(theirs)]) == (
        "adds `title`, `strict: true` to every tool; changes `type`; drops `minimum`"
    )
    assert differences([TOOL], []) == ["leaves out the tool `take`"]
    assert differences([TOOL], [TOOL, TOOL | {"name": "more"}]) == ["adds the tool `more`"]
    nameless = SCHEMA | {"properties": {}}
    assert differences([TOOL], [TOOL | {"inputSchema": nameless}]) == ["drops the parameter `count`"]
    assert differences([TOOL], [TOOL]) == []


def test_a_prefix_is_one_only_where_every_tool_has_it() -> None:
    other = TOOL | {"name": "put"}
    assert prefix_of([TOOL, other], [TOOL | {"name": "x_take"}, TOOL | {"name": "x_put"}]) == "x_"
    assert prefix_of([TOOL, other], [TOOL | {"name": "x_take"}, other]) == ""


def test_a_table_is_compared_without_its_versions() -> None:
    cell = Cell(plays=True, isolated=True, same_hash=False)
    row = Row("toy", "toy 1.2", {"episode": cell, "bare": cell, "stdio": replace(cell, cannot="no | stdio")}, [], [])
    text = table.line(row)
    assert text == "| toy | toy 1.2 | ✓ ✓ ✗ | ✓ ✓ ✗ | no \\| stdio | nothing |\n"
    assert table.compared(text) == table.compared(text.replace("1.2", "1.3"))
    assert table.compared(text) != table.compared(text.replace("✗", "✓"))
