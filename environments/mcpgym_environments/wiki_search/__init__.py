"""Wiki search: an encyclopedia to look things up in, and questions whose answers are known exactly."""

from mcpgym_environments.wiki_search.config import WikiSearchConfig
from mcpgym_environments.wiki_search.environment import WikiSearch
from mcpgym_environments.wiki_search.state import Visit

__all__ = ["Visit", "WikiSearch", "WikiSearchConfig"]
