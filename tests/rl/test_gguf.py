"""GGUF files, written here by the format's own package, become directories that compute the same."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import model_toys
import pytest
import torch
from gguf_toys import SOURCE, write_gguf
from transformers import AutoModelForCausalLM, AutoTokenizer

from mcpgym.errors import ConfigurationError
from mcpgym_rl.gguf import import_gguf
from mcpgym_rl.local.directory import open_directory


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gguf")
    return import_gguf(write_gguf(folder / "tiny.gguf"), folder / "made")


def test_what_comes_out_computes_what_went_in(imported: Path) -> None:
    ids = torch.arange(100, 140)[None]
    before: Any = AutoModelForCausalLM.from_pretrained(model_toys.model_of(SOURCE))
    after: Any = AutoModelForCausalLM.from_pretrained(imported)
    with torch.no_grad():
        torch.testing.assert_close(after(ids).logits, before(ids).logits, atol=2e-2, rtol=2e-3)  # 16-bit floats
    assert after.dtype == torch.float32
    assert not hasattr(after.config, "quantization_config")
    assert after.config.eos_token_id == before.config.eos_token_id


def test_its_tokenizer_and_its_template_are_those_of_the_file(imported: Path) -> None:
    source = open_directory(model_toys.model_of(SOURCE))
    made = open_directory(imported)
    assert made.templates["default"] == source.templates["default"]
    messages = [{"role": "user", "content": "<tools>"}, {"role": "assistant", "content": "a game"}]
    stock = AutoTokenizer.from_pretrained(imported)
    ids = stock.apply_chat_template(messages, tokenize=True, return_dict=False)
    assert stock.decode(ids) == stock.apply_chat_template(messages, tokenize=False)
    assert ids == made.chat.whole(messages, [])  # type: ignore[arg-type]
    assert made.chat.end_ids == source.chat.end_ids
    assert made.chat.native


def test_the_directory_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "tiny.gguf")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "notes").write_text("mine")
    with pytest.raises(ConfigurationError, match="is there already"):
        import_gguf(file, tmp_path / "there")
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(file.read_bytes()[:-20_000])
    with pytest.raises(ConfigurationError, match=r"cut\.gguf cannot be read: "):
        import_gguf(cut, tmp_path / "out")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["cut.gguf", "there", "tiny.gguf"]


def test_what_is_no_model_to_play_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        import_gguf(tmp_path / "none.gguf", tmp_path / "out")
    (tmp_path / "text.gguf").write_text("GGML, or something")
    with pytest.raises(ConfigurationError, match="does not begin with the letters GGUF"):
        import_gguf(tmp_path / "text.gguf", tmp_path / "out")
    base = write_gguf(tmp_path / "base.gguf", template=False)
    with pytest.raises(ConfigurationError, match=r"base\.gguf cannot be played: .*no chat template"):
        import_gguf(base, tmp_path / "out")
    strange = write_gguf(tmp_path / "strange.gguf", architecture="mamba9")
    with pytest.raises(ConfigurationError, match=r"strange\.gguf cannot be read: .*mamba9"):
        import_gguf(strange, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_missing_package_is_named_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_gguf(tmp_path / "tiny.gguf")
    monkeypatch.setitem(sys.modules, "accelerate", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'mcpgym\[rl\]'.*accelerate"):
        import_gguf(file, tmp_path / "out")
