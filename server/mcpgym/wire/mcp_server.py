"""A player as an MCP server of the official SDK, in both protocol eras."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mcpgym.calls import sendable
from mcpgym.errors import EpisodeError, McpgymError, UnknownNameError
from mcpgym.messages import Message
from mcpgym.telemetry import switch
from mcpgym.telemetry.context import CURRENT, caller
from mcpgym.telemetry.sections import named, section
from mcpgym.telemetry.spans import Kind
from mcpgym.wire import apps, completions, resources
from mcpgym.wire.players import Face, Player
from mcpgym.wire.results import call_result, idempotency_key

logger = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]
Handler = Callable[[Context, Any], Awaitable[dict[str, Any]]]

PLAYER = "mcpgym.player"
"""The key of the request's ASGI scope that holds its player."""
KEY = "mcpgym.key"
"""The key of the request's ASGI scope that holds its ``Idempotency-Key`` header, or None."""
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
"""Where a request's ``_meta`` says who the client is."""
RESOURCE_NOT_FOUND = -32002
"""The error of the older protocols for a resource that is not there; since 2026-07-28 it is a wrong parameter."""
SDK_TELEMETRY = "OpenTelemetryMiddleware"
"""The SDK's own spans, which hold what clients sent; ours are in their place, in every lane alike."""
TOOLS_FRESH = 300_000
"""Milliseconds a client may keep a list of tools: at one URL it never changes."""


def player_of_request(context: Context) -> tuple[Player, str | None]:
    """The player that the request's URL named, and the request's idempotency header."""
    scope = context.request.scope  # type: ignore[union-attr]
    return scope[PLAYER], scope[KEY]


def mcp_server(
    face: Face, player_of: Callable[[Context], tuple[Player, str | None]] = player_of_request
) -> Server[Any]:
    """The MCP server that shows ``face`` and answers for whichever player ``player_of`` finds in a request."""

    async def list_tools(context: Context, params: Any) -> dict[str, Any]:
        return _complete(tools=list(player_of(context)[0].tools()), ttlMs=TOOLS_FRESH)

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> dict[str, Any]:
        player, header = player_of(context)
        meta = (context.params or {}).get("_meta")
        player.saw(_client(context, meta))
        key = idempotency_key(meta, header)
        result = await player.call(params.name, params.arguments or {}, key)
        return call_result(result, face.short if context.protocol_version in MODERN_PROTOCOL_VERSIONS else None)

    async def list_prompts(context: Context, params: Any) -> dict[str, Any]:
        found = [
            {
                "name": prompt.name,
                "title": prompt.title,
                "description": prompt.description,
                "arguments": [{"name": name, "description": text} for name, text in prompt.arguments.items()],
            }
            for prompt in player_of(context)[0].prompts()
        ]
        return _complete(prompts=found)

    async def get_prompt(context: Context, params: types.GetPromptRequestParams) -> dict[str, Any]:
        try:
            messages = player_of(context)[0].prompt(params.name, params.arguments or {})
        except McpgymError as error:
            raise MCPError(code=types.INVALID_PARAMS, message=str(error)) from None
        return _complete(messages=[_prompt_message(message) for message in messages])

    async def list_resources(context: Context, params: Any) -> dict[str, Any]:
        return _complete(resources=resources.resource_list(player_of(context)[0].environments))

    async def list_templates(context: Context, params: Any) -> dict[str, Any]:
        return _complete(resourceTemplates=resources.template_list(player_of(context)[0].environments))

    async def read_resource(context: Context, params: types.ReadResourceRequestParams) -> dict[str, Any]:
        try:
            found = resources.read(player_of(context)[0], str(params.uri))
        except EpisodeError as error:  # what an environment raised may tell of what is hidden
            logger.error("a resource could not be read: %s", error)
            raise MCPError(code=types.INTERNAL_ERROR, message="the environment could not say") from None
        except UnknownNameError as error:
            code = types.INVALID_PARAMS if context.protocol_version in MODERN_PROTOCOL_VERSIONS else RESOURCE_NOT_FOUND
            raise MCPError(code=code, message=str(error), data={"uri": sendable(str(params.uri))}) from None
        except (McpgymError, ValueError) as error:
            raise MCPError(code=types.INVALID_PARAMS, message=str(error)) from None
        return _complete(contents=[{"uri": str(params.uri), **found}])

    async def complete(context: Context, params: types.CompleteRequestParams) -> dict[str, Any]:
        asked = params.argument
        try:
            found = completions.complete(
                player_of(context)[0], params.ref.model_dump(mode="json"), asked.name, asked.value
            )
        except EpisodeError as error:  # what an environment raised may tell of what is hidden
            logger.error("no completion could be offered: %s", error)
            raise MCPError(code=types.INTERNAL_ERROR, message="the environment could not say") from None
        except McpgymError as error:
            raise MCPError(code=types.INVALID_PARAMS, message=str(error)) from None
        return _complete(completion=found)

    async def set_level(context: Context, params: types.SetLevelRequestParams) -> dict[str, Any]:
        """Taken note of by doing nothing: no log messages are sent to clients, at any level."""
        return {}

    server: Server[Any] = Server(
        face.name,
        version=face.version,
        title=face.title or None,
        description=face.description or None,
        instructions=face.instructions or None,
        icons=[types.Icon(src=face.icon)] if face.icon else None,
        get_tool_input_schema=_nothing_in_headers,
    )
    server.middleware[:] = [one for one in server.middleware if type(one).__name__ != SDK_TELEMETRY]
    if face.apps:
        server.extensions[apps.EXTENSION] = {}
    pages = types.PaginatedRequestParams
    server.add_request_handler("tools/list", pages, _guarded(list_tools))
    server.add_request_handler("tools/call", types.CallToolRequestParams, _guarded(call_tool))
    server.add_request_handler("prompts/list", pages, _guarded(list_prompts))
    server.add_request_handler("prompts/get", types.GetPromptRequestParams, _guarded(get_prompt))
    server.add_request_handler("resources/list", pages, _guarded(list_resources))
    server.add_request_handler("resources/templates/list", pages, _guarded(list_templates))
    server.add_request_handler("resources/read", types.ReadResourceRequestParams, _guarded(read_resource))
    server.add_request_handler("completion/complete", types.CompleteRequestParams, _guarded(complete))
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, _guarded(set_level))
    return server


