"""A model as a judge: asked only where the typed match says no, each answer once, and trusted only where configured."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from episode_driver import open_episode
from wiki_files import write_files

from mcpgym import ConfigurationError
from mcpgym.errors import RewardError
from mcpgym.registry import configure
from mcpgym_environments.wiki_search.environment import WikiSearch


class Endpoint(ThreadingHTTPServer):
    """Answers chat completions with ``says``; keeps what it was asked."""

    says = "yes"

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []

    @property
    def spec(self) -> str:
        return f"openai:judge@http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        endpoint: Any = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        endpoint.asked.append(body["messages"][0]["content"])
        message = {"role": "assistant", "content": endpoint.says}
        answer = {"id": "1", "object": "chat.completion", "created": 1, "model": "judge"}
        answer["choices"] = [{"index": 0, "message": message, "finish_reason": "stop"}]
        data = json.dumps(answer).encode() if endpoint.says else b"no"
        self.send_response(200 if endpoint.says else 400)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def toy(tmp_path: Path) -> dict[str, Any]:
    corpus, questions = write_files(tmp_path)
    return {"corpus": corpus, "questions": questions}


def scores(config: dict[str, Any], *answers: str) -> list[dict[str, float | None]]:
    """The components for each answer to the first question, each scored twice."""
    environment = configure(WikiSearch, config)

    async def main() -> list[dict[str, float | None]]:
        found = []
        for answer in answers:
            episode = await open_episode(environment, "test", 0)
            await episode.call("submit_answer", {"answer": answer})
            score = await episode.score([])
            assert await episode.score([]) == score
            found.append(dict(score.components))
        return found

    return asyncio.run(main())


def test_it_is_asked_once_where_the_typed_match_says_no_and_only_reported(
    toy: dict[str, Any], endpoint: Endpoint
) -> None:
    right, wrong = scores(toy | {"judge": endpoint.spec}, "840 km", "about as long as Great Britain")
    assert (right["correct"], right["judged"]) == (1.0, 1.0)
    assert (wrong["correct"], wrong["judged"]) == (0.0, 1.0)
    (prompt,) = endpoint.asked
    assert "How long is the Oder?" in prompt
    assert "840 km" in prompt
    assert "<<<about as long as Great Britain>>>" in prompt


def test_it_decides_where_configured(toy: dict[str, Any], endpoint: Endpoint) -> None:
    config = toy | {"judge": endpoint.spec, "judge_decides": True}
    endpoint.says = "<think>yes or no?</think>\nYes."
    assert scores(config, "eight hundred and forty thousand metres, more or less")[0]["correct"] == 1.0
    endpoint.says = "No"
    assert scores(config, "yes or no")[0]["correct"] == 0.0


@pytest.mark.parametrize("says", ["", "maybe"])
def test_one_that_fails_is_null_or_where_it_decides_leaves_the_episode_unscored(
    toy: dict[str, Any], endpoint: Endpoint, says: str
) -> None:
    endpoint.says = says
    config = toy | {"judge": endpoint.spec}
    assert scores(config, "long")[0]["judged"] is None
    with pytest.raises(RewardError, match="the judge"):
        scores(config | {"judge_decides": True}, "long")


def test_nobody_is_asked_by_default(toy: dict[str, Any], endpoint: Endpoint) -> None:
    assert scores(toy, "long")[0]["judged"] is None
    assert not endpoint.asked


def test_one_elsewhere_needs_a_key(toy: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        configure(WikiSearch, toy | {"judge": "openai:m@https://example.com/v1"})
