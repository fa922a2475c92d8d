"""One vLLM server, asked over HTTP: which models it has, what a prompt goes on with, which adapters it takes in."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcpgym_rl.failures import explain
from mcpgym_rl.policies.endpoint import said, without_password
from mcpgym_rl.policy import PolicyError, PolicyUnavailable

if TYPE_CHECKING:
    import aiohttp

GENERATE = "/inference/v1/generate"
"""The token-level endpoint."""
SHUT = "start it with --enable-scale-out"
"""What opens it."""
AGAIN_SECONDS = (0.2, 1.0, 3.0)
"""The pauses after which a request is repeated that met a broken connection or a busy server."""
_BUSY = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Served:
    """A model that the server has: its name there, and how many tokens a conversation may have."""

    name: str
    positions: int


@dataclass(frozen=True, slots=True)
class Generated:
    """What followed a prompt: ids, their log-probabilities, and why vLLM stopped (``stop`` or ``length``)."""

    ids: list[int]
    logprobs: list[float]
    finish: str


class VllmServer:
    """A server at ``url``; one pool of connections.

    Args:
        url: where it is, without ``/v1``.
        key: its API key; empty for none.
        timeout: seconds for one request.
    """

    def __init__(self, url: str, key: str = "", timeout: float = 600.0) -> None:
        self.url, self.shown = url, without_password(url)
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._timeout = timeout
        self._session: aiohttp.ClientSession | None = None

    async def models(self) -> list[Served]:
        """Its models, adapters included.

        Raises:
            PolicyUnavailable: it is not there, or is no vLLM.
        """
        answer = await self.ask("GET", "/v1/models")
        found = answer.get("data") if isinstance(answer, Mapping) else None
        try:
            return [Served(str(item["id"]), int(item.get("max_model_len") or 1 << 20)) for item in found or ()]
        except (TypeError, KeyError, ValueError, AttributeError):
            raise PolicyUnavailable(f"{self.shown} is no vLLM server: /v1/models says {said(answer)}") from None

    async def generate(self, model: str, ids: Sequence[int], sampling: Mapping[str, Any]) -> Generated:
        """What follows ``ids``.

        Args:
            model: one of its models.
            ids: the prompt.
            sampling: vLLM's own sampling parameters; without ``logprobs``, those of sampled tokens come back.

        Raises:
            PolicyUnavailable: it is not there, or has no such endpoint.
            PolicyError: the answer is none, or was made from other ids than were sent.
        """
        body = {"model": model, "token_ids": list(ids), "return_token_ids": True}
        answer = await self.ask("POST", GENERATE, {**body, "sampling_params": {"logprobs": 0, **sampling}})
        try:
            (choice,) = answer["choices"]
            used, made = answer["prompt_token_ids"], [int(item) for item in choice["token_ids"]]
            content = choice["logprobs"]["content"]
            logprobs = [float(item["logprob"]) for item in content]
            same = made == [item["token_id"] for item in content]
        except (TypeError, KeyError, ValueError, AttributeError):
            raise PolicyError(f"{self.shown} answered what is no turn: {said(answer)}") from None
        if used != list(ids):
            raise PolicyError(f"{self.shown} went on from other ids than it was sent: what it says cannot be used")
        if not made or not same or not all(map(math.isfinite, logprobs)):
            raise PolicyError(f"{self.shown} gave no token, or one without its log-probability: {said(answer)}")
        return Generated(made, logprobs, str(choice.get("finish_reason")))

    async def likeliest(self, model: str, ids: Sequence[int], temperature: float) -> float:
        """The log-probability that it states of the likeliest next token at a temperature.

        Raises:
            PolicyUnavailable, PolicyError: as for :meth:`generate`.
        """
        sampling = {"temperature": temperature, "max_tokens": 1, "logprobs": 1, "top_p": 1.0, "top_k": 0, "min_p": 0.0}
        body = {"model": model, "token_ids": list(ids), "sampling_params": sampling}
        answer = await self.ask("POST", GENERATE, body)
        try:
            return max(
                float(item["logprob"]) for item in answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
            )
        except (TypeError, KeyError, ValueError, IndexError):
            raise PolicyError(f"{self.shown} states no log-probabilities: {said(answer)}") from None

    async def text(self, model: str, ids: Sequence[int]) -> str | None:
        """What ``ids`` mean to a model's tokenizer there; None where it does not say."""
        try:
            answer = await self.ask("POST", "/detokenize", {"model": model, "tokens": list(ids)})
        except (PolicyUnavailable, PolicyError):
            return None
        made = answer.get("prompt") if isinstance(answer, Mapping) else None
        return made if isinstance(made, str) else None

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON that it answers, None for nothing; broken connections and busy servers are asked again.

        Raises:
            PolicyUnavailable: it is not there, or refuses what any other conversation would be refused too.
            PolicyError: it refuses this request.
        """
        for pause in (*AGAIN_SECONDS, None):
            try:
                status, text = await self._once(method, path, body)
            except (OSError, TimeoutError, ValueError, self._client_error) as error:
                problem = f"vLLM at {self.shown} cannot be reached: {explain(error)}"
                status, text = 0, ""
            else:
                if status == 200:
                    return json.loads(text) if text.strip()[:1] in ("{", "[") else text or None
                problem = self._refusal(path, status, text)
            if pause is None or status not in (0, *_BUSY):
                break
            await asyncio.sleep(pause)
        everybody = status in (0, 401, 403, 404, *_BUSY) or status >= 500
        raise (PolicyUnavailable if everybody else PolicyError)(problem)

    @property
    def _client_error(self) -> type[Exception]:
        import aiohttp

        return aiohttp.ClientError

    async def _once(self, method: str, path: str, body: Any) -> tuple[int, str]:
        import aiohttp

        if self._session is None:
            limit = aiohttp.ClientTimeout(self._timeout)
            connector = aiohttp.TCPConnector(limit=0)
            self._session = aiohttp.ClientSession(headers=self._headers, timeout=limit, connector=connector)
        async with self._session.request(method, self.url + path, json=body) as answer:
            return answer.status, await answer.text()

    def _refusal(self, path: str, status: int, text: str) -> str:
        try:
            words = said(json.loads(text))
        except (ValueError, RecursionError):
            words = said(text)
        hint = f"; {SHUT}" if status == 404 and path == GENERATE else ""
        hint = hint or ("; is VLLM_API_KEY right?" if status in (401, 403) else "")
        return f"vLLM at {self.shown} answered {status} to {path}: {words}{hint}"

    async def aclose(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()
