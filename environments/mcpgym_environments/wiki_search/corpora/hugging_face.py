"""A data set of Hugging Face as an encyclopedia, such as the corpus that Verifiers' ``wiki_search`` reads.

Nothing is fetched before the pages are read, and only because the user named a data set.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

from mcpgym.errors import ConfigurationError
from mcpgym_environments.wiki_search.corpora.extras import needed
from mcpgym_environments.wiki_search.corpora.files import LOADERS
from mcpgym_environments.wiki_search.corpora.nesting import NestedTooDeeply
from mcpgym_environments.wiki_search.corpora.records import NotAPage, page_of_record
from mcpgym_environments.wiki_search.corpora.titles import told_apart
from mcpgym_environments.wiki_search.pages import Page, Problems

REFERENCE = "willcb/rare-wiki-pages"
"""The corpus of Verifiers' ``wiki_search``: 2,590 Wikipedia pages as Markdown, with ``id``, ``title``, ``content``."""


class HuggingFace:
    """The ``train`` split of a data set (or its only one), or of a folder in that form; a row is a page.

    A row has a ``title``, a text (``text``, ``content``, ``markdown`` or ``body``; Markdown), and mostly an ``id``,
    which is the page's key as it stands: with the reference's corpus the keys are the reference's page ids.
    ``NAME@CONFIG`` takes one configuration of the data set. What a name holds may change there: the library keeps the
    pages as they were when it was built.
    Raises ConfigurationError without the ``datasets`` library.
    """

    def __init__(self, name: str) -> None:
        self._spec = f"hf:{name}"
        needed("datasets", self._spec, install="pip install 'mcpgym[wiki-hub]'")
        self._name, _, self._config = name.partition("@")
        folder = Path(self._name).expanduser()
        self._folder = folder.absolute() if folder.is_dir() else None
        if self._folder is None and (self._name.count("/") > 1 or self._name.startswith((".", "/", "~"))):
            raise ConfigurationError(f"{self._spec}: there is no folder {self._name}, and data sets are OWNER/NAME")

    @property
    def about(self) -> Mapping[str, str]:
        """What it is."""
        return {"kind": "hf", "source": self._spec, "title": self._name}

    @cached_property
    def fingerprint(self) -> str:
        """Of the name, and of a folder's files."""
        digest = blake2b(f"{self._name}\0{self._config}\n".encode(), digest_size=16)
        if self._folder is not None:
            for path in sorted(path for path in self._folder.rglob("*") if path.is_file()):
                status = path.stat()
                digest.update(f"{path.relative_to(self._folder)}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
        return f"hf-{LOADERS}-{digest.hexdigest()}"

    @property
    def size(self) -> int | None:
        """Not known before it is read."""
        return None

    def pages(self, problems: Problems) -> Iterator[Page]:
        """Every row that is a page. Raises ConfigurationError when there is no such data set, or no way to it."""
        yield from told_apart(self._rows(problems), problems)

    def _rows(self, problems: Problems) -> Iterator[Page]:
        for number, row in enumerate(self._data()):
            text = next((row[field] for field in ("text", "content", "markdown", "body") if row.get(field)), None)
            try:
                yield page_of_record({**row, "text": text}, str(number))
            except (NotAPage, NestedTooDeeply) as error:
                problems.note("bad record", f"row {number}: {error}; its fields are {', '.join(map(str, row))}")

    def _data(self) -> Any:
        datasets = needed("datasets", self._spec)
        try:
            splits = datasets.load_dataset(str(self._folder or self._name), self._config or None, streaming=True)
        except Exception as error:  # of its own kinds, of the hub's, of the network's
            offline = " (HF_HUB_OFFLINE is set)" if os.environ.get("HF_HUB_OFFLINE", "0") not in ("", "0") else ""
            raise ConfigurationError(f"{self._spec}{offline}: {str(error).strip() or type(error).__name__}") from error
        if "train" not in splits and len(splits) != 1:
            raise ConfigurationError(f"{self._spec} has no split called train: there is {', '.join(splits)}")
        return splits["train"] if "train" in splits else next(iter(splits.values()))
