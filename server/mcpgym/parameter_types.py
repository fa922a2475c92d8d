"""Which Python types the parameters of a tool may have, and what to write instead of the others.

A type is right when a JSON value fits it exactly when the value fits its JSON Schema: str, int, float, bool,
``Literal``, ``list`` and ``TypedDict``, bounded by ``Field(ge=…, le=…, min_length=…, max_length=…)``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, NotRequired, Required, get_args, get_origin

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict, get_type_hints, is_typeddict

from mcpgym.errors import SchemaError

_KNOWN = {
    "model", "model-fields", "model-field", "typed-dict", "typed-dict-field", "list", "literal", "str", "int", "float",
    "bool", "default", "definitions", "definition-ref", "nullable", "union",
}  # fmt: skip
_OURS = "mcpgym refuses True for 1"
_CODE = "is checked or changed by code that no schema shows; take the plain type and check it in the tool (ToolError)"
_INSTEAD = {
    "enum": "an Enum has no value of its own in JSON; write Literal['a', 'b']",
    "model": "a pydantic model is not what JSON brings; use a TypedDict with Annotated fields",
    "dataclass": "a dataclass is not what JSON brings; use a TypedDict with Annotated fields",
    "function-before": _CODE,
    "function-after": _CODE,
    "function-wrap": _CODE,
    "function-plain": _CODE,
    "lax": "validates unlike its schema; write Field without strict=False",
    "text": "is changed or matched where no schema shows it; take any str and check it in the tool (ToolError)",
    "choice": "Literal may have only texts, whole numbers, True and False",
}


def described(hint: Any, where: str, inside: tuple[Any, ...] = ()) -> Any:
    """``hint`` with every ``Annotated[int, "text"]`` made a description, in nested types too.

    Raises:
        SchemaError: a type contains itself, or names what cannot be found.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        base, extras = described(arguments[0], where, inside), arguments[1:]
        for extra in [Field(description=extra) if isinstance(extra, str) else extra for extra in extras]:
            base = Annotated[base, extra]
        return base
    if origin in (Required, NotRequired):
        return described(arguments[0], where, inside)
    if origin is list:
        return list[described(arguments[0], f"{where}[]", inside)]  # type: ignore[misc]
    if origin is Literal and any(type(value) in (int, bool) for value in arguments):
        return Annotated[hint, BeforeValidator(_refuse_lookalike(arguments))]
    if hint is str:
        return Annotated[str, Field(min_length=0)]  # a bounded text is looked through: it must be sound Unicode
    if is_typeddict(hint):
        if hint in inside:
            raise SchemaError(f"{where}: {hint.__name__} contains itself; take a string and parse it in the tool")
        return _rebuilt(hint, where, (*inside, hint))
    return hint


def _refuse_lookalike(choices: tuple[Any, ...]) -> Any:
    """To Python ``True`` is ``1``; to JSON it is not."""
    kinds = {type(choice) for choice in choices}

    def check(value: Any) -> Any:
        if isinstance(value, (bool, int, float)) and type(value) not in kinds:
            raise PydanticCustomError("literal_error", "Input should be {expected}", {"expected": f"one of {choices}"})
        return value

    check.__qualname__ = _OURS
    return check


def _rebuilt(kind: Any, where: str, inside: tuple[Any, ...]) -> Any:
    hints = type_hints(kind, where)
    fields = {}
    for name, hint in hints.items():
        inner = described(hint, f"{where}.{name}", inside)
        fields[name] = Required[inner] if _is_required(kind, name, hint) else NotRequired[inner]
    made: Any = TypedDict(kind.__name__, fields)  # type: ignore[misc]
    made.__doc__ = kind.__doc__
    return made


def _is_required(kind: Any, name: str, hint: Any) -> bool:
    """Whether a field must be given. The class itself has not seen the marks of annotations that are text."""
    while (origin := get_origin(hint)) is not None:
        if origin in (Required, NotRequired):
            return origin is Required
        if origin is not Annotated:
            break
        hint = get_args(hint)[0]
    return name in kind.__required_keys__


def type_hints(of: Any, where: str) -> dict[str, Any]:
    """The resolved type hints of a function or class.

    Raises:
        SchemaError: one names what is not there at run time.
    """
    try:
        return get_type_hints(of, include_extras=True)
    except (NameError, TypeError) as error:
        raise SchemaError(
            f"{where}: a type cannot be found ({error}); import it at the top of the module, "
            "not under TYPE_CHECKING, and define it outside of functions"
        ) from error


def refuse_other_types(core: Mapping[str, Any], where: str) -> None:
    """Refuse what has a better way to be written.

    Args:
        core: the pydantic-core schema of all parameters.
        where: the tool, for the message.

    Raises:
        SchemaError: the message says what to write instead.
    """
    for place, kind in _kinds(core, where):
        if kind in _INSTEAD:
            raise SchemaError(f"{place}: {_INSTEAD[kind]}")


def refuse_unknown_types(core: Mapping[str, Any], where: str) -> None:
    """Refuse whatever is left that is not known to validate as its schema says; arguments and errors as above."""
    for place, kind in _kinds(core, where):
        if kind not in _KNOWN:
            raise SchemaError(
                f"{place}: {kind} is no type of JSON; use str, int, float, bool, Literal, list, TypedDict"
            )


def _kinds(core: Mapping[str, Any], where: str, top: bool = True) -> Iterator[tuple[str, str]]:
    kind = str(core["type"])
    if kind == "function-before" and getattr(core["function"]["function"], "__qualname__", "") == _OURS:
        yield from _kinds(core["schema"], where, False)
        return
    if kind != "model" or not top:
        yield where, kind
    if core.get("strict") is False:
        yield where, "lax"
    if kind == "str" and set(core) - {"type", "min_length", "max_length", "strict", "metadata", "ref", "serialization"}:
        yield where, "text"
    if kind == "literal" and not all(type(value) in (str, int, bool) for value in core["expected"]):
        yield where, "choice"
    if kind == "definitions":
        for definition in core["definitions"]:
            yield from _kinds(definition, where, False)
    fields = core.get("fields")
    if isinstance(fields, Mapping):
        for name, field in fields.items():
            yield from _kinds(field["schema"], f"{where}.{field.get('validation_alias', name)}", False)
    for key in ("schema", "items_schema"):
        if isinstance(inner := core.get(key), Mapping):
            yield from _kinds(inner, f"{where}[]" if key == "items_schema" else where, top and kind == "definitions")
