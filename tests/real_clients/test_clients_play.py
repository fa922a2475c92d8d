"""Unmodified clients play whole games by every way, three at once; the table in docs/clients.md is what came of it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from tests.real_clients import table
from tests.real_clients.all_clients import CLIENTS
from tests.real_clients.clients import WAYS, Client
from tests.real_clients.measuring import measure


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_client_plays_and_its_row_in_the_table_is_what_was_measured(client: Client, tmp_path: Path) -> None:
    if (reason := client.missing()) is not None:
        if "CI" in os.environ:
            pytest.fail(reason)
        pytest.skip(reason)
    row = asyncio.run(measure(client, tmp_path))
    for way in WAYS:
        cell = row.cells[way]
        assert cell.cannot or (cell.plays and cell.isolated), f"{way}: {cell.problem}"
    committed = table.committed().get(client.name)
    assert committed is not None, f"no row for {client.name}: python -m tests.real_clients"
    assert table.compared(table.line(row)) == table.compared(committed), (
        "the table is old: python -m tests.real_clients"
    )


def test_the_table_has_a_row_for_each_client_in_their_order() -> None:
    assert list(table.committed()) == [client.name for client in CLIENTS]
    assert not any("not run" in text for text in table.committed().values())
