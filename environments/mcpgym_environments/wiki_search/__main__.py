"""``python -m mcpgym_environments.wiki_search corpus=zim:FILE``: build a library before anybody waits for it.

Takes the environment's configuration (``corpus``, ``engine``, ``pages`` …) and says what was built, and what was wrong
with the source. An episode does the same when it finds nothing built, but has only two minutes for it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from mcpgym import McpgymError
from mcpgym.registry import configure, parse_options
from mcpgym_environments.wiki_search.environment import WikiSearch


def main(options: Sequence[str]) -> int:
    """Build or open the library that ``options`` name; 1 where that cannot be."""
    started = time.perf_counter()
    try:
        environment = configure(WikiSearch, parse_options(options))
        assert isinstance(environment, WikiSearch)
        library = environment.library()
    except McpgymError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    title = library.about.get("title") or library.about.get("source", "")
    print(f"{title}: {library.pages:,} pages, searched by {library.engine}; {time.perf_counter() - started:.1f} s")
    for kind, count in sorted(library.problems.counts.items()):
        print(f"  {kind}: {count:,}, such as {library.problems.examples[kind][0]!a}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
