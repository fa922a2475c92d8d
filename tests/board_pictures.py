"""``python -m tests.board_pictures``: the pictures of docs/playing.md, taken anew. The tests take them too."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
sys.path.insert(0, str(ROOT / "tests" / "clients"))


def in_a_client(page: Any, hosted: Any, path: Path) -> bytes:
    """The board in a host of MCP Apps: the model's move, then a person's."""
    page.set_viewport_size({"width": 560, "height": 700})
    page.goto(f"{hosted.url}/host?server=/e/{hosted.open('tic-tac-toe', split='test', index=3, seed=5).token}/mcp")
    page.wait_for_selector("html[data-ready]", timeout=60_000)
    page.evaluate("window.model('play', { position: 4 })")
    frame = page.frame_locator("iframe").last
    before = frame.locator("button.x").count()
    frame.locator("button.open").first.click()
    frame.locator("button.x").nth(before).wait_for()
    page.wait_for_timeout(600)
    return bytes(page.screenshot(path=path))


def on_the_page(page: Any, url: str, path: Path) -> bytes:
    """The page of ``mcpgym play --web`` with the values of moves."""
    page.set_viewport_size({"width": 1000, "height": 640})
    page.goto(url)
    page.wait_for_selector("html[data-ready]", timeout=60_000)
    frame = page.frame_locator("iframe.app")
    frame.locator("button.open").first.wait_for()
    page.locator("#values").click()
    frame.locator("button.value").first.wait_for()
    page.wait_for_timeout(600)
    return bytes(page.screenshot(path=path))


def main() -> None:
    """Take both."""
    from app_hosts import app_host
    from viewer_runs import browser
    from web_pages import page_in_a_thread

    from mcpgym import load_environment

    IMAGES.mkdir(exist_ok=True)
    playing = page_in_a_thread("tic-tac-toe", index=5, seed=3)
    with app_host(load_environment("tic-tac-toe")) as hosted, playing as page_served, browser() as chromium:
        for name, take, where in (
            ("board-in-a-client.png", in_a_client, hosted),
            ("play-in-the-browser.png", on_the_page, page_served.url),
        ):
            page = chromium.new_page(color_scheme="light")
            take(page, where, IMAGES / name)  # type: ignore[operator]
            page.close()
            print(IMAGES / name)


if __name__ == "__main__":
    main()
