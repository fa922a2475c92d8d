"""Policies by name: ``random``, ``expert``, ``teacher:skill=S``, ``script:FILE``, ``openai:MODEL@BASE_URL``,
``local:PATH``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcpgym.environment import Environment
from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym_rl.policy import Policy

_KINDS = ("script", "openai", "random", "expert", "teacher", "local")


def make_policy(spec: str, environment: Environment[Any, Any, Any] | None = None, **options: Any) -> Policy:
    """The policy that ``spec`` names.

    ``random`` is the environment's own, or else one that samples arguments its tools accept; ``expert`` and any other
    bare name are the environment's reference policies; ``teacher:skill=S`` is its teacher of the strength S, 0 to 1;
    ``script:FILE`` plays turns written down in a file; ``openai:MODEL@BASE_URL`` asks an OpenAI-compatible endpoint;
    ``local:PATH`` is a model directory on this machine, ``local:NAME`` a model that the environment ships.

    Args:
        spec: the policy, as above.
        environment: the environment whose reference policies may be meant; None when it is not installed here.
        **options: for ``openai``, the fields of :class:`mcpgym_rl.policies.openai_chat.ChatOptions`; for ``local``,
            ``temperature`` (0 by default), ``min_p``, ``max_tokens`` of a turn, ``rows``, ``device``; others take none.

    Raises:
        ConfigurationError: there is no such policy, file or option; the message names what there is.
    """
    kind, colon, rest = spec.partition(":")
    if kind == "openai":
        from mcpgym_rl.policies.openai_chat import make_chat_policy

        return make_chat_policy(rest, options)
    if kind == "local" and colon:
        from mcpgym_rl.local.policy import make_local_policy

        return make_local_policy(rest, environment, options)
    if options:
        raise ConfigurationError(
            f"only openai:MODEL@BASE_URL and local:PATH take {', '.join(options)}; the policy {spec!r} does not"
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
            "there is: random, script:FILE, openai:MODEL@BASE_URL, local:PATH"
        )
    there = sorted({*offered, "random"})
    raise UnknownNameError(
        f"policy of {environment.name}", name, [*there, "script:FILE", "openai:MODEL@BASE_URL", "local:PATH"]
    )
