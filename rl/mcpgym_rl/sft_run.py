"""``mcpgym sft``: a whole fine-tuning run from a TOML file.

::

    data = ["runs/collected"]     # folders of mcpgym collect, or sft.jsonl files
    out = "runs/sft"              # metrics.jsonl, the checkpoint, and model/ at the end

    [model]
    path = "models/tiny"          # a Hugging Face directory; lora_rank, lora_alpha, device

    [sft]                         # see mcpgym_rl.sft.SftConfig
    steps = 800
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from mcpgym.errors import ConfigurationError
from mcpgym.messages import Message, message_fault
from mcpgym_rl.collect import SFT
from mcpgym_rl.files import write_atomically
from mcpgym_rl.local.chat import Chat
from mcpgym_rl.parse import parse
from mcpgym_rl.sft import Game, SftConfig, SftStep, fit
from mcpgym_rl.training.sections import ModelSection

CONFIG = "sft.json"


class SftRun(BaseModel):
    """A fine-tuning run; paths are relative to the folder of the configuration file."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    data: list[str]
    """What is learnt: folders that ``mcpgym collect`` made, or files of conversations, one JSON object a line."""
    out: str
    """The run's folder."""
    model: ModelSection
    """The model to begin with."""
    sft: SftConfig = SftConfig()
    """How it is learnt."""
    threads: int = Field(default=1, gt=0)
    """How many CPU threads it takes; a tiny model is fastest with one."""

    @field_validator("data", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value


def read_sft_run(path: Path) -> SftRun:
    """The run that the TOML file at ``path`` describes, its paths made absolute.

    Raises:
        ConfigurationError: it cannot be read, or a key or value is wrong; the message names which.
    """
    try:
        data = tomllib.loads(path.read_text("utf-8"))
        made = SftRun.model_validate(data)
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is no TOML: {error}") from None
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, item['loc'])) or 'the file'}: {item['msg'][:1].lower()}{item['msg'][1:]}"
            for item in error.errors(include_url=False)
        )
        raise ConfigurationError(f"{path}: {problems}") from None
    if made.model.path is None:
        raise ConfigurationError(f"{path}: model.path is missing: the directory of the model to fine-tune")
    here = path.resolve().parent
    model = made.model.model_copy(update={"path": str(here / made.model.path)})
    data_paths = [str(here / item) for item in made.data]
    return made.model_copy(update={"data": data_paths, "out": str(here / made.out), "model": model})


def run(wanted: SftRun, on_step: Callable[[SftStep], None] | None = None) -> Path:
    """Fine-tune, or go on with it where it was killed; the directory of the fine-tuned model.

    Raises:
        ConfigurationError: the model, the data or the folder will not do.
    """
    from mcpgym_rl.training.models import load_model, save_model

    assert wanted.model.path is not None
    source, folder = Path(wanted.model.path), Path(wanted.out)
    claim(folder, wanted)
    model, chat = load_model(source, wanted.model, wanted.sft.seed)
    games = [game for path in wanted.data for game in read_games(Path(path), chat)]
    fit(model, games, wanted.sft, folder, on_step=on_step)
    save_model(model, source, folder / "model")
    return folder / "model"


def claim(folder: Path, wanted: SftRun) -> None:
    """Write down in ``folder`` what it is for, or see that it is for that.

    Raises:
        ConfigurationError: it has another run, or something else.
    """
    own = wanted.model_dump(mode="json")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / CONFIG
    if not path.exists():
        if any(not item.name.startswith(".") for item in folder.iterdir()):
            raise ConfigurationError(f"{folder} is not empty and has no {CONFIG}; name another folder")
        write_atomically(path, own)
    try:
        there = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        there = None
    if there != own:
        raise ConfigurationError(f"{folder} has a run with other settings (see its {CONFIG}); name another folder")


def read_games(path: Path, chat: Chat) -> Iterator[Game]:
    """The conversations of a file, or of the ``sft.jsonl`` in a folder, as games of ``chat``'s model.

    Ids that a line may have are not looked at: they may be those of another tokenizer.

    Raises:
        ConfigurationError: it cannot be read, or a line is no conversation; the message names it.
    """
    from mcpgym_rl.games import game_of

    file = path / SFT if path.is_dir() else path
    try:
        lines = file.read_bytes().split(b"\n")
    except OSError as error:
        raise ConfigurationError(f"cannot read data: {error}") from None
    found = False
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            messages, tools = _conversation(json.loads(line))
        except (ValueError, RecursionError) as error:
            raise ConfigurationError(f"{file}: line {number} {error}") from None
        prompt = next(place for place, message in enumerate(messages) if message["role"] == "assistant")
        game = game_of(chat, messages, prompt, tools)
        if any(game[1]):
            found = True
            yield game
    if not found:
        raise ConfigurationError(f"{file} has no conversation with a turn to learn")


def _conversation(row: Any) -> tuple[list[Message], list[Mapping[str, Any]]]:
    """The messages and tools of a line.

    Raises:
        ValueError: it is no conversation; the message continues "line 3 …".
    """
    if not isinstance(row, dict) or not isinstance(row.get("messages"), list):
        raise ValueError('must be a JSON object with "messages"')
    messages: list[Message] = []
    for number, message in enumerate(row["messages"], 1):
        if (fault := message_fault(message)) is not None:
            raise ValueError(f"cannot be used: message {number} {fault}")
        messages.append(parse(message)[0] if message["role"] == "assistant" else message)
    if not any(message["role"] == "assistant" for message in messages):
        raise ValueError("has no assistant message")
    tools = row.get("tools") or []
    if isinstance(tools, str):
        tools = json.loads(tools)
    if not isinstance(tools, list) or not all(_is_tool(tool) for tool in tools):
        raise ValueError('has "tools" that are none: a list of {"type": "function", "function": {…}} is wanted')
    return messages, [_listed(tool["function"]) for tool in tools]


def _is_tool(tool: Any) -> bool:
    function = tool.get("function") if isinstance(tool, dict) else None
    return isinstance(function, dict) and isinstance(function.get("name"), str)


def _listed(function: Mapping[str, Any]) -> Mapping[str, Any]:
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    return {"name": function["name"], "description": function.get("description") or "", "inputSchema": schema}
