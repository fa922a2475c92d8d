"""``mcpgym env push``: exactly these files, shown before and sent whole, to a hub on loopback."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from test_env_add import make_wheel

Command = Callable[..., tuple[int, str, str]]
README = "# my-env\n\nIt is a game.\n\n<!-- card -->\nSchema hash `ab`.\n<!-- /card -->\n"


class Hub(BaseHTTPRequestHandler):
    """As much of the hub's interface as one commit of small files takes."""

    seen: list[tuple[str, Any]]
    refuses = False

    def do_GET(self) -> None:
        self._answer({"siblings": [], "sha": "0" * 40, "id": "me/my-env"})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        token = self.headers.get("authorization", "")
        self.seen.append((self.path, token))
        if self.refuses:
            self._answer({"error": f"no rights with {token}"}, 403)
        elif self.path == "/api/repos/create":
            self.seen.append(("create", json.loads(body)))
            self._answer({"url": f"{self.server.url}/datasets/me/my-env", "id": "me/my-env"})  # type: ignore[attr-defined]
        elif self.path == "/api/validate-yaml":
            self._answer({"errors": [], "warnings": []})
        elif "/preupload/" in self.path:
            names = [item["path"] for item in json.loads(body)["files"]]
            self._answer({"files": [{"path": name, "uploadMode": "regular", "shouldIgnore": False} for name in names]})
        else:
            self.seen.append(("commit", [json.loads(line) for line in body.splitlines()]))
            url = f"{self.server.url}/datasets/me/my-env/commit/{'1' * 40}"  # type: ignore[attr-defined]
            self._answer({"success": True, "commitOid": "1" * 40, "commitUrl": url, "hookOutput": ""})

    def _answer(self, value: Any, status: int = 200) -> None:
        text = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Hub]]:
    made = type("Hub", (Hub,), {"seen": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), made)
    server.url = f"http://127.0.0.1:{server.server_address[1]}"  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", server.url)  # type: ignore[attr-defined]
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield made
    server.shutdown()
    server.server_close()


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package's folder, with what was built of it, and with what nobody should see."""
    folder = tmp_path / "my-env"
    (folder / "dist").mkdir(parents=True)
    (folder / "my_env.py").write_text("x = 1\n")
    (folder / ".env").write_text("TOKEN=secret")
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "my-env"\nversion = "1.0"\nlicense = "Apache-2.0"\n'
        '[project.entry-points."mcpgym.environments"]\nmy-env = "my_env:MyEnv"\n'
    )
    (folder / "README.md").write_text(README)
    make_wheel(folder / "dist", "my-env", "1.0", {"my_env.py": "x = 1\n"}, entries="my-env = my_env:MyEnv")
    make_wheel(folder / "dist", "my-env", "0.9", {"my_env.py": "x = 0\n"}, entries="my-env = my_env:MyEnv")
    (folder / "dist" / "my_env-1.0.tar.gz").write_bytes(b"source")
    return folder


PLACES = ["README.md", "dist/my_env-1.0-py3-none-any.whl", "dist/my_env-1.0.tar.gz"]


def test_a_dry_run_says_what_is_then_sent_and_sends_nothing(package: Path, hub: type[Hub], command: Command) -> None:
    code, printed, _ = command("env", "push", str(package), "--to", "hf:me/my-env", "--dry-run")
    assert code == 0
    assert "would push my-env 1.0 to me/my-env" in printed
    assert 'license: "apache-2.0"' in printed
    assert hub.seen == []
    planned = json.loads(command("env", "push", str(package), "--to", "hf:me/my-env", "--dry-run", "--json")[1])
    assert [row["path"] for row in planned["files"]] == PLACES


