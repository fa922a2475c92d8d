"""What the server libraries log of a tool that failed: nothing, in an episode. Its policy reads it, its trace keeps it.

Left alone, FastMCP prints a traceback for each; a hundred episodes of a beginner's fill the screen with them.
"""

from __future__ import annotations

import logging
import warnings
from contextvars import ContextVar

logger = logging.getLogger(__name__)

LOGGERS = ("fastmcp.server.server", "mcp.server.mcpserver.server")
"""The loggers that tell of tools which failed."""
TOLD = ("Error calling tool ", "Invalid arguments for tool ", "Tool %r ")
"""How those records begin; all others pass."""

_our_call: ContextVar[bool] = ContextVar("our_call", default=False)


def quiet_tools() -> None:
    """From here on in this task, what a server logs of a tool's error is a detail: at DEBUG, of this module's logger.

    Servers in this process answer a call in its caller's context; others of this process log as before. FastMCP's own
    use of what the SDK has deprecated is no one's to mend here, so it is not warned of.
    """
    from mcp.shared.exceptions import MCPDeprecationWarning

    for name in LOGGERS:
        logging.getLogger(name).addFilter(_passes)  # what is there is not added again
    warnings.filterwarnings("ignore", category=MCPDeprecationWarning, module=r"fastmcp\.")
    _our_call.set(True)


def _passes(record: logging.LogRecord) -> bool:
    if not _our_call.get() or not str(record.msg).startswith(TOLD):
        return True
    logger.debug("%s", record.getMessage(), exc_info=record.exc_info)
    return False
