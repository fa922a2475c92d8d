"""``mcpgym env remove``: the record first, then the virtual environment; a process that plays in it is not cut off."""

from __future__ import annotations

from mcpgym.isolated.records import data_folder
from mcpgym_clients.console import escaped, out
from mcpgym_clients.failures import CommandFailed
from mcpgym_clients.sharing.places import alone, chosen, not_in_use, refuse_other_systems, remove_venv, sweep
from mcpgym_rl.files import sync_folder


def remove(name: str) -> None:
    """Remove a package that was added, by its name or an environment's of it.

    Raises:
        UnknownNameError: there is none.
        CommandFailed: it is in use.
    """
    refuse_other_systems()
    folder = data_folder()
    with alone(folder):
        record = chosen(name)
        try:
            with not_in_use(record.folder):
                record.path.unlink()
                sync_folder(folder)
        except CommandFailed as error:
            raise CommandFailed(f"{record.package} is not removed: {error}") from None
        remove_venv(record.folder)
        sweep(folder)
    out().print(f"[green]✓[/green] removed {escaped(record.package)} {escaped(record.version)}", soft_wrap=True)
