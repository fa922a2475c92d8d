"""Building a corpus' library once, in a cache folder, and opening it in milliseconds from then on.

A library is a folder of the cache, named after the corpus' fingerprint: ``pages.sqlite`` (see :mod:`store`), a folder
for each engine's index, and ``library.json`` with the sizes of the files, written last. It is made in a folder beside
it, under a lock, and renamed when it is whole: a process that is killed leaves nothing that another would open.
Where the corpus' files can be told apart, ``kept.sqlite`` holds what they were read as: the library of a folder that
has changed is made from the one before, and that one stays as it is.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mcpgym.errors import ConfigurationError
from mcpgym_environments.wiki_search.kept import Updatable, keeping
from mcpgym_environments.wiki_search.library import Library
from mcpgym_environments.wiki_search.pages import Corpus, Problems
from mcpgym_environments.wiki_search.search.engine import Engine
from mcpgym_environments.wiki_search.search.engines import engine_named
from mcpgym_environments.wiki_search.sqlite_files import DAMAGED, LibraryDamaged
from mcpgym_environments.wiki_search.store import SCHEMA, StoredCorpus, StoredPages, write_pages

UNUSED_DAYS = 60
"""Days after which an older library of the same source is removed when a newer one is built."""
_PAGES = "pages.sqlite"
_KEPT = "kept.sqlite"
_MANIFEST = "library.json"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a build is: ``done`` of ``total`` in ``stage``: pages while ``reading``, sections while ``indexing``.

    ``total`` is None where it is not known; ``waiting`` means that another process builds the same library.
    """

    stage: str
    done: int
    total: int | None


def cache_folder() -> Path:
    """Where libraries are kept: ``$MCPGYM_CACHE/wiki``, else ``mcpgym/wiki`` in the user's cache folder."""
    if given := os.environ.get("MCPGYM_CACHE", ""):
        return Path(given).expanduser() / "wiki"
    caches = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(caches) if Path(caches).is_absolute() else Path.home() / ".cache") / "mcpgym" / "wiki"


def open_library(
    corpus: Corpus,
    engine: str = "auto",
    on_progress: Callable[[Progress], None] | None = None,
    folder: Path | None = None,
) -> Library:
    """The library of ``corpus``, built first where the cache has none, or a damaged one.

    ``engine``: ``fts5`` (SQLite's), ``tantivy``, ``hybrid`` (words and meaning), or ``auto``: tantivy for large
    corpora where it is installed, else fts5. ``folder`` is the cache; see :func:`cache_folder`. Raises
    ConfigurationError where the corpus has no pages, the engine is not there, or the folder cannot be written.
    """
    engine_named(engine, corpus.size or 0)  # refuse early, before reading a large corpus
    place = (folder or cache_folder()) / _name(corpus)
    hear = on_progress or (lambda progress: None)
    for _attempt in range(3):
        opened = _open(place, corpus, engine)
        if opened is not None:
            return opened
        try:
            _build(place, corpus, engine, hear)
        except (OSError, sqlite3.Error) as error:
            raise ConfigurationError(
                f"cannot build the search index in {place.parent}: {getattr(error, 'strerror', None) or error}; "
                "set MCPGYM_CACHE to a folder that can be written and has room"
            ) from error
    raise ConfigurationError(f"{place} is damaged as soon as it is built: is the disk full or broken?")


def is_built(corpus: Corpus, engine: str = "auto", folder: Path | None = None) -> bool:
    """Whether :func:`open_library` would find it built, so that it takes milliseconds."""
    opened = _open((folder or cache_folder()) / _name(corpus), corpus, engine)
    if opened is not None:
        opened.close()
    return opened is not None


