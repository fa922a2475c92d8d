"""What receipts say together: which stand there twice, which episodes were scored again, and what was kept back."""

from __future__ import annotations

from collections import Counter, defaultdict

from mcpgym.receipts import Receipt


class Census:
    """Counts receipts that were checked, each once, in whatever order and from however many files.

    A file of traces and the file of receipts beside it hold the same receipts: ``kind`` tells them apart, and only a
    receipt that comes twice in one kind is a duplicate.
    """

    def __init__(self) -> None:
        self.receipts: dict[str, Receipt] = {}
        self._times: Counter[tuple[str, str]] = Counter()

    def add(self, receipt: Receipt, kind: str = "") -> bool:
        """Count one; whether it is new."""
        new = receipt.signature not in self.receipts
        self.receipts.setdefault(receipt.signature, receipt)
        self._times[kind, receipt.signature] += 1
        return new

    @property
    def duplicates(self) -> int:
        """How many stand there more than once."""
        return len({signature for (_, signature), times in self._times.items() if times > 1})

    def scored_again(self) -> list[Receipt]:
        """Those of second and later scorings. Only an episode's first scoring counts, so that nobody picks the best."""
        return [receipt for receipt in self.receipts.values() if receipt.statement["scoring"] != 1]

    def first_scorings(self) -> list[Receipt]:
        """Those that count, one for each episode."""
        return [receipt for receipt in self.receipts.values() if receipt.statement["scoring"] == 1]

    def kept_back(self) -> dict[str, tuple[int, int]]:
        """Series with gaps: how many receipts are not here, and how many there are at least."""
        return self._gaps("number")

    def without_receipt(self) -> dict[str, tuple[int, int]]:
        """Series whose servers opened episodes of which no receipt is here: how many, and how many were opened at
        least. Whoever gives up the games that go badly, and never asks for their scores, leaves these."""
        return self._gaps("opening")

    def _gaps(self, count: str) -> dict[str, tuple[int, int]]:
        numbers: defaultdict[str, set[int]] = defaultdict(set)
        for receipt in self.receipts.values():
            numbers[receipt.statement["series"]].add(receipt.statement[count])
        missing = {series: (max(found) - len(found), max(found)) for series, found in numbers.items()}
        return {series: (gap, total) for series, (gap, total) in sorted(missing.items()) if gap > 0}

    def notes(self) -> list[str]:
        """All that in sentences."""
        said = []
        if self.duplicates:
            said.append(f"{_receipts(self.duplicates)} there more than once; each counts once")
        if again := self.scored_again():
            episodes = {receipt.statement["episode"] for receipt in again}
            first = {receipt.statement["episode"] for receipt in self.first_scorings()}
            text = f"{len(episodes)} episode{'' if len(episodes) == 1 else 's'} scored more than once"
            if lacking := len(episodes - first):
                text += f", {lacking} of them without the first scoring here"
            said.append(f"{text}; only the first scoring of an episode counts")
        receipts, episodes_opened = self.kept_back(), self.without_receipt()
        for series in sorted({*receipts, *episodes_opened}):
            parts = []
            if series in receipts:
                parts.append("{} of at least {} receipts are not here".format(*receipts[series]))
            if series in episodes_opened:
                parts.append(
                    "{} of at least {} episodes that it opened have none here".format(*episodes_opened[series])
                )
            said.append(
                f"of the server's series {series}, {', and '.join(parts)}: other users' runs, or episodes that failed, "
                "were given up, or were kept back"
            )
        return said


def _receipts(count: int) -> str:
    return "1 receipt stands" if count == 1 else f"{count} receipts stand"
