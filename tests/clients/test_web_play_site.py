"""``mcpgym play --web``: who may ask its server what, and what a page can do to a game."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from web_pages import page_in_a_thread, served_page

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served_page("tic-tac-toe", "--index", "5", "--seed", "3") as found:
        yield found


def ask(url: str, path: str, body: Any = None, **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection("127.0.0.1", parts.port, timeout=60)
    where = path if path.startswith("/") else parts.path + path
    sent = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request("GET" if body is None else "POST", where, sent, headers)
    answer = connection.getresponse()
    found = answer.status, answer.headers, answer.read()
    connection.close()
    return found


def post(url: str, name: str, body: Any, status: int = 200) -> Any:
    found = ask(url, f"api/{name}", body)
    assert found[0] == status, found[2]
    return json.loads(found[2])


def test_what_a_page_is_told_before_the_end_is_what_a_player_sees(url: str) -> None:
    game = post(url, "new", {})
    assert game["score"] is None
    assert game["again"] == ""
    assert game.keys() == {
        "id", "part", "title", "said", "version", "turn", "tools", "words", "choices", "board", "verdict",
        "score", "again",
    }  # fmt: skip
    about = json.loads(ask(url, "api/about")[2])
    text = json.dumps([game, about])
    for hidden in ("seed", "random_move_prob", "control", "token", "secret"):
        assert hidden not in text
    app = ask(url, about["app"])
    assert app[0] == 200
    assert app[1]["Content-Security-Policy"].startswith("sandbox allow-scripts; default-src 'none'")
    assert "connect-src 'none'" in app[1]["Content-Security-Policy"]
    assert urlsplit(url).path.strip("/").encode() not in app[2]
    page = ask(url, "")
    assert "unsafe" not in page[1]["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in page[1]["Content-Security-Policy"]


def test_what_a_browser_is_started_with_leads_to_the_page_once() -> None:
    with page_in_a_thread("reverse-text") as page:
        once = urlsplit(page.entrance).path
        assert once != urlsplit(page.url).path
        connection = http.client.HTTPConnection("127.0.0.1", urlsplit(page.url).port, timeout=60)
        connection.request("HEAD", once)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 404
        status, headers, _ = ask(page.url, once)
        assert (status, headers["Location"]) == (303, urlsplit(page.url).path)
        assert ask(page.url, once)[0] == 404
        connection.close()


@pytest.mark.parametrize("path", ["/", "/api/new", "/mcp", "/control/v1/episodes", "/e/x/mcp", "/static/play.js", "//"])
def test_without_the_secret_there_is_nothing(url: str, path: str) -> None:
    for body in (None, {}):
        status, _, said = ask(url, path, body)
        assert status == 404
        assert urlsplit(url).path.strip("/").encode() not in said


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_no_other_page_is_answered(url: str, headers: dict[str, str]) -> None:
    for path, body in (("api/new", {}), ("api/about", None)):
        status, found, said = ask(url, path, body, **headers)
        assert status in (400, 403), said
        assert "Access-Control-Allow-Origin" not in found


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("call", {"name": "play", "arguments": [4]}, "arguments by name"),
        ("call", {"name": 4, "arguments": {}}, "name is a text"),
        ("call", {"name": "play", "fields": {"position": "four"}}, "position: a whole number"),
        ("call", {"name": "play", "fields": {"position": 4}}, "fields are texts"),
        ("choose", {"act": "4"}, "no move to choose"),
        ("step", {}, "no policy plays"),
        ("say", {"text": []}, "text is a text"),
        ("new", {"level": "impossible"}, "no level 'impossible'"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(
    url: str, name: str, change: dict[str, Any], says: str
) -> None:
    game = post(url, "new", {})
    told = post(url, name, {"game": game["id"], "version": game["version"], **change}, 400)
    assert says in told["problem"]
    after = json.loads(ask(url, f"api/game?game={game['id']}")[2])
    assert after == game


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"nul", b"[" * 100_000, b"x" * 1_100_000, b'"\xff"'])
def test_a_body_that_is_none_is_refused(url: str, body: bytes) -> None:
    status, _, said = ask(url, "api/new", body)
    assert status == 400, said
    assert json.loads(said)["problem"]


def test_a_page_that_is_behind_changes_nothing_and_is_told_how_it_stands(url: str) -> None:
    game = post(url, "new", {})
    call = {"game": game["id"], "version": game["version"], "name": "play", "arguments": {"position": 0}}
    first = post(url, "call", call)
    assert first["result"]["isError"] is False
    again = post(url, "call", call)
    assert again["behind"] is True
    assert "result" not in again
    assert again["said"] == first["said"]


def test_a_policys_name_for_a_tool_that_is_not_there_is_answered_like_a_policys(url: str) -> None:
    game = post(url, "new", {})
    done = post(url, "call", {"game": game["id"], "version": 0, "name": "score", "arguments": {}})
    assert done["result"]["isError"] is True
    assert done["score"] is None


def test_the_end_does_not_wait_for_a_policy_that_thinks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    told: list[Any] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        policy = f"openai:model@http://127.0.0.1:{silent.getsockname()[1]}/v1"
        with page_in_a_thread("tic-tac-toe", against=policy, seat="first") as page:
            game = post(page.url, "new", {})
            step = {"game": game["id"], "version": game["version"]}
            asking = threading.Thread(target=lambda: told.append(post(page.url, "step", step, 400)))
            asking.start()
            silent.settimeout(30)
            thinking, _ = silent.accept()  # now it is asked, and will not answer
            began = time.monotonic()
        assert time.monotonic() - began < 30
        asking.join(10)
        thinking.close()
    assert told == [{"problem": "mcpgym play was stopped"}]


def test_only_so_many_games_are_kept_and_the_oldest_is_left(url: str) -> None:
    first = post(url, "new", {})["id"]
    for _ in range(64):
        last = post(url, "new", {})["id"]
    assert ask(url, f"api/game?game={first}")[0] == 404
    assert ask(url, f"api/game?game={last}")[0] == 200


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--web", "--against", "random", "--watch", "random"], "contradict"),
        (["--web", "--watch", "random", "--watch", "random", "--watch", "random"], "one policy, or two"),
        (["--web", "--seat", "first"], "--seat goes with"),
        (["--web", "--against", "random", "--task", "test-1"], "--task does not go"),
        (["--web", "--server", "http://127.0.0.1:1"], "--server does not go"),
        (["--web", "--against", "random", "--seat", "third"], "no seat 'third'"),
        (["--web", "--watch", "random", "--watch", "random", "--config", "policy_moves=first"], "need two seats"),
        (["--watch", "random"], "goes with --web"),
        (["--port", "0"], "goes with --web"),
        (["--no-open"], "goes with --web"),
        (["--web", "--against", "nobody"], "nobody"),
    ],
)
def test_commands_that_cannot_work_say_why(
    command: Callable[..., tuple[int, str, str]], words: list[str], says: str
) -> None:
    code, _, wrong = command("play", "tic-tac-toe", *words)
    assert code == 2
    assert says in wrong


def test_a_game_without_a_tree_takes_no_opponent(command: Callable[..., tuple[int, str, str]]) -> None:
    code, _, wrong = command("play", "double-check", "--web", "--against", "random")
    assert code == 2
    assert "no game tree" in wrong
