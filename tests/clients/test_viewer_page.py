"""``mcpgym view`` in a headless Chromium: what a person sees and types, served and exported, and the docs' picture."""

from __future__ import annotations

import json
import os
import re
import struct
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, expect
from viewer_runs import EVIL, browser, errors_on, make_runs, served

from mcpgym_clients.cli import main
from mcpgym_rl.traces import read_traces

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
PICTURE = Path(__file__).parents[2] / "docs" / "images" / "viewer.png"
SIZE = {"width": 1280, "height": 860}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def exported(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("exported") / "page.html"
    assert main(["view", str(runs), "--export", str(path)]) == 0
    return path.as_uri()


@pytest.fixture(scope="module")
def few(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An exported page with few of its traces."""
    path = tmp_path_factory.mktemp("few") / "page.html"
    assert main(["view", str(runs / "expert"), "--export", str(path), "--max-traces", "3"]) == 0
    return path.as_uri()


@pytest.fixture(scope="module")
def url(runs: Path) -> Iterator[str]:
    with served(runs) as found:
        yield found


@pytest.fixture(scope="module")
def chromium(runs: Path, exported: str, few: str) -> Iterator[Browser]:
    """The browser, once the commands have run: its event loop, which is this thread's, allows no other."""
    with browser() as opened:
        yield opened


class Visitor:
    """A page, and what went wrong on it: every error, message and request is kept."""

    def __init__(self, chromium: Browser, url: str, **options: Any) -> None:
        self.context = chromium.new_context(viewport=SIZE, **options)
        self.page: Page = self.context.new_page()
        self.wrong = errors_on(self.page)
        self.requests: list[str] = []
        self.url = url
        self.page.on("request", self._requested)
        self.page.on("dialog", lambda dialog: self.wrong.append(dialog.message))

    def _requested(self, request: Request) -> None:
        self.requests.append(request.url)

    def go(self, where: str = "") -> Page:
        self.page.goto(f"{self.url}#/{where}")
        self.page.wait_for_selector("html[data-ready]", timeout=30_000)
        return self.page


@pytest.fixture(params=["served", "exported"])
def visitor(request: pytest.FixtureRequest, chromium: Browser, url: str, exported: str) -> Iterator[Visitor]:
    made = Visitor(chromium, url if request.param == "served" else exported)
    yield made
    made.context.close()
    assert made.wrong == []
    origin = urlsplit(made.url)
    for asked in made.requests:
        where = urlsplit(asked)
        assert where.scheme in ("data", "blob") or (where.scheme, where.netloc) == (origin.scheme, origin.netloc)
    if origin.scheme == "file":
        assert {asked for asked in made.requests if not asked.startswith("data:")} == {made.url}


def place(page: Page) -> str:
    return page.url.partition("#")[2]


def test_the_runs_are_listed_filtered_and_opened_by_keys(visitor: Visitor, runs: Path) -> None:
    page = visitor.go()
    expect(page.locator("tbody tr")).to_have_count(5)
    summary = json.loads((runs / "random" / "summary.json").read_text())
    row = page.locator("tbody tr", has_text="random")
    expect(row).to_contain_text(f"{summary['reward']['mean']:.3f}")
    low, high = summary["reward"]["interval"]
    expect(row).to_contain_text(f"{low:.3f} to {high:.3f}".replace("-", "−"))
    page.get_by_label("environment").select_option("tic-tac-toe")
    expect(page.locator("tbody tr")).to_have_count(3)
    assert "environment=tic-tac-toe" in place(page)
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("rand")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="random on tic-tac-toe")).to_be_visible()
    page.go_back()
    expect(page.get_by_label("environment")).to_have_value("tic-tac-toe")


def test_two_runs_are_chosen_and_compared(visitor: Visitor) -> None:
    page = visitor.go("?environment=tic-tac-toe")
    expect(page.locator("tbody tr")).to_have_count(3)
    for key in ("j", "x", "j", "j", "x", "c"):
        page.keyboard.press(key)
    expect(page.locator(".notice").first).to_contain_text("A has the higher reward than B")
    assert place(page) == "/compare/expert/random"
    expect(page.locator(".matrix")).not_to_have_count(0)
    page.keyboard.press("s")
    expect(page.locator(".notice").first).to_contain_text("B has the higher reward than A")
    page.locator("tbody a").last.click()
    expect(page.locator(".turn").first).to_be_visible()


