"""The rule about the app that people see: without a sound one they are shown text, and nobody says why."""

from __future__ import annotations

from mcpgym.apps import made_by
from mcpgym.check.report import Report
from mcpgym.check.rules_tasks import Make
from mcpgym.registry import configure

START = "start_episode"
"""The tool that is there besides an environment's own where one address serves many episodes."""


def check_app(make: Make, report: Report) -> None:
    """It can be made, shows tools that exist, and its levels are configurations."""
    environment = make()
    try:
        app = made_by(environment)
    except Exception as error:
        problem = f"cannot be made: {type(error).__name__}: {error}"
        report.add("app", problem, "app()", "return a mcpgym.App, one page that loads nothing, or None")
        return
    if app is None:
        return
    known = [*environment.tools, START]
    for tool in app.tools if app.tools is not None else ():
        if tool not in known:
            there = f"name tools that there are: {', '.join(known)}"
            report.add("app", f"shows results of {tool!r}, which is no tool", "app().tools", there)
    given = environment.config.model_dump(exclude_unset=True)
    for name, level in app.levels.items():
        try:
            configure(type(environment), {**given, **level})
        except Exception as error:
            problem = f"is no configuration: {type(error).__name__}: {error}"
            report.add("app", problem, f"app().levels[{name!r}]", "give fields of the configuration, with valid values")
