"""An examination as people read it: on a terminal, and as Markdown for a document."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from mcpgym_clients.console import clean, escaped
from mcpgym_clients.doctor.findings import Examination, Outcome, Verdict

MARKS = {Verdict.PASS: "✓", Verdict.WARN: "!", Verdict.FAIL: "✗", Verdict.SKIPPED: "-"}
_COLOURS = {Verdict.PASS: "green", Verdict.WARN: "yellow", Verdict.FAIL: "red", Verdict.SKIPPED: "dim"}


def render(console: Console, made: Examination) -> None:
    """Print every check, what it saw, and what to do; then the sum."""
    for outcome in made.outcomes:
        colour = _COLOURS[outcome.verdict]
        console.print(
            f"[{colour}]{MARKS[outcome.verdict]} {outcome.verdict.value}[/{colour}] [bold]{outcome.name}[/bold]  "
            f"{escaped(outcome.question)}",
            soft_wrap=True,
        )
        for finding in outcome.findings:
            mark = f"[{_COLOURS[finding.verdict]}]{MARKS[finding.verdict]}[/]"
            console.print(f"    {mark} {escaped(finding.evidence)}", soft_wrap=True)
        for advice in _advice(outcome):
            console.print(f"    [cyan]→[/cyan] {escaped(advice)}", soft_wrap=True)
    console.print()
    console.print(f"{escaped(made.subject)}: {summary(made)}", soft_wrap=True)


def summary(made: Examination) -> str:
    """The counts in words: ``12 passed, 2 warnings, 0 failures, 1 skipped``."""
    counts = made.counts()
    return (
        f"{counts['pass']} passed, {counts['warn']} with warnings, {counts['fail']} failed, {counts['skipped']} skipped"
    )


def markdown(made: Examination, title: str = "") -> str:
    """The examination as a Markdown document."""
    return "\n".join(_lines(made, title)) + "\n"


def _lines(made: Examination, title: str) -> Iterator[str]:
    yield f"# {_text(title or made.subject)}"
    yield ""
    yield f"Examined on {made.date[:10]}, over {made.transport}: {summary(made)}."
    yield ""
    for name, value in made.facts.items():
        yield f"- {_text(name)}: {_text(value)}"
    yield ""
    yield "| check | verdict | what it asks |"
    yield "| --- | --- | --- |"
    for outcome in made.outcomes:
        yield f"| {outcome.name} | {outcome.verdict.value} | {_text(outcome.question)} |"
    for outcome in made.outcomes:
        yield ""
        yield f"## {outcome.name}: {outcome.verdict.value}"
        yield ""
        for finding in outcome.findings:
            yield f"- **{finding.verdict.value}** {_text(finding.evidence)}"
        advice = list(_advice(outcome))
        if advice:
            yield ""
        for each in advice:
            yield f"> {_text(each)}"
            yield ">"


def _advice(outcome: Outcome) -> Iterator[str]:
    """Each piece of advice once, in order."""
    yield from dict.fromkeys(finding.advice for finding in outcome.findings if finding.advice)


_MARKDOWN = str.maketrans({letter: f"\\{letter}" for letter in "\\`*_[]<>|#!"})


def _text(text: str) -> str:
    """``text`` in a line of Markdown, with nothing in it read as markup or HTML."""
    return " ".join(clean(text).split()).translate(_MARKDOWN)