def test_the_list_of_a_run_is_narrowed_by_chips_bars_and_words(visitor: Visitor, runs: Path) -> None:
    traces = [trace for trace in read_traces(runs / "random" / "traces.jsonl") if trace.score]
    lost = sum(trace.score.game_outcome == "loss" for trace in traces if trace.score)
    longest = max(trace.turns for trace in traces if trace.score and trace.score.game_outcome == "loss")
    page = visitor.go("run/random")
    summary = page.locator(".list-summary")
    expect(summary).to_contain_text("40 traces")
    page.get_by_role("button", name="loss").first.click()
    expect(summary).to_contain_text(f"{lost} of 40 traces")
    assert "outcome=loss" in place(page)
    page.get_by_role("button", name="show all").click()
    expect(summary).to_have_text("40 traces")
    page.locator(".column").last.click()
    expect(summary).to_contain_text(f"{sum(trace.score.total == 1 for trace in traces if trace.score)} of 40")
    page.get_by_role("button", name="show all").click()
    page.keyboard.press("/")
    page.keyboard.type("O WON with")
    expect(summary).to_contain_text(f"{lost} of 40 traces")
    page.keyboard.press("Escape")
    page.get_by_label("Order").select_option("-turns")
    expect(page.locator(".row").first).to_contain_text(f"{longest} turns")


ELSEWHERE = r"before => location.hash !== before && /turn=\d/.test(location.hash)"


def test_the_next_mistake_is_a_key_away_in_this_trace_and_in_later_ones(visitor: Visitor) -> None:
    page = visitor.go("run/random")
    expect(page.locator(".tile", has_text="losing moves")).to_be_visible(timeout=30_000)
    seen = []
    for _ in range(6):
        page.keyboard.press("n")
        page.wait_for_function(ELSEWHERE, arg=f"#{seen[-1]}" if seen else "")
        expect(page.locator(".turn.current")).to_have_class(re.compile("blunder|missed_win|refused"))
        expect(page.locator(".turn.current")).to_be_in_viewport()
        seen.append(place(page))
    assert len(set(seen)) == 6
    assert len({where.split("?")[0] for where in seen}) > 1
    page.keyboard.press("p")
    page.wait_for_function(ELSEWHERE, arg=f"#{seen[-1]}")
    assert place(page) == seen[-2]
    page.reload()
    page.wait_for_selector("html[data-ready]")
    expect(page.locator(".turn.current .tag")).to_be_visible()
    assert place(page) == seen[-2]


def test_every_free_cell_of_a_board_shows_its_value(visitor: Visitor, runs: Path) -> None:
    from mcpgym_clients.viewer.answers import Answers

    told = Answers([runs]).trace("random", 3)
    page = visitor.go("run/random/3")
    letters = {"win": "W", "draw": "D", "loss": "L"}
    for number, turn in enumerate(told["turns"]):
        card = page.locator(f"#turn-{number + 1}")
        (call,) = turn["calls"]
        values = call["values"]
        shown = card.locator(".board .cell").all_inner_texts()
        moves = {int(move["act"]): move for move in values["moves"]}
        for cell in range(9):
            wanted = call["board"][cell]
            if cell in moves:
                wanted = f"{letters[moves[cell]['forced']]} {100 * moves[cell]['win']:.0f} %"
            assert " ".join(shown[cell].split()) == wanted
        expect(card.locator(".cell.played")).to_have_count(1)
        expect(card.locator(".call-name")).to_have_text(call["shown"])
        assert card.locator(".cell.best").count() == sum(move["best"] for move in values["moves"])


def test_keys_lead_through_traces_and_turns(visitor: Visitor) -> None:
    page = visitor.go("run/expert/5")
    expect(page.locator("h1")).to_contain_text("test-5")
    page.keyboard.press("j")
    expect(page.locator("h1")).to_contain_text("test-6")
    page.keyboard.press("k")
    page.keyboard.press("k")
    expect(page.locator("h1")).to_contain_text("test-4")
    expect(page.locator(".row[aria-selected=true]")).to_contain_text("test-4")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert place(page) == "/run/expert/4?turn=2"
    page.keyboard.press("ArrowLeft")
    assert place(page) == "/run/expert/4?turn=1"
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("next mistake")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="expert on tic-tac-toe")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()


def test_tokens_are_shown_with_their_probabilities(visitor: Visitor, runs: Path) -> None:
    trace = next(trace for trace in read_traces(runs / "local" / "traces.jsonl") if trace.place == 0)
    page = visitor.go("run/local/0")
    expect(page.locator(".token")).to_have_count(0)
    page.keyboard.press("t")
    assert trace.tokens is not None
    expect(page.locator(".token")).to_have_count(sum(trace.tokens.mask))
    expect(page.locator(".token-text").first).to_contain_text("<think>")
    expect(page.locator(".token").first).to_have_attribute("title", re.compile(r"% · log-prob .+ · id \d+"))


