"""A generated encyclopedia of a fictional world: first what is known (:mod:`.knowledge`), then pages that say it."""

from .knowledge import WorldKnowledge
from .world import World

__all__ = ["World", "WorldKnowledge"]
