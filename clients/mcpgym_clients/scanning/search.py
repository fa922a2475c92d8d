"""Looking for canaries in what was recorded."""

from __future__ import annotations

from collections.abc import Container, Iterable

from mcpgym_clients.scanning.canaries import FIXES, Canary, Kind
from mcpgym_clients.scanning.forms import SHORTEST, forms, views
from mcpgym_clients.scanning.record import Place, Recording
from mcpgym_clients.scanning.report import ScanReport

AROUND = 60
"""Characters of an excerpt on either side of what was found."""


class Needles:
    """Every form of every canary, found by its first characters."""

    def __init__(self, canaries: Iterable[Canary]) -> None:
        self._by_start: dict[str, list[tuple[str, str, Canary]]] = {}
        self.count = 0
        for canary in canaries:
            for needle, form in forms(canary.value).items():
                self._by_start.setdefault(needle[:SHORTEST], []).append((needle, form, canary))
                self.count += 1

    def found_in(self, text: str) -> list[tuple[Canary, str]]:
        """The canaries in ``text``, each once, with the form it has there."""
        hits: dict[Canary, str] = {}
        starts = self._by_start.keys()
        for undone, view in views(text):
            grams = {view[place : place + SHORTEST] for place in range(len(view) - SHORTEST + 1)}
            for start in grams & starts:
                for needle, form, canary in self._by_start[start]:
                    if canary not in hits and needle in view:
                        hits[canary] = f"{form}, inside {undone}" if undone else form
        return list(hits.items())


def search(
    recording: Recording,
    canaries: Iterable[Canary],
    report: ScanReport,
    *,
    operators: Container[str] = (),
) -> None:
    """Add a finding for every canary that came back to somebody who had not said it himself.

    Args:
        recording: what was answered.
        canaries: what is looked for.
        report: where findings go.
        operators: channels in which nothing but the control plane's secret is looked for.
    """
    needles = Needles(canaries)
    report.forms = needles.count
    said: dict[bytes, set[Canary]] = {}
    for text, places in sorted(recording.texts.items(), key=lambda item: item[1][0].path == "body"):
        for canary, form in needles.found_in(text):
            for place in places:
                exchange = place.exchange
                if (canary.owner and canary.owner == exchange.owner) or exchange.channel in canary.unseen_by:
                    continue
                if exchange.channel in operators and canary.kind is not Kind.SECRET:
                    continue
                if exchange.sent and exchange.sent not in said:
                    sent = exchange.sent.decode("utf-8", "replace")
                    said[exchange.sent] = {told for told, _ in needles.found_in(sent)}
                if canary in said.get(exchange.sent, ()):
                    continue
                _tell(report, canary, form, place, text)


def _tell(report: ScanReport, canary: Canary, form: str, place: Place, text: str) -> None:
    report.add(
        kind=canary.kind.value,
        what=canary.label,
        channel=place.exchange.channel,
        where=f"{place.exchange.asked}: {place.path}",
        excerpt=excerpt(text, canary.shown),
        how=form,
        fix=FIXES[canary.kind],
    )


def excerpt(text: str, wanted: str) -> str:
    """The part of ``text`` around ``wanted``, or its beginning where that is not there to the letter."""
    at = text.lower().find(wanted.lower())
    if at < 0:
        at = text.lower().find(wanted[:10].lower())
    if at < 0:
        return text if len(text) <= 2 * AROUND else f"{text[: 2 * AROUND]}…"
    start, end = max(0, at - AROUND), min(len(text), at + len(wanted) + AROUND)
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
