"""The rule of environments that cannot give the same bytes twice: they say so, and what counts as the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcpgym.check.plays import Play, show
from mcpgym.check.report import Report
from mcpgym.environment import Environment

RULE = "reproducible"
UNLIKE = ("", "\N{REPLACEMENT CHARACTER} a text that no environment writes \N{REPLACEMENT CHARACTER}")
"""What no observation is the same as."""


def check_reproducible(environment: Environment[Any, Any, Any], plays: Sequence[Play], report: Report) -> bool:
    """Whether plays can be compared: the contract says how, and its rule works on all that was seen in ``plays``."""
    own = getattr(environment.same_observation, "__func__", None) is not Environment.same_observation
    if not isinstance(environment.reproducible, bool):
        problem = f"is {environment.reproducible!r}, neither True nor False"
        report.add(RULE, problem, "reproducible", "leave it out, or write reproducible = False")
        return False
    if environment.reproducible:
        if own:
            fix = "write reproducible = False, or leave same_observation out"
            report.add(RULE, "nobody asks it: the environment is reproducible", "same_observation", fix)
        return True
    if not own:
        problem = "the environment says that it cannot give the same bytes twice, and not what counts as the same"
        report.add(RULE, problem, "same_observation", "define same_observation(self, recorded, replayed)")
        return True
    return _check_rule(environment, sorted({text for play in plays for text in _texts(play)}), report)


def _check_rule(environment: Environment[Any, Any, Any], texts: Sequence[str], report: Report) -> bool:
    told_apart = False
    for text in texts:
        for other in (text, *UNLIKE):
            try:
                answer = environment.same_observation(text, other)
            except Exception as error:
                problem = f"raised {type(error).__name__}: {error}"
                report.add(RULE, problem, f"same_observation of {show(text, 60)!r}", "it must cope with every text")
                return False
            if not isinstance(answer, bool):
                problem = f"gave {answer!r}, neither True nor False"
                report.add(RULE, problem, f"same_observation of {show(text, 60)!r}", "return a bool")
                return False
            if other == text and not answer:
                fix = "every text must count as the same as itself"
                report.add(RULE, "says that a text is not the same as itself", f"{show(text, 60)!r}", fix)
                return False
            told_apart |= other != text and not answer
    if texts and not told_apart:
        problem = "takes every text for every other: a replay could find nothing"
        report.add(RULE, problem, "same_observation", "let it tell apart what a policy would tell apart")
    return True


def _texts(play: Play) -> list[str]:
    """What the environment said in a play."""
    texts: list[str] = []
    for line in play.lines:
        if line.said:
            texts += [message["content"] for message in line.said]
        elif line.act is not None and line.act.name is not None:
            texts.append(line.seen)
    return texts
