"""``python -m tests.website.pictures``: pictures of three pages of the site, taken anew. A test takes them too."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
DESK, PHONE = (1280, 800), (390, 780)
PICTURES = {
    "site-first-page.png": ("index.html", DESK, "light"),
    "site-tutorial.png": ("tutorials/tic-tac-toe.html", DESK, "dark"),
    "site-reference-on-a-phone.png": ("reference/commands.html#mcpgym-eval", PHONE, "light"),
}
"""Each picture: its page, the size of the window, the colours."""


def build(folder: Path) -> None:
    """Build the site, strictly."""
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, timeout=300
    )
    said = built.stdout + built.stderr
    assert built.returncode == 0, said
    assert said == ""


class _Quiet(SimpleHTTPRequestHandler):
    """Says nothing of what it serves."""

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address at which a folder is served on loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def take(page: Any, url: str, path: Path) -> bytes:
    """A picture of a page, when its styles and script are there."""
    page.goto(url)
    page.wait_for_function("document.fonts.ready.then(() => true)")
    page.wait_for_function("window.document$ !== undefined")
    page.wait_for_timeout(400)
    return bytes(page.screenshot(path=path))


def main() -> None:
    """Take all of them."""
    sys.path.insert(0, str(ROOT / "tests" / "clients"))
    from viewer_runs import browser

    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder))
        with served(Path(folder)) as url, browser() as chromium:
            for name, (place, (width, height), scheme) in PICTURES.items():
                page = chromium.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
                take(page, f"{url}/{place}", IMAGES / name)
                page.close()
                print(IMAGES / name)


if __name__ == "__main__":
    main()
