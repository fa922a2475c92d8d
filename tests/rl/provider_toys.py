"""What the tests of policies that ask a provider share: one rollout against a fake of its API."""

from __future__ import annotations

import asyncio
from typing import Any

import rl_toys
from tests.fake_apis.messages import MessagesAPI, reply, text, use
from tests.fake_apis.responses import ResponsesAPI, function_call, response, words
from tests.fake_apis.serving import FakeAPI, Json, serving

from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.policies import make_policy
from mcpgym_rl.rollout import rollout
from mcpgym_rl.traces import Trace

KINDS = ["anthropic", "openai-responses"]
VARIABLES = {"anthropic": "ANTHROPIC_API_KEY", "openai-responses": "OPENAI_API_KEY"}


def api(kind: str, **options: Any) -> Any:
    """The fake of a provider's API."""
    return MessagesAPI() if kind == "anthropic" else ResponsesAPI(**options)


def says(kind: str, what: str) -> Json:
    """An answer in words."""
    return reply(text(what)) if kind == "anthropic" else response(words(what))


def calls(kind: str, name: Any, arguments: Any, call_id: Any = "c1") -> Json:
    """An answer that is one call."""
    import json

    if kind == "anthropic":
        return reply(use(name, arguments, call_id))
    return response(function_call(name, arguments if isinstance(arguments, str) else json.dumps(arguments), call_id))


def play(
    kind: str, *answers: Any, environment: str = "counter", fake_options: dict[str, Any] | None = None, **options: Any
) -> tuple[Trace, FakeAPI]:
    """One rollout with a policy of this kind; the trace, and what the API saw."""
    with serving(api(kind, **(fake_options or {})), *answers) as fake:

        async def main() -> Trace:
            policy = make_policy(f"{kind}:m@{fake.url}", **options)
            try:
                lane = ControlLane(rl_toys.control())
                return await rollout(policy, lane, environment=environment, split="train", seed=5)
            finally:
                await policy.aclose()

        return asyncio.run(main()), fake
