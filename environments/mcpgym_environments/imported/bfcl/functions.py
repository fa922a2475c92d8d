"""Tools made of what BFCL says about its functions: the same names, descriptions and parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from mcpgym.own_server.listing import ProxyParser
from mcpgym.own_server.shapes import fixed
from mcpgym.tools import Tool
from mcpgym_environments.imported.bfcl.apis import FILES
from mcpgym_environments.imported.bfcl.data import documents
from mcpgym_environments.imported.bfcl.guards import harmless

_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": "string"}
_READING = ("get_", "list_", "view_", "search_", "display", "estimate_", "check_", "find_", "filter_")


class BfclParser(ProxyParser):
    """Lets through what does not fit the schema and costs nothing, with the reason: BFCL makes such calls too, and one
    of its own solutions (``multi_turn_base_173``) is one. What they answer is an error to the policy."""

    def parse(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The keyword arguments ``arguments`` and, where they do not fit, ``misfit``.

        Raises:
            ValueError: they do not fit, and might cost much.
        """
        try:
            return super().parse(arguments)
        except ValueError as problem:
            if not harmless(arguments):
                raise
            return {"arguments": arguments, "misfit": str(problem)}


class Function(NamedTuple):
    """A function of an API: where it is, and how it is listed."""

    api: str
    name: str
    description: str
    parser: BfclParser


Handler = Callable[..., str]


@cache
def functions(api: str) -> tuple[Function, ...]:
    """The functions of an API, in BFCL's order.

    Raises:
        MissingPackage: BFCL is not installed.
    """
    found = []
    for document in documents(f"{FILES[api]}.json"):
        shape, _ = fixed(document["name"], _schema(document["parameters"]))
        parser = BfclParser(document["name"], shape)
        found.append(Function(api, document["name"], document["description"].strip(), parser))
    return tuple(found)


def tools(apis: Sequence[str], handler: Callable[[Function], Handler]) -> dict[str, Tool]:
    """The tools of several APIs; no two of their functions have one name.

    Args:
        apis: their names.
        handler: makes what runs a function.
    """
    return {
        function.name: Tool(
            name=function.name,
            description=function.description,
            handler=handler(function),
            inline=True,
            read_only=function.name.startswith(_READING),
            parser=function.parser,
        )
        for api in apis
        for function in functions(api)
    }


def _schema(theirs: Mapping[str, Any]) -> dict[str, Any]:
    """A schema in the words of JSON Schema."""
    made = dict(theirs)
    made["type"] = _TYPES.get(made.get("type", ""), made.get("type"))
    if "properties" in made:
        made["properties"] = {name: _schema(child) for name, child in made["properties"].items()}
    if "items" in made:
        made["items"] = _schema(made["items"])
    if isinstance(text := made.get("description"), str):
        made["description"] = text.strip()
    return made
