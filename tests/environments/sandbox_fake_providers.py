"""Providers' libraries in small: the few objects that our back-ends use of each, over processes of this machine.

Each fake machine is a folder; a command in it is the very one that the back-end asked for, with its workspace put into
that folder. **That matters**: an agent empties its workspace, and left alone it takes ``/work``.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mcpgym_environments.python_sandbox.backends import program

PIECE = 1 << 15


class Machine:
    """One place of a provider's: a folder, and at most one command in it."""

    made: list[Machine]

    def __init__(self, **asked: Any) -> None:
        self.asked = asked
        self.folder = Path(tempfile.mkdtemp(prefix="mcpgym-fake-"))
        self.process: asyncio.subprocess.Process | None = None
        self.ended = False

    async def begin(self, words: list[str]) -> asyncio.subprocess.Process:
        """Run one of our own two commands and no other, in this machine's folder."""
        assert words in (program.command(), program.command(text=True)), words
        inside = ["--work", str(self.folder / "work"), "--scratch", str(self.folder / "tmp")]
        for name in ("work", "tmp"):
            (self.folder / name).mkdir()
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            *words[1:],
            *inside,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
            env={"TMPDIR": str(self.folder)},
            start_new_session=True,
        )
        return self.process

    async def write(self, data: bytes) -> None:
        """To its input."""
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        await self.process.stdin.drain()

    async def read(self) -> bytes:
        """From its output."""
        assert self.process is not None
        assert self.process.stdout is not None
        return await self.process.stdout.read(PIECE)

    async def end(self) -> None:
        """What deleting a machine does."""
        self.ended = True
        if self.process is not None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            try:
                await asyncio.wait_for(self.process.wait(), 3)  # its init ends what it started
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    self.process.kill()
                await self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Provider:
    """The machines of one provider, and what was asked of it."""

    def __init__(self) -> None:
        self.machines: list[Machine] = []
        self.refusal: Exception | None = None
        self.closed = 0

    def machine(self, **asked: Any) -> Machine:
        """A new one."""
        if self.refusal is not None:
            raise self.refusal
        one = Machine(**asked)
        self.machines.append(one)
        return one


class Both:
    """A function of Modal's: to be awaited as ``.aio``."""

    def __init__(self, aio: Callable[..., Awaitable[Any]]) -> None:
        self.aio = aio


def words(line: str) -> list[str]:
    """The words of a shell's line that replaces the shell."""
    first, *rest = shlex.split(line)
    assert first == "exec"
    return rest


async def pieces(machine: Machine) -> AsyncIterator[bytes]:
    """Its output as an iterator."""
    while data := await machine.read():
        yield data


def e2b(provider: Provider) -> dict[str, Any]:
    """The module ``e2b``."""

    class AsyncSandbox:
        def __init__(self, machine: Machine) -> None:
            self.machine = machine
            self.commands = SimpleNamespace(run=self._run, send_stdin=self._send)

        @classmethod
        async def create(cls, **asked: Any) -> AsyncSandbox:
            return cls(provider.machine(**asked))

        async def _run(self, line: str, **asked: Any) -> Any:
            assert asked["background"] is True
            assert asked["stdin"] is True
            process = await self.machine.begin(words(line))

            async def follow() -> None:
                async for data in pieces(self.machine):
                    await asked["on_stdout"](data.decode("utf-8", "replace"))

            task = asyncio.ensure_future(follow())

            async def wait() -> None:
                await task

            return SimpleNamespace(pid=process.pid, wait=wait)

        async def _send(self, pid: int, data: str) -> None:
            assert self.machine.process is not None
            assert pid == self.machine.process.pid
            await self.machine.write(data.encode())

        async def kill(self) -> bool:
            await self.machine.end()
            return True

    return {"e2b": SimpleNamespace(AsyncSandbox=AsyncSandbox)}


def modal(provider: Provider) -> dict[str, Any]:
    """The module ``modal``."""

    async def create(**asked: Any) -> Any:
        machine = provider.machine(**asked)

        async def run(*command: str, text: bool) -> Any:
            assert text is False
            await machine.begin(list(command))
            held = bytearray()

            async def drain() -> None:
                data = bytes(held)
                held.clear()
                await machine.write(data)

            return SimpleNamespace(stdin=SimpleNamespace(write=held.extend, drain=Both(drain)), stdout=pieces(machine))

        return SimpleNamespace(exec=Both(run), terminate=Both(machine.end))

    async def lookup(name: str, create_if_missing: bool) -> str:
        return name

    image = SimpleNamespace(
        from_registry=lambda name: name, debian_slim=lambda python_version: f"debian with {python_version}"
    )
    made = SimpleNamespace(
        App=SimpleNamespace(lookup=Both(lookup)), Image=image, Sandbox=SimpleNamespace(create=Both(create))
    )
    return {"modal": made}


def daytona(provider: Provider) -> dict[str, Any]:
    """The module ``daytona``."""

    class Process:
        def __init__(self, machine: Machine) -> None:
            self.machine = machine
            self.sessions: set[str] = set()

        async def create_session(self, name: str) -> None:
            self.sessions.add(name)

        async def execute_session_command(self, name: str, request: Any) -> Any:
            assert name in self.sessions
            assert request.run_async
            assert request.suppress_input_echo
            await self.machine.begin(words(request.command))
            return SimpleNamespace(cmd_id="c1")

        async def get_session_command_logs_async(self, name: str, command: str, out: Any, err: Any) -> None:
            assert (name in self.sessions, command) == (True, "c1")
            async for data in pieces(self.machine):
                await out(data.decode())

        async def send_session_command_input(self, name: str, command: str, data: str) -> None:
            assert (name in self.sessions, command) == (True, "c1")
            await self.machine.write(data.encode())

    class AsyncDaytona:
        async def create(self, wanted: Any, *, timeout: float) -> Any:
            machine = provider.machine(**vars(wanted))
            kind = "linux-vm" if "vm" in str(getattr(wanted, "snapshot", "")) else "container"
            return SimpleNamespace(machine=machine, process=Process(machine), sandbox_class=kind)

        async def delete(self, sandbox: Any) -> None:
            await sandbox.machine.end()

        async def close(self) -> None:
            provider.closed += 1

    made = SimpleNamespace(
        AsyncDaytona=AsyncDaytona,
        CreateSandboxFromImageParams=SimpleNamespace,
        CreateSandboxFromSnapshotParams=SimpleNamespace,
        Resources=SimpleNamespace,
        SessionExecuteRequest=SimpleNamespace,
    )
    return {"daytona": made}


