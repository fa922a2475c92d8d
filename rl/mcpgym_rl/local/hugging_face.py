"""Any causal language model of transformers as the engine's backend, on the CPU or one GPU.

The model's own forward computes; only its cache is ours: rows that chunks of different lengths are appended to. Every
layer must attend to keys and values (in full or in a sliding window): layers that carry a state of another kind
(convolutions, recurrences) have none to append to a row, and are refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM
from transformers.cache_utils import Cache

from mcpgym.errors import ConfigurationError
from mcpgym_rl.local import sampling
from mcpgym_rl.local.backend import Floats, Ints
from mcpgym_rl.local.llama import SMALL
from mcpgym_rl.local.weights import weight_files
from mcpgym_rl.policy import PolicyError

if TYPE_CHECKING:
    from mcpgym_rl.local.directory import ModelDirectory

Tensor = torch.Tensor

_FULL, _SLIDING = "full_attention", "sliding_attention"
_TOKENS_AT_ONCE = 8_192


def load(directory: ModelDirectory, device: str) -> HuggingFace:
    """The model in a directory, on ``device``: 32-bit floats on the CPU, else the type of its weights.

    Raises:
        ConfigurationError: the device is not there, or transformers cannot load the model; nothing of the directory is
            executed.
    """
    weight_files(directory.path)
    try:
        where = torch.device(device)
        if where.type == "cuda" and not torch.cuda.is_available():
            raise ConfigurationError(f"device {device!r}: torch finds no GPU; use device='cpu'")
    except RuntimeError as error:
        raise ConfigurationError(f"device {device!r} is none: {str(error).splitlines()[0]}") from None
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(
            directory.path,
            dtype=torch.float32 if where.type == "cpu" else "auto",
            trust_remote_code=False,
            use_safetensors=True,
            local_files_only=True,
        )
    except Exception as error:
        raise ConfigurationError(f"transformers cannot load {directory.path}: {error}") from error
    return HuggingFace(model.to(where))


class HuggingFace:
    """A model of transformers, with rows of keys and values that chunks are appended to.

    Args:
        model: the model, where it is to compute; of one with adapters, the model that they are in.
        live: whether its weights are under training and may change between runs.

    Raises:
        ConfigurationError: a layer keeps something else than keys and values.
    """

    def __init__(self, model: Any, *, live: bool = False) -> None:
        config = model.config.get_text_config(decoder=True)
        kinds = set(getattr(config, "layer_types", None) or [_FULL])
        if others := kinds - {_FULL, _SLIDING}:
            raise ConfigurationError(
                f"{type(model).__name__} has layers of the kind {', '.join(sorted(others))}, whose state cannot be "
                "kept row by row here; serve it (vLLM) and play it as openai:MODEL@BASE_URL"
            )
        self.model = model = model.get_base_model() if hasattr(model, "get_base_model") else model
        self.vocabulary = int(config.vocab_size)
        self.positions = int(getattr(config, "max_position_embeddings", None) or 1 << 20)
        self.small = sum(item.numel() for item in model.parameters()) <= SMALL
        self.device = next(model.parameters()).device
        self.dtype = next(item.dtype for item in model.parameters() if item.is_floating_point())
        self._live = live
        self._spoilt = False
        self._layers = int(config.num_hidden_layers)
        heads = int(getattr(config, "num_key_value_heads", None) or config.num_attention_heads)
        width = int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)
        self._numbers = 2 * self._layers * heads * width
        window = getattr(config, "sliding_window", None)
        if not getattr(config, "layer_types", None) and window and getattr(config, "use_sliding_window", True):
            kinds = {_SLIDING}  # an old Mistral: every layer
        self._window = int(window) if window and _SLIDING in kinds else None
        self._mixed = len(kinds) > 1
        self._keeps = "logits_to_keep" in inspect.signature(model.forward).parameters
        self._store: list[tuple[Tensor, Tensor] | None] = [None] * self._layers
        self._rows = self._tokens = 0

    # Rows.

    def refresh(self) -> bool:
        """Whether the weights may have changed."""
        if self._live and self._spoilt:
            self._spoilt, self._store = False, [None] * self._layers
        return self._live

    def row_bytes(self, tokens: int) -> int:
        """What one row of ``tokens`` tokens takes."""
        return int(self._numbers * tokens * self.dtype.itemsize)

    def reserve(self, rows: int, tokens: int) -> None:
        """Have ``rows`` rows of at least ``tokens`` tokens; layers get theirs when they are first computed."""
        tokens = max(-(-tokens // 64) * 64, self._tokens)
        if (rows, tokens) == (self._rows, self._tokens):
            return
        self._rows, self._tokens = rows, tokens
        with torch.inference_mode():
            for place, kept in enumerate(self._store):
                if kept is not None:
                    self._store[place] = (self._fitted(kept[0]), self._fitted(kept[1]))

    def _fitted(self, old: Tensor) -> Tensor:
        new = old.new_zeros((self._rows, old.shape[1], self._tokens, old.shape[3]))
        new[: old.shape[0], :, : old.shape[2]] = old[: self._rows]
        return new

    def layer(self, place: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """The rows of one layer, made to fit its ``keys`` and ``values`` when it is first asked for."""
        kept = self._store[place]
        if kept is None:
            shapes = [(self._rows, new.shape[1], self._tokens, new.shape[3]) for new in (keys, values)]
            kept = self._store[place] = (keys.new_zeros(shapes[0]), values.new_zeros(shapes[1]))
        return kept

    def copy(self, source: int, target: int, tokens: int) -> None:
        """Give row ``target`` the first ``tokens`` tokens of row ``source``."""
        self.load(target, self.save(source, tokens))

    def save(self, row: int, tokens: int) -> list[tuple[Tensor, Tensor]]:
        """A copy of the first ``tokens`` tokens of a row."""
        with torch.inference_mode():
            return [
                (kept[0][row, :, :tokens].clone(), kept[1][row, :, :tokens].clone()) for kept in self._store if kept
            ]

    def load(self, row: int, saved: list[tuple[Tensor, Tensor]]) -> None:
        """Give a row what was saved."""
        with torch.inference_mode():
            for kept, old in zip(self._store, saved, strict=True):
                assert kept is not None
                for new, part in zip(kept, old, strict=True):
                    new[row, :, : part.shape[1]] = part

    # Computing.

    def step(self, rows: Ints, tokens: Ints, starts: Ints) -> Tensor:
        """Append one token to each of ``rows``."""
        return self._pass(rows.tolist(), starts.tolist(), tokens[:, None].tolist())

    def append(self, rows: Sequence[int], starts: Sequence[int], chunks: Sequence[Sequence[int]]) -> Tensor:
        """Append a chunk to each of ``rows``; long ones and large batches in several passes."""
        made: list[Tensor] = [torch.empty(0)] * len(rows)
        order = sorted(range(len(rows)), key=lambda place: len(chunks[place]))
        while order:
            batch = [order.pop()]
            width = len(chunks[batch[0]])
            while order and (len(batch) + 1) * width <= _TOKENS_AT_ONCE and len(chunks[order[-1]]) * 4 >= width * 3:
                batch.append(order.pop())
            batch.sort(key=lambda place: rows[place])
            begins, parts = [starts[place] for place in batch], [chunks[place] for place in batch]
            while len(parts[0]) > _TOKENS_AT_ONCE and len(batch) == 1:
                self._pass([rows[batch[0]]], begins, [parts[0][:_TOKENS_AT_ONCE]])
                begins, parts = [begins[0] + _TOKENS_AT_ONCE], [parts[0][_TOKENS_AT_ONCE:]]
            scores = self._pass([rows[place] for place in batch], begins, parts)
            for place, one in zip(batch, scores, strict=True):
                made[place] = one
        return torch.stack(made)

    def _pass(self, rows: Sequence[int], starts: Sequence[int], chunks: Sequence[Sequence[int]]) -> Tensor:
        lengths = np.array([len(chunk) for chunk in chunks])
        width, begins = int(lengths.max()), np.array(starts)
        tokens = np.zeros((len(rows), width), np.int64)
        for place, chunk in enumerate(chunks):
            tokens[place, : len(chunk)] = chunk
        longest = int((begins + lengths).max())
        positions = np.minimum(begins[:, None] + np.arange(width), longest - 1)
        window = _Window(self, rows, begins, lengths, longest)
        last = np.unique(lengths - 1)
        training = self.model.training
        if training:
            self.model.eval()
        try:
            with torch.inference_mode():
                given = {"logits_to_keep": self._sent(last)} if self._keeps else {}
                made = self.model(
                    input_ids=self._sent(tokens),
                    position_ids=self._sent(positions),
                    attention_mask=self._masks(positions, longest),
                    past_key_values=window,
                    use_cache=True,
                    **given,
                ).logits
                columns = np.searchsorted(last, lengths - 1) if self._keeps else lengths - 1
                chosen: Tensor = made[self._sent(np.arange(len(rows))), self._sent(columns)].float()
                return chosen
        finally:
            if training:
                self.model.train()

    def _sent(self, values: NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(self.device)

    def _masks(self, positions: NDArray[np.int64], longest: int) -> Any:
        """What each token sees: (rows, 1, tokens, kept tokens), 0 or the lowest number; by kind where there are two."""
        places, at = np.arange(longest), positions[:, None, :, None]
        full = self._mask(places <= at) if self._window is None or self._mixed else None
        near = None if self._window is None else self._mask((places <= at) & (places > at - self._window))
        return {_FULL: full, _SLIDING: near} if self._mixed else full if near is None else near

    def _mask(self, seen: NDArray[np.bool_]) -> Tensor:
        made = torch.zeros(seen.shape, dtype=self.dtype, device=self.device)
        return made.masked_fill_(~self._sent(seen), torch.finfo(self.dtype).min)

    def take(self, logits: Tensor, places: Sequence[int]) -> Tensor:
        """Some rows of ``logits``, copied."""
        with torch.inference_mode():
            return logits[self._sent(np.array(places))]

    def choose(
        self, logits: Tensor, temperatures: Floats, min_p: float, uniforms: Floats
    ) -> tuple[Ints, NDArray[np.float32]]:
        """Draw one token a row: in NumPy from the CPU's memory, on the GPU where the logits are there."""
        try:
            if logits.device.type == "cpu":
                return sampling.choose(logits.numpy(), temperatures, min_p, uniforms)
            return self._choose_there(logits, temperatures, min_p, uniforms)
        except PolicyError:
            self._spoilt = True
            raise

    def _choose_there(
        self, logits: Tensor, temperatures: Floats, min_p: float, uniforms: Floats
    ) -> tuple[Ints, NDArray[np.float32]]:
        with torch.inference_mode():
            heats = self._sent(temperatures).to(logits.dtype)
            greedy = heats <= 0
            logits = logits / torch.where(greedy, 1.0, heats)[:, None]
            logs = torch.log_softmax(logits, 1)
            if not bool(torch.isfinite(logs.max(1).values).all()):
                raise PolicyError("the model's output is not a number: its weights, or its training, are broken")
            shares = torch.exp(logs - logs.max(1, keepdim=True).values).double()
            if min_p > 0:
                shares = shares * (shares >= min_p)
            running = shares.cumsum(1)
            wanted = self._sent(uniforms) * running[:, -1]
            limit = torch.minimum(wanted, torch.nextafter(running[:, -1], torch.full_like(wanted, -torch.inf)))
            drawn = (running > limit[:, None]).to(torch.uint8).argmax(1)
            tokens = torch.where(greedy, logits.argmax(1), drawn)
            logprobs = logs.gather(1, tokens[:, None])[:, 0]
            return tokens.cpu().numpy(), logprobs.float().cpu().numpy()


