"""Zip archives whose bytes depend on what is in them and on nothing else."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

_LONG_AGO = (1980, 1, 1, 0, 0, 0)
_UNIX = 3
_READABLE = 0o100644 << 16


def archive(files: Mapping[str, bytes], last: str = "") -> bytes:
    """A zip of ``files``, sorted by name, without dates and owners.

    Args:
        files: names, with ``/`` between folders, and what they hold.
        last: the beginning of names that come after all others: of a wheel's metadata.
    """
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name in sorted(files, key=lambda name: (bool(last) and name.startswith(last), name)):
            entry = zipfile.ZipInfo(name, _LONG_AGO)
            packed = name.endswith((".whl", ".png"))
            entry.compress_type = zipfile.ZIP_STORED if packed else zipfile.ZIP_DEFLATED
            entry.create_system, entry.external_attr = _UNIX, _READABLE
            zipped.writestr(entry, files[name])
    return made.getvalue()
