"""The official SDK's session over a server process: a JSON-RPC message a line, with limits that hold for any server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from mcpgym.errors import InfrastructureError
from mcpgym.own_server import processes
from mcpgym.own_server.connection import Connection, Opener
from mcpgym.own_server.processes import TOO_LONG, Command, ServerProcess

if TYPE_CHECKING:
    from mcp.client.session import ClientSession


def opener(command: Command, seed: int, holder: Holder) -> Opener:
    """What starts the command's process and connects to it; ``holder`` knows the process from then on."""

    @contextlib.asynccontextmanager
    async def opened(connection: Connection) -> AsyncIterator[ClientSession]:
        process = holder.process = await ServerProcess.start(command, seed)
        try:
            async with _streams(process) as (read, write), _session(read, write, connection) as session:
                yield session
        finally:
            await asyncio.shield(asyncio.ensure_future(process.end()))

    return opened


class Holder:
    """The process of a connection, once it is started."""

    def __init__(self) -> None:
        self.process: ServerProcess | None = None

    def tail(self) -> str:
        """How the process ended, and what it said last."""
        return "" if self.process is None else self.process.tail()

    def gone(self) -> bool:
        """Whether the process has ended."""
        return self.process is not None and self.process.gone


@contextlib.asynccontextmanager
async def _session(read: Any, write: Any, connection: Connection) -> AsyncIterator[ClientSession]:
    """A session after its handshake: the one of old, which all servers know that keep anything for a session; where a
    server refuses it, what 2026-07-28 has instead."""
    import mcp_types as types
    from mcp.client.session import ClientSession
    from mcp.shared.exceptions import MCPError
    from mcp_types.version import LATEST_MODERN_VERSION

    async with ClientSession(read, write, message_handler=connection.heard) as session:
        try:
            await session.initialize()
        except MCPError as refused:
            if refused.code == types.CONNECTION_CLOSED:
                raise InfrastructureError(await _why_it_ended(connection)) from refused
            try:
                found = await session.send_discover(LATEST_MODERN_VERSION)
                session.adopt(types.DiscoverResult.model_validate(found))
            except (MCPError, ValueError) as error:
                raise InfrastructureError(
                    f"{connection.what} is no MCP server: it answers initialize with {refused.message[:200]!r}, and "
                    f"server/discover with {str(error)[:200]!r}{connection.tail()}"
                ) from error
        yield session


async def _why_it_ended(connection: Connection) -> str:
    await asyncio.sleep(0.1)  # its end is noticed before its exit code is known
    return f"{connection.what} ended before it had begun{connection.tail()}"


@contextlib.asynccontextmanager
async def _streams(process: ServerProcess) -> AsyncIterator[tuple[Any, Any]]:
    import anyio
    from mcp.shared.message import SessionMessage

    incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    last: list[Any] = [None]  # the id of the last request: there is one at a time

    async def listen() -> None:
        noise = 0
        async with incoming:
            async for line in process.lines():
                message = _too_long(last[0]) if line is TOO_LONG else _message(line)
                if message is not None:
                    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                        await incoming.send(SessionMessage(message))
                    continue
                noise += len(line)
                process.noise = process.noise or line.strip()[:200].decode("utf-8", "replace")
                if noise > processes.MAX_NOISE:
                    return

    async def speak() -> None:
        async with outgoing:
            async for sent in outgoing:
                if (number := getattr(sent.message, "id", None)) is not None and hasattr(sent.message, "method"):
                    last[0] = number
                text = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    await process.write(text.encode() + b"\n")
                except OSError:  # it reads no more: whoever waits for an answer must hear of it
                    await incoming.aclose()
                    return

    async with anyio.create_task_group() as group:
        group.start_soon(listen)
        group.start_soon(speak)
        try:
            yield read, write
        finally:
            for stream in (read, write, incoming, outgoing):
                stream.close()
            group.cancel_scope.cancel()


def _message(line: bytes) -> Any:
    """The message in a line; None where there is none."""
    import mcp_types as types

    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return None


def _too_long(number: Any) -> Any:
    """In place of an answer that nobody should read whole."""
    import mcp_types as types

    if number is None:
        return None
    said = f"the answer has more than {processes.MAX_LINE:,} bytes, and nothing of it was read. Ask for less"
    return types.JSONRPCError(jsonrpc="2.0", id=number, error=types.ErrorData(code=types.INTERNAL_ERROR, message=said))
