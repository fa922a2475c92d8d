"""What counts as the same output of code that was run twice.

Code may print what no two runs have alike: where an object lies in memory, the time, how long something took, a name
drawn by the system. These are taken for one another; everything else must be the same to the character. (The day
without a time, process ids and numbers drawn from the system's randomness are not recognised: such output differs.)
"""

from __future__ import annotations

import re

_CHANGING = re.compile(
    r"""
      \b0x[0-9a-fA-F]{5,16}\b                                                     # an address
    | \b\d{4}-\d\d-\d\d[T\ ]\d\d:\d\d(:\d\d([.,]\d+)?)?                           # a date with a time
    | \b([A-Z][a-z]{2}\ ){2}[\ \d]\d\ \d\d:\d\d:\d\d(\ [A-Z]{3,4})?\ \d{4}\b      # as time.ctime writes it
    | \b\d\d:\d\d:\d\d(\.\d+)?\b                                                  # a time of day
    | \b1[6-9]\d{8}(\.\d+)?\b                                                     # seconds since 1970
    | \b\d+(\.\d+)?(e-?\d+)?\ ?(?:ns|µs|us|ms|s|sec|secs|seconds|milliseconds)\b  # a duration
    | \b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b                               # a UUID
    | \btmp[a-z0-9_]{8}\b                                                         # a temporary name
    """,
    re.VERBOSE,
)
_SAID = re.compile(r"\[[^\[\]\n]*\](?=\n|\Z)")
"""What the sandbox says of a run, with its limits in seconds: that is compared as it stands."""


def same_text(recorded: str, replayed: str) -> bool:
    """Whether two observations are the same but for what changes from run to run."""
    return recorded == replayed or _masked(recorded) == _masked(replayed)


def _masked(text: str) -> list[str]:
    said = _SAID.findall(text)
    return [_CHANGING.sub("\N{REPLACEMENT CHARACTER}", text), *said]
