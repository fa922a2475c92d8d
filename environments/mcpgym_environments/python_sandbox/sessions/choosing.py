"""Which back-end: the one that was named, or the strongest that this machine can run without anything being installed.

What is weaker than asked for is refused with what is missing; nothing is ever weakened silently.
"""

from __future__ import annotations

import asyncio
import difflib
import importlib
import inspect
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym_environments.python_sandbox.sessions.backend import (
    JSON,
    LEVELS,
    Backend,
    Level,
    SandboxSpec,
    Stream,
    Unavailable,
    at_least,
)

AUTO = "auto"
AUTOMATIC = ("namespaces", "landlock")
"""What ``auto`` tries, the strongest first."""
START_SECONDS = 120.0
"""How long one automatic tier may take to start or to say that it cannot, beyond its own promise."""

_BACKENDS: Mapping[str, str] = {
    "namespaces": "namespaces:NamespacesBackend",
    "landlock": "landlock:LandlockBackend",
    "bubblewrap": "bubblewrap:Bubblewrap",
    "docker": "docker:Docker",
    "podman": "docker:Podman",
    "wasm": "wasm:Wasm",
    "kubernetes": "kubernetes:Kubernetes",
    "e2b": "e2b:E2B",
    "modal": "modal:Modal",
    "daytona": "daytona:Daytona",
    "prime": "prime:Prime",
    "unsafe-local": "unsafe_local:UnsafeLocal",
}


def backend_names() -> tuple[str, ...]:
    """The names that a back-end can be asked for by, besides ``auto``."""
    return tuple(_BACKENDS)


def choose(backend: str = AUTO, min_isolation: Level = "landlock", *, image: str = "") -> Backend:
    """The back-end that was asked for, not started: nothing has been tried yet.

    Args:
        backend: its name; ``auto`` takes namespaces where they work, else Landlock, else nothing.
        min_isolation: the weakest boundary that will do; what turns out weaker does not start.
        image: the image or template of a back-end that has such; empty for its own default.

    Raises:
        UnknownNameError: there is no back-end of that name.
        ConfigurationError: there is no such level, or this back-end takes no image.
        Unavailable: it is known beforehand to be weaker than asked for, or its package is not installed.
    """
    if min_isolation not in LEVELS:
        raise ConfigurationError(f"min_isolation {str(min_isolation)[:40]!r}: there is {', '.join(LEVELS)}")
    name = backend.strip().lower().replace("_", "-")
    if name == AUTO:
        if image:
            raise ConfigurationError(
                "backend=auto runs on this machine and takes no image; name a back-end that has one"
            )
        return Chosen(AUTOMATIC, min_isolation)
    if name not in _BACKENDS:
        near = difflib.get_close_matches(name, _BACKENDS, n=1)
        raise UnknownNameError("sandbox back-end", name, (AUTO, *near) if near else (AUTO, *_BACKENDS))
    return Chosen((name,), min_isolation, image)


def made(name: str, image: str = "") -> Backend:
    """The back-end ``name``, not started.

    Raises:
        ConfigurationError: it takes no image.
        Unavailable: its package is not installed.
    """
    module, _, cls = _BACKENDS[name].partition(":")
    try:
        kind = getattr(importlib.import_module(f"mcpgym_environments.python_sandbox.backends.{module}"), cls)
    except ImportError as error:
        raise Unavailable(f"the back-end {name} does not load: {error}", _extra(name)) from None
    if not image:
        return kind()  # type: ignore[no-any-return]
    takes = [option for option in ("image", "template") if option in inspect.signature(kind).parameters]
    if not takes:
        raise ConfigurationError(f"backend={name} takes no image; leave image={image[:60]!r} out")
    return kind(**{takes[0]: image})  # type: ignore[no-any-return]


