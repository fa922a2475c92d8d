"""The control plane of an mcpgym server: it lists tasks, opens, scores and closes episodes. No policy gets near it."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx

SERVER = "MCPGYM_SERVER"
SECRET = "MCPGYM_CONTROL_API_KEY"
SECRET_NAMES = {"MCPGYM_CONTROL_SECRET": SECRET, "MCPGYM_CONTROL_SECRET_FILE": "MCPGYM_CONTROL_API_KEY_FILE"}
"""How the server's own variables are called here. What verifiers starts does not inherit names with API_KEY in them."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
PAGE = 1000
SECONDS = 600.0
"""How long one request may take: as long as the longest tool or reward."""


class ServerTrouble(Exception):
    """The server is not there, refuses, or is not the one that was exported; the text says which, and what to do."""


class Unscored(Exception):
    """An episode that has no score: a reward had no input, or the environment broke. It counts as failed, not as 0."""


def take_secret() -> str:
    """The control secret, from the environment or a file named there; programs started later do not inherit it.

    Raises:
        ServerTrouble: there is none.
    """
    for name, ours in SECRET_NAMES.items():
        if name in os.environ:
            os.environ[ours] = os.environ.pop(name)
    if value := os.environ.get(SECRET):
        return value
    if named := os.environ.get(SECRET_NAMES["MCPGYM_CONTROL_SECRET_FILE"]):
        try:
            return Path(named).read_text("utf-8").strip()
        except OSError as error:
            raise ServerTrouble(f"the control secret's file {named} cannot be read: {error.strerror}") from None
    raise ServerTrouble(
        "no control secret: set MCPGYM_CONTROL_SECRET to the one that `mcpgym serve` was given or printed, or "
        "MCPGYM_CONTROL_SECRET_FILE to a file with it"
    )


