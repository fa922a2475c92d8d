"""A Llama in NumPy, one thread: hundreds of conversations decoded together, each with a cache of its own.

The same numbers as transformers' ``LlamaForCausalLM`` to rounding (a test says so), arranged for decoding:

* weights that share an input are one matrix; the scales of norms and of attention are multiplied into them;
* rotary pairs stand side by side, so that turning keys and queries is one complex multiplication. Scores do not
  change when queries and keys are permuted alike;
* the cache holds keys as (row, head, dimension, token) and values as (row, head, token, dimension): the two products
  of attention read both as they lie, for all query heads of a key head at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcpgym.errors import ConfigurationError
from mcpgym_rl.local import sampling
from mcpgym_rl.local.attention import F, alike, attend, normal, shut_after
from mcpgym_rl.local.backend import Floats, Ints
from mcpgym_rl.local.llama_shape import LlamaShape, understands
from mcpgym_rl.policy import PolicyError

__all__ = ["SMALL", "Llama", "LlamaShape", "understands"]

C = NDArray[np.complex64]
Weights = Mapping[str, F]

SMALL = 20_000_000
"""Parameters up to which a step is short enough for the event loop."""
_TOKENS_AT_ONCE, _ROWS_AT_ONCE = 1_024, 512
"""How many tokens and rows are computed at once: what is computed on the way then stays in the processor's cache."""
_CHUNK = 512
"""How much of a long chunk is appended at once."""
_SPREAD = 1.5
"""Up to how many rows for each that decodes are attended to, rather than some copied."""


@dataclass(frozen=True, slots=True)
class _Layer:
    attention_in: F
    """(width, queries + keys + values)"""
    attention_out: F
    feed_in: F
    """(width, 2 · inner): gate, then up"""
    feed_out: F


@dataclass(frozen=True, slots=True)
class _Group:
    """Rows that one token is appended to, of about one length.

    ``rows`` are where they lie in the cache, as a slice where possible: then idle ones may lie between, and ``inside``
    says which of the slice they are. ``longest`` and ``shut``: how much of them is seen.
    """

    chosen: Ints | slice
    rows: Any
    inside: Ints | None
    longest: int
    shut: tuple[int, F] | None


