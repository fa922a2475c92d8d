"""What a file gives an option, in the form that the option's own parser takes: as it would be on the command line."""

from __future__ import annotations

from typing import Any

from mcpgym_clients.configuring.names import kind_of


class WrongValue(Exception):
    """The value is not of the kind that the option takes; the text says what is."""


def for_parser(option: Any, value: Any) -> Any:
    """``value``, from TOML, as the option's parser takes it.

    Raises:
        WrongValue: it is of another kind.
    """
    if option.multiple:
        if not isinstance(value, list):
            raise WrongValue('write a list, as ["…"], one item for each time the flag would be given')
        return [_one(option, item) for item in value]
    return _one(option, value)


def _one(option: Any, value: Any) -> Any:
    kind = kind_of(option)
    if kind == "flag":
        if not isinstance(value, bool):
            raise WrongValue("write true or false, without quotes")
        return value
    if kind == "number":
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise WrongValue("write a number, without quotes")
        return repr(value)
    if not isinstance(value, str):
        raise WrongValue('write it in quotes, as "…"')
    if not value:
        raise WrongValue("an empty text is no value; leave the key out")
    return value


def as_option(value: Any) -> str:
    """A field of an environment, as ``--config`` would have it.

    Raises:
        WrongValue: it is a list, a table or a time.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return value
    raise WrongValue("write a text, a number, true or false")