def test_a_training_run_has_curves_and_its_certificate(visitor: Visitor) -> None:
    page = visitor.go("run/trained")
    expect(page.get_by_role("heading", name="Certificate")).to_be_visible()
    expect(page.locator(".positions figure").first).to_be_visible()
    chart = page.locator(".chart", has_text="Outcomes of the batch")
    expect(chart.locator("path.curve")).to_have_count(3)
    expect(chart).to_contain_text("step 59")
    chart.locator("svg").hover()
    expect(chart).to_contain_text(re.compile(r"step [23]\d"))
    expect(page.locator(".chart", has_text="Lines of play lost").locator("svg")).to_have_attribute(
        "aria-label", re.compile("lost lines from 60 to 10")
    )


def test_what_a_trace_says_stays_text(visitor: Visitor) -> None:
    page = visitor.go("run/hostile/0")
    expect(page.locator("h1")).to_contain_text("<script>window.hacked=1</script>")
    shown = page.locator("main").inner_text()
    assert shown.count("onerror=window.hacked=1") > 8
    assert not set(shown) & set("\x1b\u202e")
    assert "\ufffd[31m\ufffd" in shown
    for where in (
        "run/hostile",
        "run/hostile%20certificate",
        "",
        f"run/{EVIL.replace('/', '%2F')}",
        "compare/hostile/random",
    ):
        page = visitor.go(where)
        page.wait_for_timeout(100)
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main script, main iframe").count() == 0
    visitor.wrong[:] = [text for text in visitor.wrong if "404" not in text]  # the run of that name is none


def test_addresses_of_nothing_say_so(visitor: Visitor) -> None:
    page = visitor.go("run/nobody")
    expect(page.get_by_role("alert")).to_contain_text("no")
    page = visitor.go("run/random/4000")
    expect(page.get_by_role("alert")).to_be_visible()
    page = visitor.go("nonsense/%E0%A4%A")
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    visitor.wrong[:] = [text for text in visitor.wrong if "404" not in text]


@pytest.mark.parametrize(
    "query", ["", "?only=bad&order=total", "?outcome=loss&order=-turns", "?q=played+4", "?low=0.5&order=-mistakes"]
)
def test_an_exported_page_lists_the_same_traces(chromium: Browser, url: str, exported: str, query: str) -> None:
    listed = []
    for where in (url, exported):
        visitor = Visitor(chromium, where)
        page = visitor.go(f"run/random{query}")
        expect(page.locator(".tile", has_text="losing moves")).to_be_visible(timeout=30_000)
        page.wait_for_timeout(150)
        size = page.locator(".row").first.get_attribute("aria-setsize")
        listed.append((size, page.locator(".row-text").all_inner_texts(), page.locator(".row-end").all_inner_texts()))
        visitor.context.close()
        assert visitor.wrong == []
    assert listed[0] == listed[1]
    assert listed[0][1]


def test_a_trace_that_was_left_out_of_an_exported_page_is_listed_and_says_so(chromium: Browser, few: str) -> None:
    visitor = Visitor(chromium, few)
    page = visitor.go("run/expert/39")
    expect(page.locator(".list-summary")).to_contain_text("40 traces")
    expect(page.get_by_role("alert")).to_contain_text("--max-traces")
    for _ in range(39):
        page.keyboard.press("k")
    expect(page.locator("h1")).to_contain_text("test-0")
    expect(page.locator(".turn").first).to_be_visible()
    visitor.context.close()
    assert visitor.wrong == []


def test_light_and_dark_can_be_read(chromium: Browser, exported: str) -> None:
    for scheme in ("light", "dark"):
        visitor = Visitor(chromium, exported, color_scheme=scheme)
        page = visitor.go("run/random/3")
        contrasts = page.evaluate(CONTRASTS)
        assert len(contrasts) > 10
        assert min(contrasts.values()) >= 4.5, sorted(contrasts.items(), key=lambda item: item[1])[:5]
        before = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.keyboard.press("d")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
        visitor.context.close()


