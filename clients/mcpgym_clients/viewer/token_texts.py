"""What a local policy sampled, as text: each token of each turn with its log-probability.

A trace holds ids alone. Their text comes from the tokenizer of the policy's model, where that is found and is the right
one: what it makes of a turn must be what the turn says. Otherwise the ids are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mcpgym.environment import Environment
from mcpgym.errors import McpgymError
from mcpgym_rl.traces import Trace, TraceTokens

LOCAL = "local:"


class Tokenizers:
    """The tokenizers of local policies, by the policy's name in traces.

    Models are looked for among those that the environment's package ships; ``given`` are directories that the user
    names. A path that a trace names is never opened.
    """

    def __init__(self, given: Sequence[Path] = ()) -> None:
        self._given = list(given)
        self._known: dict[tuple[str, str], list[Any]] = {}

    def turns(self, trace: Trace, environment: type[Environment[Any, Any, Any]] | None) -> list[list[Any]]:
        """For each turn that was sampled its tokens, as ``[text or None, log-probability, id]``; none where there are
        no tokens, or a trace contradicts itself."""
        tokens = trace.tokens
        if tokens is None or not len(tokens.ids) == len(tokens.mask) == len(tokens.logprobs):
            return []
        spans = _spans(tokens)
        said = [message["content"] for message in trace.messages if message["role"] == "assistant"][trace.given_turns :]
        if len(said) != len(spans):
            return []
        for tokenizer in self._of(trace, environment):
            texts = [_texts(tokenizer, tokens.ids[first:last]) for first, last in spans]
            if all(_says(parts, text) for parts, text in zip(texts, said, strict=True)):
                break
        else:
            texts = [[None] * (last - first) for first, last in spans]
        return [
            [
                [text, round(float(tokens.logprobs[place]), 5), tokens.ids[place]]
                for text, place in zip(parts, range(first, last), strict=True)
            ]
            for parts, (first, last) in zip(texts, spans, strict=True)
        ]

    def _of(self, trace: Trace, environment: type[Environment[Any, Any, Any]] | None) -> list[Any]:
        key = trace.environment, trace.policy
        if key not in self._known:
            found = [_tokenizer(path) for path in [*self._given, *_shipped(trace.policy, environment)]]
            self._known[key] = [item for item in found if item is not None]
        return self._known[key]


def _shipped(policy: str, environment: type[Environment[Any, Any, Any]] | None) -> list[Path]:
    """The directory of the shipped model that the policy's name means."""
    if environment is None or not policy.startswith(LOCAL):
        return []
    from mcpgym_rl.packaged import MODELS, packaged_file

    folder = packaged_file(environment, MODELS)
    names = [] if folder is None else [path for path in folder.iterdir() if path.name == policy.removeprefix(LOCAL)]
    return names


def _tokenizer(path: Path) -> Any:
    from mcpgym_rl.local.directory import open_directory

    try:
        return open_directory(path).tokenizer
    except (McpgymError, OSError):
        return None


def _spans(tokens: TraceTokens) -> list[tuple[int, int]]:
    """Where what was sampled without a break begins and ends: a turn each."""
    spans: list[tuple[int, int]] = []
    for place, own in enumerate(tokens.mask):
        if own and spans and spans[-1][1] == place:
            spans[-1] = spans[-1][0], place + 1
        elif own:
            spans.append((place, place + 1))
    return spans


def _says(parts: Sequence[str | None], said: str) -> bool:
    """Whether these tokens are those of a turn; a template may have opened its thought before the first of them."""
    return said.removeprefix("<think>").strip()[-200:] in "".join(part or "" for part in parts)


def _texts(tokenizer: Any, ids: Sequence[int]) -> list[str | None]:
    """The text that each token adds; empty for one that is a part of a character, which its last part brings."""
    from tokenizers.decoders import DecodeStream

    stream = DecodeStream(skip_special_tokens=False)
    try:
        return [stream.step(tokenizer, token) or "" for token in ids]
    except Exception:  # an id that is none of this tokenizer's, or bytes that are no text
        return [None] * len(ids)
