"""Both protocol eras: whether they are spoken, agree on versions, and list the same tools."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

from mcpgym.schema import canonical_json
from mcpgym_clients.doctor.calls import PlannedCall
from mcpgym_clients.doctor.context import Context, list_tools, tools_counted
from mcpgym_clients.doctor.findings import Outcome
from mcpgym_clients.doctor.processes import descendants
from mcpgym_clients.doctor.wire import HANDSHAKE_VERSIONS, MODERN_VERSION, Connection, Era, brief, call

UNKNOWN = "1999-12-31"
UNSUPPORTED = -32022
"""The code for a revision that a server does not speak."""
TRIES = 5
"""Sets of arguments that are tried until a tool takes one."""


async def eras(context: Context, outcome: Outcome) -> None:
    """Which eras work; fills in the context's eras, tools and plan."""
    for era in (Era.MODERN, Era.HANDSHAKE):
        async with context.client(era) as client:
            tools, last = await list_tools(client)
            if last.result is None or (era is Era.HANDSHAKE and client.opening.result is None):
                said = f"{era}: no tools: {last.shown()}"
                if client.opening.result is None:
                    said = f"{era}: {client.opening.shown()}"
                if era is Era.MODERN:
                    outcome.warn(
                        said,
                        f"Clients of revision {MODERN_VERSION} fall back to the handshake; a newer SDK speaks both.",
                    )
                else:
                    outcome.fail(said, "Most clients still begin with initialize; serve both eras.")
                continue
            context.eras.append(era)
            context.tools[era] = tools
            outcome.passed(f"{era}: {tools_counted(len(tools))}; {_who(client, context)}")
            if era is Era.MODERN:
                await _discovery(client, outcome)
    if not context.eras:
        return
    if len(context.eras) == 2 and (differs := _difference(*(context.tools[era] for era in context.eras))):
        outcome.fail(f"the two eras list different tools: {differs}", "Make one list and give it to both.")
    if Era.HANDSHAKE in context.eras:
        await _versions(context, outcome)
    await _unknown_methods(context, outcome)
    await _make_plan(context)
    if left := [str(tool.get("name")) for tool in context.listed if not context.permission.allows(tool)]:
        more = f" and {len(left) - 5} more" if len(left) > 5 else ""
        outcome.skip(
            f"not called, for it may not be undone: {', '.join(left[:5])}{more}",
            "Name the calls that may be made with --call; declare readOnlyHint or destructiveHint on every tool.",
        )


async def official_client(context: Context, outcome: Outcome) -> None:
    """The SDK's client, unmodified, over HTTP or stdio."""
    import logging

    from mcp import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    from mcpgym_clients.doctor.subjects import HttpSubject, StdioSubject
    from mcpgym_rl.failures import explain

    subject = context.subject
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    for mode in ("auto", "legacy"):
        place = await subject.new_place() if context.has_places else None
        before, started = set(descendants(os.getpid())), set[int]()
        try:
            async with asyncio.timeout(30 + subject.timeout):
                if isinstance(subject, StdioSubject):
                    command, *rest = subject.command
                    parameters = StdioServerParameters(command=command, args=rest, env=subject.environment)
                    with open(os.devnull, "w") as nowhere:  # noqa: ASYNC230, PTH123
                        server: Any = stdio_client(parameters, errlog=nowhere)
                        said = await _with_client(Client(server, mode=mode), context, started)
                elif isinstance(subject, HttpSubject):
                    if subject.headers:
                        outcome.skip("the SDK's client is not tried where headers are needed")
                        return
                    said = await _with_client(Client(place or subject.url, mode=mode), context)
                else:
                    return
            outcome.passed(f"mcp.Client(mode={mode!r}): {said}")
        except TimeoutError:
            outcome.fail(f"mcp.Client(mode={mode!r}) did not come to an end", "Most clients are built on this one.")
        except Exception as error:  # whatever the SDK raises is what its users see
            outcome.fail(f"mcp.Client(mode={mode!r}): {explain(error)}", "Most clients are built on this one.")
        finally:
            for pid in started - before:  # the SDK ends the server, and not what the server has started
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
            await subject.leave(place)


async def _with_client(client: Any, context: Context, started: set[int] | None = None) -> str:
    """What the client says; ``started`` is given the processes that run meanwhile."""
    async with client:
        tools = (await client.list_tools()).tools
        if started is not None:
            started.update(descendants(os.getpid()))
        if not context.plan:
            return tools_counted(len(tools))
        planned = context.plan[0]
        result = await client.call_tool(planned.tool, dict(planned.arguments))
        return f"{tools_counted(len(tools))}; {planned.tool} {'refused' if result.is_error else 'answered'}"


