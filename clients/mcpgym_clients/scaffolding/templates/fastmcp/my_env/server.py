"""An ordinary FastMCP server. What makes it an environment is that a function makes a new one for each episode."""

from __future__ import annotations

from random import Random
from typing import Annotated, Literal

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from pydantic import Field

Account = Annotated[Literal["savings", "spending"], Field(description="An account: savings or spending.")]


def make_server(seed: int) -> tuple[FastMCP, dict[str, int]]:
    """A bank with two accounts; the rewards are given the accounts beside the server."""
    random = Random(seed)
    accounts = {"savings": 10 * random.randint(1, 50), "spending": 10 * random.randint(1, 50)}
    server: FastMCP = FastMCP("bank")

    @server.tool
    def balance(account: Account) -> str:
        """Tell how much money an account has."""
        return f"{account}: {accounts[account]}"

    @server.tool
    def transfer(source: Account, amount: Annotated[int, Field(ge=1, le=1000, description="How much money.")]) -> str:
        """Move money from an account to the other one."""
        if amount > accounts[source]:
            raise ToolError(f"{source} has only {accounts[source]}")
        target = "spending" if source == "savings" else "savings"
        accounts[source] -= amount
        accounts[target] += amount
        return f"{source}: {accounts[source]}, {target}: {accounts[target]}"

    return server, accounts
