"""A library is built once, whole or not at all, and shared by threads and processes."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from wiki_toys import TOWNS, ToyCorpus, many, page

from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym_environments.wiki_search.building import Progress, ProgressLine, cache_folder, is_built, open_library
from mcpgym_environments.wiki_search.pages import Page, Problems
from mcpgym_environments.wiki_search.sqlite_files import LibraryDamaged
from mcpgym_environments.wiki_search.store import StoredCorpus, write_pages


def only_library(folder: Path) -> Path:
    (found,) = [path for path in folder.iterdir() if path.is_dir()]
    return found


def test_a_library_is_built_once(tmp_path: Path) -> None:
    corpus = ToyCorpus(TOWNS)
    assert not is_built(corpus, folder=tmp_path)
    heard: list[Progress] = []
    open_library(corpus, on_progress=heard.append, folder=tmp_path).close()
    assert is_built(corpus, folder=tmp_path)
    assert heard[0] == Progress("reading", len(TOWNS), len(TOWNS))
    assert heard[-1] == Progress("indexing", 13, 13)
    heard.clear()
    open_library(ToyCorpus(TOWNS), on_progress=heard.append, folder=tmp_path).close()
    assert (corpus.reads, heard) == (1, [])


def test_another_fingerprint_is_another_library(tmp_path: Path) -> None:
    one = open_library(ToyCorpus(TOWNS), folder=tmp_path)
    other = open_library(ToyCorpus(TOWNS[:3], fingerprint="toy 2"), folder=tmp_path)
    assert (one.pages, other.pages) == (len(TOWNS), 3)


def test_equal_pages_have_equal_content_hashes(tmp_path: Path) -> None:
    one = open_library(ToyCorpus(TOWNS), folder=tmp_path / "a")
    same = open_library(ToyCorpus(TOWNS, fingerprint="x"), folder=tmp_path / "b")
    other = open_library(ToyCorpus(TOWNS[1:]), folder=tmp_path / "c")
    assert one.content == same.content != other.content


def test_two_builds_are_equal_to_the_byte(tmp_path: Path) -> None:
    files = []
    for name in "ab":
        open_library(ToyCorpus(many(50)), "fts5", folder=tmp_path / name).close()
        place = only_library(tmp_path / name)
        files.append([path.read_bytes() for path in sorted(place.rglob("*.sqlite"))])
    assert files[0] == files[1]


@pytest.mark.parametrize(
    "harm", ["truncated", "overwritten", "missing", "no manifest", "bad manifest", "marked", "index"]
)
def test_a_damaged_library_is_built_anew(tmp_path: Path, harm: str) -> None:
    corpus = ToyCorpus(TOWNS)
    open_library(corpus, "fts5", folder=tmp_path).close()
    place = only_library(tmp_path)
    pages = place / "pages.sqlite"
    if harm == "truncated":
        os.truncate(pages, 5_000)
    elif harm == "overwritten":
        pages.write_bytes(b"x" * pages.stat().st_size)
    elif harm == "missing":
        pages.unlink()
    elif harm == "no manifest":
        (place / "library.json").unlink()
    elif harm == "bad manifest":
        (place / "library.json").write_text(json.dumps(["?"]))
    elif harm == "marked":
        (place / "damaged").touch()
    else:
        shutil.rmtree(next(path for path in place.iterdir() if path.is_dir()))
    library = open_library(corpus, "fts5", folder=tmp_path)
    assert library.search("lorn")[0].title == "Lorn"
    assert list(tmp_path.glob("*.building-*")) == []


def read_all(corpus: ToyCorpus, folder: Path) -> None:
    library = open_library(corpus, "fts5", folder=folder)
    for number in range(1, 301):
        library.section(f"p{number}.1")


def test_damage_that_shows_in_use_is_said_and_mended_at_the_next_opening(tmp_path: Path) -> None:
    corpus = ToyCorpus(many(300))
    open_library(corpus, "fts5", folder=tmp_path).close()
    pages = only_library(tmp_path) / "pages.sqlite"
    body = bytearray(pages.read_bytes())
    body[3 * 4096 :] = b"\xff" * (len(body) - 3 * 4096)
    pages.write_bytes(body)
    with pytest.raises(LibraryDamaged, match="built anew when it is opened next"):
        read_all(corpus, tmp_path)
    mended = open_library(corpus, "fts5", folder=tmp_path)
    assert mended.section("p300.1") is not None


def test_a_damaged_index_is_mended_too(tmp_path: Path) -> None:
    corpus = ToyCorpus(many(300))
    open_library(corpus, "fts5", folder=tmp_path).close()
    (file,) = only_library(tmp_path).rglob("fts5.sqlite")
    body = bytearray(file.read_bytes())
    body[2 * 4096 :] = b"\xff" * (len(body) - 2 * 4096)
    file.write_bytes(body)
    with pytest.raises(LibraryDamaged):
        open_library(corpus, "fts5", folder=tmp_path).search("marker7 marker8")
    assert open_library(corpus, "fts5", folder=tmp_path).search("marker7")[0].page_id == "p8"


def test_a_build_that_fails_leaves_nothing(tmp_path: Path) -> None:
    class Broken(ToyCorpus):
        def pages(self, problems: Problems) -> list[Page]:
            raise ConfigurationError("the dump ends in the middle")

    with pytest.raises(ConfigurationError, match="in the middle"):
        open_library(Broken(TOWNS), folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []
    assert open_library(ToyCorpus(TOWNS), folder=tmp_path).pages == len(TOWNS)


BUILDER = """
import sys, time
sys.path[:0] = [sys.argv[2]]
from pathlib import Path
from wiki_toys import ToyCorpus, many
from mcpgym_environments.wiki_search.building import open_library
class Slow(ToyCorpus):
    def pages(self, problems):
        print("reading", flush=True)
        for page in self.given:
            time.sleep(0.002)
            yield page
