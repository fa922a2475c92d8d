"""Whether a value that came back is the expected one, to its type.

Values are what JSON can say: None, bool, int, float, str, list, and dict with str keys. ``True`` is not ``1``, ``1`` is
not ``1.0``, and NaN is the same as nothing; the order of a dict's keys does not matter, and ``0.0`` is ``-0.0``. What
is given is hostile: it may be huge or nested very deeply. So nothing here recurses, and the work is bounded by the size
of what was expected, for lengths are compared before contents.
"""

from __future__ import annotations

import math
from typing import Any, Final

_SCALARS: Final = (bool, int, str)
_SHOWN = 60


def same(expected: Any, given: Any, tolerance: float | None = None) -> bool:
    """Whether ``given`` is ``expected``.

    Args:
        expected: the right value, of our own making.
        given: the value that came back; anything at all.
        tolerance: where it is not None, numbers (but never bools) may differ by that much, absolutely or relatively to
            the expected one, whichever allows more, and an int counts as the float that it equals.
    """
    return difference(expected, given, tolerance) is None


def difference(expected: Any, given: Any, tolerance: float | None = None) -> str | None:
    """The first place where ``given`` is not ``expected``, in words; None where they are the same.

    Raises:
        TypeError: ``expected`` holds what JSON cannot say: the fault is in our own reference.
    """
    # Lists and dicts that are still to be compared. A list or dict of ours cannot hold itself: that would be a fault of
    # the reference, and the one of the other side came out of JSON, or is refused where its length differs.
    waiting: list[tuple[str, Any, Any]] = [("", expected, given)]
    while waiting:
        where, ours, theirs = waiting.pop()
        kind = type(ours)
        if kind is list or kind is dict:
            if type(theirs) is not kind:
                return f"{_at(where)}{_brief(theirs)} instead of a {kind.__name__}"
            if len(theirs) != len(ours):
                return f"{_at(where)}{len(theirs)} items instead of {len(ours)}"
            if kind is list:
                pairs = zip(range(len(ours)), ours, theirs, strict=True)
                waiting.extend((_step(where, index), mine, other) for index, mine, other in pairs)
                continue
            held: Any = theirs  # a dict
            for key, mine in ours.items():
                if type(key) is not str:
                    raise TypeError(f"an expected dict has the key {key!r}: JSON has only str keys")
                if key not in held:
                    return f"{_at(where)}no key {_brief(key)}"
                waiting.append((_step(where, key), mine, held[key]))
        elif not _same_scalar(ours, theirs, tolerance):
            return f"{_at(where)}{_brief(theirs)} instead of {_brief(ours)}"
    return None


def _same_scalar(ours: Any, theirs: Any, tolerance: float | None) -> bool:
    kind = type(ours)
    if ours is None:
        return theirs is None
    if kind not in _SCALARS and kind is not float:
        raise TypeError(f"an expected value is a {kind.__name__}: JSON has no such thing")
    if tolerance is not None and kind in (int, float):
        return type(theirs) in (int, float) and _near(ours, theirs, tolerance)
    return type(theirs) is kind and bool(ours == theirs)


def _near(ours: float, theirs: float, tolerance: float) -> bool:
    try:
        return ours == theirs or math.isclose(ours, theirs, rel_tol=tolerance, abs_tol=tolerance)
    except OverflowError:  # an int beyond any float, and not the expected one
        return False


def _step(where: str, key: int | str) -> str:
    """One step further; from some depth on the place is not followed, or a deep value would cost its depth squared."""
    return where if len(where) > _SHOWN else f"{where}[{_brief(key)}]"


def _at(where: str) -> str:
    return f"at {where}: " if where else ""


def _brief(value: Any) -> str:
    """A value of any size and kind in a few characters; never its own code, for only its exact type is trusted."""
    kind = type(value)
    if kind is str:
        return repr(value if len(value) <= _SHOWN else value[:_SHOWN] + "…")
    if kind is int and value.bit_length() > 200:
        return f"an int of {value.bit_length()} bits"
    if value is None or kind in (bool, int, float):
        return repr(value)
    return f"a {kind.__name__}"
