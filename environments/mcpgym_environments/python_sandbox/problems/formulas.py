"""The second chance of a formula: LaTeX, or one with brackets, is read by math-verify and compared exactly.

What is submitted is hostile. It is looked at first (a few characters, a few macros, no power, no long numbers), then
read by a process of its own with hard limits of time and memory, and never by anything that evaluates text as Python.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import re
import sys

from mcpgym.errors import InfrastructureError
from mcpgym_environments.python_sandbox.problems.answers import (
    RIGHT,
    Answer,
    ListAnswer,
    SurdAnswer,
    Verdict,
    judge,
    unwrapped,
)
from mcpgym_environments.python_sandbox.problems.surds import canonical

LONGEST_FORMULA = 300
"""How many characters a formula may have for a second chance."""

CPU_SECONDS = 5
"""CPU time the reading of one formula may take."""

WALL_SECONDS = 30.0
"""How long it may take in all, on a machine that is busy."""

_MACRO = re.compile(r"\\(?:[dt]?frac|sqrt|cdot|times|left|right|[,;! ])")
_PLAIN_ROOT = re.compile(r"(?<![\\a-zA-Z])sqrt ?\(([^()]*)\)|√ ?(?:\(([^()]*)\)|([0-9]+))")
_ALLOWED = re.compile(r"[0-9{}()+\-*/ .]*")
_LONG_NUMBER = re.compile(r"[0-9]{13}")

_CHILD = """\
import json, resource, sys
for name, most in (("RLIMIT_AS", 2**30), ("RLIMIT_FSIZE", 0), ("RLIMIT_CORE", 0)):
    resource.setrlimit(getattr(resource, name), (most, most))
asked = json.loads(sys.stdin.read())
resource.setrlimit(resource.RLIMIT_CPU, (asked["seconds"], asked["seconds"]))
import logging
logging.disable(logging.CRITICAL)
import sympy
from math_verify import LatexExtractionConfig, parse
read = parse("$" + asked["formula"] + "$", [LatexExtractionConfig()], "no_fallback", parsing_timeout=None)
found = [item for item in read if isinstance(item, sympy.Expr)]
if len(found) != 1 or found[0].free_symbols or found[0].has(sympy.Float):
    print("unread")
else:
    gold = sum((sympy.Rational(above, below) * sympy.sqrt(root) for above, below, root in asked["terms"]), sympy.S(0))
    print("same" if sympy.radsimp(sympy.expand(sympy.nsimplify(found[0].doit()) - gold)) == 0 else "other")
"""


def has_second_chance(answer: Answer, submitted: str) -> str | None:
    """The formula to be read by :func:`second_chance`, in LaTeX; None where the strict match has the last word."""
    if not isinstance(answer, SurdAnswer):
        return None
    text = _PLAIN_ROOT.sub(lambda found: f"\\sqrt{{{found[1] or found[2] or found[3]}}}", unwrapped(submitted[:3_000]))
    text = text.replace("−", "-").replace("·", "*").replace("×", "*")
    if not text or len(text) > LONGEST_FORMULA or not _ALLOWED.fullmatch(_MACRO.sub(" ", text)):
        return None
    return None if _LONG_NUMBER.search(text) or "**" in text else text.replace("*", "\\cdot ")


async def judge_formula(answer: Answer, submitted: str) -> Verdict:
    """:func:`~.answers.judge`, and where it says no to a formula, what math-verify (extra ``sandbox``) makes of it.

    A formula that takes too much work or memory is not right. Without the extra the strict match decides.

    Raises:
        InfrastructureError: the machine is so busy that there is no answer; that is no act of the policy's.
    """
    verdict = judge(answer, submitted)
    formula = None if verdict.correct else has_second_chance(answer, submitted)
    if formula is None or isinstance(answer, ListAnswer) or importlib.util.find_spec("math_verify") is None:
        return verdict
    assert isinstance(answer, SurdAnswer)
    terms = [(value.numerator, value.denominator, root) for root, value in canonical(answer.terms).items()]
    said = await _read(json.dumps({"formula": formula, "terms": terms, "seconds": CPU_SECONDS}))
    return RIGHT if said == "same" else Verdict(False, "another number") if said == "other" else verdict


async def _read(asked: str) -> str:
    """What the process that reads formulas says; nothing where its own limits stopped it."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-c", _CHILD,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        env={"OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    try:
        async with asyncio.timeout(WALL_SECONDS):
            out, _ = await child.communicate(asked.encode())
    except TimeoutError:
        allowed = f"{CPU_SECONDS} CPU seconds within {WALL_SECONDS:g} s"
        raise InfrastructureError(f"a formula was not read: the machine had no {allowed} for it") from None
    finally:
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()
    return out.decode("ascii", "replace").strip()