def prime(provider: Provider) -> dict[str, Any]:
    """The module ``prime_sandboxes``."""
    numbers = itertools.count(1)

    class AsyncSandboxClient:
        def __init__(self) -> None:
            self.machines: dict[str, Machine] = {}

        async def create(self, wanted: Any) -> Any:
            name = f"m{next(numbers)}"
            self.machines[name] = provider.machine(**vars(wanted))
            return SimpleNamespace(id=name)

        async def wait_for_creation(self, name: str) -> None:
            assert name in self.machines

        async def open_process(self, name: str, line: str, working_dir: str) -> Any:
            machine = self.machines[name]
            await machine.begin(words(line))
            return SimpleNamespace(write_stdin=machine.write, stdout=pieces(machine))

        async def delete(self, name: str) -> None:
            machine = self.machines.pop(name, None)
            if machine is not None:
                await machine.end()

        async def aclose(self) -> None:
            provider.closed += 1

    made = SimpleNamespace(
        AsyncSandboxClient=AsyncSandboxClient,
        CreateSandboxRequest=SimpleNamespace,
        Config=lambda: SimpleNamespace(api_key=""),
    )
    return {"prime_sandboxes": made}


def kubernetes(provider: Provider) -> dict[str, Any]:
    """The modules of ``kubernetes.aio``."""

    class ApiException(Exception):
        def __init__(self, status: int, reason: str = "") -> None:
            super().__init__(f"({status}) {reason}")
            self.status, self.reason = status, reason

    class ConfigException(Exception):
        pass

    class Body(dict[str, Any]):
        from_dict = classmethod(lambda cls, values: cls(values))

    class Connection:
        def __init__(self, configuration: Any, heartbeat: float | None = None) -> None:
            self.configuration = configuration

        async def close(self) -> None:
            provider.closed += 1

    class Socket:
        def __init__(self, machine: Machine) -> None:
            self.machine = machine

        async def send_bytes(self, data: bytes) -> None:
            assert data[0] == 0
            await self.machine.write(data[1:])

        async def __aiter__(self) -> AsyncIterator[Any]:
            yield SimpleNamespace(data=b"\x01")  # what an engine sends first
            async for data in pieces(self.machine):
                yield SimpleNamespace(data=b"\x01" + data)

        async def close(self) -> None:
            pass

    class CoreV1Api:
        pods: dict[str, Machine] = {}
        policies: set[str] = set()

        def __init__(self, connection: Connection) -> None:
            self.connection = connection

        async def create_namespaced_pod(self, namespace: str, body: Body) -> None:
            self.pods[body["metadata"]["name"]] = provider.machine(namespace=namespace, **body)

        async def read_namespaced_pod(self, name: str, namespace: str) -> Any:
            machine = self.pods[name]
            image = machine.asked["spec"]["containers"][0]["image"]
            waiting = SimpleNamespace(reason="ImagePullBackOff", message=f"no {image}") if image == "missing" else None
            status = SimpleNamespace(
                phase="Pending" if waiting else "Running",
                container_statuses=[SimpleNamespace(state=SimpleNamespace(waiting=waiting))],
                conditions=None,
                reason=None,
            )
            return SimpleNamespace(status=status)

        async def connect_get_namespaced_pod_attach_without_preload_content(
            self, name: str, namespace: str, **asked: Any
        ) -> Any:
            machine = self.pods[name]
            await machine.begin(machine.asked["spec"]["containers"][0]["command"])

            async def connect() -> Socket:
                return Socket(machine)

            return connect()

        async def delete_namespaced_pod(self, name: str, namespace: str, grace_period_seconds: int) -> None:
            machine = self.pods.pop(name, None)
            if machine is None:
                raise ApiException(404, "Not Found")
            await machine.end()

    class NetworkingV1Api(CoreV1Api):
        async def create_namespaced_network_policy(self, namespace: str, body: Body) -> None:
            if provider.refusal is not None:
                raise ApiException(403, "Forbidden")
            name = body["metadata"]["name"]
            if name in self.policies:
                raise ApiException(409, "AlreadyExists")
            self.policies.add(name)

    async def load_kube_config(client_configuration: Any) -> None:
        pass

    client = SimpleNamespace(
        ApiClient=Connection,
        ApiException=ApiException,
        Configuration=SimpleNamespace,
        CoreV1Api=CoreV1Api,
        NetworkingV1Api=NetworkingV1Api,
        V1NetworkPolicy=Body,
        V1Pod=Body,
    )
    config = SimpleNamespace(
        ConfigException=ConfigException, load_kube_config=load_kube_config, load_incluster_config=load_kube_config
    )
    return {
        "kubernetes": SimpleNamespace(),
        "kubernetes.aio": SimpleNamespace(),
        "kubernetes.aio.client": client,
        "kubernetes.aio.config": config,
        "kubernetes.aio.stream": SimpleNamespace(WsApiClient=Connection),
    }
