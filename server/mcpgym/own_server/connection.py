"""The connection to one episode's server: opened and closed in one task, as the SDK demands, used from any other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from mcpgym.errors import InfrastructureError, McpgymError, ToolError
from mcpgym.own_server.contents import text_of
from mcpgym.own_server.quiet import quiet_tools
from mcpgym.schema import content_hash

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

logger = logging.getLogger(__name__)

MAX_PAGES = 100
"""Pages of a list of tools."""
MAX_LISTED = 1_000
"""Tools that are read of a list before it counts as one without an end."""
END_SECONDS = 0.1
"""How long after its connection a process's exit code may come."""
CLOSE_SECONDS = 10.0
"""How long a server has to end its lifespan; then it is cancelled."""

_CLOSED = "Connection closed"
"""What the SDK says where there is no connection any more; servers may use its code for errors of their own."""

Opener = Callable[["Connection"], AbstractAsyncContextManager["ClientSession"]]
"""Opens the session of a connection: in process, or to a process."""


class Connection:
    """One server, from its first message to its end. Make it, :meth:`open` it, and :meth:`close` it in any case.

    Args:
        opener: enters the session, its handshake included.
        what: what messages call the server.
        tail: what to add to a message when it is gone: how its process ended, the end of its log.
        gone: whether its process has ended.
    """

    def __init__(
        self,
        opener: Opener,
        what: str,
        tail: Callable[[], str] = lambda: "",
        gone: Callable[[], bool] = lambda: False,
    ) -> None:
        self.what = what
        self.tail = tail
        self._gone = gone
        self.tools_announced = False
        """Whether the server has said, since its tools were last listed, that they are others now."""
        self._opener = opener
        self._session: ClientSession | None = None
        self._over = asyncio.Event()
        self._holding: asyncio.Task[None] | None = None
        self._running: asyncio.Task[str] | None = None

    @property
    def alive(self) -> bool:
        """Whether the server can still be asked."""
        held = self._session is not None and self._holding is not None and not self._holding.done()
        return held and not self._gone()

    @property
    def about(self) -> dict[str, str]:
        """What the server says of itself: ``name``, ``version``, and the ``protocol`` that was agreed on."""
        session = self._asked()
        info = session.server_info
        named = {} if info is None else {"name": info.name[:100], "version": info.version[:100]}
        return {**named, "protocol": str(session.protocol_version)}

    @property
    def instructions(self) -> str:
        """What the server wants a model to know of it."""
        return self._asked().instructions or ""

    async def open(self, seconds: float) -> None:
        """Begin.

        Raises:
            InfrastructureError: the server could not be reached within ``seconds``, or said no.
        """
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._holding = asyncio.get_running_loop().create_task(self._hold(ready))
        try:
            async with asyncio.timeout(seconds):
                await asyncio.wait({ready, self._holding}, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            why = f"{self.what} did not answer within {seconds:g} s{self.tail()}"
            await self.close()
            raise InfrastructureError(why) from None
        except BaseException:
            await self.close()
            raise
        if ready.done():
            ready.result()
            return
        error = None if self._holding.cancelled() else self._holding.exception()
        if isinstance(first := _first(error), McpgymError):
            raise first
        said = "" if first is None else f": {str(first) or type(first).__name__}"
        raise InfrastructureError(f"{self.what} could not be started{said}{self.tail()}") from error

    async def _hold(self, ready: asyncio.Future[None]) -> None:
        async with self._opener(self) as session:
            self._session = session
            ready.set_result(None)
            await self._over.wait()

    async def close(self) -> None:
        """End the server, however it stands; doing it twice does nothing more."""
        self._over.set()
        holding = self._holding
        if holding is None:
            return
        if self._running is not None:
            self._running.cancel()
        if self._session is None:
            holding.cancel()
        await asyncio.wait({holding}, timeout=CLOSE_SECONDS)
        if not holding.done():
            holding.cancel()
            await asyncio.wait({holding}, timeout=CLOSE_SECONDS)
        if not holding.done():
            logger.error("%s does not end", self.what)
        elif not holding.cancelled() and (error := holding.exception()) is not None and self._session is not None:
            logger.warning("%s ended badly: %s", self.what, _first(error))

    async def tools(self) -> list[dict[str, Any]]:
        """The server's tools as it lists them, all pages.

        Raises:
            InfrastructureError: it does not say, or does not come to an end.
        """
        import mcp_types as types

        listed: list[dict[str, Any]] = []
        cursor = None
        self.tools_announced = False
        for _ in range(MAX_PAGES):
            try:
                page = await self._asked().list_tools(params=types.PaginatedRequestParams(cursor=cursor))
            except Exception as error:
                raise self._lost(error, "does not list its tools") from error
            listed += [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in page.tools]
            if not (cursor := page.next_cursor):
                return listed
            if len(listed) > MAX_LISTED:
                break
        raise InfrastructureError(
            f"{self.what} lists tools without an end: {len(listed)} so far, and still another page"
        )

    async def call(self, tool: str, arguments: Mapping[str, Any], seconds: float) -> str:
        """The text that the server's ``tool`` answers. Calls go to the server in order, one at a time.

        A call whose caller goes away runs to its end, or to its limit of ``seconds``; later ones wait for it. One that
        runs over it is cancelled.

        Raises:
            ToolError: the tool failed, or its result is none that can be read.
            InfrastructureError: the server is gone.
        """
        loop = asyncio.get_running_loop()
        if (earlier := self._running) is not None and not earlier.done():
            await asyncio.wait({earlier})
        started = loop.time()
        mine = self._running = loop.create_task(self._call(tool, arguments))
        limit = loop.call_at(started + seconds, mine.cancel)
        mine.add_done_callback(lambda done: _looked_at(done, limit))
        try:
            return await asyncio.shield(mine)
        except asyncio.CancelledError:
            me = asyncio.current_task()
            if me is not None and me.cancelling():
                raise
            if self._over.is_set():
                raise InfrastructureError(f"{self.what} was ended") from None
            raise ToolError(f"{tool} did not finish within {seconds:g} s and was stopped") from None

    async def _call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        import mcp_types as types
        from mcp.shared.exceptions import MCPError

        quiet_tools()  # a call is a task of its own
        request = types.CallToolRequest(params=types.CallToolRequestParams(name=tool, arguments=dict(arguments)))
        try:
            result = await self._asked().send_request(request, types.CallToolResult)
        except MCPError as error:
            if (error.code == types.CONNECTION_CLOSED and error.message == _CLOSED) or not self.alive:
                await asyncio.sleep(END_SECONDS)
                raise self._lost(error, f"ended while {tool} was called") from error
            raise ToolError(error.message or f"{tool} failed and did not say why") from None
        except ValueError as error:  # no result of the protocol
            raise ToolError(f"{tool} answered what is no result of a tool: {str(error)[:300]}") from None
        except (OSError, RuntimeError) as error:
            raise self._lost(error, f"ended while {tool} was called") from error
        except Exception as error:
            if type(error).__module__.startswith("anyio"):
                raise self._lost(error, f"ended while {tool} was called") from error
            raise
        return text_of(tool, result)

    def _asked(self) -> ClientSession:
        if self._session is None or not self.alive:
            raise InfrastructureError(f"{self.what} has ended{self.tail()}")
        return self._session

    def _lost(self, error: BaseException, what: str) -> McpgymError:
        if isinstance(error, McpgymError):
            return error
        return InfrastructureError(f"{self.what} {what}{self.tail()}" + ("" if self.tail() else f": {error}"))

    async def heard(self, message: Any) -> None:
        """Take note of what the server says unasked: of all its messages, that its tools have changed."""
        import mcp_types as types

        if isinstance(getattr(message, "root", message), types.ToolListChangedNotification):
            self.tools_announced = True


def _looked_at(done: asyncio.Task[str], limit: asyncio.TimerHandle) -> None:
    """A call has ended; where nobody waits for it any more, the loop need not report how."""
    limit.cancel()
    if not done.cancelled():
        done.exception()


def same_tools(one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]) -> bool:
    """Whether two lists of tools are the same for whoever calls them: names, descriptions and input schemas."""
    return _seen(one) == _seen(other)


def _seen(listed: Sequence[Mapping[str, Any]]) -> str:
    rows = [[str(tool.get("name")), tool.get("description"), tool.get("inputSchema")] for tool in listed]
    return content_hash(sorted(rows, key=lambda row: str(row[0])))


def _first(error: BaseException | None) -> BaseException | None:
    """The first real error in what task groups wrap it in."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
