"""How the errors of :mod:`mcpgym.errors` travel over HTTP: one JSON form, one status code each, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcpgym.errors import (
    ConfigurationError,
    EpisodeEnded,
    EpisodeError,
    EpisodeLost,
    McpgymError,
    RewardError,
    ServerDraining,
    ServerUnavailable,
    TooManyEpisodes,
    UnknownEpisodeError,
    UnknownNameError,
)

# The first that an error is an instance of names it, so the narrower ones come first.
KINDS: Mapping[str, tuple[type[McpgymError], int]] = {
    "unknown_name": (UnknownNameError, 404),
    "configuration": (ConfigurationError, 422),
    "unknown_episode": (UnknownEpisodeError, 404),
    "episode_lost": (EpisodeLost, 410),
    "episode_ended": (EpisodeEnded, 410),
    "too_many_episodes": (TooManyEpisodes, 429),
    "server_draining": (ServerDraining, 503),
    "unavailable": (ServerUnavailable, 503),
    "episode_failed": (EpisodeError, 500),
    "reward_failed": (RewardError, 500),
    "internal": (McpgymError, 500),
}
# What only HTTP can say; to a caller all of these are its own doing.
HTTP_KINDS: Mapping[str, int] = {
    "secret_refused": 401,
    "host_refused": 403,
    "not_found": 404,
    "wrong_method": 405,
    "body_too_large": 413,
}


def encode_error(error: Exception) -> tuple[int, dict[str, Any]]:
    """The status code and the JSON of ``error``."""
    for kind, (cls, status) in KINDS.items():
        if isinstance(error, cls):
            extra = {"what": error.kind, "name": error.name} if isinstance(error, UnknownNameError) else {}
            return status, {"error": {"kind": kind, "message": str(error), **extra}}
    message = f"the server failed: {type(error).__name__}; its log has the details"
    return 500, {"error": {"kind": "internal", "message": message}}


def decode_error(value: Any) -> McpgymError | None:
    """The exception that an answer's JSON means; None if it is not an error of ours."""
    error = value.get("error") if isinstance(value, dict) else None
    if not isinstance(error, dict) or not isinstance(message := error.get("message"), str):
        return None
    kind = error.get("kind")
    if kind in HTTP_KINDS:
        return ConfigurationError(message)
    cls = KINDS.get(str(kind), KINDS["internal"])[0]
    if cls is not UnknownNameError:
        return cls(message)
    return UnknownNameError.made(message, str(error.get("what")), str(error.get("name")))
