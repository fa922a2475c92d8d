"""A library of files is made from the one before: only what changed is parsed, and it is what a full build makes."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpgym_environments.wiki_search.building import open_library
from mcpgym_environments.wiki_search.corpora import folder, records
from mcpgym_environments.wiki_search.corpora.folder import Folder
from mcpgym_environments.wiki_search.corpora.markdown import read_markdown
from mcpgym_environments.wiki_search.kept import digest_of

Library = dict[str, bytes]


def built(notes: Path, cache: Path) -> Library:
    """Every file of the library of ``notes``, to the byte."""
    before = {path for path in cache.glob("*") if path.is_dir()}
    open_library(Folder(notes), "fts5", folder=cache).close()
    new = {path for path in cache.glob("*") if path.is_dir()} - before
    (place,) = new or {max(before, key=lambda path: path.stat().st_mtime_ns)}
    return {path.relative_to(place).as_posix(): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def built_in_full(notes: Path, cache: Path) -> Library:
    shutil.rmtree(cache, ignore_errors=True)
    cache.mkdir()
    return built(notes, cache)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is parsed as Markdown, by title, as it happens."""
    heard: list[str] = []

    def listening(text: str, title: str) -> object:
        heard.append(title)
        return read_markdown(text, title)

    monkeypatch.setattr(folder, "read_markdown", listening)
    monkeypatch.setattr(records, "read_markdown", listening)
    return heard


def write(path: Path, data: str | bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())


def notes_of(tmp_path: Path, count: int = 12) -> Path:
    notes = tmp_path / "notes"
    for number in range(count):
        write(notes / f"n{number}.md", f"# Note {number}\n\nAbout {number}; see [it](n{(number + 1) % count}.md).")
    return notes


def line(draw: random.Random) -> str:
    title = f"Title {draw.randrange(6)}"
    record = {"title": title, "text": f"Fact {draw.randrange(9)}; see [[Title {draw.randrange(6)}]].\n\n## Part\n\nx"}
    if draw.random() < 0.4:
        record["id"] = str(draw.randrange(20))
    return draw.choice([json.dumps(record)] * 6 + ["{broken", json.dumps({"title": title}), ""])


def contents(draw: random.Random, ending: str) -> bytes:
    """A file of few titles, so that many are shared, with links and everything that can be wrong with it."""
    if ending == ".jsonl":
        return "\n".join(line(draw) for _ in range(draw.randrange(5))).encode()
    if draw.random() < 0.15:
        return draw.choice([b"", b"\x00\x01\x02", "Zürich".encode("latin-1"), b"# Only a title", b"[" * 3000])
    title, link = f"Title {draw.randrange(6)}", f"f{draw.randrange(8)}.{draw.choice(['md', 'html', 'txt'])}"
    text = f"Fact {draw.randrange(9)}"
    if ending == ".html":
        return f"<h1>{title}</h1><p>{text} <a href='{link}'>a</a></p><h2>Part</h2><p>b</p>".encode()
    front = f"---\naliases: [Also {draw.randrange(6)}]\n---\n" if draw.random() < 0.3 else ""
    return f"{front}# {title}\n\n{text}, [a]({link}), [[Title {draw.randrange(6)}]]\n\n## Part\n\nb".encode()


def edit(notes: Path, draw: random.Random) -> None:
    """Add, change, delete, rename, swap, copy or touch some files."""
    files = sorted(path for path in notes.rglob("*") if path.is_file())
    one, other = draw.choice(files), draw.choice(files)
    new = notes / draw.choice(["", "sub"]) / f"f{draw.randrange(8)}{draw.choice(['.md', '.html', '.txt', '.jsonl'])}"
    match draw.choice(["add", "add", "change", "delete", "rename", "swap", "copy", "touch", "insert"]):
        case "add":
            write(new, contents(draw, new.suffix))
        case "change":
            write(one, contents(draw, one.suffix))
        case "delete" if len(files) > 3:
            one.unlink()
        case "rename":
            new.parent.mkdir(exist_ok=True)
            one.rename(new)
        case "swap":
            first, second = one.read_bytes(), other.read_bytes()
            write(one, second)
            write(other, first)
        case "copy":
            new.parent.mkdir(exist_ok=True)
            shutil.copy2(one, new)
        case "insert":
            write(one, b"# First\n" + one.read_bytes())
        case _:
            os.utime(one)


