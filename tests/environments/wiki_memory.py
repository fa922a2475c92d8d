"""Looks up the evidence of 256 tasks, four at a time, then of all at once; prints the peak memory of each, in KiB.

Only what the server keeps is measured: no policy is here, and no transcript. One at a time would leave
threads unused, each of which maps the index again, and would be counted for it.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys

from mcpgym.episodes import Episodes
from mcpgym.registry import configure
from mcpgym_environments.wiki_search.environment import WikiSearch
from mcpgym_environments.wiki_search.scoring import answer_text


async def main() -> None:
    environment = configure(WikiSearch, {"pages": int(sys.argv[1])})
    episodes = Episodes({environment.name: environment})

    async def one(index: int) -> float | None:
        episode = await episodes.open(environment.name, split="test", index=index, seed=0)
        question, library = episode.state.question, episode.state.library
        for evidence in question.evidence:
            page = library.page_by_key(evidence.page)
            await episode.call("search_pages", {"query": page.title})
            await episode.call("view_sections", {"page_id": page.id})
            (section,) = [row for row in library.sections(page.id) if row.heading == evidence.heading]
            await episode.call("read_section", {"section_id": section.id})
        await episode.call("submit_answer", {"answer": answer_text(question.answer)})
        total = (await episode.score([])).total
        await episodes.close(episode.token)
        return total

    totals = []
    for start in range(0, 256, 4):
        totals += await asyncio.gather(*(one(index) for index in range(start, start + 4)))
    peaks = [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]
    totals += await asyncio.gather(*(one(index) for index in range(256)))
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    assert totals == [1.0] * 512, totals
    print(json.dumps(peaks))


asyncio.run(main())
