"""``python -m tests.bench.ray_nodes``: an evaluation on a Ray cluster of several nodes, one of which is killed midway.

The nodes are those of ``ray.cluster_utils``: processes of this machine that Ray takes for machines. Servers run on all
of them (``mcpgym serve --ray``), the evaluation is split over all of them and plays on those servers (``mcpgym eval
--engine ray --server ray``). When half is done, everything on one node is killed. Then every episode must have one
score, and the same traces, byte for byte, as one process writes alone. Exits 1 where that is not so.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil

COMMAND = [sys.executable, "-m", "mcpgym_clients"]
STORE = 80 * 2**20
"""Bytes of each node's object store: the least that Ray takes, for a trace is small."""
OF_A_PLACE = frozenset({"milliseconds", "seconds", "started", "receipt", "wall_seconds"})
"""Fields that say when and where something was, and not what."""


def timeless(value: Any) -> Any:
    """``value`` without the clock's and the signing key's part in it."""
    if isinstance(value, dict):
        return {name: timeless(item) for name, item in value.items() if name not in OF_A_PLACE}
    return [timeless(item) for item in value] if isinstance(value, list) else value


def lines_of(folder: Path) -> list[str]:
    """The traces in the order of their places, as text."""
    traces = [json.loads(line) for line in (folder / "traces.jsonl").read_text().splitlines()]
    return [json.dumps(timeless(trace), sort_keys=True) for trace in sorted(traces, key=lambda trace: trace["place"])]


def beyond_loopback() -> list[str]:
    """Where processes that this one started listen beyond loopback."""
    found = set()
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            listening = [one.laddr for one in process.net_connections("inet") if one.status == psutil.CONN_LISTEN]
            found |= {process.name() for at in listening if at.ip not in ("127.0.0.1", "::1", "::ffff:127.0.0.1")}
    return sorted(found)


def evaluation(episodes: int, out: Path, *more: str) -> list[str]:
    """The command of one evaluation."""
    size, repeats = (episodes, 1) if episodes <= 1000 else (1000, episodes // 1000)
    return [
        *(*COMMAND, "eval", "tic-tac-toe", "--policy", "expert", "-n", str(size), "-r", str(repeats), "--no-exact"),
        *("--out", str(out), *more),
    ]


def main() -> None:
    """Run it, print what came of it, and say by the exit code whether it held."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.ray_nodes", description=__doc__)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--episodes", type=int, default=2000, help="up to 1000, or thousands")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
    options = parser.parse_args()
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with tempfile.TemporaryDirectory(prefix="mcpgym-ray-") as folder:
        figures = run(Path(folder), options.nodes, options.episodes)
    print(json.dumps(figures, indent=2))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    held = figures["scored"] == figures["episodes"] == options.episodes and not figures["twice"]
    held = held and not figures["listening_beyond_loopback"]
    sys.exit(0 if held and figures["differing_traces"] == 0 and figures["exit_code"] == 0 else 1)


def run(folder: Path, nodes: int, episodes: int) -> dict[str, Any]:
    """All of it."""
    import ray
    from ray.cluster_utils import Cluster

    from mcpgym_clients.on_ray.cluster import loopback_alone

    begun = time.monotonic()

    def say(what: str) -> None:
        print(f"{time.monotonic() - begun:7.1f} s  {what}", file=sys.stderr, flush=True)

    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE}
    server: subprocess.Popen[str] | None = None
    with loopback_alone(ray):
        cluster = Cluster(initialize_head=True, head_node_args=head)
        made = [cluster.add_node(num_cpus=3, object_store_memory=STORE) for _ in range(nodes)]
    try:
        environment = {**os.environ, "RAY_ADDRESS": cluster.address}
        say(f"{nodes} nodes are up")
        server = subprocess.Popen(
            [*COMMAND, "serve", "tic-tac-toe", "--ray", "--workers", str(nodes)],
            env=environment, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert server.stderr is not None
        said = ""
        for line in server.stderr:
            said += line
            if "Stop with" in line:
                break
        up = time.monotonic()
        say("the servers are up")
        out = folder / "cluster"
        more = ("--engine", "ray", "--server", "ray", "--shards", str(nodes), "--concurrency", str(4 * nodes))
        playing = subprocess.Popen(evaluation(episodes, out, *more), env=environment, stdout=subprocess.DEVNULL)
        traces = out / "traces.jsonl"
        while not traces.exists() or traces.read_bytes().count(b"\n") < episodes // 2:
            if playing.poll() is not None:
                raise SystemExit(f"the evaluation ended before half of it was done, with {playing.returncode}\n{said}")
            time.sleep(0.05)
        at = traces.read_bytes().count(b"\n")
        elsewhere = beyond_loopback()
        say(f"killing a node; {at} traces are written")
        cluster.remove_node(made[1], allow_graceful=False)
        say("killed")
        code = playing.wait(1200)
        ended = time.monotonic()
        say(f"the evaluation ended with {code}")
    finally:
        if server is not None:
            server.terminate()
            server.communicate(timeout=60)
        cluster.shutdown()
    subprocess.run(evaluation(episodes, folder / "alone"), check=True, stdout=subprocess.DEVNULL)
    summary = json.loads((folder / "cluster" / "summary.json").read_text())
    alone, there = lines_of(folder / "alone"), lines_of(folder / "cluster")
    places = Counter(json.loads(line)["place"] for line in there)
    return {
        "nodes": nodes,
        "servers": said.split(" servers on ")[0].splitlines()[-1],
        "episodes": summary["episodes"],
        "scored": summary["scored"],
        "twice": sum(count > 1 for count in places.values()),
        "killed_after": at,
        "listening_beyond_loopback": elsewhere,
        "played_again": summary["run"]["reopened"],
        "differing_traces": sum(one != other for one, other in zip(alone, there, strict=False)),
        "exit_code": code,
        "seconds_to_start": round(up - begun, 1),
        "seconds_to_play": round(ended - up, 1),
    }


if __name__ == "__main__":
    main()
