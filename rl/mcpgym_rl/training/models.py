"""Model directories as torch models that can be trained, and back."""

from __future__ import annotations

import copy
import os
import shutil
from pathlib import Path
from typing import Any

import torch
from torch import nn

from mcpgym.errors import ConfigurationError
from mcpgym_rl.local.chat import Chat
from mcpgym_rl.local.directory import open_directory
from mcpgym_rl.training.sections import ModelSection

_WEIGHTS = frozenset({".safetensors", ".bin", ".pt", ".pth", ".gguf", ".h5", ".msgpack", ".onnx"})
"""Files of weights, in whatever form: those of a trained model are not those beside it."""


def load_model(path: Path, section: ModelSection, seed: int = 0) -> tuple[nn.Module, Chat]:
    """The model in the directory ``path`` in float32, on the section's device, with adapters where it asks for them.

    With adapters nothing else can be trained, and they change nothing at first; ``seed`` is of their first weights.

    Raises:
        ConfigurationError: it is no model directory, or the device is not there.
    """
    from transformers import AutoModelForCausalLM
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    directory = open_directory(path)
    chat = Chat.of(directory)
    try:
        device = torch.device(section.device)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigurationError(f"model.device {section.device!r}: {str(error).splitlines()[0]}") from None
    model: Any = AutoModelForCausalLM.from_pretrained(
        str(path), dtype=torch.float32, use_safetensors=True, trust_remote_code=False, local_files_only=True
    )
    model = model.to(device)
    if section.lora_rank:
        from peft import LoraConfig, get_peft_model

        config = LoraConfig(
            r=section.lora_rank, lora_alpha=section.lora_alpha, target_modules="all-linear", task_type="CAUSAL_LM"
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = get_peft_model(model, config)
    return model, chat


def copy_model(model: nn.Module) -> Any:
    """A copy to be trained or kept apart; it shares what is frozen in ``model``, which may be most of it."""
    shared = {id(value): value for value in model.parameters() if not value.requires_grad}
    return copy.deepcopy(model, dict(shared))


def save_model(model: nn.Module, source: Path, target: Path) -> None:
    """Write ``model`` as a directory like ``source``, adapters merged in; the directory appears whole or not at all."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)
    whole: Any = model
    if hasattr(model, "merge_and_unload"):
        whole = copy.deepcopy(whole).merge_and_unload()  # merging writes into what is frozen too
    whole.save_pretrained(str(temporary), safe_serialization=True)
    for file in source.iterdir():
        if file.is_file() and not file.name.startswith("model") and file.suffix not in _WEIGHTS:
            shutil.copy2(file, temporary / file.name)
    if target.exists():
        shutil.rmtree(target)
    temporary.replace(target)