class ProgressLine:
    """Progress on one line of standard error, from the second second on; nothing where little is to be done."""

    def __init__(self) -> None:
        self._started = self._shown = time.monotonic()
        self._stage = ""
        self._heard = False

    def __call__(self, progress: Progress) -> None:
        """Show it, twice a second at most; in lines of their own, and rarely, where nobody watches a terminal."""
        self._heard = True
        now = time.monotonic()
        watched = sys.stderr.isatty()
        if now - self._started < 1 or (now - self._shown < (0.5 if watched else 30) and progress.stage == self._stage):
            return
        self._shown, self._stage = now, progress.stage
        share = f" of {progress.total:,}" if progress.total else ""
        unit = {"reading": "pages", "indexing": "sections"}.get(progress.stage, "")
        text = f"wiki-search: {progress.stage} {progress.done:,}{share} {unit}".rstrip()
        print(f"\r\033[K{text}" if watched else text, end="" if watched else "\n", file=sys.stderr, flush=True)

    def finish(self, problems: Problems | None) -> None:
        """Clear the line; where something was built, say what was wrong with the source."""
        if self._stage and sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)
        if self._heard and problems and problems.counts:
            counts = ", ".join(f"{kind} ({count:,})" for kind, count in sorted(problems.counts.items()))
            example = next(iter(problems.examples.values()))[0]
            print(f"wiki-search: wrong with the source: {counts}; such as {example!a}", file=sys.stderr, flush=True)


def _name(corpus: Corpus) -> str:
    """The folder's name: what kind of corpus it is, and a hash of its source and of what is in it."""
    kind = re.sub(r"[^a-z0-9]+", "-", corpus.about.get("kind", "corpus").lower()).strip("-")[:30] or "corpus"
    return f"{kind}-{_short(_source(corpus))}-{_short(f'{SCHEMA} {corpus.fingerprint}')}"


def _source(corpus: Corpus) -> str:
    return f"{corpus.about.get('kind', '')} {corpus.about.get('source', '')}"


def _short(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]


def _pages_file(place: Path, corpus: Corpus) -> Path:
    return corpus.path if isinstance(corpus, StoredCorpus) else place / _PAGES


def _is_stored(corpus: Corpus) -> bool:
    return isinstance(corpus, StoredCorpus)


def _folder_of(engine: Engine) -> str:
    return f"{engine.name}-{engine.version}"


def _open(place: Path, corpus: Corpus, engine: str) -> Library | None:
    """The library in ``place``, or None where it is not there, not whole, or lacks the engine's index."""
    stored = _open_pages(place, corpus)
    if stored is None:
        return None
    chosen = engine_named(engine, stored.pages)
    folder = place / _folder_of(chosen)
    try:
        index = chosen.open(folder) if folder.is_dir() else None
    except (OSError, LibraryDamaged):
        index = None
    if index is None:
        stored.pool.close()
        return None
    with contextlib.suppress(OSError):
        os.utime(place)
    return Library(stored, index, chosen.name)


def _open_pages(place: Path, corpus: Corpus) -> StoredPages | None:
    """The pages in ``place``, or None where it is not there or anything in it is not as it was written."""
    try:
        if not _is_whole(place):
            return None
        return StoredPages(_pages_file(place, corpus), None if _is_stored(corpus) else place / DAMAGED)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, LibraryDamaged):
        return None
    except ConfigurationError:
        if _is_stored(corpus):
            raise
        return None


def _is_whole(place: Path) -> bool:
    """Whether every file of a library is there, as long as it was written, and nobody has found it damaged.

    Raises OSError, or what a strange manifest leads to, where even that cannot be told.
    """
    sizes: dict[str, int] = json.loads((place / _MANIFEST).read_bytes())["files"]
    return next(place.rglob(DAMAGED), None) is None and all(
        (place / name).stat().st_size == size for name, size in sizes.items()
    )


