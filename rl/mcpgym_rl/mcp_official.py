"""The official SDK's client, unmodified, in the place of the thin one: what other people's harnesses would use."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from mcp import Client
from mcp.shared.exceptions import MCPError

from mcpgym import meta_keys
from mcpgym.calls import CallResult
from mcpgym.errors import ServerUnavailable
from mcpgym.telemetry.context import CURRENT
from mcpgym.telemetry.sections import shared
from mcpgym_rl.failures import explain, uninterrupted
from mcpgym_rl.mcp_thin import call_answered, call_refused

ValueT = TypeVar("ValueT")

_CONNECTION_CLOSED = -32000
_TIMED_OUT = -32001
_CLOSE_SECONDS = 2.0


class OfficialClient:
    """Makes one SDK client per episode. ``mode`` is the SDK's: ``auto``, ``legacy`` or a protocol version."""

    def __init__(self, mode: str, timeout: float) -> None:
        self._mode = mode
        self._timeout = timeout

    async def connect(self, url: str) -> OfficialConnection:
        """Connect to one episode."""
        connection = OfficialConnection(Client(url, mode=self._mode, read_timeout_seconds=self._timeout))
        await connection.open()
        return connection

    async def aclose(self) -> None:
        """Each connection closes itself."""


class OfficialConnection:
    """One SDK client. It must be opened and closed in one task, so it lives in a task of its own."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._work: asyncio.Queue[Callable[[], Awaitable[None]] | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect.

        Raises:
            ServerUnavailable: it could not.
        """
        self._task = asyncio.create_task(self._live())
        try:
            await self._do(self._nothing)
        except BaseException:
            await self.aclose()
            raise

    async def tools(self) -> list[dict[str, Any]]:
        """The tools as the server lists them."""
        current = CURRENT.get()  # the SDK puts OpenTelemetry's into a request, and it works in a task of its own

        async def listed() -> list[dict[str, Any]]:
            tools, cursor = [], None
            while True:
                with shared(current):
                    page = await self._client.list_tools(cursor=cursor)
                tools += [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in page.tools]
                if not (cursor := page.next_cursor):
                    return tools

        return await self._do(listed)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> CallResult:
        """One tool call."""
        current = CURRENT.get()

        async def called() -> CallResult:
            meta: Any = {meta_keys.IDEMPOTENCY: secrets.token_hex(16)}
            try:
                with shared(current):
                    result = await self._client.call_tool(name, dict(arguments), meta=meta)
            except MCPError as error:
                if error.error.code in (_CONNECTION_CLOSED, _TIMED_OUT):
                    raise ServerUnavailable(f"the MCP server did not answer: {error.error.message}") from None
                return call_refused(error.error.code, error.error.message)
            blocks = [block.model_dump(mode="json") for block in result.content]
            return call_answered(blocks, result.is_error, result.meta)

        return await self._do(called)

    async def aclose(self) -> None:
        """Disconnect."""
        if self._task is None:
            return
        task, self._task = self._task, None
        self._work.put_nowait(None)

        async def ended() -> None:
            _, late = await asyncio.wait([task], timeout=_CLOSE_SECONDS)
            if late:
                task.cancel()
                await asyncio.wait([task])
            if not task.cancelled():
                task.exception()  # seen; whoever asked has been told

        await uninterrupted(ended())

    async def _nothing(self) -> None:
        """Being done proves that the client is connected."""

    async def _live(self) -> None:
        async with self._client:
            while (work := await self._work.get()) is not None:
                await work()

    async def _do(self, work: Callable[[], Awaitable[ValueT]]) -> ValueT:
        """Have ``work`` done in the client's task."""
        if (task := self._task) is None:
            raise ServerUnavailable("this connection has been closed")
        answer: asyncio.Future[ValueT] = asyncio.get_running_loop().create_future()

        async def at_work() -> None:
            try:
                value = await work()
            except Exception as error:
                if not answer.done():
                    answer.set_exception(error)
            else:
                if not answer.done():
                    answer.set_result(value)

        self._work.put_nowait(at_work)
        try:
            waited: set[asyncio.Future[Any]] = {answer, task}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            answer.cancel()
            task.cancel()  # its call goes with it
            raise
        try:
            if answer.done():
                return answer.result()
            task.result()
        except ServerUnavailable:
            raise
        except (asyncio.CancelledError, Exception) as error:
            raise ServerUnavailable(f"the MCP server cannot be reached: {explain(error)}") from error
        raise ServerUnavailable("the MCP client ended before its answer")
