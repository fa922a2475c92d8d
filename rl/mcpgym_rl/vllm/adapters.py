"""Adapters that are being trained, as vLLM takes them in: written into a folder that both see, loaded under a new name.

A new name each time: what vLLM has computed with the last ones then counts for nothing, by itself.
"""

from __future__ import annotations

import itertools
import secrets
import shutil
from pathlib import Path
from typing import Any

from mcpgym_rl.policy import PolicyUnavailable
from mcpgym_rl.vllm.server import VllmServer

LOAD, UNLOAD = "/v1/load_lora_adapter", "/v1/unload_lora_adapter"
"""vLLM's endpoints for adapters."""
HOW = "start it with --enable-lora --max-lora-rank RANK, and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True in its environment"


class LiveAdapters:
    """The adapters of ``model``, as they are whenever :meth:`load` is called.

    Args:
        model: a model of peft's.
        folder: where they are written; vLLM must see it under the same path.
    """

    def __init__(self, model: Any, folder: Path) -> None:
        self._model, self._folder = model, folder
        self._run = secrets.token_hex(4)
        self._numbers = itertools.count(1)
        self._loaded: str | None = None

    async def load(self, server: VllmServer) -> str:
        """Have the server take them in, and let go of those before; their name there.

        Raises:
            PolicyUnavailable: it takes no adapters, or not these; the message says why.
        """
        name = f"mcpgym-{self._run}-{next(self._numbers)}"
        path = self._folder.absolute() / name
        self._model.save_pretrained(str(path), safe_serialization=True, save_embedding_layers=False)
        try:
            await server.ask("POST", LOAD, {"lora_name": name, "lora_path": str(path)})
        except Exception as error:
            raise PolicyUnavailable(f"vLLM does not take the adapters in {path}: {error}; {HOW}") from None
        before, self._loaded = self._loaded, name
        if before is not None:
            await server.ask("POST", UNLOAD, {"lora_name": before})
            shutil.rmtree(path.with_name(before), ignore_errors=True)
        return name

    async def unload(self, server: VllmServer) -> None:
        """Have the server let go of them; one that is gone has."""
        name, self._loaded = self._loaded, None
        if name is not None:
            try:
                await server.ask("POST", UNLOAD, {"lora_name": name})
            except Exception:
                return
            shutil.rmtree(self._folder.absolute() / name, ignore_errors=True)
