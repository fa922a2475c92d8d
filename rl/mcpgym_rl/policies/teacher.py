"""``teacher:skill=0.95``: the policy that an environment offers to be imitated, at a chosen strength."""

from __future__ import annotations

import re
from typing import Any

from mcpgym.environment import Environment
from mcpgym.errors import ConfigurationError
from mcpgym_rl.policies.reference import Reference

DEFAULT_SKILL = 0.95

_SKILL = re.compile(r"skill=([0-9]{0,20}\.?[0-9]{0,20})")


def make_teacher(settings: str, environment: Environment[Any, Any, Any] | None) -> Reference:
    """The teacher of ``environment``; ``settings`` is what follows ``teacher:``, empty for the default strength.

    Raises:
        ConfigurationError: the settings are no ``skill=`` with a number from 0 to 1, or there is no teacher.
    """
    skill = _read_skill(settings)
    if environment is None:
        raise ConfigurationError(
            f"the policy 'teacher:{settings}' would come with its environment, which is not installed here; "
            "there is: random, script:FILE, openai:MODEL@BASE_URL, openai-responses:MODEL, anthropic:MODEL"
        )
    function = environment.teacher(skill)
    if function is None:
        others = ", ".join(sorted({*environment.reference_policies(), "random"}))
        raise ConfigurationError(f"{environment.name} has no teacher; its policies are: {others}")
    return Reference(f"teacher:skill={skill:g}", function)


def _read_skill(settings: str) -> float:
    if not settings:
        return DEFAULT_SKILL
    found = _SKILL.fullmatch(settings)
    if found is not None and found[1].strip(".") and 0 <= (skill := float(found[1])) <= 1:
        return skill
    raise ConfigurationError(f"teacher:{settings[:80]}: write teacher:skill=S with S from 0 to 1, as in {_EXAMPLE}")


_EXAMPLE = f"teacher:skill={DEFAULT_SKILL:g}"
