"""The private folders of one start of an agent: made before it, removed after it with all that is in them."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mcpgym_clients.agents.contract import Workplace

logger = logging.getLogger(__name__)

PREFIX = "mcpgym-agent-"


@contextlib.contextmanager
def workplace() -> Iterator[Workplace]:
    """Folders that only this user can open; removed on leaving."""
    root = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        made = Workplace(root)
        for folder in (made.home, made.work, made.temporary):
            folder.mkdir(mode=0o700)
        yield made
    finally:
        _remove(root)


def _remove(root: Path) -> None:
    """Remove a folder that :func:`tempfile.mkdtemp` made, whatever permissions an agent left in it. Follows no link."""
    shutil.rmtree(root, ignore_errors=True)
    if not root.exists():
        return
    for folder, _, _ in os.walk(root):  # from the top, so that each is open before it is looked into
        with contextlib.suppress(OSError):
            os.chmod(folder, stat.S_IRWXU, follow_symlinks=os.chmod not in os.supports_follow_symlinks)  # noqa: PTH101
    shutil.rmtree(root, ignore_errors=True)
    if root.exists():
        logger.warning("%s, what an agent left behind, could not be removed", root)


def variables_of(place: Workplace) -> dict[str, str]:
    """The variables that say where a program's own files belong."""
    home = str(place.home)
    return {
        "HOME": home,
        "USERPROFILE": home,
        "TMPDIR": str(place.temporary),
        "TEMP": str(place.temporary),
        "TMP": str(place.temporary),
        "XDG_CONFIG_HOME": f"{home}/.config",
        "XDG_DATA_HOME": f"{home}/.local/share",
        "XDG_CACHE_HOME": f"{home}/.cache",
        "XDG_STATE_HOME": f"{home}/.local/state",
    }