CONTRASTS = """() => {
  const channel = (value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => 0.2126 * channel(r / 255) + 0.7152 * channel(g / 255) + 0.0722 * channel(b / 255);
  const found = {};
  for (const element of document.querySelectorAll("main *, header *")) {
    if (![...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
    const style = getComputedStyle(element);
    let back = element, colour = [0, 0, 0, 0];
    for (; back && (colour[3] ?? 1) === 0; back = back.parentElement) {
      colour = parse(getComputedStyle(back).backgroundColor);
    }
    const [one, other] = [light(parse(style.color)), light(colour)];
    const key = `${element.tagName} ${element.className} ${element.parentElement.className}`;
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    found[key] = Math.min(found[key] ?? 99, ratio);
  }
  return found;
}"""


def test_a_narrow_screen_has_no_sideways_scrolling(chromium: Browser, exported: str) -> None:
    for where in ("", "run/random", "run/random/3", "compare/expert/random", "run/trained"):
        visitor = Visitor(chromium, exported)
        visitor.page.set_viewport_size({"width": 390, "height": 800})
        page = visitor.go(where)
        page.wait_for_timeout(100)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), where
        visitor.context.close()


def test_ten_thousand_traces_are_quick(chromium: Browser, runs: Path, tmp_path: Path) -> None:
    traces = read_traces(runs / "random" / "traces.jsonl")
    lines = [replace(trace, place=-7777, task="TASK").to_json() for trace in traces]
    with (tmp_path / "traces.jsonl").open("w") as file:
        for number in range(10_000):
            line = lines[number % len(lines)].replace("-7777", str(number)).replace("TASK", f"task-{number}")
            file.write(f"{line}\n")
    with served(tmp_path) as url:
        visitor = Visitor(chromium, url)
        began = time.monotonic()
        page = visitor.go(f"run/{tmp_path.name}")
        expect(page.locator(".list-summary")).to_contain_text("10,000 traces", timeout=60_000)
        first = time.monotonic() - began
        expect(page.locator(".tile", has_text="losing moves")).to_be_visible(timeout=60_000)
        began = time.monotonic()
        page.evaluate("document.querySelector('.long-list').scrollTop = 46 * 9000")
        expect(page.locator(".row", has_text="task-9003")).to_be_visible()
        scrolled = time.monotonic() - began
        assert page.locator(".row").count() < 60
        began = time.monotonic()
        page.goto(f"{url}#/run/{tmp_path.name}/9876")
        expect(page.locator("h1")).to_contain_text("task-9876")
        expect(page.locator(".row[aria-selected=true]")).to_contain_text("task-9876")
        jumped = time.monotonic() - began
        began = time.monotonic()
        page.keyboard.press("/")
        page.keyboard.type("task-1234")
        expect(page.locator(".list-summary")).to_contain_text("1 of 10,000")
        searched = time.monotonic() - began
        visitor.context.close()
    assert visitor.wrong == []
    print(f"first {first:.1f} s, scrolled {scrolled:.2f} s, jumped {jumped:.2f} s, searched {searched:.2f} s")
    assert first < 30
    assert max(scrolled, jumped, searched) < 8


def test_a_run_that_goes_on_is_followed(chromium: Browser, runs: Path, tmp_path: Path) -> None:
    lines = (runs / "random" / "traces.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "traces.jsonl").write_text("".join(lines[:10]))
    with served(tmp_path) as url:
        visitor = Visitor(chromium, url)
        page = visitor.go(f"run/{tmp_path.name}")
        expect(page.locator(".list-summary")).to_contain_text("10 traces")
        with (tmp_path / "traces.jsonl").open("a") as file:
            file.write("".join(lines[10:25]))
        expect(page.locator(".list-summary")).to_contain_text("25 traces", timeout=20_000)
        visitor.context.close()
    assert visitor.wrong == []


def test_the_docs_picture_can_be_taken(chromium: Browser, url: str, tmp_path: Path) -> None:
    """``MCPGYM_PICTURE=1`` takes it anew."""
    visitor = Visitor(chromium, url, color_scheme="light", device_scale_factor=1.5)
    page = visitor.go("run/random?order=-mistakes")
    expect(page.locator(".row-end .flag").first).to_be_visible(timeout=30_000)
    page.keyboard.press("n")
    expect(page.locator(".turn.current")).to_be_visible()
    page.keyboard.press("n")
    page.wait_for_timeout(800)
    taken = page.screenshot(path=tmp_path / "viewer.png")
    visitor.context.close()
    assert visitor.wrong == []
    assert struct.unpack(">II", taken[16:24]) == (1920, 1290)
    assert len(taken) > 50_000
    if os.environ.get("MCPGYM_PICTURE") or not PICTURE.exists():
        PICTURE.parent.mkdir(exist_ok=True)
        PICTURE.write_bytes(taken)
    assert struct.unpack(">II", PICTURE.read_bytes()[16:24]) == (1920, 1290)
