"""The pages about what is imported from Python: which names each has. mkdocstrings writes them from the docstrings.

What a module exports (``__all__``) is all there; of one that exports nothing by name, what the documents use.
"""

from __future__ import annotations

from importlib import import_module

PAGES: dict[str, tuple[str, str, dict[str, tuple[str, ...] | None]]] = {
    "python/environments.md": (
        "Environments in Python",
        "What an author of environments imports: `from mcpgym import Environment, tool, reward`.",
        {
            "mcpgym": None,
            "mcpgym.messages": None,
            "mcpgym.errors": None,
            "mcpgym.check": ("Report", "Finding", "CheckFailed"),
            "mcpgym.game_tree": None,
            "mcpgym.combined": None,
            "mcpgym.own_server": None,
        },
    ),
    "python/helpers.md": (
        "Helpers for environments",
        "What the bundled environments share, for yours: `from mcpgym_environments.tags import last_tag`.",
        {
            "mcpgym_environments.tags": None,
            "mcpgym_environments.thinking": None,
            "mcpgym_environments.teaching": None,
            "mcpgym_environments.folding": None,
            "mcpgym_environments.enumeration": None,
            "mcpgym_environments.tic_tac_toe": None,
            "mcpgym_environments.tic_tac_toe.engine": None,
            "mcpgym_environments.tic_tac_toe.opponent": ("reply",),
            "mcpgym_environments.wiki_search": None,
            "mcpgym_environments.python_sandbox": None,
            "mcpgym_environments.python_sandbox.problems.problem": None,
            "mcpgym_environments.python_sandbox.problems.testing": None,
            "mcpgym_environments.python_sandbox.problems.writing": None,
            "mcpgym_environments.long_context": None,
        },
    ),
    "python/episodes.md": (
        "Episodes and the control plane",
        "How a program opens, plays and scores episodes, in process or on a server.",
        {
            "mcpgym.episodes": ("Episodes",),
            "mcpgym.control": None,
            "mcpgym.control_client": ("HttpControl",),
            "mcpgym.fleet.pool": ("Pool",),
            "mcpgym.serving": None,
            "mcpgym.receipts": None,
            "mcpgym.telemetry.settings": None,
        },
    ),
    "python/rollouts.md": (
        "Rollouts and training in Python",
        "How a program plays policies, reads their traces and judges them.",
        {
            "mcpgym_rl.run": ("EpisodeSpec", "run"),
            "mcpgym_rl.rollout": ("Limits", "rollout"),
            "mcpgym_rl.lanes": None,
            "mcpgym_rl.policy": None,
            "mcpgym_rl.policies": ("make_policy",),
            "mcpgym_rl.policies.reference": ("Reference",),
            "mcpgym_rl.parse": None,
            "mcpgym_rl.stop_reason": None,
            "mcpgym_rl.traces": None,
            "mcpgym_rl.replay": None,
            "mcpgym_rl.certificate": None,
            "mcpgym_rl.collect": None,
            "mcpgym_rl.trl": None,
            "mcpgym_rl.wider_heads": ("widen_heads",),
            "mcpgym_rl.training.recipe": ("find_recipe", "make_recipe"),
            "mcpgym_rl.training.losses": None,
            "mcpgym_rl.training.advantages": None,
        },
    ),
}
"""Each page's place under reference/, its title, its first sentence, and the modules with the names that it shows."""
FIRST = ("Environment", "Config", "Task", "LazyTasks", "task_id", "derive_seed", "tool", "ToolError", "reward", "Score")
"""What a reader wants first, in this order; the rest follows by name."""


def page(place: str) -> str:
    """The page at a place."""
    title, about, modules = PAGES[place]
    return f"# {title}\n\n{about}\n\n" + "".join(_module(name, names) for name, names in modules.items())


def public(module: str) -> list[str]:
    """What a module exports, or defines without an underscore."""
    found = import_module(module)
    exported = getattr(found, "__all__", None)
    if exported is not None:
        return sorted((name for name in exported if not name.startswith("__")), key=str.lower)
    return [
        name
        for name, value in vars(found).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module and hasattr(value, "__qualname__")
    ]


def _module(name: str, names: tuple[str, ...] | None) -> str:
    """A module's heading and what is shown of it."""
    shown = names or sorted(public(name), key=lambda one: FIRST.index(one) if one in FIRST else len(FIRST))
    return f"## {name} {{#{name}}}\n\n" + "".join(
        f"::: {name}.{one}\n    options: {{heading_level: 3}}\n\n" for one in shown
    )
