"""Log lines as JSON, one object a line, with nothing in them that an episode's players or tasks may have brought.

What a program's own log says in words may hold texts of others: an exception's message quotes arguments, a template's
values are whatever was at hand. So a line has the template, numbers and plain names; of an exception its type and where
it was raised. Whoever needs the words has them in the text form of the log.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

from mcpgym.telemetry import switch

EVENTS = "mcpgym.events"
MAX_FRAMES = 12
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_HEX = re.compile(r"[0-9a-fA-F]{16,}")
_PLAIN_START = re.compile(r"[A-Za-z ,.()-]{0,120}")


class JsonLines(logging.Formatter):
    """``time``, ``level``, ``event``, and what belongs to the event; see docs/observability.md for all of them."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC)
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z"),
            "level": record.levelname.lower(),
        }
        event = getattr(record, "event", None)
        if isinstance(event, dict):
            line |= {"event": record.getMessage(), **event}
        else:
            line |= {"event": "log", "logger": record.name, "message": _said(record)}
        if record.exc_info and record.exc_info[1] is not None:
            line |= _raised(record.exc_info[1])
        return json.dumps(line, ensure_ascii=True, default=lambda value: type(value).__name__)


def log_as_json(level: int = logging.WARNING) -> None:
    """From here on the log is JSON on standard error, and each episode and call is a line in it."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(handlers=[handler], level=level, force=True)
    logging.getLogger(EVENTS).setLevel(logging.INFO)
    switch.events = True


def _said(record: logging.LogRecord) -> str:
    """The record's words, as far as they are the program's own."""
    template = str(record.msg)
    if not record.args:
        if record.name.split(".")[0] in ("mcpgym", "mcpgym_rl", "mcpgym_clients"):
            return template
        found = _PLAIN_START.match(template.split("\n")[0])  # another's may be put together from anything
        return found[0].strip() if found else ""
    arguments = record.args if isinstance(record.args, tuple) else (record.args,)
    try:
        return template % tuple(_harmless(value) for value in arguments)
    except (TypeError, ValueError):
        return template


def _harmless(value: Any) -> Any:
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, BaseException):
        return type(value).__name__
    text = str(value) if isinstance(value, str) else ""
    return text if _NAME.fullmatch(text) and not _HEX.search(text) else "…"


def _raised(error: BaseException) -> dict[str, Any]:
    frames = traceback.extract_tb(error.__traceback__)[-MAX_FRAMES:]
    where = [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]
    return {"error": type(error).__name__, "where": where}
