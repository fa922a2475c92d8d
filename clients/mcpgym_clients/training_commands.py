"""The commands that make, teach and certify models. As in ``cli``, each one's work is imported when it is run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcpgym_clients.command_options import Configuration, Servers
from mcpgym_clients.starting import work_begins


def register(app: typer.Typer) -> None:
    """Add these commands to ``app``."""
    app.command()(train)
    app.command()(certify)
    app.command("new-model")(new_model)
    app.command("import-gguf")(import_gguf)
    app.command()(collect)
    app.command()(sft)


def train(
    what: Annotated[
        str | None,
        typer.Argument(metavar="[ENV | RECIPE.toml]", help="An environment, for its own recipe; or a recipe."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The run's folder. Default: runs/train-ENV-TIME.", show_default=False)
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="Who learns: own (the default), or trl, for several GPUs. A run goes on with the one it has."
        ),
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

    raise typer.Exit(run(TrainOptions(what, out, resume, seed, changes or [], engine)))


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


def new_model(
    environment: Annotated[str, typer.Argument(metavar="ENV", help="Whose transcripts the tokenizer is trained on.")],
    out: Annotated[Path, typer.Option(help="The model's folder; it must not exist, or be empty.")],
    seed: Annotated[int, typer.Option(min=0, help="Of the first weights.")] = 0,
    hidden_size: Annotated[int | None, typer.Option(help="Width of the model; 64 by default.")] = None,
    intermediate_size: Annotated[int | None, typer.Option(help="Width inside its feed-forward layers; 128.")] = None,
    layers: Annotated[int | None, typer.Option(help="Layers; 3.")] = None,
    heads: Annotated[int | None, typer.Option(help="Attention heads; 4.")] = None,
    key_value_heads: Annotated[int | None, typer.Option(help="Heads with keys and values of their own; 1.")] = None,
    vocabulary: Annotated[int | None, typer.Option(help="The most tokens the tokenizer may have; 1024.")] = None,
    max_positions: Annotated[int | None, typer.Option(help="The longest context, in tokens; 2048.")] = None,
    config: Configuration = None,
) -> None:
    """Make a new, tiny, untrained model for an environment: a plain Hugging Face directory."""
    from mcpgym_clients.making_models import NewModelOptions, run

    work_begins()

    given = {
        "hidden_size": hidden_size,
        "intermediate_size": intermediate_size,
        "layers": layers,
        "heads": heads,
        "key_value_heads": key_value_heads,
        "vocabulary": vocabulary,
        "max_positions": max_positions,
    }
    size = {name: value for name, value in given.items() if value is not None}
    run(NewModelOptions(environment, out, seed, config or [], size))


def import_gguf(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The GGUF file.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The model's folder; it must not exist, or be empty.")],
) -> None:
    """Turn a GGUF file into a plain Hugging Face directory, in 32-bit floats, which local: plays and train trains."""
    from mcpgym_clients.making_models import run_import

    work_begins()

    run_import(file, out)


def collect(
    environment: Annotated[str, typer.Argument(metavar="ENV", help="Where the policy plays.")],
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            "-p",
            help="Who plays: teacher:skill=0.95, expert, openai:MODEL@BASE_URL, anthropic:MODEL, as in eval.",
        ),
    ],
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="How many rollouts.")] = 200,
    keep: Annotated[
        str,
        typer.Option(help="Which to keep, as in: reward >= 0.5 and outcome != 'loss'. Default: all that have a score."),
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option(
            help="The folder; one with the same collection is gone on with. Default: runs/collect-ENV-POLICY-TIME.",
            show_default=False,
        ),
    ] = None,
    split: Annotated[str, typer.Option(help="The split whose tasks are played, from the first, over and over.")] = (
        "train"
    ),
    seed: Annotated[int, typer.Option(help="Of the episodes; one more each time the split is played again.")] = 0,
    model: Annotated[
        Path | None, typer.Option(help="Add token ids and masks for the model in this Hugging Face directory.")
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Rollouts at once.")] = 16,
    config: Configuration = None,
    server: Servers = None,
    secret_file: Annotated[
        Path | None, typer.Option(help="File with its control plane's secret. Or set MCPGYM_CONTROL_SECRET.")
    ] = None,
    tool_mode: Annotated[
        str | None, typer.Option(help="How an endpoint is told about tools: native (the default), guided or text.")
    ] = None,
    think: Annotated[
        bool, typer.Option("--think", help="With --tool-mode guided, let the model write a thought before it acts.")
    ] = False,
    temperature: Annotated[float | None, typer.Option(min=0, help="An endpoint's temperature.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens per turn of an endpoint.")] = None,
    max_turns: Annotated[
        int | None, typer.Option(min=1, help="Turns per episode; the environment's by default.")
    ] = None,
) -> None:
    """Play rollouts and keep the good ones as data for fine-tuning, with a card that says what they are.

    Interrupted, the same command with the same --out goes on; with another --keep it chooses anew from what is there.
    """
    from mcpgym_clients.collecting import CollectOptions, run
    from mcpgym_clients.eval_options import EvalOptions

    work_begins()

    options = EvalOptions(
        environment=environment,
        policy=policy,
        split=split,
        tasks=count,
        seed=seed,
        concurrency=concurrency,
        out=out,
        config=config or [],
        server=",".join(server) if server else None,
        secret_file=secret_file,
        lane="mcp" if server else None,
        tool_mode=tool_mode,
        think=think,
        temperature=temperature,
        max_tokens=max_tokens,
        max_turns=max_turns,
    )
    raise typer.Exit(run(CollectOptions(options, keep, model)))


def sft(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG.toml", help="What is learnt, by which model: data, out, [model], [sft].")
    ],
) -> None:
    """Fine-tune a model on collected conversations; killed at any moment, the same command goes on."""
    from mcpgym_clients.fine_tuning import run

    work_begins()

    raise typer.Exit(run(config))