def test_the_files_go_in_one_commit_with_the_token_of_the_environment(
    package: Path, hub: type[Hub], command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_from_the_environment")
    code, printed, said = command("env", "push", str(package), "--to", "hf:me/my-env", "--private")
    assert code == 0, said
    assert "/datasets/me/my-env/commit/" in printed
    created = next(value for name, value in hub.seen if name == "create")
    assert (created["name"], created["organization"], created["type"]) == ("my-env", "me", "dataset")
    lines = next(value for name, value in hub.seen if name == "commit")
    files = {row["value"]["path"]: base64.b64decode(row["value"]["content"]) for row in lines if row["key"] == "file"}
    assert sorted(files) == sorted(PLACES)
    assert lines[0]["value"]["summary"] == "my-env 1.0"
    assert files[PLACES[1]] == (package / PLACES[1]).read_bytes()
    head, _, rest = files["README.md"].decode().removeprefix("---\n").partition("\n---\n\n")
    assert rest == README
    assert head.splitlines()[0] == 'pretty_name: "my-env"'
    assert '"mcpgym"' in head
    assert {token for name, token in hub.seen if name.startswith("/")} == {"Bearer hf_from_the_environment"}


def test_a_hub_that_refuses_and_no_token(
    package: Path, hub: type[Hub], command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    code, _, said = command("env", "push", str(package), "--to", "hf:me/my-env")
    assert code == 2
    assert "set HF_TOKEN to a token that may write to me/my-env" in said
    assert hub.seen == []
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    hub.refuses = True
    code, _, said = command("env", "push", str(package), "--to", "hf:me/my-env")
    assert code == 1
    assert "the hub did not take it" in said
    assert "hf_wrong" not in said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda folder: (folder / "pyproject.toml").unlink(), "has no pyproject.toml"),
        (lambda folder: (folder / "README.md").write_text("# my-env\n"), "has no card"),
        (
            lambda folder: (folder / "README.md").write_text("<!-- card -->\n<!-- /card -->\n"),
            "is empty: mcpgym env card",
        ),
        (lambda folder: (folder / "README.md").unlink(), "which is the page that a hub shows"),
        (lambda folder: (folder / "dist" / "my_env-1.0.tar.gz").unlink(), "has no source archive of my-env 1.0"),
        (lambda folder: (folder / PLACES[1]).unlink(), "has no wheel of my-env 1.0: python -m build"),
        (lambda folder: (folder / PLACES[1]).write_bytes(b"PK"), "is no wheel"),
        (lambda folder: (folder / "my_env.py").write_text("x = 2\n"), "was built before my_env.py was changed"),
        (lambda folder: make_wheel(folder / "dist", "my-env", "1.0", {"my_env.py": ""}), "registers no environment"),
    ],
    ids=["project", "card", "empty", "page", "source", "wheel", "broken", "old", "entry"],
)
def test_what_is_missing_is_said_with_how_it_is_made(
    change: Callable[[Path], Any], said: str, package: Path, command: Command
) -> None:
    change(package)
    code, _, error = command("env", "push", str(package), "--to", "hf:me/my-env", "--dry-run")
    assert code == 2
    assert said in error


@pytest.mark.parametrize("to", ["me/my-env", "hf:me", "hf:me/../x", "pypi:me/x", "prime:", "hf:me/a--b"])
def test_a_place_that_is_none(to: str, package: Path, command: Command) -> None:
    code, _, said = command("env", "push", str(package), "--to", to, "--dry-run")
    assert code == 2
    assert "write hf:OWNER/NAME" in said or "write prime:OWNER" in said


def test_prime_gets_what_its_program_asks_for(package: Path, command: Command) -> None:
    code, _, said = command("env", "push", str(package), "--to", "prime:my-team", "--dry-run")
    assert code == 2
    assert "does not depend on verifiers" in said
    project = package / "pyproject.toml"
    project.write_text(project.read_text().replace("license", 'dependencies = ["verifiers>=0.4,<0.5"]\nlicense'))
    code, printed, _ = command("env", "push", str(package), "--to", "prime:my-team/my-env", "--dry-run")
    assert code == 0
    assert f"prime env push --path {package} --owner my-team --name my-env" in printed
    code, _, said = command("env", "push", str(package), "--to", "prime:my-team")
    assert code == 2
    assert "pip install prime" in said