library = open_library(Slow(many(200)), "fts5", folder=Path(sys.argv[1]))
print(library.pages, library.search("marker77")[0].page_id, flush=True)
"""


def builder(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", BUILDER, str(folder), str(Path(__file__).parent)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_that_start_at_once_build_it_once(tmp_path: Path) -> None:
    said = [process.communicate(timeout=60)[0].splitlines() for process in [builder(tmp_path) for _ in range(3)]]
    assert [lines[-1] for lines in said] == ["200 p78"] * 3
    assert sum("reading" in lines for lines in said) == 1


def test_a_builder_that_is_killed_leaves_nothing_that_is_opened(tmp_path: Path) -> None:
    process = builder(tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "reading\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert len(list(tmp_path.glob("*.building-*"))) == 1
    assert builder(tmp_path).communicate(timeout=60)[0].splitlines() == ["reading", "200 p78"]
    assert list(tmp_path.glob("*.building-*")) == []


def test_threads_that_open_at_once_build_it_once(tmp_path: Path) -> None:
    corpus = ToyCorpus(many(100))
    opened = []
    threads = [threading.Thread(target=lambda: opened.append(open_library(corpus, folder=tmp_path))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ([library.pages for library in opened], corpus.reads) == ([100] * 6, 1)


@pytest.mark.flaky(reruns=1)  # it measures time
def test_opening_takes_milliseconds(tmp_path: Path) -> None:
    corpus = ToyCorpus(many(100))
    open_library(corpus, folder=tmp_path).close()
    started = time.process_time()
    for _ in range(20):
        open_library(corpus, folder=tmp_path).close()
    assert (time.process_time() - started) / 20 < 0.1


def test_a_library_outlives_its_folder(tmp_path: Path) -> None:
    library = open_library(ToyCorpus(TOWNS), folder=tmp_path)
    assert library.search("lorn")
    shutil.rmtree(only_library(tmp_path))
    assert library.search("rhine")[0].title == "Straßburg"


def test_a_cache_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="set MCPGYM_CACHE"):
        open_library(ToyCorpus(TOWNS), folder=tmp_path / "file")


def test_a_full_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> int:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("mcpgym_environments.wiki_search.building.write_pages", full)
    with pytest.raises(ConfigurationError, match="disk is full; set MCPGYM_CACHE"):
        open_library(ToyCorpus(TOWNS), folder=tmp_path)


def test_an_unknown_engine_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    corpus = ToyCorpus(TOWNS)
    with pytest.raises(UnknownNameError, match="tantivi"):
        open_library(corpus, "tantivi", folder=tmp_path)
    assert corpus.reads == 0


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MCPGYM_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path / "wiki"
    monkeypatch.delenv("MCPGYM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert cache_folder() == tmp_path / "x" / "mcpgym" / "wiki"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == Path.home() / ".cache" / "mcpgym" / "wiki"


def test_libraries_of_the_same_source_that_nobody_uses_are_removed(tmp_path: Path) -> None:
    open_library(ToyCorpus(TOWNS, fingerprint="old"), folder=tmp_path).close()
    old = only_library(tmp_path)
    open_library(ToyCorpus(TOWNS, source="others"), folder=tmp_path).close()
    for path in tmp_path.iterdir():
        os.utime(path, (0, 0))
    open_library(ToyCorpus(TOWNS, fingerprint="new"), folder=tmp_path).close()
    assert not old.exists()
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 2


def test_a_written_file_is_a_corpus_that_is_opened_where_it_lies(tmp_path: Path) -> None:
    file = tmp_path / "towns.sqlite"
    write_pages(file, ToyCorpus(TOWNS, noted=(("odd", "x"),)))
    corpus = StoredCorpus(file)
    problems = Problems()
    read = list(corpus.pages(problems))
    assert [(made.key, made.title, made.sections, made.aliases, made.redirects) for made in read] == [
        (made.key, made.title, made.sections, made.aliases, made.redirects) for made in TOWNS
    ]
    assert read[0].links == TOWNS[0].links
    assert problems.counts == {"odd": 1}
    library = open_library(corpus, folder=tmp_path / "cache")
    assert library.search("lorn")[0].title == "Lorn"
    assert list((tmp_path / "cache").rglob("pages.sqlite")) == []
    assert is_built(StoredCorpus(file), folder=tmp_path / "cache")


def test_a_file_that_is_none_of_ours_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no file"):
        StoredCorpus(tmp_path / "x")
    for content in (b"hello", b"", b"SQLite format 3\0" * 40):
        (tmp_path / "x").write_bytes(content)
        with pytest.raises(ConfigurationError, match="not a file of pages"):
            StoredCorpus(tmp_path / "x")
    with contextlib.closing(sqlite3.connect(tmp_path / "other")) as other:
        other.execute("CREATE TABLE theirs(a)")
        other.commit()
    with pytest.raises(ConfigurationError, match="not a file of pages"):
        StoredCorpus(tmp_path / "other")
    (tmp_path / "other").unlink()
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_library_of_one_page_of_nothing_works(tmp_path: Path) -> None:
    library = open_library(ToyCorpus([Page("k", "", ())]), folder=tmp_path)
    assert [entry.id for entry in library.sections("p1")] == ["p1.1"]
    assert library.search("anything") == []
    assert library.nearest("anything") == []
    assert page("x").sections == ()


FORKING = """
import os, sys
sys.path[:0] = [sys.argv[2]]
from pathlib import Path
from wiki_toys import ToyCorpus, many
from mcpgym_environments.wiki_search.building import open_library
library = open_library(ToyCorpus(many(100)), "fts5", folder=Path(sys.argv[1]))
expected = library.search("marker7 marker8")
child = os.fork()
same = all(library.search("marker7 marker8") == expected for _ in range(50))
if not child:
    os._exit(0 if same else 1)
sys.exit(os.waitpid(child, 0)[1] or not same)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system forks no processes")
def test_a_library_serves_a_process_that_is_forked(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORKING, str(tmp_path), str(Path(__file__).parent)]
    assert subprocess.run(command, timeout=60).returncode == 0


def test_progress_is_shown_only_where_it_takes_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr("mcpgym_environments.wiki_search.building.time.monotonic", lambda: now[0])
    show = ProgressLine()
    for second, done in ((0.5, 10), (1.5, 400), (2, 1_500), (40, 30_000)):
        now[0] = second
        show(Progress("reading", done, 50_000))
    now[0] = 41
    show(Progress("indexing", 7, None))
    assert capsys.readouterr().err.splitlines() == [
        "wiki-search: reading 400 of 50,000 pages",
        "wiki-search: reading 30,000 of 50,000 pages",
        "wiki-search: indexing 7 sections",
    ]
