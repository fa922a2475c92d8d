"""``mcpgym play --web`` in a headless Chromium: what a person clicks, types and sees, to the end of games."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FrameLocator, Page, expect
from viewer_runs import browser, errors_on
from web_pages import page_in_a_thread

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
PICTURE = Path(__file__).parents[2] / "docs" / "images" / "play-in-the-browser.png"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with page_in_a_thread("tic-tac-toe", index=5, seed=3) as found:
        yield found.url


@pytest.fixture(scope="module")
def chromium(url: str) -> Iterator[Browser]:
    with browser() as opened:
        yield opened


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context(viewport={"width": 1000, "height": 800}, color_scheme="light")
    made = context.new_page()
    wrong = errors_on(made)
    asked: list[str] = []
    made.on("request", lambda request: asked.append(request.url))
    yield made
    origin = made.url.split("/")[2]
    context.close()
    assert wrong == []
    assert {where.split("/")[2] for where in asked if not where.startswith("data:")} == {origin}


def visit(page: Page, where: str) -> FrameLocator:
    page.goto(where)
    page.wait_for_selector("html[data-ready]", timeout=60_000)
    return page.frame_locator("iframe.app")


def play_on(page: Page, frame: FrameLocator, mine: str = "x") -> None:
    """Click free cells until the game is over."""
    for _ in range(300):
        if page.locator(".play-verdict").count():
            return
        if frame.locator("button.open").count():
            before = frame.locator(f"button.{mine}").count()
            frame.locator("button.open").first.click()
            expect(frame.locator(f"button.{mine}")).to_have_count(before + 1, timeout=20_000)
        page.wait_for_timeout(100)
    raise AssertionError("the game did not end")


def test_a_game_is_clicked_to_its_end_and_then_its_score_is_shown(page: Page, url: str) -> None:
    frame = visit(page, url)
    expect(frame.locator("#status")).to_contain_text("Your turn")
    assert page.locator("#score").count() == 0
    assert "seed" not in page.locator("main").inner_text()
    frame.locator("button.open").first.click()
    expect(frame.locator("button.x")).to_have_count(1)
    address = page.url
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert page.url == address
    frame = page.frame_locator("iframe.app")
    expect(frame.locator("button.x")).to_have_count(1)
    play_on(page, frame)
    verdict = page.locator(".play-verdict").inner_text()
    assert verdict.strip(".").lower() in frame.locator("#status").inner_text().lower()
    assert float(page.locator("#score").inner_text()) == {"You won.": 1, "A draw.": 0.5, "You lost.": 0}[verdict]
    expect(page.locator(".play-ended code")).to_have_text("mcpgym play tic-tac-toe --task test-5 --seed 3 --web")
    page.locator("#new").click()
    expect(page.locator(".play-verdict")).to_have_count(0)
    expect(frame.locator("button.x")).to_have_count(0)
    assert page.url != address


def test_two_tabs_are_two_games(page: Page, url: str) -> None:
    frame = visit(page, url)
    other = page.context.new_page()
    beside = visit(other, url)
    assert other.url != page.url
    frame.locator("button.open").first.click()
    expect(frame.locator("button.x")).to_have_count(1)
    expect(beside.locator("button.x")).to_have_count(0)
    twin = page.context.new_page()
    expect(visit(twin, page.url).locator("button.x")).to_have_count(1)


def test_values_are_shown_when_asked_for_and_are_the_games(page: Page, url: str) -> None:
    frame = visit(page, url)
    assert frame.locator("button.value").count() == 0
    page.keyboard.press("v")
    expect(frame.locator("button.value")).to_have_count(8)
    frame.locator("button.open").first.focus()
    page.keyboard.press("v")
    expect(frame.locator("button.value")).to_have_count(0)
    page.locator("#values").press("Enter")
    expect(frame.locator("button.value")).to_have_count(8)
    assert page.evaluate("document.activeElement.id") == "values"
    assert frame.locator("button.value.best").count() >= 1
    label = str(frame.locator("button.value.best").first.get_attribute("aria-label"))
    assert "nothing is better" in label
    expect(page.locator("#worth tbody tr")).to_have_count(8)
    page.locator("#level").select_option("perfect")
    expect(page.locator("main")).to_contain_text("task test-5")


def test_the_page_can_be_used_by_keys_in_the_dark_and_on_a_narrow_screen(chromium: Browser, url: str) -> None:
    context = chromium.new_context(viewport={"width": 360, "height": 740}, color_scheme="dark")
    page = context.new_page()
    frame = visit(page, url)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert frame.locator("html").get_attribute("data-theme") == "dark"
    cell = str(frame.locator("button.open").first.get_attribute("aria-label")).split(",")[0]
    frame.locator("button").first.focus()
    page.keyboard.press(cell)
    expect(frame.locator("button.x")).to_have_count(1)
    page.get_by_label("Light or dark").click()
    expect(frame.locator("html")).to_have_attribute("data-theme", "light")
    context.close()


def test_against_a_policy_the_person_has_the_other_marks(page: Page) -> None:
    with page_in_a_thread("tic-tac-toe", against="minimax", seat="second", seed=1) as served:
        frame = visit(page, served.url)
        expect(frame.locator("#status")).to_contain_text("You are O", timeout=20_000)
        page.locator("#values").click()
        expect(frame.locator("button.value")).to_have_count(9)
        play_on(page, frame, "o")
        assert page.locator(".play-verdict").inner_text() in ("You lost.", "A draw.")
        assert page.locator("#score").count() == 0
        assert "--against minimax" in page.locator(".play-ended code").inner_text()


def test_two_policies_play_each_other_by_themselves(page: Page) -> None:
    with page_in_a_thread("tic-tac-toe", watch=["minimax", "minimax"], seat="first") as served:
        frame = visit(page, served.url)
        expect(frame.locator("button.o")).to_have_count(1, timeout=20_000)  # by themselves; from here on, by a key
        page.locator("#next").focus()
        for _ in range(60):
            if page.locator(".play-verdict").count():
                break
            page.keyboard.press("Enter")
            page.wait_for_timeout(100)
        expect(page.locator(".play-verdict")).to_have_text("A draw.")
        expect(frame.locator("button.x")).to_have_count(5)
        expect(frame.locator("button.o")).to_have_count(4)
        assert frame.locator("button.open").count() == 0


def test_an_environment_without_an_app_has_forms_and_words(page: Page) -> None:
    with page_in_a_thread("double-check", index=0, seed=1) as served:
        page.goto(served.url)
        page.wait_for_selector("html[data-ready]")
        assert page.locator("iframe").count() == 0
        for _ in range(2):
            page.get_by_label("Your words").fill("<img src=x onerror=window.hacked=1> 7")
            page.keyboard.press("Control+Enter")
            page.wait_for_timeout(300)
        expect(page.locator(".play-verdict")).to_be_visible()
        expect(page.locator("#score")).to_have_text("0")
        expect(page.locator(".play-log")).to_contain_text("<img src=x onerror")
        assert page.evaluate("window.hacked === undefined && document.querySelectorAll('main img').length === 0")


def test_what_is_half_typed_in_one_form_stays_when_another_is_sent(page: Page) -> None:
    with page_in_a_thread("wiki-search", index=0, seed=1) as served:
        page.goto(served.url)
        page.wait_for_selector("html[data-ready]")
        page.locator("#view_sections-page_id").fill("p1")
        query = page.locator("#search_pages-query")
        query.fill("river")
        query.press("Enter")
        expect(page.locator(".play-log")).to_contain_text("answer of search_pages")
        expect(query).to_have_value("")
        expect(page.locator("#view_sections-page_id")).to_have_value("p1")
        assert page.evaluate("document.activeElement.id") == "search_pages-query"
        section = page.locator("#read_section-section_id")
        section.fill("nothing like it")
        section.press("Enter")
        expect(page.locator(".play-said.wrong")).to_have_count(1)
        expect(section).to_have_value("nothing like it")
        expect(page.locator("#read_section-part")).to_have_value("1")


def test_the_docs_picture_can_be_taken(page: Page, url: str, tmp_path: Path) -> None:
    """``python -m tests.board_pictures`` takes it anew."""
    from tests.board_pictures import on_the_page

    taken = on_the_page(page, url, tmp_path / "picture.png")
    assert PICTURE.read_bytes()[16:24] == taken[16:24]
