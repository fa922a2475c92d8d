"""Unified diffs in documents, applied as strictly as they are written.

``patch`` forgives: it looks for a hunk's lines elsewhere, and skips what does not match. A document's diff must fit its
file to the line, or its reader has another file than the document speaks of.
"""

from __future__ import annotations

import re

HUNK = re.compile(r"@@ -(?P<old>\d+)(?:,(?P<old_count>\d+))? \+(?P<new>\d+)(?:,(?P<new_count>\d+))? @@.*")


def apply_diff(text: str, diff: str) -> str:
    """``text`` after the hunks of ``diff``.

    Lines before the first hunk (the files' names) say nothing here. An empty line of a hunk is an empty line of both
    files: editors take the space away that should stand in it.

    Raises:
        ValueError: a hunk does not fit: the message says which line, what stands there and what should.
    """
    old = text.splitlines()
    new: list[str] = []
    lines = diff.splitlines()
    heads = [number for number, line in enumerate(lines) if HUNK.fullmatch(line)]
    if not heads:
        raise ValueError("there is no hunk (@@ -1,3 +1,4 @@) in it")
    position = 0
    for head, end in zip(heads, [*heads[1:], len(lines)], strict=True):
        found = HUNK.fullmatch(lines[head])
        assert found is not None
        start = int(found["old"]) - 1
        if start < position:
            raise ValueError(f"the hunk {lines[head]} begins before the end of the one above it")
        new += old[position:start]
        position = start
        if len(new) != int(found["new"]) - 1:
            raise ValueError(f"the hunk {lines[head]} begins at line {len(new) + 1} of the new file")
        counted = [0, 0]
        for line in lines[head + 1 : end]:
            mark, content = line[:1] or " ", line[1:]
            if mark not in " +-":
                raise ValueError(f"{line!r} begins with neither a space, + nor -")
            if mark != "+":
                stands = old[position] if position < len(old) else None
                if stands != content:
                    raise ValueError(f"line {position + 1} is {stands!r}, and the diff says {content!r}")
                position += 1
                counted[0] += 1
            if mark != "-":
                new.append(content)
                counted[1] += 1
        wanted = [int(found["old_count"] or 1), int(found["new_count"] or 1)]
        if counted != wanted:
            raise ValueError(f"the hunk {lines[head]} has {counted[0]} old and {counted[1]} new lines")
    return "\n".join([*new, *old[position:]]) + "\n"