def _who(client: Connection, context: Context) -> str:
    said = client.opening.result or {}
    info = said.get("serverInfo")
    if not isinstance(info, Mapping):
        meta = said.get("_meta")
        info = meta.get("io.modelcontextprotocol/serverInfo") if isinstance(meta, Mapping) else None
    who = "it does not say who it is"
    if isinstance(info, Mapping) and info.get("name"):
        who = brief(f"{info.get('name')} {info.get('version', '')}".strip(), 80)
        context.facts["server"] = who
    return f"{who}, revision {brief(client.version, 20)}"


async def _discovery(client: Connection, outcome: Outcome) -> None:
    versions = (client.opening.result or {}).get("supportedVersions")
    if client.opening.result is None:
        outcome.warn(
            f"server/discover: {client.opening.shown()}",
            "Clients ask it first; without it they fall back to the handshake.",
        )
    elif not isinstance(versions, list) or MODERN_VERSION not in versions:
        outcome.warn(
            f"server/discover names the versions {versions}", f"Name {MODERN_VERSION}, or clients will not use it."
        )
    strange = {"io.modelcontextprotocol/protocolVersion": UNKNOWN}
    answer = await client.request("tools/list", meta=strange, headers={"MCP-Protocol-Version": UNKNOWN})
    if answer.code == UNSUPPORTED or (answer.problem == "" and answer.status == 400):
        outcome.passed(f"revision {UNKNOWN} is refused: {answer.shown()}")
    elif not answer.answered:
        outcome.fail(f"revision {UNKNOWN}: {answer.shown()}", f"Answer {UNSUPPORTED} with the versions you support.")
    else:
        outcome.warn(
            f"revision {UNKNOWN}, which does not exist: {answer.shown(60)}",
            f"Answer {UNSUPPORTED} with the versions you support, so that clients can choose one.",
        )


async def _versions(context: Context, outcome: Outcome) -> None:
    """``initialize`` with each revision; a server agrees, or offers one that it has."""
    if context.subject.transport == "stdio" and context.quick:
        return
    agreed = []
    wanted = (*HANDSHAKE_VERSIONS, UNKNOWN) if context.subject.transport == "http" else (HANDSHAKE_VERSIONS[2], UNKNOWN)
    for version in wanted:
        place = await context.subject.new_place() if context.has_places else None
        client = await context.subject.connect(Era.HANDSHAKE, version=version, place=place)
        offered = (client.opening.result or {}).get("protocolVersion")
        await client.close()
        await context.subject.leave(place)
        if offered not in HANDSHAKE_VERSIONS:
            outcome.warn(
                f"initialize for {version}: {client.opening.shown(80)}",
                "Offer a revision that you have: the client decides whether it will do.",
            )
        else:
            agreed.append(f"{version} → {offered}" if offered != version else version)
    if agreed:
        outcome.passed(f"initialize agrees on {', '.join(agreed)}")


async def _unknown_methods(context: Context, outcome: Outcome) -> None:
    for era in context.eras:
        async with context.client(era) as client:
            answer = await client.request("doctor/no_such_method")
            if answer.code == -32601:
                outcome.passed(f"{era}: an unknown method is -32601")
            elif answer.answered:
                outcome.warn(f"{era}: an unknown method: {answer.shown(80)}", "Answer with error -32601.")
            else:
                outcome.fail(f"{era}: an unknown method: {answer.shown(80)}", "Answer with error -32601.")
            if era is Era.HANDSHAKE and (pong := await client.request("ping")).result is None:
                outcome.warn(
                    f"ping: {pong.shown(80)}", "Answer ping with an empty result: hosts use it as a heartbeat."
                )


async def _make_plan(context: Context) -> None:
    """Calls for the other checks; for each tool the first of a few arguments that it takes."""
    plans = [context.permission.plan(context.listed, seed) for seed in range(TRIES)]
    async with context.fresh() as client:
        for planned in zip(*plans, strict=True):
            context.plan.append(await _taken(client, planned))


async def _taken(client: Connection, planned: tuple[PlannedCall, ...]) -> PlannedCall:
    for each in planned:
        answer = await call(client, each.tool, dict(each.arguments))
        if answer.result is not None and not answer.is_error:
            return each
        if not answer.answered:
            break  # other arguments would be waited for as long
    return planned[0]


def _difference(ours: list[Mapping[str, Any]], theirs: list[Mapping[str, Any]]) -> str:
    """What of two lists of tools differs, in words; empty when a model sees the same."""
    first = {str(tool.get("name")): tool for tool in ours}
    second = {str(tool.get("name")): tool for tool in theirs}
    if only := sorted(set(first) ^ set(second)):
        return f"only one has {', '.join(only[:5])}"
    for name, tool in first.items():
        for part in ("description", "inputSchema", "outputSchema"):
            if canonical_json(tool.get(part)) != canonical_json(second[name].get(part)):
                return f"{part} of {name}"
    return ""