def _build(place: Path, corpus: Corpus, engine: str, hear: Callable[[Progress], None]) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with _alone(place.with_name(place.name + ".lock"), lambda: hear(Progress("waiting", 0, None))):
        built = _open(place, corpus, engine)
        if built is not None:  # by another process, while this one waited
            built.close()
            return
        for left in place.parent.glob(f"{place.name}.building-*"):
            shutil.rmtree(left, ignore_errors=True)  # of a process that was killed: we hold the lock
        new = place.with_name(f"{place.name}.building-{os.getpid()}")
        new.mkdir()
        try:
            stored = _open_pages(place, corpus)  # of which only this engine's index is missing
            if stored is not None:
                stored.pool.close()
                shutil.copytree(place, new, copy_function=_link, dirs_exist_ok=True)
            elif not _is_stored(corpus):
                _read(new, place, corpus, hear)
            _index(new, _pages_file(new, corpus), engine, hear)
            _write_manifest(new)
            _replace(new, place)
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise
        _forget_old(place)


def _read(new: Path, place: Path, corpus: Corpus, hear: Callable[[Progress], None]) -> None:
    """Write the pages of ``corpus`` into ``new``, from those of the library before it where that is possible."""

    def on_page(done: int) -> None:
        hear(Progress("reading", done, corpus.size))

    if not isinstance(corpus, Updatable):
        write_pages(new / _PAGES, corpus, on_page)
        return
    with keeping(_kept_before(place), new / _KEPT) as kept:
        write_pages(new / _PAGES, corpus, on_page, kept)


def _kept_before(place: Path) -> Path | None:
    """What the library of the same source that was opened last has kept; None where none is there and whole."""
    found: list[tuple[float, Path]] = []
    for other in _of_same_source(place):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            if _is_whole(other) and (other / _KEPT).is_file():
                found.append((other.stat().st_mtime, other / _KEPT))
    return max(found)[1] if found else None


def _index(new: Path, pages: Path, engine: str, hear: Callable[[Progress], None]) -> None:
    stored = StoredPages(pages)
    try:
        chosen = engine_named(engine, stored.pages)
        folder = new / _folder_of(chosen)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        total = stored.sections
        hear(Progress("indexing", 0, total))
        chosen.build(folder, stored.rows(), lambda done: hear(Progress("indexing", done, total)))
    finally:
        stored.pool.close()


def _link(old: str | Path, new: str | Path) -> None:
    """The same file under a second name; a copy where the file system knows no links."""
    try:
        os.link(old, new)
    except OSError:
        shutil.copyfile(old, new)


def _write_manifest(folder: Path) -> None:
    (folder / _MANIFEST).unlink(missing_ok=True)  # of the library that this one has files of: not to be written to
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    sizes = {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}
    with (folder / _MANIFEST).open("w", encoding="utf-8") as out:
        json.dump({"files": sizes}, out)
        out.flush()
        os.fsync(out.fileno())


def _replace(new: Path, place: Path) -> None:
    """Put ``new`` where ``place`` is. Who has the old one open goes on reading it (where the system lets files go)."""
    old = place.with_name(f"{place.name}.building-old-{os.getpid()}")
    if place.exists():
        place.rename(old)
    new.rename(place)
    shutil.rmtree(old, ignore_errors=True)


def _of_same_source(place: Path) -> list[Path]:
    same = place.name.rpartition("-")[0]
    return [other for other in place.parent.glob(f"{same}-????????????") if other != place]


def _forget_old(place: Path) -> None:
    """Remove libraries of the same source that nobody has opened for long."""
    for other in _of_same_source(place):
        with contextlib.suppress(OSError):
            if time.time() - other.stat().st_mtime > UNUSED_DAYS * 86_400:
                shutil.rmtree(other, ignore_errors=True)


@contextlib.contextmanager
def _alone(path: Path, on_waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock file ``path``; it stays, empty."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if not _lock(handle, wait=False):
            on_waiting()
            _lock(handle, wait=True)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, *, wait: bool) -> bool:
    if sys.platform == "win32":
        import msvcrt

        while True:
            try:
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
                return True
            except OSError:
                if not wait:
                    return False
                time.sleep(0.2)
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True