class Chosen:
    """The first of some back-ends that starts and is strong enough; then it is that one.

    Args:
        names: what to try, in this order.
        min_isolation: the weakest level that will do.
        image: of the back-end, where it has such.
    """

    def __init__(self, names: Sequence[str], min_isolation: Level, image: str = "") -> None:
        self._names = tuple(names)
        self._wanted: Level = min_isolation
        self._backends = [made(names[0], image)] if len(names) == 1 else []
        self._started: Backend | None = None
        self._starting: Backend | None = None
        self.tried: list[tuple[str, Unavailable]] = []
        """What did not start, and why."""

    @property
    def name(self) -> str:
        """Of the one that started; before, what was asked for."""
        return self._started.name if self._started is not None else self._names[0] if len(self._names) == 1 else AUTO

    @property
    def level(self) -> Level:
        """Of the one that started; before, the weakest that will do."""
        return self._started.level if self._started is not None else self._wanted

    def __getattr__(self, name: str) -> Any:
        """What only the one that started may have: ``another``, ``slack``, ``at_once``."""
        if name.startswith("_") or (started := self._started) is None:
            raise AttributeError(name)
        return getattr(started, name)

    async def start(self, spec: SandboxSpec) -> Mapping[str, JSON]:
        """Start the first that can.

        Raises:
            Unavailable: none can; the text says why each cannot, and what would help.
        """
        self.tried = []
        for name in self._names:
            try:
                backend = self._backends[0] if self._backends else made(name)
                facts = await self._start_one(backend, spec)
            except Unavailable as error:
                self.tried.append((name, error))
            else:
                self._started = backend
                return facts
        raise self._refusal()

    async def _start_one(self, backend: Backend, spec: SandboxSpec) -> Mapping[str, JSON]:
        if not at_least(backend.level, self._wanted) and len(self._names) > 1:
            raise _too_weak(backend.name, backend.level, self._wanted)
        limit = asyncio.timeout(START_SECONDS if len(self._names) > 1 else None)
        self._starting = backend
        try:
            async with limit:
                facts = await backend.start(spec)
        except BaseException as error:
            await backend.close()
            if isinstance(error, TimeoutError) and limit.expired():
                raise Unavailable(f"{backend.name} did not start within {START_SECONDS:g} s", "") from None
            raise
        finally:
            self._starting = None
        if not at_least(backend.level, self._wanted):
            await backend.close()
            raise _too_weak(backend.name, backend.level, self._wanted)
        return facts

    def _refusal(self) -> Unavailable:
        """Why nothing started, and what a person can do about it."""
        if len(self.tried) == 1:
            return self.tried[0][1]
        reasons = "; ".join(f"{name}: {error.reason}" for name, error in self.tried)
        remedies = list(dict.fromkeys(f"{error.remedy.rstrip('.')}." for _, error in self.tried if error.remedy))
        return Unavailable(
            f"no sandbox of this machine's own keeps code in with min_isolation={self._wanted} ({reasons})",
            " ".join([*remedies, elsewhere(self._wanted), "mcpgym doctor --sandbox explains this machine."]),
        )

    async def open(self, spec: SandboxSpec) -> Stream:
        """A fresh session of the one that started."""
        return await self._running().open(spec)

    async def kill(self, stream: Stream) -> None:
        """End one session."""
        await self._running().kill(stream)

    async def close(self) -> None:
        """End the one that started."""
        if self._started is not None:
            await self._started.close()

    def kill_now(self) -> None:
        """The same without an event loop; also of one that is starting."""
        for backend in (self._started, self._starting):
            if backend is not None:
                backend.kill_now()

    def _running(self) -> Backend:
        if self._started is None:
            raise Unavailable("the sandbox has not been started", "")
        return self._started


def elsewhere(wanted: Level = "landlock") -> str:
    """What to do where this machine has no boundary of its own, or none as strong as wanted."""
    ways = []
    if sys.platform == "win32":
        ways.append("everything that Linux has, inside WSL 2")
    elif at_least("wasm", wanted):
        ways.append("backend=wasm (pip install 'mcpgym[wasm]')")
    if at_least("namespaces", wanted):
        ways.append("backend=docker or podman")
    if at_least("gvisor", wanted):
        ways.append("docker with gVisor (MCPGYM_SANDBOX_RUNTIME=runsc)")
    ways.append("a provider (e2b, modal, daytona, prime)")
    text = f"Elsewhere it runs with {', '.join(ways[:-1])} or {ways[-1]}." if len(ways) > 1 else f"Use {ways[0]}."
    return f"{text} For code that you trust there is backend=unsafe-local with min_isolation=none: it keeps nothing in."


def _too_weak(name: str, level: Level, wanted: Level) -> Unavailable:
    stronger = [other for other in LEVELS if at_least(other, wanted)]
    if name == "unsafe-local":
        remedy = "It keeps nothing in. If you trust the code, say so: min_isolation=none."
    else:
        remedy = (
            f"Choose a back-end of the level {' or '.join(stronger)}, or say that less will do: min_isolation={level}."
        )
    what = name if name == level else f"{name} (level {level})"
    return Unavailable(f"{what} is weaker than min_isolation={wanted} asks for", remedy)


def _extra(name: str) -> str:
    extras = {"prime": "prime-sandboxes"}
    return f"Install what it needs: pip install 'mcpgym[{extras.get(name, name)}]'"


def supported_platform() -> bool:
    """Whether this system can have a boundary of its own."""
    return sys.platform.startswith("linux")
