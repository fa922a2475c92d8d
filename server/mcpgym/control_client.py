"""The control plane of a server, over HTTP: the same interface, results and errors as in process."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import aiohttp
from yarl import URL

from mcpgym.calls import CallRecord, CallResult
from mcpgym.control import Call, EnvironmentInfo, EpisodeStatus, Load, OpenedEpisode, TaskInfo
from mcpgym.control_plane.address import PREFIX, split_address
from mcpgym.control_plane.codec import MAX_CALLS, encode_strictly
from mcpgym.control_plane.failures import decode_error
from mcpgym.control_plane.secret import VARIABLE, checked_secret, configured_secret
from mcpgym.errors import ConfigurationError, McpgymError, ServerUnavailable, UnknownEpisodeError
from mcpgym.messages import Message
from mcpgym.receipts import checked_claims
from mcpgym.rewards import Score
from mcpgym.telemetry import switch
from mcpgym.telemetry.context import carry

T = TypeVar("T")

CONNECT_SECONDS = 5.0
PATIENCE_SECONDS = 5.0
"""After this long without an answer the client asks whether the server is alive at all."""
ALIVE_SECONDS = 10.0
ATTEMPTS = 4
BATCH_BYTES = 8 * 1024 * 1024
PAGE = 1000
METRICS = "/metrics"
"""The one path that answers with a text, and not with JSON."""
CONNECTIONS = 256
KEEP_SECONDS = 60.0
"""How long an idle connection is kept; the server keeps it longer, so a call never meets one that is just closing."""

_TOKEN = re.compile(r"[A-Za-z0-9_-]+")


class HttpControl:
    """A :class:`~mcpgym.control.ControlPlane` that some server process has.

    Use it within one event loop, and :meth:`aclose` it there (or ``async with`` it). A request that could not be sent
    is tried again; one that was sent is repeated only where that changes nothing.

    Args:
        control_url: ``unix:/path`` or ``http://host:port``, as the server printed it.
        secret: its secret; by default from the environment (``MCPGYM_CONTROL_SECRET``).
        timeout: seconds one request may take in all. A server that dies is noticed within seconds regardless.

    Raises:
        ConfigurationError: no such address can be, or there is no secret.
    """

    def __init__(self, control_url: str, secret: str | None = None, timeout: float = 600.0) -> None:
        self.url = control_url
        self._path, self._base = split_address(control_url)
        found = configured_secret() if secret is None else checked_secret(secret, "the secret that was passed")
        if found is None:
            raise ConfigurationError(f"no control secret: set {VARIABLE} to the one that `mcpgym serve` printed")
        if not timeout > 0:
            raise ConfigurationError(f"timeout {timeout}: a number of seconds above 0")
        self._headers = {"authorization": f"Bearer {found}", "content-type": "application/json"}
        self._timeout = timeout
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    async def __aenter__(self) -> HttpControl:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    async def environments(self) -> list[EnvironmentInfo]:
        """Every environment that is served."""
        found = await self._get("/environments")
        return [_made(EnvironmentInfo, item) for item in found["environments"]]

    async def tasks(
        self,
        environment: str,
        split: str,
        *,
        offset: int = 0,
        limit: int = 100,
        config: Mapping[str, Any] | None = None,
    ) -> list[TaskInfo]:
        """Tasks ``offset`` to ``offset + limit`` of a split; fewer where it ends."""
        tasks: list[TaskInfo] = []
        query = {"environment": environment, "split": split}
        if config is not None:
            query["config"] = _json(dict(config), "config").decode()
        whole = 0 <= limit <= 10_000  # what is not, the server refuses in its words
        while True:
            page = min(limit - len(tasks), PAGE) if whole else limit
            query |= {"offset": str(offset + len(tasks)), "limit": str(page)}
            text = "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())
            found = [_made(TaskInfo, item) for item in (await self._get(f"/tasks?{text}"))["tasks"]]
            tasks += found
            if len(found) < PAGE or len(tasks) >= limit:
                return tasks

    async def open(
        self,
        environment: str,
        *,
        task: str | None = None,
        split: str | None = None,
        index: int | None = None,
        seed: int = 0,
        config: Mapping[str, Any] | None = None,
        max_turns: int | None = None,
    ) -> OpenedEpisode:
        """Open an episode of one task."""
        wanted = {"environment": environment, "task": task, "split": split, "index": index, "seed": seed}
        wanted |= {} if max_turns is None else {"max_turns": max_turns}
        body = _json({**wanted, "config": None if config is None else dict(config)}, "config")
        return _made(OpenedEpisode, await self._request("POST", "/episodes", body))

    async def calls(self, token: str) -> list[CallRecord]:
        """Every call that the episode has answered, in order."""
        found = (await self._get(f"{_episode(token)}/calls"))["calls"]
        fields = CallRecord._fields
        return [CallRecord(*(item[name] for name in fields)) for item in found]

    async def step(self, calls: Sequence[Call]) -> list[CallResult]:
        """Answer many calls: in order within an episode, side by side between episodes."""
        results: list[CallResult | None] = [None] * len(calls)
        for places, body in _batches(calls, results):
            for place, item in zip(places, (await self._request("POST", "/step", body))["results"], strict=True):
                results[place] = CallResult(item["text"], item["is_error"], item["done"])
        return [result for result in results if result is not None]

    async def respond(self, token: str, messages: Sequence[Message]) -> list[Message] | None:
        """What the environment says as the user after ``messages``; None ends the rollout."""
        body = _json({"messages": list(messages)}, "messages")
        said: list[Message] | None = (await self._request("POST", f"{_episode(token)}/respond", body))["messages"]
        return said

    async def status(self, token: str) -> EpisodeStatus:
        """Where the episode stands; also of one that has ended."""
        return _made(EpisodeStatus, await self._get(_episode(token)))

    async def score(
        self, token: str, messages: Sequence[Message] | None = None, *, claims: Mapping[str, str] | None = None
    ) -> Score:
        """The score, with the transcript where there is one; signed where the server signs."""
        wanted: dict[str, Any] = {"messages": None if messages is None else list(messages)}
        if claims is not None:
            wanted["claims"] = checked_claims(claims)
        body = _json(wanted, "messages")
        return _made(Score, await self._request("POST", f"{_episode(token)}/score", body))

    async def close(self, token: str) -> None:
        """End the episode."""
        await self._request("DELETE", _episode(token), again=True)

    async def load(self) -> Load:
        """How much the server has to do."""
        return _made(Load, await self._get("/load"))

    async def metrics(self) -> str:
        """The server's metrics, in Prometheus's text format."""
        return str(await self._get(METRICS))

    async def aclose(self) -> None:
        """Close the connections. The server and its episodes live on."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _get(self, path: str) -> Any:
        return await self._request("GET", path, again=True)

    async def _request(self, method: str, path: str, body: bytes | None = None, *, again: bool = False) -> Any:
        """The JSON that answers a request; ``again`` says that repeating it changes nothing."""
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(0.05 * 3**attempt)
            last = attempt == ATTEMPTS - 1
            try:
                return await self._while_alive(self._exchange(method, path, body))
            except aiohttp.ClientConnectorError as error:  # nothing was sent
                if last or isinstance(error.os_error, (FileNotFoundError, PermissionError)):
                    raise self._unavailable(f"nothing answers there ({error.os_error.strerror or error})") from error
            except aiohttp.ConnectionTimeoutError as error:
                if last:
                    raise self._unavailable(f"no connection within {CONNECT_SECONDS:g} s") from error
            except TimeoutError as error:
                raise self._unavailable(f"no answer within {self._timeout:g} s") from error
            except (aiohttp.ClientError, OSError) as error:
                if last or not again:
                    broken = self._unavailable("the connection broke in mid-request; has it stopped?")
                    broken.in_mid_request = True
                    raise broken from error
        raise AssertionError("unreachable")

    async def _exchange(self, method: str, path: str, body: bytes | None) -> Any:
        url = f"{self._base}{PREFIX}{path}"
        session, headers = self._connected(), self._headers
        if switch.recorder is not None:
            carry(headers := dict(headers))
        async with session.request(method, URL(url, encoded=True), data=body, headers=headers) as answer:
            content = await answer.read()
            if "mcpgym-control" not in answer.headers:
                raise self._not_ours(answer.status)
            if answer.status == 204:
                return None
            if path == METRICS and answer.status == 200:
                return content.decode("utf-8", "replace")
            try:
                value = json.loads(content)
            except ValueError:
                raise self._unavailable(f"it answered {answer.status} with what is no JSON") from None
            if answer.status < 400:
                return value
            raise decode_error(value) or self._unavailable(f"it answered {answer.status}")

    async def _while_alive(self, exchange: Coroutine[Any, Any, T]) -> T:
        """The result of ``exchange``; while it takes long, make sure now and then that the server lives."""
        task = asyncio.ensure_future(exchange)
        try:
            while True:
                await asyncio.wait({task}, timeout=PATIENCE_SECONDS)
                if task.done():
                    return task.result()
                await self._must_be_alive(task)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})

    async def _must_be_alive(self, task: asyncio.Future[Any]) -> None:
        patience = aiohttp.ClientTimeout(total=ALIVE_SECONDS)
        try:  # on a connection of its own: the pool's may all be waiting for answers
            async with (
                aiohttp.ClientSession(connector=self._connector(1), timeout=patience) as session,
                session.get(f"{self._base}{PREFIX}/health") as answer,
            ):
                await answer.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            if not task.done():
                waited = PATIENCE_SECONDS + ALIVE_SECONDS
                raise self._unavailable(f"it gave no sign of life for {waited:g} s; is it stopped or stuck?") from error

    def _connected(self) -> aiohttp.ClientSession:
        if self._closed:
            raise self._unavailable("this client of it was closed")
        if self._session is None or self._session.closed:
            self._session = aiohttp.ClientSession(
                connector=self._connector(CONNECTIONS),
                timeout=aiohttp.ClientTimeout(total=self._timeout, sock_connect=CONNECT_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                raise_for_status=False,
            )
        return self._session

    def _connector(self, limit: int) -> aiohttp.BaseConnector:
        if self._path is not None:
            return aiohttp.UnixConnector(str(self._path), limit=limit, keepalive_timeout=KEEP_SECONDS)
        return aiohttp.TCPConnector(limit=limit, keepalive_timeout=KEEP_SECONDS)

    def _unavailable(self, what: str) -> ServerUnavailable:
        return ServerUnavailable(f"the environment server at {self.url} is not available: {what}")

    def _not_ours(self, status: int) -> McpgymError:
        return ServerUnavailable(
            f"what answers at {self.url} ({status}) is no control plane. If that is the URL players connect to, pass "
            "the control address that the server printed instead: unix:/path or http://host:port"
        )


def _batches(calls: Sequence[Call], results: list[CallResult | None]) -> Iterator[tuple[list[int], bytes]]:
    """The calls' places and bodies of requests that the server takes; what has no JSON is answered in ``results``."""
    places: list[int] = []
    parts: list[bytes] = []
    size = 0
    for place, call in enumerate(calls):
        item: dict[str, Any] = {"token": call.token, "name": call.name, "arguments": call.arguments}
        if call.key is not None:
            item["key"] = call.key
        try:
            part = encode_strictly(item)
        except (ValueError, TypeError, RecursionError) as error:
            results[place] = CallResult(f"{call.name}: its arguments are not JSON: {error}", is_error=True)
            continue
        if len(part) > BATCH_BYTES:
            results[place] = CallResult(f"{call.name}: {len(part)} bytes; {BATCH_BYTES} at most", is_error=True)
            continue
        if parts and (len(parts) == MAX_CALLS or size + len(part) > BATCH_BYTES):
            yield places, b'{"calls":[' + b",".join(parts) + b"]}"
            places, parts, size = [], [], 0
        places.append(place)
        parts.append(part)
        size += len(part)
    if parts:
        yield places, b'{"calls":[' + b",".join(parts) + b"]}"


def _json(value: Mapping[str, Any], what: str) -> bytes:
    try:
        return encode_strictly(value)
    except (ValueError, TypeError, RecursionError) as error:
        raise ConfigurationError(f"{what}: cannot be sent as JSON: {error}") from None


def _episode(token: str) -> str:
    if not _TOKEN.fullmatch(token):
        raise UnknownEpisodeError("no episode has this token")
    return f"/episodes/{token}"


def _made(cls: type[T], value: Any) -> T:
    """A dataclass from its JSON; fields of a newer server are left out."""
    return cls(**{name: value[name] for name in cls.__dataclass_fields__ if name in value})  # type: ignore[attr-defined]
