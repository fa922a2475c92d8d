"""Finding an agent's program, its version, and the key of its API."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlsplit

from mcpgym_clients.agents.contract import Model, Start
from mcpgym_clients.agents.places import workplace
from mcpgym_clients.agents.process import run
from mcpgym_clients.failures import UsageProblem
from mcpgym_rl.policies.endpoint import NO_KEY, is_loopback

VERSION_SECONDS = 60.0
_MODEL = re.compile(
    r"(?:(?P<kind>openai-responses|openai|anthropic|gemini):)?(?P<name>[^\s@]+?)(?:@(?P<url>https?://\S+))?"
)


def model_of(agent: str, spec: str, kinds: Sequence[str]) -> Model:
    """The model that ``--policy`` names for an agent: ``MODEL``, ``KIND:MODEL`` or ``KIND:MODEL@BASE_URL``.

    Args:
        agent: its name, for messages.
        spec: what was typed.
        kinds: the APIs that the agent speaks; the first is its own.

    Raises:
        UsageProblem: it names none that this agent can use.
    """
    form = f"-p {kinds[0]}:MODEL or -p {kinds[0]}:MODEL@BASE_URL"
    found = _MODEL.fullmatch(spec)
    if found is None:
        raise UsageProblem(f"--agent {agent}: its model is named by {form}")
    kind, name, url = found["kind"] or kinds[0], found["name"], found["url"]
    head = name.partition(":")[0]
    if kind not in kinds or (found["kind"] is None and head in ("local", "script", "teacher") and head != name):
        raise UsageProblem(
            f"--agent {agent} asks a model of its own, by the API {' or '.join(kinds)}: name it by {form}; "
            f"for {spec.partition('@')[0]!r} there is --agent loop"
        )
    if url is not None:
        parts = urlsplit(url)
        if parts.username or parts.password:
            raise UsageProblem(f"--agent {agent}: no user and password in the URL; the key belongs in its variable")
        url = url.rstrip("/")
    return Model(name, kind, url)


def keys_of(
    agent: str, names: Iterable[str], model: Model, needed: str, variables: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Those of the variables ``names`` that hold a key; for an endpoint on this machine one that is none will do.

    Raises:
        UsageProblem: there is no key, and there must be one.
    """
    found = {name: value for name in names if (value := variables.get(name, "").strip())}
    if found:
        return found
    if model.url is not None and is_loopback(model.url):
        return {needed: NO_KEY}
    where = "its API" if model.url is None else model.url
    raise UsageProblem(f"--agent {agent}: {where} needs a key: set {needed}")


def program(name: str, install: str, others: Iterable[str | None] = ()) -> str:
    """The program ``name``, from PATH, or the first of ``others`` that there is.

    Raises:
        UsageProblem: there is none.
    """
    found = shutil.which(name) or next((one for one in others if one is not None), None)
    if found is None:
        raise UsageProblem(f"there is no program {name} here; install it: {install}")
    return os.path.abspath(found)  # noqa: PTH100  # links stay: some programs look for their parts beside them


async def version_of(command: Sequence[str]) -> str | None:
    """What a program says of its version: the first number with a dot that it prints; None where it prints none.

    Raises:
        UsageProblem: it cannot be run.
    """

    async def over() -> bool:
        return False

    with workplace() as place:
        loop = asyncio.get_running_loop()
        ended = await run(Start(command), place, loop.time() + VERSION_SECONDS, over)
    if ended.code != 0:
        why = ended.broken or ended.errors[-300:] or f"exit code {ended.code}"
        raise UsageProblem(f"{' '.join(command)} does not work: {why}")
    with contextlib.suppress(AttributeError):
        return re.search(r"\d+\.\d+[\w.+-]*", ended.printed.decode("utf-8", "replace"))[0]  # type: ignore[index]
    return None
