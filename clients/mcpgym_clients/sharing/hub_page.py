"""The page on the Hugging Face Hub: a package's README with what the hub wants to know at its head."""

from __future__ import annotations

import json
import re

from mcpgym_clients.sharing.packages import Package, page_of

TAGS = ("mcpgym", "reinforcement-learning", "mcp", "tool-use", "agents")
FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


def hub_page(package: Package) -> str:
    """The README with its head; one that has a head of its own stays as it is.

    Raises:
        UsageProblem: see :func:`~mcpgym_clients.sharing.packages.page_of`.
    """
    text = page_of(package)
    if FRONT.match(text):
        return text
    head = {"pretty_name": package.name, "tags": [*TAGS, *package.environments]}
    licence = package.project.get("license")
    if isinstance(licence, str):
        head["license"] = licence.lower()  # SPDX's names in lower case are the hub's
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in head.items()]  # JSON is YAML
    return "\n".join(["---", *lines, "---", "", text])
