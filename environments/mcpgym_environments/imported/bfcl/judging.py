"""Whether a turn went as BFCL's checker wants it: its own functions, asked turn by turn while the episode is played.

BFCL's checker plays a finished conversation again, on instances in its module's global names. The same is decided here
as each turn ends, with the functions that it decides by (``state_checker`` and ``response_checker``): after the calls
of the solution, the states must be equal, and what the solution's calls answered must be among what the policy's calls
have answered so far.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from mcpgym.errors import ConfigurationError
from mcpgym_environments.imported.bfcl.apis import parameters
from mcpgym_environments.imported.bfcl.functions import functions
from mcpgym_environments.imported.bfcl.guards import too_large
from mcpgym_environments.imported.bfcl.package import EXTRA
from mcpgym_environments.imported.bfcl.state import Session


class Call(NamedTuple):
    """A call of a solution, its arguments by name."""

    api: str
    function: str
    arguments: dict[str, Any]


def turn_is_right(session: Session) -> bool:
    """Whether the turn that ends now went as it should; plays the solution's calls of the turn.

    It must be asked once for each turn, in their order.
    """
    solution = list(read_calls(session.row.gold[session.turn], session.row.apis))
    wanted = [session.gold.call(call.api, call.function, call.arguments)[0] for call in solution]
    if not solution:
        return True  # what BFCL's checker says of a turn in which nothing can be done, whatever was done
    if not session.answered or session.broken:
        return False
    theirs = checker()
    try:
        same = theirs.state_checker(session.mine.instances, session.gold.instances)["valid"]
        return bool(same and theirs.response_checker(list(session.results), wanted, session.turn)["valid"])
    except (RecursionError, AssertionError):
        return False


def every_turn_is_right(session: Session) -> list[bool]:
    """Of every turn whether it went as it should, with the one under way taken as over and the rest as never played."""
    found = list(session.right)
    if not session.over:
        as_it_is = copy.copy(session)
        as_it_is.gold = copy.deepcopy(session.gold)
        found.append(turn_is_right(as_it_is))
    missing = session.row.gold[len(found) :]
    return [*found, *(False for _ in missing)]


def beyond_walking(session: Session) -> bool:
    """Whether the file system of an episode has grown too large to be compared."""
    files = session.mine.instances.get("GorillaFileSystem")
    return files is not None and too_large(files)


def read_calls(texts: tuple[str, ...], apis: tuple[str, ...]) -> Iterator[Call]:
    """The calls of a solution, which BFCL writes as Python; nothing is evaluated.

    Raises:
        ConfigurationError: one is no call of a function of these APIs with plain values.
    """
    owner = {function.name: api for api in apis for function in functions(api)}
    for text in texts:
        try:
            made: Any = ast.parse(text.strip(), mode="eval").body
            name = made.func.id
            values = [ast.literal_eval(value) for value in made.args]
            named = {item.arg: ast.literal_eval(item.value) for item in made.keywords}
            names = parameters(owner[name], name)
        except (SyntaxError, ValueError, AttributeError, KeyError) as error:
            raise ConfigurationError(
                f"bfcl: {EXTRA.package} {EXTRA.version} has a solution that cannot be read: {text[:100]!r} ({error!r})"
            ) from None
        yield Call(owner[name], name, {**dict(zip(names, values, strict=False)), **named})


@cache
def checker() -> Any:
    """BFCL's own checker.

    Raises:
        MissingPackage: BFCL is not installed.
    """
    return EXTRA.load(".eval_checker.multi_turn_eval.multi_turn_checker")
