"""``mcpgym view``: who may ask its server what, and which commands cannot work."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from viewer_runs import EVIL, make_hostile, served

from mcpgym_clients.cli import main
from mcpgym_clients.viewer.exporting import bundle


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    assert main(["eval", "tic-tac-toe", "-p", "random", "-n", "5", "--out", str(folder / "random")]) == 0
    make_hostile(folder / "hostile")
    return folder


@pytest.fixture(scope="module")
def url(runs: Path) -> Iterator[str]:
    with served(runs) as found:
        yield found


def ask(url: str, path: str, method: str = "GET", **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection("127.0.0.1", parts.port, timeout=20)
    connection.putrequest(
        method, (parts.path + path) if not path.startswith("//") else path[1:], skip_host="Host" in headers
    )
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, answer.headers, body


def test_the_page_and_its_data_are_there(url: str) -> None:
    status, headers, body = ask(url, "")
    assert status == 200
    assert b'<script type="module"' in body
    assert "script-src 'self'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    for name, kind in (("main.js", "text/javascript"), ("style.css", "text/css")):
        status, headers, _ = ask(url, f"static/{name}")
        assert (status, headers["Content-Type"].split(";")[0]) == (200, kind)
    names = {card["name"] for card in json.loads(ask(url, "api/runs")[2])["runs"]}
    assert names == {"random", "hostile", "hostile certificate"}
    assert len(json.loads(ask(url, "api/traces?run=random")[2])["rows"]) == 5
    assert json.loads(ask(url, "api/trace?run=random&n=0")[2])["turns"]


@pytest.mark.parametrize(
    "path",
    ["", "api/runs", "static/main.js", "nothing", "api/trace?run=random&n=99"],
)
def test_every_answer_keeps_the_page_to_itself(url: str, path: str) -> None:
    _, headers, _ = ask(url, path)
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.:1", "[::1]:80"])
def test_another_name_is_not_answered(url: str, host: str) -> None:
    status, _, body = ask(url, "api/runs", Host=host)
    assert status == 400
    assert b"random" not in body


def test_without_the_secret_there_is_nothing(url: str) -> None:
    token = urlsplit(url).path.strip("/")
    assert len(token) >= 20
    for path in ("//", "///api/runs", f"//{token[:-1]}/api/runs", f"//{token}x/", "//static/main.js", "//api/runs"):
        status, _, body = ask(url, path)
        assert status == 404, path
        assert token.encode() not in body
        assert b"random" not in body


@pytest.mark.parametrize(
    "path",
    [
        "static/../answers.py", "static/%2e%2e/answers.py", "static/..%2fanswers.py", "static/%2fetc%2fpasswd",
        "static/", "static/__init__.py", "static//etc/passwd", "../static/main.js", "static/main.js%00.css",
    ],
)  # fmt: skip
def test_no_path_leads_out_of_the_pages_files(url: str, path: str) -> None:
    status, _, body = ask(url, path)
    assert status == 404
    assert b"import" not in body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_changed(url: str, method: str) -> None:
    assert ask(url, "api/runs", method)[0] in (404, 405)


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("api/run?run=../random", 404, "there is no run"),
        ("api/run", 404, "there is no run"),
        (f"api/run?run={quote(EVIL)}", 404, "there is no run"),
        ("api/trace?run=random&n=5", 404, "traces 0 to 4"),
        ("api/trace?run=random&n=-1", 404, "traces 0 to 4"),
        ("api/trace?run=random&n=999999999999999999", 404, "traces 0 to 4"),
        ("api/trace?run=hostile%20certificate&n=0", 404, "no evaluation"),
        ("api/traces?run=random&order=size", 400, "place"),
        ("api/traces?run=random&only=x", 400, "bad"),
        ("api/traces?run=random&offset=x", 400, "whole number"),
        ("api/compare?run=random", 400, "two runs"),
    ],
)
def test_what_cannot_be_asked_is_said(url: str, path: str, status: int, says: str) -> None:
    answered, headers, body = ask(url, path)
    assert (answered, headers["Content-Type"]) == (status, "application/json")
    assert says in json.loads(body)["problem"]


def test_only_this_machine_is_listened_to(url: str) -> None:
    with socket.socket() as probe:
        try:
            address = socket.gethostbyname(socket.gethostname())
        except OSError:
            pytest.skip("this machine has no address")
        if address.startswith("127."):
            return
        probe.settimeout(2)
        assert probe.connect_ex((address, urlsplit(url).port)) != 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nothing"], "there is no nothing"),
        (["empty"], "there is no run in empty"),
        (["made", "--max-traces", "3"], "--export"),
        (["made", "--model", "empty"], "tokenizer.json"),
        (["made", "--environment", "nowhere:Class"], "nowhere"),
        (["made", "--export", "nowhere/page.html"], "nowhere"),
        (["made", "--export", "empty"], "empty"),
    ],
)
def test_what_cannot_be_is_said(command: Callable, runs: Path, tmp_path: Path, arguments: list[str], says: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "made").symlink_to(runs)
    code, _, err = command("view", *arguments)
    assert code == 2
    assert says in err
    assert err.count("error: ") == 1
    assert list(tmp_path.glob(".*")) == []


def test_a_taken_port_is_said(command: Callable, url: str, runs: Path) -> None:
    code, _, err = command("view", str(runs), "--port", str(urlsplit(url).port))
    assert code != 0
    assert "in use" in err


def test_an_exported_page_has_no_markup_of_a_traces_and_loads_nothing(
    command: Callable, runs: Path, tmp_path: Path
) -> None:
    code, out, _ = command("view", str(runs), "--export", "page.html")
    assert code == 0
    assert "3 runs, 6 traces" in out
    text = (tmp_path / "page.html").read_text("utf-8")
    assert "hacked" not in text
    assert "onerror" not in text
    assert text.count("<script") == text.count("</script>") == 4, "the index, a block of each run, the page"
    for part in ("http://", "https://", "url(", "@import"):
        assert part not in text.replace("http://www.w3.org/2000/svg", ""), part
    assert "default-src 'none'" in text
    again = command("view", str(runs), "--export", "again.html")
    assert again[0] == 0
    assert (tmp_path / "again.html").read_text("utf-8") == text, "the same runs give the same bytes"


def test_half_a_character_stops_no_page(runs: Path, tmp_path: Path) -> None:
    row = json.loads((runs / "random" / "traces.jsonl").read_text().splitlines()[0])
    row["task"], row["messages"][-1]["content"] = "half \ud83d", "\udfff"
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "traces.jsonl").write_text(json.dumps(row) + "\n")
    with served(tmp_path) as url:
        status, _, body = ask(url, "api/traces?run=half")
        assert (status, json.loads(body)["rows"][0]["task"]) == (200, row["task"])
        assert ask(url, "api/trace?run=half&n=0")[0] == 200


def test_a_run_that_cannot_be_read_keeps_no_other_out_of_an_exported_page(
    command: Callable, runs: Path, tmp_path: Path
) -> None:
    for name in ("a", "b", "broken"):
        (tmp_path / "some" / name).mkdir(parents=True)
        (tmp_path / "some" / name / "traces.jsonl").write_bytes((runs / "random" / "traces.jsonl").read_bytes())
    with (tmp_path / "some" / "broken" / "traces.jsonl").open("ab") as file:
        file.write(b"\xff\xfe no trace\n")
    code, out, err = command("view", str(tmp_path / "some"), "--export", "page.html")
    assert (code, "3 runs" in out) == (0, True), err


def test_what_does_not_fit_an_exported_page_is_said(command: Callable, runs: Path) -> None:
    code, out, err = command("view", str(runs / "random"), "--export", "page.html", "--max-traces", "2")
    assert code == 0
    assert "2 traces" in out
    assert "3 traces are in the lists only" in err


def test_the_bundle_has_every_module_once() -> None:
    script = bundle()
    names = [line.split('"')[1] for line in script.splitlines() if line.startswith('modules["')]
    static = Path(__file__).parents[2] / "clients/mcpgym_clients/viewer/static"
    assert sorted(names) == sorted(path.name for path in static.glob("*.js"))
    assert not any(line.startswith(("import ", "export ")) for line in script.splitlines())
