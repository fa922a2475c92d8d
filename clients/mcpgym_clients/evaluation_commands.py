"""The commands that evaluate policies and compare them. As in ``cli``, each one's work is imported when it is run."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mcpgym_clients.command_options import Configuration, SecretFile, Servers
from mcpgym_clients.starting import work_begins


class ToolMode(StrEnum):
    """How an endpoint is told about tools."""

    NATIVE = "native"
    GUIDED = "guided"
    TEXT = "text"


class Engine(StrEnum):
    """Where episodes are played."""

    HERE = "here"
    RAY = "ray"


class LaneName(StrEnum):
    """How an evaluation's calls reach their episodes."""

    CONTROL = "control"
    MCP = "mcp"


def register(app: typer.Typer) -> None:
    """Add these commands to ``app``."""
    app.command("eval")(evaluate)
    app.command("compare")(compare)


def evaluate(
    context: typer.Context,
    environment: Annotated[
        str | None, typer.Argument(metavar="ENV", help="What to evaluate on.", show_default=False)
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            "-p",
            help="random, expert, teacher:skill=S, local:MODEL, llama:MODEL, script:FILE, or an endpoint: "
            "openai:MODEL@BASE_URL, openai-responses:MODEL (OPENAI_API_KEY), anthropic:MODEL (ANTHROPIC_API_KEY).",
        ),
    ] = None,
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
    server: Servers = None,
    secret_file: SecretFile = None,
    lane: Annotated[
        LaneName | None,
        typer.Option(help="Calls over MCP, or over the control plane alone. Default: mcp with --server, else control."),
    ] = None,
    tool_mode: Annotated[
        ToolMode | None, typer.Option(help="How an endpoint is told about tools; native by default.")
    ] = None,
    think: Annotated[
        bool,
        typer.Option(
            "--think", help="Let the model think before it acts: anthropic:MODEL, or any with --tool-mode guided."
        ),
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
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="The longest an episode may take; 1800 by default.")
    ] = None,
    retries: Annotated[
        int | None, typer.Option(min=0, help="How often an endpoint is asked again after a fault; 6 by default.")
    ] = None,
    rate_limit: Annotated[
        float | None, typer.Option(metavar="N", help="Requests per minute to the endpoint, repeated ones included.")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(metavar="USD", help="Begin no other episode once the run has cost so much.")
    ] = None,
    max_total_tokens: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Or has taken so many tokens, read and written.")
    ] = None,
    prices: Annotated[
        Path | None, typer.Option(metavar="FILE.toml", help="Prices of models, before those that are known.")
    ] = None,
    success: Annotated[
        float | None,
        typer.Option(metavar="REWARD", help="With -r: what counts as a pass. Default: a game that is won, else 1."),
    ] = None,
    exact: Annotated[
        bool | None,
        typer.Option(
            "--exact/--no-exact",
            help="Work the exact value out; by default where that asks the policy nothing.",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Go on with the run in it; its options need not be given.")
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            metavar="AGENT",
            help="Who plays with the model: loop (ours, the default), claude-code, openai-agents, codex, gemini, or "
            "'command:PROGRAM {url} {prompt_file}'.",
        ),
    ] = None,
    agent_python: Annotated[
        Path | None, typer.Option(metavar="PATH", help="A Python that has openai-agents, if this one has not.")
    ] = None,
    agent_env: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A variable of yours that command:… is to have.")
    ] = None,
    engine: Annotated[
        Engine, typer.Option(help="Play in this process, or split over a Ray cluster: mcpgym[ray].")
    ] = Engine.HERE,
    shards: Annotated[
        int | None, typer.Option(min=1, help="With --engine ray: processes that play; one for each CPU by default.")
    ] = None,
    ray_address: Annotated[
        str | None, typer.Option(help="With --engine ray: the cluster; by default RAY_ADDRESS, or one on this machine.")
    ] = None,
) -> None:
    """Evaluate a policy; write traces.jsonl and summary.json, print the table."""
    from mcpgym_clients.eval_options import AGENTS_AT_ONCE, DEFAULT_TASKS, LOOP, EvalOptions
    from mcpgym_clients.evaluating import run
    from mcpgym_clients.failures import UsageProblem
    from mcpgym_clients.run_file import going_on

    work_begins()

    sources = {name: str(getattr(context.get_parameter_source(name), "name", "")) for name in context.params}
    given = {name for name, source in sources.items() if source == "COMMANDLINE"}
    agent = None if agent == LOOP else agent
    nameless = agent is not None and agent.startswith("command:")  # its model may be its own affair
    if resume is None and (environment is None or (policy is None and not nameless)):
        raise UsageProblem("name an environment and a policy (mcpgym eval ENV --policy POLICY), or --resume FOLDER")
    if agent is not None and sources["concurrency"] == "DEFAULT":
        concurrency = AGENTS_AT_ONCE
    options = EvalOptions(
        environment=environment or "",
        policy=policy or "",
        split=split,
        tasks=DEFAULT_TASKS if tasks is None else tasks,
        fewer=tasks is None,
        repeats=repeats,
        seed=seed,
        concurrency=concurrency,
        out=out,
        overwrite=overwrite,
        config=config or [],
        server=",".join(server) if server else None,
        secret_file=secret_file,
        lane=None if lane is None else lane.value,
        tool_mode=None if tool_mode is None else tool_mode.value,
        think=think,
        temperature=temperature,
        max_tokens=max_tokens,
        max_turns=max_turns,
        timeout=timeout,
        retries=retries,
        rate_limit=rate_limit,
        max_cost=max_cost,
        max_total_tokens=max_total_tokens,
        prices=prices,
        success=success,
        exact=exact,
        agent=agent,
        agent_python=agent_python,
        agent_env=agent_env or [],
        engine=engine.value,
        shards=shards,
        ray_address=ray_address,
    )
    if resume is not None:
        configured = {name for name, source in sources.items() if source in ("ENVIRONMENT", "DEFAULT_MAP")}
        options = going_on(resume, options, given, configured)
    raise typer.Exit(run(options))


def compare(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN RUN…", help="Folders of runs, or their traces.", show_default=False)
    ],
    metric: Annotated[
        str, typer.Option("--metric", "-m", help="reward, win, draw, loss, or the name of a component.")
    ] = "reward",
    force: Annotated[
        bool, typer.Option("--force", help="Compare what runs of different tasks, tools or settings have in common.")
    ] = False,
    bootstrap: Annotated[
        bool, typer.Option("--bootstrap", help="Intervals by the bootstrap (BCa) and not by Student's t.")
    ] = False,
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the comparison as JSON.")] = None,
) -> None:
    """Compare runs, paired by task and seed: what differs, and whether it may be chance."""
    from mcpgym_clients.comparing import CompareOptions, run

    raise typer.Exit(run(CompareOptions(runs, metric, force, bootstrap, json)))
