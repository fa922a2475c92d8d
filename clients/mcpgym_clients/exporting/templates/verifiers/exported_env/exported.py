"""What was exported: read from environment.json, which `mcpgym export` wrote."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

EXPORTED: dict[str, Any] = json.loads((files("exported_env") / "environment.json").read_text("utf-8"))
