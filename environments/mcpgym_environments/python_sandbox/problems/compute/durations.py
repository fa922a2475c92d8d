"""The time that a log of jobs adds up to, where durations are written in many ways."""

from __future__ import annotations

from random import Random

from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.writing import ask_whole, listed, mistaken, pick, program, whole

_LINES = (6, 14, 26, 44, 70)
_JOBS = ("backup", "index", "report", "import", "mail", "sync", "archive", "render", "audit", "deploy")
_CODE = r"""
import re


def seconds(text):
    if text.startswith("PT"):
        parts = {unit: int(number) for number, unit in re.findall(r"(\d+)([HMS])", text)}
        return parts.get("H", 0) * 3600 + parts.get("M", 0) * 60 + parts.get("S", 0)
    if ":" in text:
        total = 0
        for part in text.split(":"):
            total = total * 60 + int(part)
        return total
    total = 0
    for whole, tenths, unit in re.findall(r"(\d+)(?:\.(\d))? ?(h|min|m|s)\b", text):
        size = {"h": 3600, "min": 60, "m": 60, "s": 1}[unit]
        total += int(whole) * size + int(tenths or 0) * size // 10
    return total


total = 0
for line in log.splitlines():
    if line.startswith("#") or not line.strip():
        continue
    name, state, duration = [part.strip() for part in line.split("|")]
    if name == job and state != "failed":
        total += seconds(duration)
print(total)
"""


def _written(random: Random, seconds: int, level: int) -> str:
    """``seconds`` in one of the forms that the text explains."""
    hours, rest = divmod(seconds, 3600)
    minutes, left = divmod(rest, 60)
    forms = [f"{seconds} s", f"{hours}:{minutes:02}:{left:02}"]
    if level >= 2:
        forms.append(f"{hours}h {minutes:02}m {left:02}s" if hours else f"{minutes}m {left:02}s")
    if level >= 3:
        forms.append("PT" + (f"{hours}H" if hours else "") + (f"{minutes}M" if minutes else "") + f"{left}S")
        if seconds % 6 == 0:
            forms += [f"{seconds // 60}.{seconds % 60 // 6} min"] * 2
    if level >= 4:
        forms.append(f"{seconds // 60}:{left:02}")
        if seconds % 360 == 0:
            forms += [f"{hours}.{rest // 360} h"] * 4
    return random.choice(forms)


def _make(random: Random, level: int) -> Problem:
    lines: list[str] = []
    total = failed = 0
    jobs = random.sample(_JOBS, 2 + level)
    job = jobs[0]
    states = ("ok", "ok", "ok", "failed") if level >= 2 else ("ok", "failed")
    while len(lines) < _LINES[level - 1] or not total or not failed:
        name, state = random.choice([*jobs, job, job]), random.choice(states)
        step = random.choice((1, 6, 360)) if level >= 4 else random.choice((1, 6)) if level == 3 else 1
        seconds = random.randint(40, 15_000) // step * step + step
        if level >= 3 and random.random() < 0.1:
            lines.append(f"# {name} | {state} | {seconds} s")
            continue
        lines.append(f"{name} | {state} | {_written(random, seconds, level)}")
        if name == job:
            total, failed = (total, failed + seconds) if state == "failed" else (total + seconds, failed)
    log = "\n".join(lines)
    forms = ["in seconds", "as h:mm:ss"]
    if level >= 2:
        forms.append("with units (h, m, s)")
    if level >= 3:
        forms += ["as ISO 8601 (PT1H2M3S)", "with decimals (2.5 min)"]
    if level >= 4:
        forms.append("as minutes:seconds where there is one colon only (75:30 is 75 minutes and 30 seconds)")
    comments = " Lines that begin with # are comments and do not count." if level >= 3 else ""
    text = pick(
        random,
        f"Each line below is: job | state | duration. Durations are written {listed(forms, 'or')}.{comments} How many "
        f"seconds did the runs of {job} take together, those that failed left out?",
        f"Here is a log with a job, its state and how long it ran on each line. A duration is written "
        f"{listed(forms, 'or')}.{comments} Add up the durations of the job {job}, without its failed runs; in seconds.",
    )
    return Problem(
        "log-durations",
        "compute",
        level,
        f"{text} {ask_whole(random)}\n\n{log}",
        whole(total),
        solution=program(_CODE, job=job, log=log),
        wrong=program(mistaken(_CODE, ' and state != "failed"', ""), job=job, log=log),
        key=repr((job, log)),
    )


DURATIONS = Made("log-durations", "compute", "what durations, written in many ways, add up to in a log", _make)