def _guarded(handler: Handler) -> Handler:
    """``handler``, whose unexpected errors the log alone is told: the SDK would send their text to older clients."""

    async def answer(context: Context, params: Any) -> dict[str, Any]:
        try:
            if switch.recorder is None:
                return await handler(context, params)
            return await _traced(handler, context, params)
        except MCPError:
            raise
        except Exception:
            logger.exception("a request could not be answered")
            raise MCPError(code=types.INTERNAL_ERROR, message="the server failed; its log says how") from None

    return answer


async def _traced(handler: Handler, context: Context, params: Any) -> dict[str, Any]:
    """``handler``'s answer, as part of the trace that the request names. (A call's span is its episode's to make.)"""
    token = CURRENT.set(caller((context.params or {}).get("_meta"), "mcp"))
    try:
        if context.method == "tools/call":
            return await handler(context, params)
        with section(named(context.method, Kind.SERVER, (("mcp.method.name", context.method),))):
            return await handler(context, params)
    finally:
        CURRENT.reset(token)


def _client(context: Context, meta: Any) -> Any:
    """What the client calls itself: said with each call since 2026-07-28, before that once for a connection."""
    if isinstance(meta, Mapping) and (info := meta.get(CLIENT_INFO)) is not None:
        return info
    known = context.session.client_params
    return None if known is None else {"name": known.client_info.name, "version": known.client_info.version}


def _nothing_in_headers(name: str) -> Mapping[str, Any] | None:
    """Our schemas, at their fixed point, mark no parameter to be repeated in an ``Mcp-Param-…`` header."""
    return None


def _complete(**result: Any) -> dict[str, Any]:
    """A result in both eras: the older one ignores what it does not know."""
    return {"ttlMs": 0, "cacheScope": "private", "resultType": "complete", **result}


def _prompt_message(message: Message) -> dict[str, Any]:
    """A chat message as MCP knows it: a prompt has no system role, so the user says that part."""
    role = "assistant" if message["role"] == "assistant" else "user"
    return {"role": role, "content": {"type": "text", "text": message["content"]}}
