"""A model with wider heads computes what it did, to rounding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import model_toys
import pytest
import torch
from transformers import AutoModelForCausalLM

from mcpgym.errors import ConfigurationError
from mcpgym_rl.local.directory import open_directory
from mcpgym_rl.wider_heads import widen_heads

SOURCE = "tic-tac-toe"


@pytest.mark.parametrize("times", [2, 3])
def test_what_comes_out_computes_what_went_in(tmp_path: Path, times: int) -> None:
    source = model_toys.model_of(SOURCE)
    own = int(open_directory(source).config["head_dim"])
    made = widen_heads(source, tmp_path / "wide", times * own)
    before: Any = AutoModelForCausalLM.from_pretrained(source)
    after: Any = AutoModelForCausalLM.from_pretrained(made)
    assert after.config.head_dim == times * own
    assert (
        after.model.layers[0].self_attn.q_proj.weight.shape[0]
        == times * before.model.layers[0].self_attn.q_proj.weight.shape[0]
    )
    ids = torch.arange(100, 300)[None]
    with torch.no_grad():
        torch.testing.assert_close(after(ids).logits, before(ids).logits, atol=2e-5, rtol=1e-5)
    assert open_directory(made).chat.native


def test_what_cannot_be_done_is_refused(tmp_path: Path) -> None:
    source = model_toys.model_of(SOURCE)
    with pytest.raises(ConfigurationError, match="2, 3, 4… times as wide, not 40"):
        widen_heads(source, tmp_path / "out", 40)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("mine")
    with pytest.raises(ConfigurationError, match="is there already"):
        widen_heads(source, tmp_path / "mine")
    assert not (tmp_path / "out").exists()