class _Window(Cache):
    """What one forward sees of the rows: it writes the new keys and values, and gets all of the rows it computes."""

    def __init__(
        self,
        backend: HuggingFace,
        rows: Sequence[int],
        begins: NDArray[np.int64],
        lengths: NDArray[np.int64],
        longest: int,
    ) -> None:
        super().__init__(layers=[])
        self._backend = backend
        self._longest, self._width = longest, int(lengths.max())
        contiguous = list(rows) == list(range(rows[0], rows[0] + len(rows)))
        send = backend._sent
        self._block: Any = slice(rows[0], rows[0] + len(rows)) if contiguous else send(np.array(rows))
        row, column = np.nonzero(np.arange(self._width) < lengths[:, None])
        self._from = send(row), send(column)
        self._to = send(np.array(rows)[row]), send(begins[row] + column)

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Append to the rows of one layer; those rows, all that they hold."""
        seen = []
        for kept, new in zip(
            self._backend.layer(layer_idx, key_states, value_states), (key_states, value_states), strict=True
        ):
            kept[self._to[0], :, self._to[1]] = new[self._from[0], :, self._from[1]]
            seen.append(kept[self._block, :, : self._longest])
        return seen[0], seen[1]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """How many tokens are kept before the chunk, in the longest row."""
        return self._longest - self._width

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        """How many keys there are, from the first."""
        return self._longest, 0
