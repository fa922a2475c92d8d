"""``vllm:DIR@URL``: a model that vLLM serves, played token for token, as a local one is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym_rl.local.directory import open_directory
from mcpgym_rl.local.policy import MAX_NEW_TOKENS, LocalPolicy
from mcpgym_rl.policies.endpoint import is_address, without_password
from mcpgym_rl.vllm.adapters import LiveAdapters
from mcpgym_rl.vllm.engine import VllmEngine
from mcpgym_rl.vllm.server import VllmServer

if TYPE_CHECKING:
    from mcpgym_rl.local.chat import Chat
    from mcpgym_rl.training.sections import Rl

KEY = "VLLM_API_KEY"
"""The environment variable with the server's key, where it wants one."""
FORM = "write vllm:DIR@URL, for example vllm:models/Qwen3-0.6B@http://127.0.0.1:8000"


def make_vllm_policy(where: str, options: Mapping[str, Any]) -> LocalPolicy:
    """The policy for ``vllm:WHERE``: a model directory (its tokenizer and template; weights are not read), and where
    vLLM serves that model.

    Raises:
        ConfigurationError: the directory, the address or an option will not do.
    """
    known = {"temperature", "max_tokens", "timeout", "model"}
    for name in options:
        if name not in known:
            raise UnknownNameError("option of vllm policies", name, known)
    path, at, rest = where.partition("@http")
    url = f"http{rest}".rstrip("/").removesuffix("/v1")
    if not at or not path or not is_address(url):
        raise ConfigurationError(f"vllm:{path.partition('@')[0][:80]}…: {FORM}")
    key = os.environ.get(KEY, "").strip()
    chat = open_directory(path).chat
    server = VllmServer(url, key, float(options.get("timeout") or 600.0))
    return LocalPolicy.over_engine(
        VllmEngine(server, chat.end_ids, options.get("model"), chat=chat),
        chat,
        temperature=_within("temperature", options.get("temperature", 0.0), 0.0, 100.0),
        max_new_tokens=int(_within("max_tokens", options.get("max_tokens", MAX_NEW_TOKENS), 1, 10_000_000)),
        name=without_password(f"vllm:{path}@{url}"),
    )


def training_policy(url: str, model: str | None, trained: Any, folder: Path, chat: Chat, rl: Rl) -> LocalPolicy:
    """The policy that samples for a trainer: adapters that are being trained, upon a model that vLLM serves.

    Args:
        url: where vLLM is.
        model: the name of the model there; None for the only one.
        trained: a model of peft's.
        folder: where its adapters are written for vLLM.
        chat: its conversation format.
        rl: how it samples.

    Raises:
        ConfigurationError: that is no address.
    """
    address = url.rstrip("/").removesuffix("/v1")
    if not is_address(address):
        raise ConfigurationError(f"rl.vllm.url: {without_password(url)!r} is no address; write http://127.0.0.1:8000")
    server = VllmServer(address, os.environ.get(KEY, "").strip())
    engine = VllmEngine(server, chat.end_ids, model, LiveAdapters(trained, folder), chat)
    return LocalPolicy.over_engine(
        engine, chat, temperature=rl.temperature, max_new_tokens=rl.max_new_tokens, name="vllm"
    )


def _within(name: str, value: float, low: float, high: float) -> float:
    if not low <= value <= high:
        raise ConfigurationError(f"{name} {value} must lie between {low:g} and {high:g}")
    return value