@pytest.mark.parametrize("seed", range(4))
def test_an_update_is_a_full_build_to_the_byte_whatever_was_edited(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    notes = tmp_path / "notes"
    write(notes / "constant.md", "# Constant\n\nThere is always a page.")
    for _ in range(10):
        edit(notes, draw)
    for _ in range(8):
        write(notes / "constant.md", f"# Constant\n\nPage {draw.random()}, [a](f1.md) [b](f2.html).")
        for _ in range(draw.randrange(1, 4)):
            edit(notes, draw)
        if not (notes / "constant.md").is_file():
            write(notes / "constant.md", "# Constant\n\nAgain.")
        assert built(notes, tmp_path / "cache") == built_in_full(notes, tmp_path / "full")


def test_files_that_did_not_change_are_not_parsed_again(tmp_path: Path, parsed: list[str]) -> None:
    notes, cache = notes_of(tmp_path), tmp_path / "cache"
    write(notes / "more.jsonl", "".join(json.dumps({"title": f"Line {n}", "text": "x"}) + "\n" for n in range(5)))
    built(notes, cache)
    assert len(parsed) == 17
    parsed.clear()
    write(notes / "n3.md", "# Changed\n\nNew text.")
    (notes / "n4.md").unlink()
    (notes / "n5.md").rename(notes / "moved.md")
    os.utime(notes / "n6.md")
    with (notes / "more.jsonl").open("a") as file:
        file.write(json.dumps({"title": "Line 5", "text": "y"}) + "\n")
    updated = built(notes, cache)
    assert sorted(parsed) == ["Changed", "Line 5", "Note 5"]
    assert updated == built_in_full(notes, tmp_path / "full")
    library = open_library(Folder(notes), "fts5", folder=cache)
    assert library.page_by_title("Note 4") is None
    assert [link.title for link in library.links(library.page_by_key("n2.md").id)] == ["Changed"]  # type: ignore[union-attr]


def test_contents_that_change_places_at_one_size_and_time_are_seen(tmp_path: Path, parsed: list[str]) -> None:
    notes, cache = notes_of(tmp_path), tmp_path / "cache"
    for path in notes.iterdir():
        os.utime(path, (1, 1))
    built(notes, cache)
    parsed.clear()
    (notes / "n1.md").rename(notes / "x")
    (notes / "n2.md").rename(notes / "n1.md")
    (notes / "x").rename(notes / "n2.md")
    write(notes / "new.md", "# New\n\nIt makes the folder another one.")
    assert built(notes, cache) == built_in_full(notes, tmp_path / "full")
    assert sorted(parsed[:3]) == ["New", "Note 1", "Note 2"]


def test_lines_of_jsonl_that_move_get_the_keys_of_their_new_places(tmp_path: Path) -> None:
    notes, cache = notes_of(tmp_path, 1), tmp_path / "cache"
    lines = [json.dumps({"title": f"Line {n}", "text": "x"}) for n in range(4)]
    write(notes / "more.jsonl", "\n".join(lines))
    built(notes, cache)
    write(notes / "more.jsonl", "\n".join([lines[3], lines[0], "{broken", *lines[1:3]]))
    assert built(notes, cache) == built_in_full(notes, tmp_path / "full")


def test_who_has_the_old_library_open_goes_on_reading_it(tmp_path: Path) -> None:
    notes, cache = notes_of(tmp_path), tmp_path / "cache"
    old = open_library(Folder(notes), "fts5", folder=cache)
    write(notes / "n3.md", "# Changed\n\nNew text.")
    new = open_library(Folder(notes), "fts5", folder=cache)
    assert old.search("about 3")[0].title == "Note 3"
    assert (old.page_by_title("Note 3") is None, new.page_by_title("Note 3") is None) == (False, True)
    assert [old.section(f"p{number}.1") is None for number in range(1, 13)] == [False] * 12


def overwrite(file: Path) -> None:
    file.write_bytes(b"x" * file.stat().st_size)


def empty_middle(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[4096:] = bytes(len(data) - 4096)
    file.write_bytes(data)


@pytest.mark.parametrize(
    "harm",
    [
        overwrite,
        empty_middle,
        lambda file: os.truncate(file, 5_000),
        lambda file: file.unlink(),
        lambda file: (file.parent / "damaged").touch(),
        lambda file: (file.parent / "library.json").write_text("[]"),
        lambda file: os.truncate(file.parent / "pages.sqlite", 5_000),
    ],
    ids=["overwritten", "zeroed", "truncated", "missing", "marked", "manifest", "pages"],
)
def test_a_damaged_library_before_makes_a_full_build(
    tmp_path: Path, harm: Callable[[Path], object], parsed: list[str]
) -> None:
    notes, cache = notes_of(tmp_path), tmp_path / "cache"
    built(notes, cache)
    (kept,) = cache.rglob("kept.sqlite")
    harm(kept)
    write(notes / "n3.md", "# Changed\n\nNew text.")
    parsed.clear()
    updated = built(notes, cache)
    assert len(parsed) == 12
    assert updated == built_in_full(notes, tmp_path / "full")


def test_no_single_byte_that_is_wrong_makes_a_wrong_page(tmp_path: Path) -> None:
    notes, cache = notes_of(tmp_path), tmp_path / "cache"
    built(notes, cache)
    (kept,) = cache.rglob("kept.sqlite")
    whole = kept.read_bytes()
    write(notes / "n3.md", "# Changed\n\nNew text.")
    full = built_in_full(notes, tmp_path / "full")
    draw = random.Random(7)
    for _ in range(25):
        data = bytearray(whole)
        for _ in range(draw.choice([1, 1, 30])):
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        kept.write_bytes(data)
        for place in cache.iterdir():
            if place.is_dir() and place != kept.parent:
                shutil.rmtree(place)
        assert built(notes, cache) == full


def test_what_is_kept_under_the_hash_of_another_file_is_not_taken(tmp_path: Path) -> None:
    notes, cache = notes_of(tmp_path), tmp_path / "cache"
    built(notes, cache)
    (kept,) = cache.rglob("kept.sqlite")
    connection = sqlite3.connect(kept)
    with connection:
        values = connection.execute("SELECT value FROM kept ORDER BY number").fetchall()
        for number, (value,) in enumerate(reversed(values), start=1):
            connection.execute("UPDATE kept SET value = ? WHERE number = ?", (value, number))
    connection.close()
    manifest = kept.parent / "library.json"
    sizes = json.loads(manifest.read_bytes())
    sizes["files"]["kept.sqlite"] = kept.stat().st_size
    manifest.write_text(json.dumps(sizes))
    write(notes / "n3.md", "# Changed\n\nNew text.")
    assert built(notes, cache) == built_in_full(notes, tmp_path / "full")


UPDATE = """
import os, signal, sys
from pathlib import Path
from mcpgym_environments.wiki_search import building
from mcpgym_environments.wiki_search.corpora import folder
where = sys.argv[3]
def die(*given, **named):
    os.kill(os.getpid(), signal.SIGKILL)
if where == "reading":
    folder.read_markdown = die
else:
    setattr(building, where, die)
building.open_library(folder.Folder(sys.argv[1]), "fts5", folder=Path(sys.argv[2]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.parametrize("where", ["reading", "_index", "_replace"])
def test_an_update_that_is_killed_leaves_the_library_before_for_the_next(
    tmp_path: Path, where: str, parsed: list[str]
) -> None:
    notes, cache = notes_of(tmp_path), tmp_path / "cache"
    built(notes, cache)
    write(notes / "n3.md", "# Changed\n\nNew text.")
    killed = subprocess.run([sys.executable, "-c", UPDATE, notes, cache, where], check=False)
    assert killed.returncode == -signal.SIGKILL
    parsed.clear()
    updated = built(notes, cache)
    assert parsed == ["Changed"]
    assert updated == built_in_full(notes, tmp_path / "full")
    assert list(cache.glob("*.building-*")) == []


def test_a_hash_tells_where_one_part_ends() -> None:
    assert digest_of("ab", "c") != digest_of("a", "bc")
    assert digest_of("\udce9") == digest_of(b"\xed\xb3\xa9")
