"""What the policy's channel carried: every answer to the last byte, taken apart into the texts it holds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

MAX_WHERE = 4
"""Places that are kept for one text in one channel of one episode: it is the same text."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and all that came back. ``owner`` is the episode whose player asked; ``asked`` says what, in words.

    ``sent`` is what the asker said, which comes back without being a leak.
    """

    channel: str
    asked: str
    answered: bytes
    owner: str = ""
    sent: bytes = b""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a text was: in which exchange, and where in its answer."""

    exchange: Exchange
    path: str


@dataclass(slots=True)
class Recording:
    """All exchanges of a scan: how many and how large by channel, and each different text once, with its places."""

    texts: dict[str, list[Place]] = field(default_factory=dict)
    exchanges: Counter[str] = field(default_factory=Counter)
    size: Counter[str] = field(default_factory=Counter)
    _known: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def add(self, exchange: Exchange) -> None:
        """Keep one exchange."""
        self.exchanges[exchange.channel] += 1
        self.size[exchange.channel] += len(exchange.answered)
        for path, text in texts_of(exchange.answered):
            who = (text, exchange.channel, exchange.owner)
            self._known[who] += 1
            if self._known[who] <= MAX_WHERE:
                self.texts.setdefault(text, []).append(Place(exchange, path))


def texts_of(answer: bytes) -> Iterator[tuple[str, str]]:
    """The texts in an answer with where they are: headers, members of JSON by name, events, else lines as they are.

    The whole body comes too, in which a secret that was cut over several members is put together again.
    """
    head, separator, body = answer.partition(b"\r\n\r\n")
    if separator and head.startswith(b"HTTP/"):
        first, *lines = head.decode("latin-1").split("\r\n")
        yield "status line", first
        for line in lines:
            name, _, value = line.partition(":")
            yield f"header {name.strip().lower()}", value.strip()
            yield "header names", name
    else:
        body = answer
    if not body:
        return
    text = body.decode("utf-8", "replace")
    yield "body", text
    for line in text.splitlines() or [text]:
        line = line.removeprefix("data:").strip()
        if line[:1] not in ("{", "["):
            continue
        try:
            yield from members(json.loads(line), "$")
        except (ValueError, RecursionError):
            continue


def members(value: object, path: str) -> Iterator[tuple[str, str]]:
    """The texts and numbers inside a JSON value with their paths; also its member names, and JSON inside of texts."""
    waiting: list[tuple[object, str]] = [(value, path)]
    while waiting:
        item, where = waiting.pop()
        if isinstance(item, dict):
            for name, child in item.items():
                yield f"{where} member name", name
                waiting.append((child, f"{where}.{name}"))
        elif isinstance(item, list):
            waiting += [(child, f"{where}[{place}]") for place, child in enumerate(item)]
        elif isinstance(item, str):
            yield where, item
            if item[:1] in ("{", "[") and len(where) < 200:
                try:
                    waiting.append((json.loads(item), f"{where}→"))
                except (ValueError, RecursionError):
                    continue
        elif isinstance(item, (int, float)) and not isinstance(item, bool):
            yield where, repr(item)
