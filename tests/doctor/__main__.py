"""``python -m tests.doctor``: examine some servers and write the reports in docs/doctor-reports.

Ours over HTTP and stdio, and a default FastMCP server keyed on session ids. A peer's too, where its Python is named:
``--verifiers PYTHON``, of a virtual environment that has verifiers 0.4 (it cannot share one with ours).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mcpgym_clients.doctor.findings import Examination
from mcpgym_clients.doctor.rendering import markdown, summary
from mcpgym_clients.doctor.running import DoctorOptions, examined

REPORTS = Path(__file__).parents[2] / "docs" / "doctor-reports"
ENVIRONMENT = "tic-tac-toe"


def ours_http(quick: bool) -> Examination:
    """Ours, at episodes' URLs."""
    title = f"mcpgym {version('mcpgym')}: {ENVIRONMENT} over HTTP, at episodes' URLs"
    return run(DoctorOptions([ENVIRONMENT], quick=quick, title=title))


def ours_stdio(quick: bool) -> Examination:
    """Ours, as a command."""
    command = [
        sys.executable,
        "-m",
        "mcpgym_clients",
        "serve",
        ENVIRONMENT,
        "--stdio",
        "--split",
        "train",
        "--index",
        "0",
    ]
    title = f"mcpgym {version('mcpgym')}: mcpgym serve {ENVIRONMENT} --stdio --split train --index 0"
    return run(DoctorOptions(command, quick=quick, title=title))


def fastmcp_sessions(quick: bool) -> Examination:
    """FastMCP with its defaults, its state keyed on the session id."""
    title = f"FastMCP {version('fastmcp')}, its defaults, state keyed on the session id"
    command = [sys.executable, "-m", "tests.doctor.servers", "fastmcp-sessions"]
    return beside(command, lambda line: DoctorOptions([line], quick=quick, title=title))


def verifiers_toolset(quick: bool, python: str) -> Examination:
    """A verifiers Toolset, shared by rollouts, each of which has a URL of its own."""
    command = [python, str(Path(__file__).with_name("verifiers_server.py"))]

    def options(line: str) -> DoctorOptions:
        said: dict[str, Any] = json.loads(line)
        title = f"{said['name']}: a Toolset that rollouts share, each at a URL of its own"
        return DoctorOptions([said["url"]], quick=quick, title=title, places=said["places"])

    return beside(command, options)


def beside(command: list[str], options: Callable[[str], DoctorOptions]) -> Examination:
    """Start a server that says where it is, and examine it."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        if not line:
            raise SystemExit(f"{' '.join(command)}: did not start")
        return run(options(line))
    finally:
        process.kill()
        process.communicate()


def run(options: DoctorOptions) -> Examination:
    """Examine it."""
    return asyncio.run(examined(options))


IN_CI: dict[str, Callable[[bool], Examination]] = {
    "ours-http": ours_http,
    "ours-stdio": ours_stdio,
    "fastmcp-sessions": fastmcp_sessions,
}
"""The reports that tests compare with fresh ones, by file name."""


def main() -> None:
    """Write the reports."""
    parser = argparse.ArgumentParser(prog="python -m tests.doctor", description=__doc__)
    parser.add_argument("reports", nargs="*", metavar="REPORT", help=f"{', '.join(IN_CI)}; all by default")
    parser.add_argument("--verifiers", metavar="PYTHON", help="also verifiers-toolset, with this Python")
    options = parser.parse_args()
    if unknown := set(options.reports) - set(IN_CI):
        parser.error(f"there is no {unknown.pop()}; there are {', '.join(IN_CI)}")
    chosen = options.reports or ([] if options.verifiers else list(IN_CI))
    REPORTS.mkdir(exist_ok=True)
    making = {name: lambda name=name: IN_CI[name](False) for name in chosen}
    if options.verifiers:
        making["verifiers-toolset"] = lambda: verifiers_toolset(False, options.verifiers)
    for name, make in making.items():
        made = make()
        (REPORTS / f"{name}.md").write_text(markdown(made), encoding="utf-8")
        print(f"{name}: {summary(made)}")


if __name__ == "__main__":
    main()