class Control:
    """One server's control plane.

    Args:
        exported: what the export knows: the environment's name, version, schema hash, rewards and configuration.
        server: ``http://host:port`` of the players or of the control plane, or ``unix:/path``; by default from the
            variable MCPGYM_SERVER, else as exported.
        players: where players reach the server, when that is not where the server itself believes to be.
        options: fields of the environment's configuration.

    Raises:
        ServerTrouble: no such address can be, or there is no secret.
    """

    def __init__(
        self,
        exported: Mapping[str, Any],
        server: str = "",
        players: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.exported = exported
        self.server = server or os.environ.get(SERVER) or exported["server"]
        self._players = players
        self._options = dict(exported["config"] if options is None else options)
        self._socket, self._base = _address(self.server)
        self._headers = {"Authorization": f"Bearer {take_secret()}"}

    def tasks(self, split: str) -> Iterator[dict[str, Any]]:
        """Every task of a split, in order: its ``id``, ``split`` and ``messages``; page by page.

        Raises:
            ServerTrouble: the server is not there, has no such split, or plays something else than was exported.
        """
        transport = httpx.HTTPTransport(uds=self._socket, retries=2, verify=self._verify, trust_env=False)
        with httpx.Client(transport=transport, base_url=self._base, headers=self._headers, timeout=SECONDS) as client:
            offset = 0
            self._check(self._read(self._got(client, "/environments", {})))
            while True:
                query = {"environment": self.exported["environment"], "split": split, "offset": offset, "limit": PAGE}
                if self._options:
                    query["config"] = json.dumps(self._options, separators=(",", ":"))
                found = self._read(self._got(client, "/tasks", query))["tasks"]
                yield from found
                if len(found) < PAGE:
                    return
                offset += PAGE

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """Connections for a while, within one event loop."""
        transport = httpx.AsyncHTTPTransport(uds=self._socket, retries=2, verify=self._verify, trust_env=False)
        async with httpx.AsyncClient(
            transport=transport, base_url=self._base, headers=self._headers, timeout=SECONDS
        ) as client:
            yield Session(self, client)

    @property
    def _verify(self) -> bool:
        return self._base.startswith("https:")

    def _check(self, answer: Mapping[str, Any]) -> None:
        """See that the server has the environment that was exported."""
        served = answer["environments"]
        for one in served:
            if one["name"] == self.exported["environment"]:
                whole = not self._options  # of a configuration of one's own, the first episode tells
                self._same(one["version"], *((one["schema_hash"], one["config"], one["rewards"]) if whole else ()))
                return
        names = ", ".join(one["name"] for one in served) or "nothing"
        raise ServerTrouble(f"the server at {self.server} serves {names}, and not {self.exported['environment']}")

    def _same(
        self,
        version: str,
        schema_hash: str | None = None,
        config: Mapping[str, Any] | None = None,
        rewards: Mapping[str, float] | None = None,
    ) -> None:
        """Refuse what is not what was exported: its scores would look like the others, and mean something else."""
        exported, remedy = (
            self.exported,
            "Scores of the two cannot be compared: export anew, or serve what was exported",
        )
        name = exported["environment"]
        if schema_hash not in (None, exported["schema_hash"]):
            raise ServerTrouble(
                f"the tools of {name} changed: schema hash {exported['schema_hash']} was exported "
                f"(version {exported['version']}), and the server at {self.server} has {schema_hash}. {remedy}"
            )
        others = [] if version == exported["version"] else [f"version {exported['version']}, and there {version}"]
        if config is not None:
            others += differences(exported["settings"], config, self._options)
        if rewards is not None:
            others += [f"the reward {said}" for said in differences(exported["rewards"], rewards, {})]
            others += [f"no reward {reward}, which is there" for reward in rewards if reward not in exported["rewards"]]
        if others:
            raise ServerTrouble(
                f"{name} at {self.server} is not what was exported: {'; '.join(others)}. {remedy}; fields that are "
                "given as options are sent with every episode"
            )

    def _got(self, client: httpx.Client, path: str, query: Mapping[str, Any]) -> httpx.Response:
        try:
            return client.get(f"/control/v1{path}", params=query)
        except httpx.TransportError as error:
            raise self._gone(error) from None

    async def _ask(self, client: httpx.AsyncClient, method: str, path: str, body: Any = None) -> Any:
        try:
            answer = await client.request(method, f"/control/v1{path}", json=body)
        except httpx.TransportError as error:
            raise self._gone(error) from None
        return self._read(answer)

    def _read(self, answer: httpx.Response) -> Any:
        if "mcpgym-control" not in answer.headers:
            raise ServerTrouble(
                f"what answers at {self.server} ({answer.status_code}) is no control plane of mcpgym; give the control "
                f"address that `mcpgym serve` printed (unix:/path or http://host:port) in {SERVER}"
            )
        if answer.status_code == 204:
            return None
        try:
            value = answer.json()
        except ValueError:
            raise ServerTrouble(f"the server at {self.server} answered {answer.status_code} without JSON") from None
        if answer.status_code < 400:
            return value
        raise ServerTrouble(f"the server at {self.server} says: {value.get('error', {}).get('message', value)}")

    def _gone(self, error: Exception) -> ServerTrouble:
        name = self.exported["environment"]
        return ServerTrouble(
            f"the server at {self.server} does not answer ({type(error).__name__}: {error}); start one with "
            f"`mcpgym serve {name}`, or say in {SERVER} where it is"
        )

    def _for_players(self, url: str) -> str:
        """The episode's URL as players reach it."""
        if self._players is None:
            return url
        there = urlsplit(self._players)
        return urlunsplit(urlsplit(url)._replace(scheme=there.scheme, netloc=there.netloc))


class Session:
    """The control plane over open connections."""

    def __init__(self, control: Control, client: httpx.AsyncClient) -> None:
        self._control = control
        self._client = client

    async def check(self) -> None:
        """Make sure that the server has the environment that was exported.

        Raises:
            ServerTrouble: it is not there, has other environments, or this one otherwise than it was exported.
        """
        self._control._check(await self._control._ask(self._client, "GET", "/environments"))

    async def open(self, task: str, seed: int) -> dict[str, Any]:
        """Open an episode: its ``token``, ``url``, ``messages``, ``max_turns`` and more.

        Raises:
            ServerTrouble: the server cannot, or plays something else than was exported.
        """
        wanted = {"environment": self._control.exported["environment"], "task": task, "seed": seed}
        wanted["config"] = self._control._options or None
        opened = await self._control._ask(self._client, "POST", "/episodes", wanted)
        try:
            self._control._same(opened["environment_version"], opened["schema_hash"], opened["config"])
        except ServerTrouble:
            await self.close(opened["token"])
            raise
        opened["url"] = self._control._for_players(opened["url"])
        return dict(opened)

    async def respond(self, token: str, messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]] | None:
        """What the environment says as the user; None where the rollout is over."""
        said = await self._control._ask(self._client, "POST", f"/episodes/{token}/respond", {"messages": messages})
        return said["messages"]

    async def status(self, token: str) -> dict[str, Any]:
        """Whether the episode is over (``done``), and why."""
        return dict(await self._control._ask(self._client, "GET", f"/episodes/{token}"))

    async def calls(self, token: str) -> list[dict[str, Any]]:
        """The calls that the episode has answered, in order."""
        return list((await self._control._ask(self._client, "GET", f"/episodes/{token}/calls"))["calls"])

    async def score(
        self, token: str, messages: Sequence[Mapping[str, Any]], claims: Mapping[str, str]
    ) -> dict[str, Any]:
        """The score: ``total``, ``components``, ``game_outcome`` and ``receipt``.

        Raises:
            Unscored: there is none.
            ServerTrouble: the server is gone.
        """
        body = {"messages": messages, "claims": claims}
        score = dict(await self._control._ask(self._client, "POST", f"/episodes/{token}/score", body))
        if score["total"] is None:
            missing = [name for name, value in score["components"].items() if value is None]
            raise Unscored(f"the episode has no score: {', '.join(missing)} could not be told")
        return score

    async def close(self, token: str) -> None:
        """End the episode; one that cannot be reached any more ends by itself."""
        with suppress(ServerTrouble):
            await self._control._ask(self._client, "DELETE", f"/episodes/{token}")


