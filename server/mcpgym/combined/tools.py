"""The members' tools under their names in the combination."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from mcpgym.calls import answer_text
from mcpgym.combined.naming import mounted
from mcpgym.combined.parts import CombinedState, Part
from mcpgym.environment import Environment
from mcpgym.errors import ToolError
from mcpgym.tools import Tool


def combined_tools(
    members: Mapping[str, Environment[Any, Any, Any] | type[Environment[Any, Any, Any]]],
) -> dict[str, Tool]:
    """Every tool of every member, in their order; description, schema, time limit and all else stay as they are."""
    found = {}
    for mount, member in members.items():
        for tool in member.tools.values():
            name = mounted(mount, tool.name)
            found[name] = dataclasses.replace(tool, name=name, handler=_handler(mount, tool))
    return found


def refused(state: CombinedState, part: Part) -> str:
    """What a call to a part that is over reads; the call does nothing."""
    return f"{state.note(part.mount)} Its tools do nothing any more."


def count_call(member: Environment[Any, Any, Any], state: CombinedState, part: Part) -> str:
    """Count one call of the part; what to tell the policy beside its answer."""
    part.calls += 1
    part.look(member)
    if part.over is None:
        return ""
    part.by_call = True
    part.note = f"\n{state.note(part.mount)}"
    return part.note


def _handler(mount: str, tool: Tool) -> Any:
    """What runs the member's tool on its part, and says so when that is over."""

    def begin(environment: Any, state: CombinedState) -> tuple[Environment[Any, Any, Any], Part]:
        part = state.parts[mount]
        if part.over is not None:
            raise ToolError(refused(state, part))
        return environment.members[mount], part

    def now(environment: Any, state: CombinedState, /, **arguments: Any) -> Any:
        member, part = begin(environment, state)
        with _counted_where_it_fails(member, state, part):
            answer = tool.handler(member, part.state, **arguments)
        return _with_note(answer, count_call(member, state, part))

    async def later(environment: Any, state: CombinedState, /, **arguments: Any) -> Any:
        member, part = begin(environment, state)
        with _counted_where_it_fails(member, state, part):
            answer = await tool.handler(member, part.state, **arguments)
        return _with_note(answer, count_call(member, state, part))

    return later if tool.is_async else now


@contextlib.contextmanager
def _counted_where_it_fails(member: Environment[Any, Any, Any], state: CombinedState, part: Part) -> Iterator[None]:
    """A call that fails counts too, and its error says what else the policy is to know."""
    try:
        yield
    except ToolError as error:
        raise ToolError(f"{error}{count_call(member, state, part)}") from error
    except BaseException:
        count_call(member, state, part)
        raise


def _with_note(answer: Any, note: str) -> Any:
    return answer_text(answer) + note if note else answer
