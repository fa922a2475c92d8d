"""The documents are true: every command and code block in README.md and docs/ is run, in the order it is written.

A block's language says what happens to it. ``console``: each line that begins with ``$ `` is run by bash in a fresh
folder per document; it must succeed. ``console background until=TEXT``: the command keeps running until the document
ends; the next block waits until it has printed TEXT.
``console exit=N says=TEXT``: it must end with N and
have said TEXT. ``python file=NAME`` is written to NAME in that folder; plain ``python`` is run.
``diff file=NAME`` changes NAME there, and must fit it to the line. ``python from=PATH`` is quoted: its lines stand in
that file of the project, in this order; a line ``…`` is what was left out.
``json`` must parse, ``toml`` too, and ``toml file=NAME`` is written to NAME. ``text`` is output, for people. A line
``claude mcp add NAME … -- COMMAND`` or ``claude mcp add --transport http NAME URL`` is tried with a real MCP client,
for Claude Code may not be here.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.document_diffs import apply_diff
from tests.website.made import MADE

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_HERE = {
    "make demo": "test_demo.py runs it",
    "make test": "this is what runs these tests",
    "make bench": "test_bench.py runs it, quickly",
}


def blocks(document: Path) -> Iterator[tuple[str, dict[str, str], str]]:
    """Each fenced block: its language, its options, its text."""
    for language, options, text in BLOCK.findall(document.read_text(encoding="utf-8")):
        parsed = dict(part.split("=", 1) if "=" in part else (part, "") for part in shlex.split(options))
        yield language, parsed, text


def environment(folder: Path) -> dict[str, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return os.environ | {"PATH": path, "COLUMNS": "120", "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder / "run")}


def run_line(
    line: str,
    folder: Path,
    running: list[subprocess.Popen[bytes]],
    *,
    wanted: int = 0,
    says: str = "",
    until: str | None = None,
) -> None:
    if line in NOT_HERE:
        return
    if line.startswith("claude mcp add "):
        asyncio.run(connect(shlex.split(line), folder))
        return
    where = ROOT if line.startswith("make ") else folder
    command = ["bash", "-euo", "pipefail", "-c", line]
    if until is not None:
        log = (folder / "background.log").open("wb")
        process = subprocess.Popen(
            command, cwd=where, env=environment(folder), stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        running.append(process)
        for _ in range(600):
            printed = (folder / "background.log").read_text()
            if until in printed:
                break
            assert process.poll() is None, f"{line}: ended at once:\n{printed}"
            time.sleep(0.1)
        else:
            pytest.fail(f"{line}: did not print {until!r} within a minute:\n{printed}")
        return
    done = subprocess.run(
        command,
        cwd=where,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == wanted, f"$ {line}\nexit {done.returncode}, not {wanted}\n{done.stdout}\n{done.stderr}"
    said = " ".join((done.stdout + done.stderr).split())  # errors are folded where a terminal ends
    assert says in said, f"$ {line}\ndoes not say {says!r}\n{done.stdout}\n{done.stderr}"


async def connect(words: list[str], folder: Path) -> None:
    """Connect as the written line would have Claude Code connect, and list the tools."""
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    if "--" in words:
        command, *arguments = words[words.index("--") + 1 :]
        parameters = StdioServerParameters(
            command=str(Path(sys.executable).parent / Path(command).name), args=arguments
        )
        server: object = stdio_client(parameters, errlog=(folder / "stdio.log").open("w"))
    else:
        server = words[-1]
    async with Client(server) as client:  # type: ignore[arg-type]
        assert (await client.list_tools()).tools


def assert_quoted(text: str, source: str) -> None:
    """Each part of ``text`` between lines of ``…`` is whole lines of the file, in its order; indents do not count."""
    left = "\n".join(["", *(line.strip() for line in (ROOT / source).read_text(encoding="utf-8").splitlines()), ""])
    for part in re.split(r"^[ \t]*…[ \t]*$", text, flags=re.MULTILINE):
        wanted = "\n".join(["", *(line.strip() for line in part.strip().splitlines()), ""])
        found = left.find(wanted)
        assert found >= 0, f"{source} has no such lines (any more), or in another order:\n{part}"
        left = left[found + len(wanted) - 1 :]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_block_of_a_document_does_what_it_says(document: Path, tmp_path: Path) -> None:
    running: list[subprocess.Popen[bytes]] = []
    (tmp_path / "run").mkdir(mode=0o700)
    try:
        for language, options, text in blocks(document):
            match language:
                case "console":
                    wanted, says = int(options.get("exit", 0)), options.get("says", "")
                    assert says or not wanted, f"{text}: what goes wrong must be told from what else may: says=TEXT"
                    for line in re.findall(r"^\$ (.*(?:\\\n.*)*)$", text, re.MULTILINE):
                        run_line(line, tmp_path, running, wanted=wanted, says=says, until=options.get("until"))
                case "python":
                    if "from" in options:
                        assert_quoted(text, options["from"])
                        continue
                    if "file" in options:
                        (tmp_path / options["file"]).write_text(text, encoding="utf-8")
                        continue
                    file = tmp_path / "block.py"
                    file.write_text(text, encoding="utf-8")
                    run_line(f"python {file.name}", tmp_path, running, wanted=int(options.get("exit", 0)))
                case "diff":
                    file = tmp_path / options["file"]
                    file.write_text(apply_diff(file.read_text(encoding="utf-8"), text), encoding="utf-8")
                case "json":
                    json.loads(text)
                case "toml":
                    tomllib.loads(text)
                    if "file" in options:
                        (tmp_path / options["file"]).write_text(text, encoding="utf-8")
                case "text" | "mermaid":
                    pass
                case _:
                    pytest.fail(f"{document.name}: a block of {language!r}, which nothing here checks")
    finally:
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGINT)
            process.wait(timeout=20)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_inside_the_project_lead_somewhere(document: Path) -> None:
    made = {ROOT / "docs" / page for page in MADE}
    for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", document.read_text(encoding="utf-8")):
        place = (document.parent / target).resolve()
        assert place.exists() or place in made, f"{document.name}: {target} is not there"


@pytest.mark.parametrize("text", ["import torch\n…\nimport no_such", "…\nLoss = None", "import torch\nLoss"])
def test_a_quotation_that_is_none_is_found_out(text: str) -> None:
    with pytest.raises(AssertionError, match="no such lines"):
        assert_quoted(text, "rl/mcpgym_rl/training/losses.py")


def test_blocks_are_found() -> None:
    """Guards the two tests above against passing because nothing was read."""
    assert sum(language == "console" for language, _, _ in blocks(ROOT / "README.md")) >= 4
