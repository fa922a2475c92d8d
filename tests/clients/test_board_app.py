"""The tic-tac-toe board in a host of MCP Apps: the official bridge in a headless Chromium, over a real connection."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from app_hosts import Hosted, app_host
from playwright.sync_api import Browser, FrameLocator, Page, expect
from viewer_runs import EVIL, browser, errors_on

from mcpgym import load_environment
from mcpgym.schema import schema_hash

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
PICTURE = Path(__file__).parents[2] / "docs" / "images" / "board-in-a-client.png"


@pytest.fixture(scope="module")
def hosted() -> Iterator[Hosted]:
    with app_host(load_environment("tic-tac-toe"), load_environment("double-check")) as found:
        yield found


@pytest.fixture(scope="module")
def chromium(hosted: Hosted) -> Iterator[Browser]:
    with browser() as opened:
        yield opened


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context(viewport={"width": 620, "height": 900}, color_scheme="light")
    made = context.new_page()
    wrong = errors_on(made)
    yield made
    context.close()
    assert [
        text for text in wrong if "status of 40" not in text
    ] == []  # the SDK's client asks for a stream; there is none


def visit(page: Page, hosted: Hosted, server: str) -> None:
    page.goto(f"{hosted.url}/host?server={server}")
    page.wait_for_selector("html[data-ready]", timeout=60_000)


def model(page: Page, name: str, arguments: dict[str, object], *, shown: bool = True, told: bool = True) -> str:
    return str(page.evaluate("([...given]) => window.model(...given)", [name, arguments, shown, told]))


def board(page: Page) -> FrameLocator:
    return page.frame_locator("iframe").last


def play_on(frame: FrameLocator) -> None:
    """Click free cells until the game is over."""
    for _ in range(5):
        if "Game over" in frame.locator("#status").inner_text():
            return
        before = frame.locator("button.x").count()
        frame.locator("button.open").first.click()
        expect(frame.locator("button.x")).to_have_count(before + 1)
        expect(frame.locator("#board")).to_have_attribute("aria-busy", "false")
    expect(frame.locator("#status")).to_contain_text("Game over")


def test_a_person_clicks_in_the_episode_that_the_model_plays_to_its_end(page: Page, hosted: Hosted) -> None:
    episode = hosted.open("tic-tac-toe", split="test", index=3, seed=5)
    visit(page, hosted, f"/e/{episode.token}/mcp")
    listed = page.evaluate("window.tools")
    assert schema_hash(listed) == episode.environment.schema_hash
    free = next(iter(episode.state.board.cells.index(mark) for mark in "." if mark in episode.state.board.cells))
    model(page, "play", {"position": free})
    frame = board(page)
    expect(frame.get_by_role("button", name=f"{free}, ")).to_contain_text("X")
    assert page.evaluate("window.app.mimeType") == "text/html;profile=mcp-app"
    click = frame.locator("button.open").first
    cell = int(str(click.get_attribute("aria-label")).split(",")[0])
    click.click()
    expect(frame.get_by_role("button", name=f"{cell}, ")).to_contain_text("X")
    assert [dict(call.arguments) for call in episode.calls] == [{"position": free}, {"position": cell}]
    told = page.evaluate("window.contexts")
    assert len(told) == 1
    assert told[0].startswith(f"The person played cell {cell} ")
    assert told[0].endswith(episode.calls[-1].text)
    play_on(frame)
    assert episode.done
    assert not any(call.is_error for call in episode.calls)
    assert {"win": "You won", "draw": "a draw", "loss": "You lost"}[str(episode.state.outcome)] in frame.locator(
        "#status"
    ).inner_text()
    assert frame.locator("button.open").count() == 0


def test_a_board_that_is_there_follows_what_the_model_plays_elsewhere(page: Page, hosted: Hosted) -> None:
    episode = hosted.open("tic-tac-toe", split="test", index=3, seed=5)
    visit(page, hosted, f"/e/{episode.token}/mcp")
    free = [cell for cell, mark in enumerate(episode.state.board.cells) if mark == "."]
    model(page, "play", {"position": free[0]}, told=False)  # a host that tells nothing: the episode's resource does
    frame = board(page)
    expect(frame.get_by_role("button", name=f"{free[0]}, ")).to_contain_text("X", timeout=15_000)
    cells = episode.state.board.cells
    other = cells.index(".")
    model(page, "play", {"position": other}, shown=False)
    expect(frame.get_by_role("button", name=f"{other}, ")).to_contain_text("X", timeout=15_000)


@pytest.mark.parametrize(("address", "name"), [("/tic-tac-toe/mcp", "play"), ("/mcp", "play")])
def test_at_a_bare_address_the_board_plays_with_the_episodes_handle(
    page: Page, hosted: Hosted, address: str, name: str
) -> None:
    visit(page, hosted, address)
    one = address != "/mcp"
    started = model(page, "start_episode", {} if one else {"environment": "tic-tac-toe"})
    handle = started.split()[1]
    assert page.locator("iframe").count() == (1 if one else 0)
    if not one:
        free = json.loads("[" + started.rpartition("free ")[2].replace(" ", ",") + "]")
        model(page, name, {"episode": handle, "position": free[0]})
    frame = board(page)
    play_on(frame)
    said = page.evaluate("window.contexts")
    assert "Game over" in said[-1]
    assert handle not in frame.locator("body").inner_text()


def test_a_board_can_be_played_by_keys_alone_and_says_what_a_cell_is(page: Page, hosted: Hosted) -> None:
    episode = hosted.open("tic-tac-toe", split="test", index=3, seed=5)
    visit(page, hosted, f"/e/{episode.token}/mcp")
    free = episode.state.board.cells.index(".")
    model(page, "play", {"position": free})
    frame = board(page)
    expect(frame.get_by_role("status")).to_contain_text("Your turn")
    first = frame.locator("button.open").first
    first.focus()
    before = frame.locator("button.x").count()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(frame.locator("button.x")).to_have_count(before + 1)
    if not episode.done:
        cell = episode.state.board.cells.index(".")
        page.keyboard.press(str(cell))
        expect(frame.get_by_role("button", name=f"{cell}, ")).to_contain_text("X")
    labels = [str(one.get_attribute("aria-label")) for one in frame.get_by_role("button").all()]
    assert [int(label.split(",")[0]) for label in labels] == list(range(9))


def test_hostile_texts_are_shown_as_they_are_and_do_nothing(page: Page, hosted: Hosted) -> None:
    episode = hosted.open("tic-tac-toe", split="test", index=3, seed=5)
    visit(page, hosted, f"/e/{episode.token}/mcp")
    model(page, "play", {"position": episode.state.board.cells.index(".")})
    page.evaluate(
        "text => window.bridge.sendToolResult({ content: [{ type: 'text', text }], isError: true })",
        f"{EVIL}\nX 0 · O 4 · free 1 2 3 5 6 7 8",
    )
    frame = board(page)
    expect(frame.locator("#note")).to_contain_text("<img src=x onerror=window.hacked=1>")
    expect(frame.locator("button.x")).to_have_count(1)
    assert frame.locator("img, #note script").count() == 0
    assert frame.locator("body").evaluate("() => window.hacked === undefined")


def test_the_docs_picture_can_be_taken(page: Page, hosted: Hosted, tmp_path: Path) -> None:
    """``python -m tests.board_pictures`` takes it anew."""
    from tests.board_pictures import in_a_client

    taken = in_a_client(page, hosted, tmp_path / "picture.png")
    assert taken.startswith(b"\x89PNG")
    assert PICTURE.exists()
    assert PICTURE.read_bytes()[16:24] == taken[16:24]
