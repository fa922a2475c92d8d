"""What is in deploy/ is what it says: manifests that a cluster takes, options that exist, and an nginx that routes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from mcpgym.control_client import HttpControl
from mcpgym.episodes import Episodes
from mcpgym.names import name_in
from mcpgym.registry import load_environment
from mcpgym.serving import serving

DEPLOY = Path(__file__).parents[1] / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
NGINX = shutil.which("nginx", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")
SECRET = "a-secret-of-the-tests-0123456789"
needs_nginx = pytest.mark.skipif(NGINX is None, reason="nginx is not installed here (tests/install_nginx.sh)")


def manifests() -> Iterator[dict[str, Any]]:
    kustomization = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())
    there = {path.name for path in KUBERNETES.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(kustomization["resources"]) == there, "each file is applied"
    for name in kustomization["resources"]:
        yield from yaml.safe_load_all((KUBERNETES / name).read_text())


def test_a_cluster_takes_every_manifest() -> None:
    import kubernetes_validate

    kinds = []
    for manifest in manifests():
        kubernetes_validate.validate(manifest, "1.33", strict=True)
        kinds.append(manifest["kind"])
    assert {"StatefulSet", "Service", "NetworkPolicy", "PodDisruptionBudget", "Deployment"} <= set(kinds)
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**manifest, "spec": {"podSelektor": {}}}, "1.33", strict=True)


def test_an_image_is_made_of_what_is_there_and_of_no_more() -> None:
    """Without the list beside it, a build would be sent the repository's history and every virtual environment."""
    copied = re.findall(r"^COPY (.+) \S+$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    names = {name for line in copied for name in line.split()}
    assert names >= {"pyproject.toml", "server", "environments", "rl", "clients"}
    assert all((DEPLOY.parent / name).exists() for name in names)
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    assert {line[1:] for line in ignored if line.startswith("!")} == names
    assert "*" in ignored


def test_the_pods_are_started_with_options_that_exist_and_found_where_others_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from mcpgym_clients import serve
    from mcpgym_clients.cli import main

    read: list[serve.ServeOptions] = []
    monkeypatch.setattr(serve, "run", lambda options: read.append(options) or 0)
    found = {(m["kind"], m["metadata"]["name"]): m for m in manifests()}
    stateful = found["StatefulSet", "mcpgym"]["spec"]
    pod = stateful["template"]["spec"]
    (container,) = pod["containers"]
    assert main([text.replace("$(POD_NAME)", "mcpgym-0") for text in container["args"]]) == 0
    (made,) = read
    assert (made.name, made.port, made.control_port) == ("mcpgym-0", 8000, 8001)
    assert pod["terminationGracePeriodSeconds"] > (made.drain_seconds or 0) + 20
    assert {port["name"]: port["containerPort"] for port in container["ports"]} == {"players": 8000, "control": 8001}
    service = found["Service", stateful["serviceName"]]["spec"]
    assert service["clusterIP"] == "None"
    assert service["selector"] == stateful["template"]["metadata"]["labels"] == stateful["selector"]["matchLabels"]
    nginx = (KUBERNETES / "nginx.conf").read_text()
    assert len(re.findall(r"^\s+(?:\d+%|\*)\s+mcpgym-\d+;", nginx, re.MULTILINE)) == stateful["replicas"]
    assert "8001" not in nginx, "the control plane is not behind it"


def adapted(source: Path, folder: Path, **changes: str) -> list[str]:
    """The command that runs nginx with ``source``, its addresses changed and its files in ``folder``."""
    text = source.read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    text = re.sub(r"resolver \S+", "resolver 127.0.0.1", text)
    if "temp_path" not in text:
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        text = text.replace("http {", "http {" + "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds))
    text = text.replace("pid /tmp/nginx.pid;", "")
    (folder / "nginx.conf").write_text(text)
    single = f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;"
    return [str(NGINX), "-p", str(folder), "-e", f"{folder}/error.log", "-c", str(folder / "nginx.conf"), "-g", single]


@needs_nginx
@pytest.mark.parametrize("name", ["nginx", "kubernetes"])
def test_nginx_takes_its_configuration(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [*adapted(DEPLOY / name / "nginx.conf", tmp_path), "-t"], capture_output=True, text=True, timeout=20
    )
    assert done.returncode == 0, done.stderr


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.asynccontextmanager
async def nginx_before(folder: Path, port: int, ports: dict[str, int]) -> AsyncIterator[None]:
    changes = {"127.0.0.1:8080": f"127.0.0.1:{port}", "127.0.0.1:8001": f"127.0.0.1:{ports['a']}"}
    changes["127.0.0.1:8002"] = f"127.0.0.1:{ports['b']}"
    process = subprocess.Popen(adapted(DEPLOY / "nginx" / "nginx.conf", folder, **changes))
    try:
        async with asyncio.timeout(20):
            while True:
                with contextlib.suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    break
                assert process.poll() is None, (folder / "error.log").read_text()
                await asyncio.sleep(0.05)
        yield
    finally:
        process.kill()
        process.wait(10)


async def call(session: aiohttp.ClientSession, url: str, name: str, arguments: dict[str, Any]) -> tuple[int, Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": name, "arguments": arguments, "_meta": meta}
    headers = {
        "content-type": "application/json", "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": name,
    }  # fmt: skip
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    async with session.post(url, json=body, headers=headers) as answer:
        text = await answer.text()
        return answer.status, json.loads(text) if answer.content_type == "application/json" else text


@needs_nginx
def test_nginx_brings_each_episode_to_its_server(tmp_path: Path) -> None:
    def games(name: str) -> Episodes:
        return Episodes({"tic-tac-toe": load_environment("tic-tac-toe")}, name=name)

    async def run() -> None:
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        async with contextlib.AsyncExitStack() as stack:
            here = await stack.enter_async_context(serving(games("a"), secret=SECRET, public_url=url))
            dying = contextlib.AsyncExitStack()
            there = await dying.enter_async_context(serving(games("b"), secret=SECRET, public_url=url))
            ports = {"a": _port(here), "b": _port(there)}
            await stack.enter_async_context(nginx_before(tmp_path, port, ports))
            session = await stack.enter_async_context(aiohttp.ClientSession())
            opened = []
            for server in (here, there):
                control = await stack.enter_async_context(HttpControl(server.control_url, SECRET))
                opened.append(await control.open("tic-tac-toe", split="test", index=0))
            assert [name_in(episode.token) for episode in opened] == ["a", "b"]
            for episode in opened:  # on one connection to nginx
                assert (episode.url or "").startswith(url)
                status, answer = await call(session, episode.url or "", "play", {"position": 4})
                assert (status, "You played 4" in answer["result"]["content"][0]["text"]) == (200, True)
            _, started = await call(session, f"{url}/mcp", "start_episode", {})
            handle = started["result"]["content"][0]["text"].split()[1]
            _, answer = await call(session, f"{url}/tic-tac-toe/mcp", "play", {"episode": handle, "position": 4})
            assert "4" in answer["result"]["content"][0]["text"]
            for path in ("/control/v1/health", f"/e/c-{'0' * 32}/mcp", f"/e/{'0' * 32}/mcp", "/"):
                assert (await call(session, url + path, "play", {}))[0] == 404
            assert (await call(session, f"{url}/e/a-{'0' * 32}/mcp", "play", {}))[0] == 404, "which the server says"
            await dying.aclose()
            status, answer = await call(session, opened[1].url or "", "play", {"position": 0})
            assert (status, "does not answer" in answer["error"]["message"]) == (503, True)
            status, answer = await call(session, opened[0].url or "", "play", {"position": 0})
            assert status == 200, "the other one lives"

    asyncio.run(run())


def _port(server: Any) -> int:
    """The port a server's players' listener has, whatever its public address."""
    return int(re.findall(r"control-(\d+)\.sock", server.control_url)[0])
