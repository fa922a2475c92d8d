"""The tokenizer of a new model: byte-level BPE over whole phrases, trained on an environment's own transcripts.

A transcript is cut in pieces first, and no token reaches over a cut:

* a digit with the space before it is a piece of its own, so that numbers and cells are always the same tokens;
* a newline ends its piece (``tool\\n``), so that what a template adds never merges with what somebody wrote;
* whatever else stands between these is one piece, however many words it has: a phrase that comes again and again, as
  environments' phrases do, becomes a single token.

Every byte is a token too, so any text can be encoded and comes back as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from mcpgym_rl.tiny.template import CONTROL_TOKENS

PIECES = r" ?[0-9]|[^0-9\n]*\n|[^0-9\n]+?(?= ?[0-9]|\n|$)"
"""The cuts, as a regular expression that each piece matches."""
MAX_PIECE = 4_000
"""Characters of a piece that the training looks at: beyond, no phrase comes twice."""
SMALLEST = len(CONTROL_TOKENS) + 256
"""The smallest vocabulary there is: the control tokens, and each byte."""


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> Tokenizer:
    """A tokenizer of at most ``vocabulary`` tokens; fewer where every phrase that comes twice is a token already.

    The control tokens have the ids 0, 1 and 2. The same texts always give the same tokenizer.

    Args:
        texts: what it is trained on, rendered, control tokens and all.
        vocabulary: how many tokens it may have, ``SMALLEST`` at least.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    control = [AddedToken(token, special=True, normalized=False) for token in CONTROL_TOKENS]
    trainer = trainers.BpeTrainer(
        vocab_size=max(vocabulary, SMALLEST),
        min_frequency=2,
        special_tokens=control,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        max_token_length=MAX_PIECE,
        show_progress=False,
    )
    between = re.compile("|".join(map(re.escape, CONTROL_TOKENS)))
    tokenizer.train_from_iterator((part for text in texts for part in between.split(text)), trainer)
    return tokenizer
