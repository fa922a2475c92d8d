"""What MkDocs does differently for our pages, so that they read alike on a forge and on the site.

A block's options (``console background until=Players``) are for ``tests/test_documents.py``; of them readers see the
name of a file. A link to a file that is not a page of the site (a test, say) is its text: the site has no address of
the source. Formulas become MathML, which browsers show by themselves. Drawings become a part of the page, and so have
its colours.
"""

from __future__ import annotations

import re
import sys
from html import unescape
from pathlib import Path, PurePosixPath
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.website import made

FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,})(?P<language>\w+)(?P<options>[^\n]*)$", re.MULTILINE)
OUTSIDE = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>(?:\.\./)+[^)#\s]+)(?:#[^)]*)?\)")

FORMULA = re.compile(r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<formula>.*?)\\[)\]]</(?P=tag)>', re.DOTALL)
DRAWING = re.compile(r'<img [^>]*src="[^"]*\bimages/(?P<name>[\w-]+\.svg)"[^>]*/?>')


def on_files(files: Any, /, *, config: Any) -> Any:
    """All pages: those of docs/, and those that are made from the code."""
    for place, text in made.pages().items():
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, /, *, page: Any, config: Any, files: Any) -> str:
    """A page's text as the site shows it."""
    here = PurePosixPath(page.file.src_uri).parent
    markdown = FENCE.sub(_fence, markdown)
    return OUTSIDE.sub(lambda found: found["text"] if leaves(here, found["target"]) else found[0], markdown)


def on_page_content(html: str, /, *, page: Any, config: Any, files: Any) -> str:
    """A page's HTML with its formulas, and with its drawings as a part of it."""
    html = FORMULA.sub(lambda found: _formula(found["formula"], found["tag"] == "div"), html)
    return DRAWING.sub(lambda found: (Path(config.docs_dir) / "images" / found["name"]).read_text("utf-8"), html)


def _formula(latex: str, alone: bool) -> str:
    shown = convert(unescape(latex).strip(), display="block" if alone else "inline")
    return f'<div class="formula">{shown}</div>' if alone else shown  # which is as wide as the window, and no wider


def leaves(here: PurePosixPath, target: str) -> bool:
    """Whether a link from a page in ``here`` leads out of docs/."""
    return target.count("../") > len(here.parts)


def _fence(found: re.Match[str]) -> str:
    """The beginning of a block, its file's name as its title."""
    name = re.search(r"\bfile=(\S+)", found["options"])
    title = f' title="{name[1]}"' if name else ""
    return f"{found['indent']}{found['fence']}{found['language']}{title}"
