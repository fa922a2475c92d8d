"""``python -m tests.bench.training``: a training step against TRL's, decoding against ``generate()``, in one run.

Everything is CPU time of one thread of this process, and a ratio within the run: ours and theirs take turns, so that
what disturbs one disturbs the other. ``--quick`` plays few games (to see that it runs); ``--json FILE`` keeps the
figures.
"""

from __future__ import annotations

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")  # before NumPy and torch
os.environ.update(HF_HUB_OFFLINE="1", TRL_EXPERIMENTAL_SILENCE="1")

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table


def measure(quick: bool, folder: Path) -> dict[str, Any]:
    """All figures."""
    import torch
    from tests.bench import decoding, rollout_loop, training_step
    from tests.bench.warmed_up import load, make_model

    from mcpgym_rl.local.policy import LocalPolicy
    from mcpgym_rl.training.sections import Rl

    torch.set_num_threads(1)
    groups, rounds, steps = (4, 1, 120) if quick else (32, 3, 500)
    path = folder / "warm"
    if not path.exists():
        make_model(folder, steps)
    model, chat = load(path)
    policy = LocalPolicy.from_torch(model, chat, temperature=1.0, max_new_tokens=64, rows=groups * 8)
    specs = training_step.specs(Rl(groups=groups, group_size=8), 0)
    loop, traces = rollout_loop.measure(policy, specs, 2 if quick else 7)
    decoded = decoding.compare(path, traces, 1 if quick else 2)
    sides = training_step.compare(path, folder, groups, 8, rounds)
    return {
        "games": groups * 8,
        "step": _step(sides, groups * 8),
        "decoding": asdict(decoded),
        "loop": asdict(loop),
    }


def _step(sides: Any, games: int) -> dict[str, Any]:
    """The step's figures: medians over rounds, and the games that both really played.

    Raises:
        AssertionError: one side did not play: the comparison would be void.
    """
    rounds = len(sides.theirs)
    ends: Counter[str] = Counter()
    for our in sides.ours:
        ends.update({outcome: round(share * games) for outcome, share in our.row["outcomes"].items()})
    their_ends = Counter(outcome or "unfinished" for outcome in sides.played.outcomes[games:])
    calls, their_calls = sum(our.calls for our in sides.ours), sum(their.calls for their in sides.theirs)
    for who, made, seen in (("ours", calls, ends), ("TRL's", their_calls, their_ends)):
        finished = sum(count for outcome, count in seen.items() if outcome != "unfinished")
        if made < games * rounds or sum(seen.values()) != games * rounds or finished * 8 < games * rounds:
            raise AssertionError(f"{who} games were not played: {made} calls, {dict(seen)}; the comparison is void")

    def middle(values: Iterable[float]) -> float:
        return float(median(values))

    def ours(steps: Any) -> dict[str, float]:
        return {
            "seconds": middle(step.total for step in steps),
            "playing": middle(step.playing for step in steps),
            "learning": middle(step.total - step.playing for step in steps),
            "turns": middle(step.row["turns"] * games for step in steps),
            "trained_tokens": middle(step.row["trained_tokens"] for step in steps),
            "ratio": middle(their.total / our.total for our, their in zip(steps, sides.theirs, strict=True)),
        }

    theirs = {
        "seconds": middle(step.total for step in sides.theirs),
        "playing": middle(step.playing for step in sides.theirs),
        "generating": middle(step.generating for step in sides.theirs),
        "learning": middle(step.total - step.playing for step in sides.theirs),
        "turns": middle(step.turns for step in sides.theirs),
        "trained_tokens": middle(step.tokens for step in sides.theirs),
    }
    rollouts = {
        "seconds": middle(step.total for step in sides.rollouts),
        "playing": middle(step.playing for step in sides.rollouts),
        "learning": middle(step.total - step.playing for step in sides.rollouts),
        "turns": middle(step.turns * games for step in sides.rollouts),
        "trained_tokens": middle(step.tokens for step in sides.rollouts),
        "ratio": middle(their.total / step.total for step, their in zip(sides.rollouts, sides.theirs, strict=True)),
    }
    played = {"ours": dict(ends), "trl": dict(their_ends), "ours_calls": calls, "trl_calls": their_calls}
    played |= {"trl_calls_after_the_end": sides.played.late}
    mine = {"ours": ours(sides.ours), "ours_all_tokens": ours(sides.everything), "trl_rollouts": rollouts}
    return {**mine, "trl": theirs, "played": played}


def report(console: Console, made: dict[str, Any]) -> None:
    """The tables."""
    step, decoded, loop = made["step"], made["decoding"], made["loop"]
    table = Table(title=f"One training step: {made['games']} games and an update", title_justify="left")
    for heading in ("who", "CPU s", "playing", "learning", "turns", "trained", "TRL / this"):
        table.add_column(heading, justify="left" if heading == "who" else "right")
    names = {
        "ours": "mcpgym",
        "ours_all_tokens": "mcpgym, all tokens",
        "trl_rollouts": "TRL, our rollouts",
        "trl": "TRL",
    }
    for key, name in names.items():
        row = step[key]
        parts = [f"{row[part]:.2f}" for part in ("seconds", "playing", "learning")]
        table.add_row(name, *parts, f"{row['turns']:.0f}", f"{row['trained_tokens']:.0f}", f"{row.get('ratio', 1):.1f}")
    console.print(table)
    console.print(f"Of TRL's playing, {step['trl']['generating']:.2f} s were generate(). Games: {step['played']}")
    console.print(
        f"Decoding {decoded['games']} games, {decoded['turns']} turns of {decoded['tokens_a_turn']} tokens: ours "
        f"{decoded['ours']:.2f} ms a game, generate() {decoded['theirs']:.2f} ms: {decoded['ratio']:.1f} ×. A decoding "
        f"step alone, per row: {decoded['our_step']:.1f} µs and {decoded['their_step']:.1f} µs: "
        f"{decoded['step_ratio']:.1f} ×."
    )
    console.print(
        f"The rollout loop in process with a policy that costs nothing: {loop['milliseconds_a_game']:.2f} ms a game, "
        f"{loop['microseconds_a_turn']:.0f} µs a turn."
    )


def main() -> None:
    """Measure, print, and keep the figures if asked."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.training", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few games, to see that it runs; the figures mean little")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mcpgym-bench-") as folder:
        made = measure(options.quick, Path(folder))
    report(Console(), made)
    if options.json:
        options.json.write_text(json.dumps(made, indent=2) + "\n")


if __name__ == "__main__":
    main()
