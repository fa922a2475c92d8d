"""``mcpgym view``: the page, served until Ctrl-C, or written to a file."""

from __future__ import annotations

import secrets
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mcpgym.background import HttpServer
from mcpgym.control_plane.listeners import listen_tcp
from mcpgym.stopping import Stopping
from mcpgym_clients.console import escaped, out, talk
from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.viewer.answers import Answers
from mcpgym_clients.viewer.exporting import MAX_TRACES, export
from mcpgym_clients.viewer.move_values import given_environments
from mcpgym_clients.viewer.site import viewer_app


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """What was asked for; see the command's help."""

    paths: Sequence[Path]
    port: int = 0
    open: bool = False
    export: Path | None = None
    max_traces: int | None = None
    environments: Sequence[str] = ()
    models: Sequence[Path] = ()


def run(options: ViewOptions) -> int:
    """Serve the page, or write it; the exit code.

    Raises:
        UsageProblem: there is no such folder, or nothing in it, or options contradict.
        ConfigurationError: there is no such environment, or the port is taken.
    """
    if options.export is None and options.max_traces is not None:
        raise UsageProblem("--max-traces belongs to --export: a served page has them all")
    for path in options.models:
        if not (path / "tokenizer.json").is_file():
            raise UsageProblem(f"--model {path}: there is no tokenizer.json in it")
    answers = Answers(options.paths, given_environments(options.environments), options.models)
    if not answers.library.items():
        where = ", ".join(map(str, options.paths))
        raise UsageProblem(f"there is no run in {where}: mcpgym eval ENV -p POLICY makes one, in runs/")
    if options.export is not None:
        _export(answers, options.export, options.max_traces or MAX_TRACES)
        return 0
    return _serve(answers, options.port, options.open)


def _export(answers: Answers, path: Path, max_traces: int) -> None:
    with talk().status("Writing the page"):
        made = export(answers, path, max_traces)
    if made.left_out:
        talk().print(
            f"[yellow]{made.left_out} traces are in the lists only: --max-traces {max_traces} for each run.[/yellow]"
        )
    out().print(
        f"{escaped(path)}: {made.runs} runs, {made.traces} traces, {made.size / 1e6:.1f} MB. Open it in any browser.",
        soft_wrap=True,
    )


def _serve(answers: Answers, port: int, open_page: bool) -> int:
    token, once = secrets.token_urlsafe(16), secrets.token_urlsafe(16)
    listener = listen_tcp("127.0.0.1", port, "--port")
    url = f"{listener.url}/{token}/"

    async def serve(stopping: Stopping) -> None:
        server = HttpServer(viewer_app(answers, token, once), listener.socket)
        await server.begin()
        try:
            out().print(f"{len(answers.library.items())} runs at {url}", soft_wrap=True)
            talk().print("[dim]Only this machine can open it, and only by this address. Ctrl-C stops it.[/dim]")
            if open_page:
                webbrowser.open(f"{listener.url}/{once}/")
            await stopping.wait()
        finally:
            await server.end()

    return Stopping().run(serve)