class Llama:
    """A Llama as the engine's backend.

    Args:
        shape: its sizes.
        weights: gives its tensors by their names in transformers; asked again at each :meth:`refresh`, so that they
            may be views of parameters under training.

    Raises:
        ConfigurationError: a tensor is missing, or has another shape.
    """

    def __init__(self, shape: LlamaShape, weights: Callable[[], Weights], *, live: bool = False) -> None:
        self.shape = shape
        self.vocabulary, self.positions = shape.vocabulary, shape.positions
        self.small = shape.parameters <= SMALL
        self._weights = weights
        self._live = live
        half = shape.head_width // 2
        self._pairs = np.stack([np.arange(half), np.arange(half) + half], axis=1).ravel()
        self._turns: C = np.empty((0, half), np.complex64)
        self._keys: list[F] = [self._empty(0, 0, True) for _ in range(shape.layers)]
        self._values: list[F] = [self._empty(0, 0, False) for _ in range(shape.layers)]
        self._rows = self._tokens = 0
        self._spoilt = False
        self._take()

    def _empty(self, rows: int, tokens: int, keys: bool) -> F:
        shape = self.shape
        inside = (shape.head_width, tokens) if keys else (tokens, shape.head_width)
        return np.zeros((rows, shape.key_heads, *inside), np.float32)

    # Weights.

    def refresh(self) -> bool:
        """Take live weights as they are now."""
        if self._live:
            self._take()
            if self._spoilt:
                self._spoilt = False
                for kept in (*self._keys, *self._values):
                    kept[...] = 0.0  # what is no number there would spread
        return self._live

    def _take(self) -> None:
        shape, weights = self.shape, self._weights()
        queries, keys = shape.heads * shape.head_width, shape.key_heads * shape.head_width

        def matrix(name: str, rows: int, columns: int) -> F:
            try:
                given = weights[name]
            except KeyError:
                raise ConfigurationError(f"the weights lack {name}") from None
            if given.shape != (rows, columns):
                raise ConfigurationError(f"{name} is {given.shape}; config.json makes it {(rows, columns)}")
            return given

        def norm(name: str) -> F:
            given = weights.get(name)
            if given is None or given.shape != (shape.width,):
                raise ConfigurationError(f"the weights lack {name} of {shape.width} numbers")
            return given

        def paired(heads: F) -> F:
            return heads.reshape(-1, shape.head_width, shape.width)[:, self._pairs].reshape(-1, shape.width)

        self._layers: list[_Layer] = []
        scale = np.float32(shape.head_width**-0.5)
        for place in range(shape.layers):
            at = f"model.layers.{place}."
            before = norm(f"{at}input_layernorm.weight")
            between = norm(f"{at}post_attention_layernorm.weight")
            projected = [
                paired(matrix(f"{at}self_attn.q_proj.weight", queries, shape.width)) * scale,
                paired(matrix(f"{at}self_attn.k_proj.weight", keys, shape.width)),
                matrix(f"{at}self_attn.v_proj.weight", keys, shape.width),
            ]
            fed = [matrix(f"{at}mlp.{name}_proj.weight", shape.inner, shape.width) for name in ("gate", "up")]
            self._layers.append(
                _Layer(
                    np.ascontiguousarray((np.concatenate(projected) * before).T),
                    np.ascontiguousarray(matrix(f"{at}self_attn.o_proj.weight", shape.width, queries).T),
                    np.ascontiguousarray((np.concatenate(fed) * between).T),
                    np.ascontiguousarray(matrix(f"{at}mlp.down_proj.weight", shape.width, shape.inner).T),
                )
            )
        embedding = matrix("model.embed_tokens.weight", shape.vocabulary, shape.width)
        head = embedding if shape.tied else matrix("lm_head.weight", shape.vocabulary, shape.width)
        self._embedding = np.array(embedding) if self._live else embedding
        self._head = np.ascontiguousarray((head * norm("model.norm.weight")).T)

    # Rows.

    def row_bytes(self, tokens: int) -> int:
        """What one row of ``tokens`` tokens takes."""
        return 8 * self.shape.layers * self.shape.key_heads * self.shape.head_width * tokens

    def reserve(self, rows: int, tokens: int) -> None:
        """Have ``rows`` rows of at least ``tokens`` tokens."""
        kept = min(rows, self._rows)
        if tokens > self._tokens:
            tokens = min(-(-tokens // 64) * 64, max(self.positions, tokens))
        tokens = max(tokens, self._tokens)
        if (rows, tokens) == (self._rows, self._tokens):
            return
        for store, keys in ((self._keys, True), (self._values, False)):
            for place, old in enumerate(store):
                store[place] = new = self._empty(rows, tokens, keys)
                if keys:
                    new[:kept, :, :, : self._tokens] = old[:kept]
                else:
                    new[:kept, :, : self._tokens] = old[:kept]
        self._rows, self._tokens = rows, tokens
        if len(self._turns) < tokens:
            angles = np.arange(tokens)[:, None] * np.array(self.shape.frequencies)
            self._turns = np.exp(1j * angles).astype(np.complex64)

    def copy(self, source: int, target: int, tokens: int) -> None:
        """Give row ``target`` the first ``tokens`` tokens of row ``source``."""
        for keys, values in zip(self._keys, self._values, strict=True):
            keys[target, :, :, :tokens] = keys[source, :, :, :tokens]
            values[target, :, :tokens] = values[source, :, :tokens]

    def save(self, row: int, tokens: int) -> list[tuple[F, F]]:
        """A copy of the first ``tokens`` tokens of a row."""
        return [
            (keys[row, :, :, :tokens].copy(), values[row, :, :tokens].copy())
            for keys, values in zip(self._keys, self._values, strict=True)
        ]

    def load(self, row: int, saved: list[tuple[F, F]]) -> None:
        """Give a row what was saved."""
        for keys, values, (old_keys, old_values) in zip(self._keys, self._values, saved, strict=True):
            tokens = old_keys.shape[-1]
            keys[row, :, :, :tokens] = old_keys
            values[row, :, :tokens] = old_values

    # Computing.

    def step(self, rows: Ints, tokens: Ints, starts: Ints) -> F:
        """Append one token to each of ``rows``."""
        if len(rows) <= _ROWS_AT_ONCE:
            return self._step(rows, tokens, starts)
        cuts = range(0, len(rows), _ROWS_AT_ONCE)
        parts = [slice(cut, cut + _ROWS_AT_ONCE) for cut in cuts]
        return np.concatenate([self._step(rows[part], tokens[part], starts[part]) for part in parts])

    def _step(self, rows: Ints, tokens: Ints, starts: Ints) -> F:
        groups = [self._group(rows, starts, chosen) for chosen in alike(starts)]
        turns = self._turns[starts][:, None]
        hidden = self._embedding[tokens]
        for place, layer in enumerate(self._layers):
            made = normal(hidden, self.shape.epsilon) @ layer.attention_in
            asked, keys, values = self._split(made, turns)
            kept_keys, kept_values = self._keys[place], self._values[place]
            kept_keys[rows, :, :, starts] = keys
            kept_values[rows, :, starts] = values
            if len(groups) == 1:
                mixed = self._seen(groups[0], asked, kept_keys, kept_values)
            else:
                mixed = np.empty((len(rows), asked.shape[1] * asked.shape[2]), np.float32)
                for group in groups:
                    mixed[group.chosen] = self._seen(group, asked[group.chosen], kept_keys, kept_values)
            hidden = self._feed(layer, hidden + mixed @ layer.attention_out)
        return self._scores(hidden)

    def _group(self, rows: Ints, starts: Ints, chosen: Ints | slice) -> _Group:
        rows, starts = rows[chosen], starts[chosen]
        first, count = int(rows[0]), len(rows)
        whole, longest = int(rows[-1]) + 1 - first, int(starts.max()) + 1
        if count == whole:
            return _Group(chosen, slice(first, first + whole), None, longest, shut_after(starts))
        if whole > _SPREAD * count:
            return _Group(chosen, rows, None, longest, shut_after(starts))
        inside = rows - first
        ends = np.full(whole, int(starts.min()))
        ends[inside] = starts
        return _Group(chosen, slice(first, first + whole), inside, longest, shut_after(ends))

    def _seen(self, group: _Group, asked: F, keys: F, values: F) -> F:
        """What a group's rows attend to."""
        heads, head_width = asked.shape[1:]
        if group.inside is not None:
            wide = np.zeros((group.rows.stop - group.rows.start, heads, head_width), np.float32)
            wide[group.inside] = asked
            asked = wide
        grouped = asked.reshape(len(asked), self.shape.key_heads, -1, head_width)
        seen = keys[group.rows, :, :, : group.longest], values[group.rows, :, : group.longest]
        mixed = attend(grouped, *seen, group.shut).reshape(len(asked), -1)
        return mixed if group.inside is None else mixed[group.inside]

    def append(self, rows: Sequence[int], starts: Sequence[int], chunks: Sequence[Sequence[int]]) -> F:
        """Append a chunk to each of ``rows``: some at a time, alike in length, so that what is computed stays small."""
        made = np.empty((len(rows), self.vocabulary), np.float32)
        order = sorted(range(len(rows)), key=lambda place: (len(chunks[place]), starts[place]))
        while order:
            batch = [order.pop()]
            width = len(chunks[batch[0]])
            while order and (len(batch) + 1) * width <= _TOKENS_AT_ONCE and len(chunks[order[-1]]) * 4 >= width * 3:
                batch.append(order.pop())
            batch.sort(key=lambda place: rows[place])
            begins = [starts[place] for place in batch]
            parts = [chunks[place] for place in batch]
            while len(parts[0]) > _CHUNK and len(batch) == 1:
                self._pass([rows[batch[0]]], begins, [parts[0][:_CHUNK]])
                begins, parts = [begins[0] + _CHUNK], [parts[0][_CHUNK:]]
            made[batch] = self._pass([rows[place] for place in batch], begins, parts)
        return made

    def _pass(self, rows: Sequence[int], starts: Sequence[int], chunks: Sequence[Sequence[int]]) -> F:
        """Chunks of about one length, padded at their ends. The last layer answers for each chunk's last token only."""
        shape, count = self.shape, len(rows)
        lengths = np.array([len(chunk) for chunk in chunks])
        width = int(lengths.max())
        begins = np.array(starts)
        tokens = np.zeros((count, width), np.int64)
        for place, chunk in enumerate(chunks):
            tokens[place, : len(chunk)] = chunk
        inside = np.arange(width)
        row, column = np.nonzero(inside < lengths[:, None])
        where, at, flat = np.array(rows)[row], begins[row] + column, row * width + column
        longest = int((begins + lengths).max())
        positions = np.minimum(begins[:, None] + inside, longest - 1)
        together = list(rows) == list(range(rows[0], rows[0] + count))
        block: Any = slice(rows[0], rows[0] + count) if together else np.array(rows)
        turns = self._turns[positions.ravel()][:, None]
        shut = shut_after(positions)
        hidden = self._embedding[tokens.ravel()]
        last = np.arange(count) * width + lengths - 1
        for place, layer in enumerate(self._layers):
            made = normal(hidden, shape.epsilon) @ layer.attention_in
            asked, keys, values = self._split(made, turns)
            kept_keys, kept_values = self._keys[place], self._values[place]
            kept_keys[where, :, :, at] = keys[flat]
            kept_values[where, :, at] = values[flat]
            if place == shape.layers - 1:
                asked, hidden, width, shut = asked[last], hidden[last], 1, shut_after(begins + lengths - 1)
            split = asked.reshape(count, width, shape.key_heads, -1, shape.head_width).transpose(0, 2, 3, 1, 4)
            grouped = split.reshape(count, shape.key_heads, -1, shape.head_width)
            mixed = attend(grouped, kept_keys[block, :, :, :longest], kept_values[block, :, :longest], shut)
            mixed = mixed.reshape(count, shape.key_heads, -1, width, shape.head_width).transpose(0, 3, 1, 2, 4)
            hidden = self._feed(layer, hidden + mixed.reshape(count * width, -1) @ layer.attention_out)
        return self._scores(hidden)

    def _split(self, made: F, turns: C) -> tuple[F, F, F]:
        """Queries (scaled), keys (both turned to their places) and values: each (tokens, heads, head width)."""
        shape = self.shape
        made = made.reshape(len(made), shape.heads + 2 * shape.key_heads, shape.head_width)
        turned = made.view(np.complex64)[:, : shape.heads + shape.key_heads]
        turned *= turns
        return made[:, : shape.heads], made[:, shape.heads : -shape.key_heads], made[:, -shape.key_heads :]

    def _feed(self, layer: _Layer, hidden: F) -> F:
        """The gated feed-forward layer (SwiGLU, arXiv 2002.05202)."""
        both = normal(hidden, self.shape.epsilon) @ layer.feed_in
        gate, up = both[:, : self.shape.inner], both[:, self.shape.inner :]
        spread: Any = -gate
        np.minimum(spread, np.float32(80), out=spread)
        np.exp(spread, out=spread)
        spread += np.float32(1)
        up *= gate
        up /= spread
        made: F = up @ layer.feed_out  # type: ignore[assignment]
        made += hidden
        return made

    def _scores(self, hidden: F) -> F:
        made: F = normal(hidden, self.shape.epsilon) @ self._head
        return made

    def take(self, logits: F, places: Sequence[int]) -> F:
        """Some rows of ``logits``, copied."""
        made: F = logits[np.array(places)]
        return made

    def choose(
        self, logits: F, temperatures: Floats, min_p: float, uniforms: Floats
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Draw one token a row."""
        try:
            return sampling.choose(logits, temperatures, min_p, uniforms)
        except PolicyError:
            self._spoilt = True
            raise
