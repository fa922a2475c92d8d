"""A GGUF file, as llama.cpp and Ollama hold models, as a plain Hugging Face directory that can be played and trained.

transformers reads the file and undoes its quantization: the weights become 32-bit floats. What rounding lost when the
file was made stays lost. Nothing of the file is executed: its numbers and its strings are read, and its chat template
runs in a sandbox.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpgym.errors import ConfigurationError
from mcpgym_rl.local.directory import open_directory

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_MAGIC = b"GGUF"
_EXTRA = "GGUF files are read by torch, transformers, accelerate and gguf: pip install 'mcpgym[rl]'"


def import_gguf(path: str | Path, out: str | Path) -> Path:
    """Write the model in the GGUF file ``path`` as the directory ``out``, which must be empty or not exist.

    The directory has ``config.json``, ``generation_config.json``, ``model.safetensors`` (32-bit floats),
    ``tokenizer.json``, ``tokenizer_config.json`` and ``chat_template.jinja``: transformers' Auto classes load it, and
    ``local:DIR`` plays it. It appears whole or not at all.

    Args:
        path: the file; a model that is split into several has to be joined first (``llama-gguf-split --merge``).
        out: where the model goes.

    Returns:
        ``out``.

    Raises:
        ConfigurationError: ``out`` has something in it, a package is missing, or the file is no GGUF, is damaged, has
            an architecture that transformers does not read, or no chat template; the message says which.
    """
    file, folder = Path(path).expanduser(), Path(out).expanduser()
    _look(file)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigurationError(f"{folder} is there already; name a folder that is empty or does not exist")
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        _convert(file, temporary)
        try:
            assert open_directory(temporary).chat is not None
        except ConfigurationError as error:
            why = str(error).replace(str(temporary), str(file))
            raise ConfigurationError(f"{file} cannot be played: {why}") from None
        if folder.is_dir():
            folder.rmdir()
        temporary.replace(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def _look(file: Path) -> None:
    try:
        with file.open("rb") as opened:
            begins = opened.read(len(_MAGIC))
    except OSError as error:
        raise ConfigurationError(f"cannot read the model {file}: {error.strerror}") from None
    if begins != _MAGIC:
        raise ConfigurationError(f"{file} is no GGUF file: it does not begin with the letters GGUF")


def _convert(file: Path, folder: Path) -> None:
    """Write the model and the tokenizer in ``file`` to ``folder``.

    Raises:
        ConfigurationError: it cannot be read.
    """
    try:
        import accelerate  # type: ignore[import-untyped]  # noqa: F401
        import gguf  # noqa: F401
        import torch  # noqa: F401
        from transformers import AutoTokenizer
        from transformers.utils.logging import disable_progress_bar
    except ImportError as error:
        raise ConfigurationError(f"{_EXTRA} ({error})") from None
    disable_progress_bar()
    given: dict[str, Any] = {"gguf_file": file.name, "trust_remote_code": False, "local_files_only": True}
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(file.parent), **given)
        model = _read(file, given)
    except Exception as error:  # whatever a damaged file makes of the parser
        said = str(error).strip() or type(error).__name__
        raise ConfigurationError(f"{file} cannot be read: {said.splitlines()[0]}") from None
    model.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))


def _read(file: Path, given: dict[str, Any]) -> PreTrainedModel:
    """The model in ``file``, as if it had never been quantized."""
    import torch
    import transformers

    if hasattr(transformers, "GgufConfig"):  # newer ones would keep some architectures in their blocks
        given = {**given, "quantization_config": transformers.GgufConfig(dequantize=True)}
    packed: Any = transformers.AutoModelForCausalLM.from_pretrained(str(file.parent), dtype=torch.float32, **given)
    config = packed.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config  # with it, transformers refuses to save
    config.name_or_path = ""
    with torch.device("meta"):
        plain: Any = transformers.AutoModelForCausalLM.from_config(config)
    plain.load_state_dict(packed.state_dict(), assign=True)
    plain.tie_weights()
    made: PreTrainedModel = plain
    return made