def differences(exported: Mapping[str, Any], there: Mapping[str, Any], sent: Mapping[str, Any]) -> list[str]:
    """What was exported otherwise than it is there, but for what is sent with every episode."""
    ours, theirs, given = flat(exported), flat(there), tuple(flat(sent))
    return [
        f"{name} {json.dumps(value)}, and there {json.dumps(theirs.get(name))}"
        for name, value in ours.items()
        if theirs.get(name) != value and not any(f"{name}.".startswith(f"{one}.") for one in given)
    ]


def flat(fields: Mapping[str, Any]) -> dict[str, Any]:
    """``section.field`` for the fields of a section."""
    found: dict[str, Any] = {}
    for name, value in fields.items():
        section = flat(value) if isinstance(value, Mapping) else None
        found |= {name: value} if section is None else {f"{name}.{key}": one for key, one in section.items()}
    return found


def _address(text: str) -> tuple[str | None, str]:
    """The socket's path (None over TCP) and the base URL. A player's URL on this machine means that port's socket."""
    if text.startswith("unix:/"):
        return "/" + text.removeprefix("unix:").lstrip("/"), "http://control"
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ServerTrouble(f"{text!r} is no server: write http://127.0.0.1:8000, or unix:/path/to/control.sock")
    if parts.hostname in LOOPBACK and parts.port and hasattr(os, "getuid"):
        runtime = os.environ.get("XDG_RUNTIME_DIR", "")
        folders = [Path(tempfile.gettempdir()) / f"mcpgym-{os.getuid()}"]
        if Path(runtime).is_absolute():
            folders.insert(0, Path(runtime) / "mcpgym")
        for folder in folders:
            path = folder / f"control-{parts.port}.sock"
            if path.is_socket() and path.stat().st_uid == os.getuid():
                return str(path), "http://control"
    return None, f"{parts.scheme}://{parts.netloc}"


_SAFE = re.compile(r"[^A-Za-z0-9._-]+")


def label(text: str) -> str:
    """``text`` as a receipt may repeat it."""
    return _SAFE.sub("-", text)[:100] or "unknown"
