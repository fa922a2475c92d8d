"""Attention heads made wider, exactly: engines that know only some widths can then run a tiny model.

vLLM's attention on CPUs begins at 32, and our new models have heads of 16. Zeros are put between the two halves that
rotate together, the base of the rotation is raised so that each pair keeps its angle, and queries are scaled by the
root of what the engine divides by too much. What the model computes stays the same, but for rounding.
"""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from mcpgym.errors import ConfigurationError
from mcpgym_rl.files import write_atomically
from mcpgym_rl.local.directory import open_directory
from mcpgym_rl.local.llama_shape import understands

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def widen_heads(source: str | Path, out: str | Path, width: int = 32) -> Path:
    """Write the Llama in ``source`` to the directory ``out`` with attention heads of ``width``, in 32-bit floats.

    Args:
        source: a model directory.
        out: where it goes; must be empty or not exist.
        width: of a head; a multiple of what it is.

    Returns:
        ``out``.

    Raises:
        ConfigurationError: it is no plain Llama, the width is no multiple, or ``out`` has something in it.
    """
    directory, folder = open_directory(source), Path(out).expanduser()
    config = dict(directory.config)
    if not understands(config) or config.get("rope_scaling") or config.get("attention_bias"):
        raise ConfigurationError(f"{directory.path} is no plain Llama: its heads cannot be made wider")
    heads = int(config["num_attention_heads"])
    own = int(config.get("head_dim") or config["hidden_size"] // heads)
    if width <= 0 or width % own:
        raise ConfigurationError(f"heads of {own} can be made 2, 3, 4… times as wide, not {width}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigurationError(f"{folder} is there already; name a folder that is empty or does not exist")
    folder.mkdir(parents=True, exist_ok=True)
    _copy_the_rest(directory.path, folder)
    times = width // own
    config |= {"head_dim": width, "rope_theta": float(config.get("rope_theta", 10_000.0)) ** times}
    if isinstance(rope := config.get("rope_parameters"), dict):
        config["rope_parameters"] = {**rope, "rope_theta": float(rope.get("rope_theta", 10_000.0)) ** times}
        config["rope_theta"] = config["rope_parameters"]["rope_theta"]
    _write(folder / "model.safetensors", {n: _wide(n, v, own, width) for n, v in directory.weights().items()})
    write_atomically(folder / "config.json", config)
    return folder


def _wide(name: str, value: NDArray[np.float32], own: int, width: int) -> NDArray[np.float32]:
    """A weight with wider heads; one that has nothing to do with heads as it is."""
    import numpy as np

    if name.endswith(("q_proj.weight", "k_proj.weight")):
        halves = value.reshape(-1, 2, own // 2, value.shape[1])
        made = np.zeros((len(halves), 2, width // 2, value.shape[1]), np.float32)
        made[:, :, : own // 2] = halves * (math.sqrt(width / own) if "q_proj" in name else 1.0)
        return made.reshape(-1, value.shape[1])
    if name.endswith("v_proj.weight"):
        made = np.zeros((value.shape[0] // own, width, value.shape[1]), np.float32)
        made[:, :own] = value.reshape(-1, own, value.shape[1])
        return made.reshape(-1, value.shape[1])
    if name.endswith("o_proj.weight"):
        made = np.zeros((value.shape[0], value.shape[1] // own, width), np.float32)
        made[:, :, :own] = value.reshape(value.shape[0], -1, own)
        return made.reshape(value.shape[0], -1)
    return value


def _write(path: Path, weights: dict[str, NDArray[np.float32]]) -> None:
    from safetensors.numpy import save_file

    save_file(weights, str(path), metadata={"format": "pt"})


def _copy_the_rest(source: Path, folder: Path) -> None:
    """The tokenizer, the template and what else stands beside the weights."""
    for file in source.iterdir():
        if file.is_file() and file.name != "config.json" and ".safetensors" not in file.name:
            shutil.copy2(file, folder / file.name)
