"""Every error this package raises on purpose, and whose fault each one is.

Three owners: the *policy* (``ToolError``: it reads the text and tries again), the *user* of the package
(``ConfigurationError`` and its kin: the message names the fix), and the *infrastructure* (``EpisodeEnded``,
``TooManyEpisodes``, ``ServerDraining``, ``ServerUnavailable``, ``InfrastructureError``: the episode stays unscored).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

LONGEST_SHOWN = 200
"""Characters of an unknown name that its error repeats."""


class ToolError(Exception):
    """A tool's failure that the policy should read: the text says what was wrong and what would be right.

    Raise it from a tool; the policy gets its text as the result of the call, flagged as an error. Any other
    exception is a bug of the environment: the policy then reads only that the tool failed.
    """


class McpgymError(Exception):
    """Base of the errors that are not meant for a policy."""


class ConfigurationError(McpgymError):
    """The user asked for something that cannot be: a bad option, name, address or environment definition."""


class UnknownNameError(ConfigurationError):
    """A name (environment, split, task, policy) that is not there; the message offers the nearest that is."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, there: str = "") -> None:
        if len(name) > LONGEST_SHOWN:  # whoever sent it has it, and looking for the nearest name would take long
            name = f"{name[:LONGEST_SHOWN]}…"
        names = sorted(known)
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        there = there or ", ".join(names[:20]) + (", …" if len(names) > 20 else "") or "none"
        super().__init__(f"no {kind} {name!r}: {hint}there is: {there}")
        self.kind = kind
        self.name = name

    @classmethod
    def made(cls, message: str, kind: str, name: str) -> UnknownNameError:
        """One whose ``message`` was made elsewhere, from names that only that place knows."""
        error = cls.__new__(cls, message)
        Exception.__init__(error, message)
        error.kind, error.name = kind, name
        return error

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).made, (str(self), self.kind, self.name)  # it goes from one process to another


class MissingPackage(ConfigurationError):
    """An environment is installed, and a package that it stands on is not; the message has the line that brings it."""


class SchemaError(ConfigurationError):
    """A tool whose schema is not at the fixed point (see :mod:`mcpgym.schema`)."""


class CannotBegin(ConfigurationError):
    """An environment's ``reset`` raised :class:`ConfigurationError`: something it stands on is missing here.

    No other task would do better, so a run ends with it, and says it once.
    """


class RewardError(McpgymError):
    """A reward function failed, or gave a value that is not finite or lies outside its declared range."""


class EpisodeError(McpgymError):
    """Base of what can go wrong with an episode's life; such an episode has no score."""


class UnknownEpisodeError(EpisodeError):
    """No episode ever had this token."""


class EpisodeEnded(EpisodeError):
    """The episode has been closed or has expired; the message says which."""


class EpisodeLost(EpisodeEnded):
    """The process that held the episode is gone, and the episode with it. Its task may be opened again elsewhere."""


class TooManyEpisodes(EpisodeError):
    """The server's cap on live episodes is reached; close some, or raise the cap."""


class ServerDraining(EpisodeError):
    """The server was told to stop: what runs may end, and no other episode begins. Another server may take it."""


class InfrastructureError(McpgymError):
    """Something an environment stands on (a sandbox, a machine, a service) failed, and no act of the policy did it.

    Raise it, or a class of your own below it, from ``reset``, a tool or a reward. The episode ends with it, unscored:
    its ``failure`` says so, the policy reads only that the tool failed inside the environment, and a rollout reports
    ``environment_failed``.
    """


class ServerUnavailable(McpgymError):
    """The environment server did not answer, or answered what is not a server of ours.

    ``in_mid_request`` says that it had the request, and let go of the connection: that may be what ended it.
    """

    in_mid_request = False
