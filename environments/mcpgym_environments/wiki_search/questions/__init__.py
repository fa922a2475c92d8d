"""Questions: made from a knowledge base, or read from a file of the user's own."""

from mcpgym_environments.wiki_search.questions.generation import Questions, generate
from mcpgym_environments.wiki_search.questions.question import KINDS, Question, Step

__all__ = ["KINDS", "Question", "Questions", "Step", "generate"]
