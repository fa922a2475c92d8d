"""The commands that make, teach and certify models. As in ``cli``, each one's work is imported when it is run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcpgym_clients.starting import work_begins

Configuration = Annotated[
    list[str] | None,
    typer.Option("--config", "-c", metavar="NAME=VALUE", help="Set a field of the environment's configuration."),
]


def register(app: typer.Typer) -> None:
    """Add these commands to ``app``."""
    app.command()(train)
    app.command()(certify)


def train(
    what: Annotated[
        str | None,
        typer.Argument(metavar="[ENV | RECIPE.toml]", help="An environment, for its own recipe; or a recipe."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The run's folder. Default: runs/train-ENV-TIME.", show_default=False)
    ] = None,
    resume: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Go on with an interrupted run.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="The run's seed; the recipe's by default.")] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="Change a field of the recipe, as in --set rl.steps=5."),
    ] = None,
) -> None:
    """Train a model: warm-up, reinforcement learning, certificate; exit 1 if its goal was not reached."""
    from mcpgym_clients.training import TrainOptions, run

    work_begins()

    raise typer.Exit(run(TrainOptions(what, out, resume, seed, changes or [])))


def certify(
    environment: Annotated[str, typer.Argument(metavar="ENV", help="The game; it must give its tree.")],
    policy: Annotated[
        str, typer.Option("--policy", "-p", help="Who plays; as in eval. It must answer alike when asked alike.")
    ],
    out: Annotated[Path | None, typer.Option(help="Write the certificate to this file (certificate.json).")] = None,
    config: Configuration = None,
    seed: Annotated[
        int | None, typer.Option(help="For a policy that draws: certify it as it plays when it begins with this seed.")
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Do not ask twice, to see whether the policy answers alike.")
    ] = False,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="Turns asked for at once. Default: all, and 16 of an endpoint.")
    ] = None,
    tool_mode: Annotated[
        str | None, typer.Option(help="How an endpoint is told about tools: native (the default), guided or text.")
    ] = None,
    temperature: Annotated[float | None, typer.Option(min=0, help="An endpoint's temperature.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens per turn of an endpoint.")] = None,
) -> None:
    """Play a policy against every reply there is, first and second; exit 0 if it never loses, else 1."""
    from mcpgym_clients.certifying import CertifyOptions, run

    work_begins()

    given = {"mode": tool_mode, "temperature": temperature, "max_tokens": max_tokens}
    options = {name: value for name, value in given.items() if value is not None}
    code = run(CertifyOptions(environment, policy, out, config or [], seed, once, concurrency, options))
    raise typer.Exit(code)
