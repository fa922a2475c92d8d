"""``mcpgym leaderboard``: scores from receipts that hold, side by side where they may be compared, and nothing else.

What was played on another environment, version, configuration, set of tools or split is another board. A board has a
row for each policy (as its harness claims it), harness and client (as the server saw it). Beside the means stands what
they cover: which episodes all rows have in common, which a row lacks, and which it played again.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpgym.receipts import Receipt
from mcpgym_clients.console import talk, warn
from mcpgym_clients.failures import CommandFailed, UsageProblem
from mcpgym_clients.receipt_census import Census
from mcpgym_clients.receipt_checks import check_file, receipt_files, trusted_keys
from mcpgym_clients.statistics import Estimate, mean, share
from mcpgym_rl.files import replace_whole

OUTCOMES = ("win", "draw", "loss")
UNFINISHED = "unfinished"

Pair = tuple[str, int]
"""A task and a seed: what makes two episodes comparable."""


@dataclass(frozen=True, slots=True, order=True)
class BoardKey:
    """What two scores must share to be comparable."""

    environment: str
    version: str
    split: str
    config_hash: str
    schema_hash: str


@dataclass(frozen=True, slots=True)
class RowKey:
    """Whose scores a row has. ``policy``, ``options`` and ``harness`` are claims; ``client`` the server saw itself."""

    policy: str
    options: str
    harness: str
    client: str


@dataclass(frozen=True, slots=True)
class Row:
    """One row: ``reward`` over its ``n`` scored episodes, ``common`` over those that every row of its board has.

    ``missing`` counts episodes (task and seed) that others on the board played and it did not, ``repeated`` those that
    it played more than once, ``distinct`` what is different of what was seen and done, ``unscored`` the episodes whose
    score lacks a part.
    """

    who: RowKey
    n: int
    tasks: int
    reward: Estimate | None
    common: Estimate | None
    outcomes: Mapping[str, Estimate]
    distinct: int
    missing: int
    repeated: int
    unscored: int
    first: str
    last: str
    keys: Sequence[str]


@dataclass(frozen=True, slots=True)
class Board:
    """Rows that may be compared. ``pairs`` is how many episodes (task and seed) there are, ``common`` in every row.

    Rows that lack an episode stand below those that lack none, whatever their mean: it may be one of picked tasks.
    """

    what: BoardKey
    config: Mapping[str, Any]
    pairs: int
    common: int
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """All boards, and what a reader must know."""

    boards: Sequence[Board]
    notes: Sequence[str]


def run(paths: Sequence[Path], keys: Sequence[str], format: str, out: Path | None) -> int:
    """Write the table; the exit code.

    Raises:
        UsageProblem: a path is not there, or holds no receipts.
        ConfigurationError: a key is none, or a file cannot be read.
        CommandFailed: no receipt holds.
    """
    from mcpgym_clients.leaderboard_pages import written

    trusted = trusted_keys(keys)
    files = receipt_files(paths, traces_too=False)
    if not files:
        raise UsageProblem(f"no receipts and no traces in {', '.join(map(str, paths))}")
    census, rejected = Census(), 0
    for path in files:
        for checked in check_file(path, trusted):
            if checked.problem is not None:
                rejected += 1
                if rejected <= 3:
                    warn(f"rejected {checked.where}: {checked.problem}")
            elif checked.receipt is not None:
                census.add(checked.receipt)
    if not census.first_scorings():
        raise CommandFailed("no receipt here holds, so there is nothing to put on a board; see: mcpgym verify")
    text = written(leaderboard(census, rejected), format)
    if out is None:
        print(text, end="")
    else:
        replace_whole(out, text.encode("utf-8"))
        talk().print(f"[dim]written to {out}[/dim]", soft_wrap=True)
    return 0


def leaderboard(census: Census, rejected: int = 0) -> Leaderboard:
    """The boards of receipts that were checked; ``rejected`` lines were left out."""
    groups: defaultdict[BoardKey, list[Receipt]] = defaultdict(list)
    for receipt in census.first_scorings():
        said = receipt.statement
        names = ("environment", "environment_version", "split", "config_hash", "schema_hash")
        groups[BoardKey(*(said[name] for name in names))].append(receipt)
    boards = [_board(what, groups[what]) for what in sorted(groups)]
    lines = "1 line was rejected and counts" if rejected == 1 else f"{rejected} lines were rejected and count"
    return Leaderboard(boards, [*([f"{lines} nowhere"] if rejected else []), *census.notes()])


def _board(what: BoardKey, receipts: Sequence[Receipt]) -> Board:
    rows: defaultdict[RowKey, list[Mapping[str, Any]]] = defaultdict(list)
    for receipt in receipts:
        rows[_who(receipt.statement)].append(receipt.statement)
    pairs = [{_pair(said) for said in items if said["total"] is not None} for items in rows.values()]
    every, common = set().union(*pairs), set.intersection(*pairs)
    made = [_row(who, items, every, common) for who, items in rows.items()]
    made.sort(
        key=lambda row: (row.reward is None, row.missing > 0, -(row.reward.mean if row.reward else 0), str(row.who))
    )
    return Board(what, receipts[0].statement["config"], len(every), len(common), made)


def _row(who: RowKey, items: Sequence[Mapping[str, Any]], every: set[Pair], common: set[Pair]) -> Row:
    scored = [said for said in items if said["total"] is not None]
    times = Counter(_pair(said) for said in scored)
    tasks = [said["task"] for said in scored]
    ends = [said["game_outcome"] or UNFINISHED for said in scored]
    games = bool(set(ends) & set(OUTCOMES))
    names = [*OUTCOMES, *([UNFINISHED] if UNFINISHED in ends else [])] if games else []
    moments = sorted(said["scored"] for said in items)
    return Row(
        who=who,
        n=len(scored),
        tasks=len(set(tasks)),
        reward=_mean(scored),
        common=_mean([said for said in scored if _pair(said) in common]),
        outcomes={name: share([end == name for end in ends], tasks) for name in names},
        distinct=len({(said["task"], str(said["calls"].get("hash")), said["transcript"]) for said in scored}),
        missing=len(every - times.keys()),
        repeated=sum(count > 1 for count in times.values()),
        unscored=len(items) - len(scored),
        first=moments[0],
        last=moments[-1],
        keys=sorted({said["key"] for said in items}),
    )


def _mean(items: Sequence[Mapping[str, Any]]) -> Estimate | None:
    if not items:
        return None
    return mean([float(said["total"]) for said in items], [said["task"] for said in items])


def _pair(said: Mapping[str, Any]) -> Pair:
    return said["task"], said["seed"]


def _who(said: Mapping[str, Any]) -> RowKey:
    claims = said["claims"]
    return RowKey(
        policy=str(claims.get("policy", "not said")),
        options=_options(str(claims.get("options", ""))),
        harness=str(claims.get("harness", "not said")),
        client=_client(said["clients"]),
    )


def _options(claimed: str) -> str:
    """``{"temperature":0.5}`` as ``temperature=0.5``; what is written otherwise as it is."""
    with contextlib.suppress(ValueError, RecursionError):
        made = json.loads(claimed)
        if isinstance(made, dict):
            return ", ".join(f"{name}={json.dumps(value)}" for name, value in made.items())
    return claimed


def _client(seen: Iterable[Any]) -> str:
    """Who called, in words."""
    words = []
    for row in seen:
        if not isinstance(row, Mapping):
            continue
        if row.get("lane") != "mcp":
            words.append("control plane" if row.get("lane") == "control" else str(row.get("lane")))
        elif row.get("name") is None:
            words.append("MCP, no name")
        else:
            words.append(f"MCP, {row['name']} {row.get('version') or ''}".strip())
    return "; ".join(words) or "no call"
