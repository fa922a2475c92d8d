"""A model directory as Hugging Face writes them: configuration, tokenizer, chat template, weights.

Nothing in it is ever executed or unpickled: JSON, safetensors and a sandboxed template are all that is read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpgym.errors import ConfigurationError
from mcpgym_rl.local.weights import read_weights, weight_files

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from mcpgym_rl.local.chat import Chat

SPECIAL = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


@dataclass(frozen=True)
class ModelDirectory:
    """A directory whose ``config`` has been read; everything else is read when it is first asked for.

    Every part raises ConfigurationError, naming the file, where that is missing or wrong.
    """

    path: Path
    config: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The folder's name, as traces show it."""
        return self.path.resolve().name

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer, of ``tokenizer.json``."""
        from tokenizers import Tokenizer

        path = self._needed("tokenizer.json", "write it with tokenizer.save_pretrained of a fast tokenizer")
        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:
            raise ConfigurationError(f"{path} is no tokenizer: {error}") from None
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def tokenizer_config(self) -> Mapping[str, Any]:
        """``tokenizer_config.json``; empty where there is none."""
        path = self.path / "tokenizer_config.json"
        return read_json(path) if path.is_file() else {}

    @cached_property
    def generation_config(self) -> Mapping[str, Any]:
        """``generation_config.json``; empty where there is none."""
        path = self.path / "generation_config.json"
        return read_json(path) if path.is_file() else {}

    @cached_property
    def templates(self) -> Mapping[str, str]:
        """The chat templates by name; ``default`` is the one of most models, ``tool_use`` some have besides."""
        made: dict[str, str] = {}
        given = self.tokenizer_config.get("chat_template")
        if isinstance(given, str):
            made["default"] = given
        elif isinstance(given, list):
            made.update(
                (str(item["name"]), item["template"])
                for item in given
                if isinstance(item, Mapping) and isinstance(item.get("template"), str) and "name" in item
            )
        for path in [self.path / "chat_template.jinja", *sorted(self.path.glob("additional_chat_templates/*.jinja"))]:
            if path.is_file():
                made["default" if path.parent == self.path else path.stem] = _text(path)
        if not made:
            raise ConfigurationError(
                f"{self.path} has no chat template (chat_template.jinja, or chat_template in tokenizer_config.json): "
                "it is a base model; take one that was made for conversations"
            )
        return made

    @cached_property
    def special_tokens(self) -> Mapping[str, str]:
        """The named special tokens, as templates know them (``bos_token``, ``eos_token``…)."""
        given: dict[str, Any] = {}
        path = self.path / "special_tokens_map.json"
        if path.is_file():
            given.update(read_json(path))
        given.update(self.tokenizer_config)
        made: dict[str, str] = {}
        for name in SPECIAL:
            value = given.get(name)
            value = value.get("content") if isinstance(value, Mapping) else value
            if isinstance(value, str):
                made[name] = value
        return made

    @property
    def end_ids(self) -> frozenset[int]:
        """The tokens that end a generation, where the files state any."""
        for source in (self.generation_config, self.config):
            given = source.get("eos_token_id")
            if given is not None:
                ids = given if isinstance(given, list) else [given]
                if not all(isinstance(item, int) for item in ids):
                    raise ConfigurationError(f"{self.path}: eos_token_id is {given!r}, which are no token ids")
                return frozenset(ids)
        return frozenset()

    @cached_property
    def chat(self) -> Chat:
        """How messages become its ids, and its ids messages."""
        from mcpgym_rl.local.chat import Chat

        return Chat.of(self)

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """The weights by name, read anew at each call."""
        return read_weights(weight_files(self.path))

    @cached_property
    def hash(self) -> str:
        """SHA-256 over what decides how the model plays: configuration, weights, tokenizer and template."""
        made = hashlib.sha256()
        for path in [self.path / "config.json", *weight_files(self.path), self.path / "tokenizer.json"]:
            made.update(_digest(self._needed(path.name, "")))
        for name, template in sorted(self.templates.items()):
            made.update(hashlib.sha256(f"{name}\n{template}".encode()).digest())
        return made.hexdigest()

    def _needed(self, name: str, hint: str) -> Path:
        path = self.path / name
        if not path.is_file():
            raise ConfigurationError(f"{self.path} has no {name}{f'; {hint}' if hint else ''}")
        return path


def open_directory(path: str | Path) -> ModelDirectory:
    """The model directory at ``path``; its configuration is read, the rest when it is needed.

    Raises:
        ConfigurationError: there is no such directory, or it has no readable ``config.json``.
    """
    folder = Path(path).expanduser()
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise ConfigurationError(f"the model directory {str(folder)!r} {what}")
    config = folder / "config.json"
    if not config.is_file():
        raise ConfigurationError(
            f"{folder} has no config.json; a model directory holds config.json, model.safetensors and tokenizer.json"
        )
    return ModelDirectory(folder, read_json(config))


def read_json(path: Path) -> Mapping[str, Any]:
    """The JSON object in the file at ``path``.

    Raises:
        ConfigurationError: it cannot be read, or is none.
    """
    try:
        made = json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path} is no JSON: {error}") from None
    if not isinstance(made, dict):
        raise ConfigurationError(f"{path} must be a JSON object")
    return made


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from None


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
