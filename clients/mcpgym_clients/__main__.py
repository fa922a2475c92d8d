"""``mcpgym``, and ``python -m mcpgym_clients``, which is the same."""

from __future__ import annotations

import gc
import sys

from mcpgym_clients.starting import starting


def main() -> int:
    """Run the command line; the exit code."""
    starting()
    from mcpgym_clients.cli import main as command_line

    try:
        return command_line()
    finally:
        gc.freeze()  # Python's last collection would take a third of a second, and the system takes all back anyway


if __name__ == "__main__":
    sys.exit(main())
