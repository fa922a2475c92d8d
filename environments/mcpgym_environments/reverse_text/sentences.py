"""Sentences to reverse: a small grammar, counted through so that no two tasks share one."""

from __future__ import annotations

from math import prod

from mcpgym_environments.enumeration import digits

_WHEN = (
    "Before dawn",
    "At noon",
    "Every Friday",
    "Last winter",
    "Once a year",
    "After the storm",
    "By midnight",
    "Today",
)
_WHO = (
    "the baker", "a tall sailor", "our neighbour", "the old clockmaker", "a stray dog", "the new librarian",
    "my youngest cousin", "an astronomer", "the village choir", "a tired courier", "the gardener", "two fishermen",
)  # fmt: skip
_HOW = ("quietly", "proudly", "by mistake", "without a word", "in great haste", "for the third time", "gladly")
_DID = (
    "painted", "lost", "mended", "borrowed", "carried home", "drew", "polished", "hid", "sold", "measured", "admired",
)  # fmt: skip
_COUNT = ("a", "one", "the only", "another", "the second", "a quite")
_KIND = ("copper", "narrow", "broken", "yellow", "wooden", "famous", "frozen", "silver", "crooked", "tiny", "striped")
_WHAT = (
    "kettle", "violin", "map of Lisbon", "door", "ladder", "compass", "chess set", "lantern", "bridge", "bicycle",
    "teapot", "quilt", "puzzle", "jar of figs", "hat",
)  # fmt: skip
_WHERE = ("near the harbour", "under the stairs", "on platform 9", "beside the mill", "in room 12", "behind the church")
_END = (".", "!", ", they say.", ", of course.")
_SLOTS = (_WHAT, _WHO, _DID, _WHEN, _KIND, _HOW, _WHERE, _COUNT, _END)

SENTENCES = prod(map(len, _SLOTS))
"""How many different sentences there are."""


def sentence(number: int) -> str:
    """The sentence with this number, 0 to ``SENTENCES - 1``: 65 to 115 characters of plain ASCII."""
    what, who, did, when, kind, how, where, count, end = (
        slot[digit] for slot, digit in zip(_SLOTS, digits(number, [len(slot) for slot in _SLOTS]), strict=True)
    )
    return f"{when}, {who} {how} {did} {count} {kind} {what} {where}{end}"
