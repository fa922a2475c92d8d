"""Exact match and F1 of SQuAD: metrics that papers report; never a reward here.

Rajpurkar, Zhang, Lopyrev and Liang, *SQuAD: 100,000+ Questions for Machine Comprehension of Text*, EMNLP 2016; the
normalisation is that of the official evaluation script, version 1.1.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

from mcpgym_environments.wiki_search.scoring.answers import LONGEST_ANSWER

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def exact_match(submitted: str, golds: Sequence[str]) -> float:
    """1.0 if ``submitted`` equals one of ``golds`` after normalisation, else 0.0."""
    said = _normalised(submitted)
    return float(any(said == _normalised(gold) for gold in golds))


def f1(submitted: str, golds: Sequence[str]) -> float:
    """The best harmonic mean of precision and recall of the words, over ``golds``: 0 to 1."""
    said = _normalised(submitted).split()
    return max((_f1(said, _normalised(gold).split()) for gold in golds), default=0.0)


def _f1(said: list[str], gold: list[str]) -> float:
    shared = (Counter(said) & Counter(gold)).total()
    return 2 * shared / (len(said) + len(gold)) if shared else 0.0


def _normalised(text: str) -> str:
    text = text[: 5 * LONGEST_ANSWER].lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())
