"""What a console that is not UTF-8 shows for the characters it has not: lines stay lines, arrows arrows."""

from __future__ import annotations

import codecs

NAME = "mcpgym.plain"
"""The error handler's name, for ``errors=`` of a stream."""

_PLAIN = {
    **dict.fromkeys("─━╸╺–—", "-"),
    **dict.fromkeys("│┃", "|"),
    **dict.fromkeys("┼╭╮╰╯┌┐└┘├┤┬┴", "+"),
    **dict.fromkeys("‘’", "'"),
    **dict.fromkeys("“”", '"'),
    "→": "->",
    "…": ".",
    "·": "-",
    "×": "x",
    "≥": ">=",
    "≤": "<=",
    "✓": "ok",
    "✗": "x",
}


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_PLAIN.get(letter, "?") for letter in error.object[error.start : error.end]), error.end


codecs.register_error(NAME, _replace)
