"""The commands that play: yourself, or a demonstration. As in ``cli``, each one's work is imported when it is run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcpgym_clients.command_options import Configuration, Index, SecretFile, Server, Split, TaskId
from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.starting import work_begins


def register(app: typer.Typer) -> None:
    """Add these commands to ``app``."""
    app.command()(play)
    app.command()(demo)


def play(
    environment: Annotated[str, typer.Argument(metavar="ENV", help="What to play.")],
    task: TaskId = None,
    split: Split = None,
    index: Index = None,
    seed: Annotated[int | None, typer.Option("--seed", help="The seed of the episode; random by default.")] = None,
    config: Configuration = None,
    server: Server = None,
    secret_file: SecretFile = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="POLICY", help="Take the opponent's part in a game, against this policy (as in eval)."),
    ] = None,
    seat: Annotated[
        str | None, typer.Option(help="With --against: the policy's seat (first, second); drawn by default.")
    ] = None,
    web: Annotated[bool, typer.Option("--web", help="Play in the browser, on a page of this machine's own.")] = False,
    watch: Annotated[
        list[str] | None,
        typer.Option(metavar="POLICY", help="With --web: watch this policy play; given twice, two play each other."),
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="With --web: the page's port; a free one by default.")
    ] = None,
    open_page: Annotated[
        bool, typer.Option("--open/--no-open", help="With --web: whether to open the browser.")
    ] = True,
) -> None:
    """Play an environment yourself, through MCP, with what a policy gets; or play against a policy."""
    work_begins()

    if web:
        from mcpgym_clients.play import PlayOptions as Played
        from mcpgym_clients.web_play.command import WebOptions
        from mcpgym_clients.web_play.command import run as play_on_a_page

        played = Played(environment, task, split, index, seed, config or [], server, secret_file)
        raise typer.Exit(play_on_a_page(WebOptions(played, against, watch or [], seat, port or 0, open_page)))
    for name, given in {"--watch": bool(watch), "--port": port is not None, "--no-open": not open_page}.items():
        if given:
            raise UsageProblem(f"{name} goes with --web alone")
    if against is not None:
        others = {"--task": task, "--split": split, "--index": index, "--server": server, "--secret-file": secret_file}
        for name, value in others.items():
            if value is not None:
                raise UsageProblem(f"{name} does not go with --against: you are the opponent, and the game is here")
        from mcpgym_clients.against import AgainstOptions
        from mcpgym_clients.against import run as play_against

        play_against(AgainstOptions(environment, against, seat, seed, config or []))
        return
    if seat is not None:
        raise UsageProblem("--seat goes with --against alone; a task says who moves first")
    from mcpgym_clients.play import PlayOptions, run

    run(PlayOptions(environment, task, split, index, seed, config or [], server, secret_file))


def demo(
    games: Annotated[int, typer.Option(min=200, max=1000, help="Games per policy.")] = 400,
    out: Annotated[
        Path | None, typer.Option(help="Where traces go. Default: runs/demo-TIME.", show_default=False)
    ] = None,
) -> None:
    """Serve environments on loopback, play hundreds of games over MCP, compare with the exact values."""
    from mcpgym_clients.demo import run

    work_begins()

    run(games, out)
