"""Weights from safetensors files as NumPy arrays, with nothing but NumPy and safetensors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcpgym.errors import ConfigurationError

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
_KINDS: dict[str, Any] = {"F32": np.float32, "F16": np.float16, "F64": np.float64}


def weight_files(folder: Path) -> list[Path]:
    """The files that hold a model's weights, in order.

    Raises:
        ConfigurationError: there are none, the index is none, or a file it names is missing or outside the folder.
    """
    if (folder / SINGLE).is_file():
        return [folder / SINGLE]
    index = folder / INDEX
    if not index.is_file():
        other = [path.name for path in folder.glob("*.bin")] + [path.name for path in folder.glob("*.gguf")]
        hint = f"; {other[0]} is not read (only safetensors are safe and plain)" if other else ""
        raise ConfigurationError(f"{folder} has no {SINGLE} (nor {INDEX}){hint}")
    try:
        names = sorted(set(json.loads(index.read_text("utf-8"))["weight_map"].values()))
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        raise ConfigurationError(f"{index} is no index of weights: it needs weight_map, tensor name → file") from None
    files = []
    for name in names:
        if not isinstance(name, str) or Path(name).name != name or not (folder / name).is_file():
            raise ConfigurationError(f"{index} names the file {name!r}, which {folder} has not")
        files.append(folder / name)
    return files


def read_weights(files: list[Path]) -> dict[str, NDArray[np.float32]]:
    """Every tensor in ``files`` by name, as 32-bit floats.

    Raises:
        ConfigurationError: a file is damaged, or a tensor has a type that a NumPy model does not compute with.
    """
    from safetensors import SafetensorError, deserialize

    made: dict[str, NDArray[np.float32]] = {}
    for file in files:
        try:
            tensors = deserialize(file.read_bytes())  # type: ignore[no-untyped-call]
        except (OSError, SafetensorError) as error:
            raise ConfigurationError(f"{file} cannot be read as safetensors: {error}") from None
        for name, tensor in tensors:
            made[name] = _array(file, name, tensor)
    return made


def _array(file: Path, name: str, tensor: Any) -> NDArray[np.float32]:
    kind, shape, data = tensor["dtype"], tensor["shape"], tensor["data"]
    if kind == "BF16":  # the upper half of a 32-bit float
        return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(shape)
    if kind not in _KINDS:
        raise ConfigurationError(f"{file}: {name} has the type {kind}; there is: F32, F16, BF16, F64")
    return np.frombuffer(data, _KINDS[kind]).astype(np.float32, copy=False).reshape(shape)
