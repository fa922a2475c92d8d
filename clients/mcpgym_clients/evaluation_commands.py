"""The commands that evaluate policies and compare them. As in ``cli``, each one's work is imported when it is run."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mcpgym_clients.command_options import Configuration, SecretFile, Server
from mcpgym_clients.starting import work_begins


class ToolMode(StrEnum):
    """How an endpoint is told about tools."""

    NATIVE = "native"
    GUIDED = "guided"
    TEXT = "text"


class LaneName(StrEnum):
    """How an evaluation's calls reach their episodes."""

    CONTROL = "control"
    MCP = "mcp"


def register(app: typer.Typer) -> None:
    """Add these commands to ``app``."""
    app.command("eval")(evaluate)


def evaluate(
    environment: Annotated[str, typer.Argument(metavar="ENV", help="What to evaluate on.")],
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            "-p",
            help="random, expert, teacher:skill=S, local:MODEL, script:FILE or openai:MODEL@BASE_URL (OPENAI_API_KEY).",
        ),
    ],
    split: Annotated[str, typer.Option(help="The split to take tasks from.")] = "test",
    tasks: Annotated[
        int | None,
        typer.Option(
            "-n", "--tasks", min=1, help="How many tasks, from the split's first; by default 100, or all if fewer."
        ),
    ] = None,
    repeats: Annotated[int, typer.Option("-r", "--repeats", min=1, help="Episodes per task.")] = 1,
    seed: Annotated[int, typer.Option(help="Repeat r of a task has the seed SEED + r.")] = 0,
    concurrency: Annotated[int, typer.Option(min=1, help="Episodes at once.")] = 16,
    out: Annotated[
        Path | None, typer.Option(help="Where results go. Default: runs/ENV-POLICY-TIME.", show_default=False)
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the results that are in --out.")] = False,
    config: Configuration = None,
    server: Server = None,
    secret_file: SecretFile = None,
    lane: Annotated[
        LaneName | None,
        typer.Option(help="Calls over MCP, or over the control plane alone. Default: mcp with --server, else control."),
    ] = None,
    tool_mode: Annotated[
        ToolMode | None, typer.Option(help="How an endpoint is told about tools; native by default.")
    ] = None,
    think: Annotated[
        bool, typer.Option("--think", help="With --tool-mode guided, let the model write a thought before it acts.")
    ] = False,
    temperature: Annotated[
        float | None, typer.Option(min=0, help="An endpoint's temperature, or a local model's (0 by default).")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Tokens per turn of an endpoint or a local model.")
    ] = None,
    max_turns: Annotated[
        int | None, typer.Option(min=1, help="Turns per episode; the environment's by default.")
    ] = None,
) -> None:
    """Evaluate a policy; write traces.jsonl and summary.json, print the table."""
    from mcpgym_clients.eval_options import DEFAULT_TASKS, EvalOptions
    from mcpgym_clients.evaluation import run

    work_begins()

    code = run(
        EvalOptions(
            environment=environment,
            policy=policy,
            split=split,
            tasks=DEFAULT_TASKS if tasks is None else tasks,
            fewer=tasks is None,
            repeats=repeats,
            seed=seed,
            concurrency=concurrency,
            out=out,
            overwrite=overwrite,
            config=config or [],
            server=server,
            secret_file=secret_file,
            lane=None if lane is None else lane.value,
            tool_mode=None if tool_mode is None else tool_mode.value,
            think=think,
            temperature=temperature,
            max_tokens=max_tokens,
            max_turns=max_turns,
        )
    )
    raise typer.Exit(code)
