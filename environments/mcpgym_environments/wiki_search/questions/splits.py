"""Which split an entity belongs to: by a hash of its page's key, so that no entity is in two."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache

from mcpgym.errors import UnknownNameError

SPLITS = ("train", "test")
TEST_SHARE = 3
"""One entity in so many is of the test split."""


@lru_cache(maxsize=100_000)
def split_of(key: str) -> str:
    """The split of the entity whose page has this key."""
    number = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=4, person=b"wiki-split").digest(), "big")
    return "test" if number % TEST_SHARE == 0 else "train"


def require_split(split: str) -> None:
    """Refuse a split that there is not."""
    if split not in SPLITS:
        raise UnknownNameError("split", split, SPLITS)


def wordings(options: Sequence[str], split: str) -> Sequence[str]:
    """Those of several ways to say one thing that a split may use: the last is kept for tests."""
    if len(options) < 2:
        return options
    return options[-1:] if split == "test" else options[:-1]
