"""A generated encyclopedia of a fictional world: first what is known (:mod:`.knowledge`), then pages that say it."""

from mcpgym_environments.wiki_search.world.knowledge import WorldKnowledge
from mcpgym_environments.wiki_search.world.world import World

__all__ = ["World", "WorldKnowledge"]
