"""What a check found: findings that say what is wrong, where, and how to put it right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mcpgym.calls import sendable
from mcpgym.errors import McpgymError

RULES = {
    "config": "every configuration field has a default and a description",
    "tasks": "every split has tasks, and they behave as a sequence",
    "task-ids": "task ids are unique, and each finds its task",
    "task-splits": "each task says the split it is in",
    "tasks-stable": "a split always has the same tasks in the same order, and play does not change them",
    "splits-disjoint": "no task is in two splits, neither its id nor its content",
    "messages": "prompts and replies are chat messages with text",
    "schemas": "tool schemas are at their fixed point",
    "prompt-tools": "prompts and descriptions mention only tools that exist",
    "reset": "an episode opens without an exception",
    "tools": "tools survive every argument that their schema allows, and answer with text",
    "hostile-arguments": "arguments that do not fit are refused with a text, and break nothing",
    "invalid-arguments": "a refused call changes nothing that the policy sees afterwards",
    "respond": "respond gives messages or None, without an exception",
    "reproducible": "what cannot give the same bytes twice says so, and what counts as the same",
    "seed": "one task, one seed and the same calls give the same bytes",
    "global-random": "the global random generators are neither read nor changed",
    "process": "another process with another hash seed gives the same bytes",
    "isolation": "episodes share no state: order and interleaving do not matter",
    "done": "is_done only looks, and what is done stays done",
    "game-tree": "the game's tree, where there is one, says what episodes say",
    "app": "the app, where there is one, is a page that brings all it needs, and names tools and levels that there are",
    "rewards": "rewards are finite, in their declared range, and repeatable, whatever the transcript",
    "secrets": "nothing hidden is in what the policy sees",
    "reference-policies": "the environment's own policies play without an exception",
    "close": "close and shutdown raise nothing",
}
"""Every rule by its name, in the order of a report."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: the ``rule`` it breaks, the ``problem``, ``where`` it shows, and what to do about it (``fix``)."""

    rule: str
    problem: str
    where: str
    fix: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.where}: {self.problem}\n    fix: {self.fix}"


class CheckFailed(McpgymError, AssertionError):
    """An environment breaks rules of the contract; the message has every finding."""


@dataclass(slots=True)
class Report:
    """The result of :func:`~mcpgym.check.check_environment`.

    ``findings`` has at most a few of each rule; ``notes`` say what could not be checked and why; ``episodes`` is how
    many were played.
    """

    environment: str
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    episodes: int = 0

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def of(self, rule: str) -> list[Finding]:
        """The findings of one rule."""
        return [finding for finding in self.findings if finding.rule == rule]

    def add(self, rule: str, problem: str, where: str, fix: str) -> None:
        """Add a finding, once, and at most three of one rule: the first ones tell enough."""
        finding = Finding(rule, sendable(problem), sendable(where), fix)
        if rule not in RULES:
            raise KeyError(rule)
        if finding not in self.findings and len(self.of(rule)) < 3:
            self.findings.append(finding)

    def raise_for_findings(self) -> None:
        """Nothing if all is well.

        Raises:
            CheckFailed: with every finding in its text.
        """
        if self.findings:
            raise CheckFailed(str(self))

    def lines(self) -> Iterator[str]:
        """The report as text, line by line."""
        order = list(RULES)
        count = len(self.findings)
        yield f"{self.environment}: " + ("no finding" if self.ok else f"{count} finding{'s' * (count > 1)}")
        for finding in sorted(self.findings, key=lambda finding: order.index(finding.rule)):
            yield f"  {finding}"
        for note in self.notes:
            yield f"  note: {note}"

    def __str__(self) -> str:
        return "\n".join(self.lines())
