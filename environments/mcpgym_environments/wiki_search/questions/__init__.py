"""Questions: made from a knowledge base, or read from a file of the user's own."""

from mcpgym_environments.wiki_search.questions.generation import Questions, generate
from mcpgym_environments.wiki_search.questions.question import KINDS, Question, Step
from mcpgym_environments.wiki_search.questions.user_questions import read_questions

__all__ = ["KINDS", "Question", "Questions", "Step", "generate", "read_questions"]
