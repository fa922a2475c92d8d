"""Policies by name: ``random``, ``expert``, ``teacher:skill=S``, ``script:FILE``, ``local:PATH``, ``llama:MODEL``,
``vllm:DIR@URL``, and those that ask an endpoint: ``openai:MODEL@BASE_URL``, ``openai-responses:MODEL``,
``anthropic:MODEL``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mcpgym.environment import Environment
from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym_rl.policy import Policy

if TYPE_CHECKING:
    from mcpgym_rl.policies.chat_format import Mode
    from mcpgym_rl.policies.endpoint import EndpointPolicy

ENDPOINTS = ("openai:MODEL@BASE_URL", "openai-responses:MODEL", "anthropic:MODEL")
"""The policies that ask an endpoint, as they are written."""
_OTHERS = ("script:FILE", *ENDPOINTS, "local:PATH", "llama:MODEL", "vllm:DIR@URL")
_KINDS = ("script", "openai", "openai-responses", "anthropic", "random", "expert", "teacher", "local", "llama", "vllm")


def make_policy(spec: str, environment: Environment[Any, Any, Any] | None = None, **options: Any) -> Policy:
    """The policy that ``spec`` names.

    ``random`` is the environment's own, or else one that samples arguments its tools accept; ``expert`` and any other
    bare name are the environment's reference policies; ``teacher:skill=S`` is its teacher of the strength S, 0 to 1;
    ``script:FILE`` plays turns written down in a file; ``openai:MODEL@BASE_URL`` asks an OpenAI-compatible endpoint,
    ``openai-responses:MODEL`` the OpenAI Responses API and ``anthropic:MODEL`` the Anthropic Messages API, or with
    ``@BASE_URL`` an endpoint like them; ``local:PATH`` is a model directory on this machine, ``local:NAME`` a model
    that the environment ships; ``llama:smollm2`` and ``llama:PATH.gguf`` are models of llama.cpp's on this machine,
    and ``vllm:DIR@URL`` is the model of a directory, played token for token by the vLLM server at an address.

    Args:
        spec: the policy, as above.
        environment: the environment whose reference policies may be meant; None when it is not installed here.
        **options: for those that ask an endpoint, the fields of
            :class:`mcpgym_rl.policies.endpoint.EndpointOptions`, and for ``openai`` those of
            :class:`mcpgym_rl.policies.openai_chat.ChatOptions`; for ``local``, ``temperature`` (0 by default),
            ``min_p``, ``max_tokens`` of a turn, ``rows``, ``device``; for ``llama`` those of ``openai`` but
            ``rate_limit``; for ``vllm``, ``temperature`` (0 by default), ``max_tokens``, ``timeout`` and ``model``,
            its name there; others take none.

    Raises:
        ConfigurationError: there is no such policy, file or option; the message names what there is.
    """
    kind, colon, rest = spec.partition(":")
    if kind == "llama" and colon:
        from mcpgym_rl.llama_cpp.policy import make_llama_policy

        return make_llama_policy(rest, options)
    if colon and asks_endpoint(spec):
        return _endpoint(kind).make(rest, options)
    if kind == "local" and colon:
        from mcpgym_rl.local.policy import make_local_policy

        return make_local_policy(rest, environment, options)
    if kind == "vllm" and colon:
        from mcpgym_rl.vllm.policy import make_vllm_policy

        return make_vllm_policy(rest, options)
    if options:
        raise ConfigurationError(
            f"only {', '.join(ENDPOINTS)}, local:PATH, llama:MODEL and vllm:DIR@URL take "
            f"{', '.join(options)}; the policy {spec!r} does not"
        )
    if kind == "script" and colon:
        from mcpgym_rl.policies.script import read_script

        return read_script(rest)
    if kind == "teacher":
        from mcpgym_rl.policies.teacher import make_teacher

        return make_teacher(rest, environment)
    if colon:
        raise UnknownNameError("kind of policy", kind, _KINDS)
    return _reference(spec, environment)


def asks_endpoint(spec: str) -> bool:
    """Whether a policy asks an endpoint for its turns, be it one that it starts itself."""
    return spec.partition(":")[0] in [written.partition(":")[0] for written in (*ENDPOINTS, "llama:MODEL")]


def default_mode(spec: str) -> Mode | None:
    """The tool mode of a policy that asks an endpoint, where nothing is said; None where it depends on the model."""
    return None if spec.partition(":")[0] == "llama" else "native"


def _endpoint(kind: str) -> type[EndpointPolicy]:
    if kind == "openai":
        from mcpgym_rl.policies.openai_chat import ChatPolicy

        return ChatPolicy
    if kind == "openai-responses":
        from mcpgym_rl.policies.openai_responses import ResponsesPolicy

        return ResponsesPolicy
    from mcpgym_rl.policies.anthropic_messages import MessagesPolicy

    return MessagesPolicy


def _reference(name: str, environment: Environment[Any, Any, Any] | None) -> Policy:
    from mcpgym_rl.policies.random_calls import RandomCalls
    from mcpgym_rl.policies.reference import Reference

    offered: Mapping[str, Any] = {} if environment is None else environment.reference_policies()
    if name in offered:
        return Reference(name, offered[name])
    if name == "random":
        return RandomCalls()
    if environment is None:
        raise ConfigurationError(
            f"the policy {name!r} would come with its environment, which is not installed here; "
            f"there is: random, {', '.join(_OTHERS)}"
        )
    there = sorted({*offered, "random"})
    raise UnknownNameError(f"policy of {environment.name}", name, [*there, *_OTHERS])
