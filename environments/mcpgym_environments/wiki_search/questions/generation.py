"""Questions made from what a corpus is known to say."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym.tasks import derive_seed, task_id
from mcpgym_environments.wiki_search.knowledge import Knowledge
from mcpgym_environments.wiki_search.questions import grouping, makers
from mcpgym_environments.wiki_search.questions.ground import Ground
from mcpgym_environments.wiki_search.questions.makers import Draft, Maker
from mcpgym_environments.wiki_search.questions.question import KINDS, Question
from mcpgym_environments.wiki_search.questions.splits import require_split
from mcpgym_environments.wiki_search.questions.wording import says
from mcpgym_environments.wiki_search.scoring.answers import Unanswerable, YesNoAnswer
from mcpgym_environments.wiki_search.scoring.judging import judge
from mcpgym_environments.wiki_search.scoring.writing import answer_text

MOST_HOPS = 4
GUESS = 0.08
_TRIES = 400
"""How often a question of one kind is tried, with new entities each time, before another kind is taken."""
_PROBES = 3
_LONGEST_TEXT = 400

_MAKERS: dict[str, tuple[Maker, int]] = {
    "chain": (makers.chain, 1),
    "comparison": (makers.comparison, 2),
    "superlative": (grouping.superlative, 2),
    "aggregation": (grouping.aggregation, 2),
    "list": (grouping.listing, 1),
    "date arithmetic": (makers.date_arithmetic, 1),
    "number arithmetic": (makers.number_arithmetic, 1),
    "negation": (grouping.negation, 1),
    "yes or no": (makers.yes_or_no, 1),
    "not answerable": (makers.not_answerable, 1),
}
"""How each kind is made, and the fewest hops it takes."""


class Questions:
    """The questions of one knowledge base; any index of a split can be asked for, without making the others.

    ``kinds`` and ``hops`` (1 to 4) say which questions there are: every combination in turn, but for those that the
    knowledge base has no material for. Entities belong to one split each, by a hash of their page's key; every entity
    that a question names, passes through or has for its one answer is of its split. The members of a group that a
    question is over may be of any. Safe to share between threads.

    Args:
        knowledge: what is known.
        seed: another seed, other questions.
        kinds: which of ``KINDS``.
        hops: how many facts in a row the answer takes.
        guess: nothing is asked whose most frequent value is right more often than this (but for yes or no).
        aliases: how often, from 0 to 1, an entity with several names is spoken of by another than its page's title.

    Raises:
        UnknownNameError: a kind that there is not.
        ConfigurationError: hops that no question of ``kinds`` has.
    """

    def __init__(
        self,
        knowledge: Knowledge,
        seed: int = 0,
        *,
        kinds: Sequence[str] = KINDS,
        hops: Sequence[int] = tuple(range(1, MOST_HOPS + 1)),
        guess: float = GUESS,
        aliases: float = 0.0,
    ) -> None:
        for kind in kinds:
            if kind not in _MAKERS:
                raise UnknownNameError("kind of question", kind, KINDS)
        if strange := [number for number in hops if number not in range(1, MOST_HOPS + 1)]:
            raise ConfigurationError(f"questions take 1 to {MOST_HOPS} hops, not {strange[0]}")
        self.seed = seed
        self._ground = Ground(knowledge, guess, aliases)
        wanted = [(kind, number) for number in sorted(set(hops)) for kind in KINDS if kind in kinds]
        self._shapes = [(kind, number) for kind, number in wanted if number >= _MAKERS[kind][1]]
        if not self._shapes:
            least = {kind: _MAKERS[kind][1] for kind in kinds}
            told = ", ".join(f"{kind} takes at least {number}" for kind, number in least.items())
            raise ConfigurationError(f"no question has these kinds and hops: {told or 'no kind was given'}")
        self._possible: dict[str, list[tuple[str, int]]] = {}

    def question(self, split: str, index: int) -> Question:
        """The question at ``index`` of ``split`` (``train`` or ``test``).

        Raises:
            UnknownNameError: a split that there is not.
            ConfigurationError: nothing can be asked of this knowledge base.
        """
        require_split(split)
        shapes = self.shapes(split)
        for turn in range(len(shapes)):
            kind, hops = shapes[(index + turn) % len(shapes)]
            draft = self._draft(split, kind, hops, index, _TRIES)
            if draft is not None:
                evidence = tuple(dict.fromkeys(draft.evidence))
                return Question(task_id(split, index), draft.text, draft.answer, kind, hops, evidence, draft.steps)
        raise ConfigurationError(f"no question number {index} of the {split} split could be made")

    def shapes(self, split: str) -> Sequence[tuple[str, int]]:
        """The kinds, each with a number of hops, that there are questions of; they come in turn.

        Raises:
            ConfigurationError: there are none.
        """
        known = self._possible.get(split)
        if known is None:
            probes = range(-_PROBES, 0)
            known = [
                (kind, hops)
                for kind, hops in self._shapes
                if any(self._draft(split, kind, hops, probe, _TRIES) for probe in probes)
            ]
            if not known:
                raise ConfigurationError(
                    f"nothing can be asked of this encyclopedia in the {split} split: it has too few things with known "
                    "facts, or none of the kinds and hops asked for"
                )
            Random(derive_seed("wiki shapes", self.seed, split)).shuffle(known)
            self._possible[split] = known
        return known

    def _draft(self, split: str, kind: str, hops: int, index: int, tries: int) -> Draft | None:
        random = Random(derive_seed("wiki question", self.seed, split, kind, hops, index))
        make = _MAKERS[kind][0]
        for _ in range(tries):
            draft = make(self._ground, random, split, hops)
            if draft is not None and _is_sound(draft):
                return draft
        return None


def generate(knowledge: Knowledge, split: str, index: int, seed: int = 0) -> Question:
    """The question at ``index`` of ``split``; who wants many keeps one :class:`Questions`."""
    return Questions(knowledge, seed).question(split, index)


def _is_sound(draft: Draft) -> bool:
    """Whether a draft is short enough, does not say its own answer, and has one that can be submitted."""
    if len(draft.text) > _LONGEST_TEXT:
        return False
    if isinstance(draft.answer, (YesNoAnswer, Unanswerable)):
        return True
    return not says(draft.text, draft.answer) and judge(draft.answer, answer_text(draft.answer)).correct
