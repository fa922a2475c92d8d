"""Whether telemetry is on: one place to look, which costs one look. Imports nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcpgym.telemetry.measuring import Measuring
    from mcpgym.telemetry.recorder import Recorder

recorder: Recorder | None = None
"""Where spans go; None while there are none."""
measuring: Measuring | None = None
"""What exports metrics; None while nothing does."""
events = False
"""Whether each call is a line in the log."""
