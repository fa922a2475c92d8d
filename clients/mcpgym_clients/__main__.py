"""``python -m mcpgym_clients`` is ``mcpgym``."""

from __future__ import annotations

import sys

from mcpgym_clients.cli import main

if __name__ == "__main__":
    sys.exit(main())
