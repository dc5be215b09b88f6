"""Copies the working directory for each run, so that no run overwrites files or finds those of another.

Small files are copied. Large ones become links, which `inside.guard` protects from being written; so do folders that
programs do not write to: of version control and of virtual environments.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from dtdebug.errors import UsageError

_LARGE = 8 << 20
"""Minimum bytes of a linked file."""
_MOST_BYTES, _MOST_FILES = 512 << 20, 20_000
_LINKED = frozenset((".git", ".hg", ".svn", "node_modules", ".tox", ".mypy_cache", ".ruff_cache", ".pytest_cache"))
_SPARE = 1 << 30
"""Bytes that must stay free on the disk."""


def copy(home: Path, target: Path) -> None:
    """Copy a working directory to a folder that does not exist yet.

    Raises:
        UsageError: it is too large to be copied for each run, or the disk is too small.
        OSError: it can't be read, or the copy can't be written.

    """
    total, rows = _plan(home)
    target.mkdir(mode=0o700, parents=True)
    if shutil.disk_usage(target).free < total + _SPARE:
        raise UsageError(f"isolate: the disk of {target} has too little space for a copy of {home}")
    for path, linked in rows:
        to = target / path.relative_to(home)
        if linked:
            to.symlink_to(path.resolve())
        elif path.is_dir():
            to.mkdir(exist_ok=True)
        else:
            shutil.copy2(path, to)


def _plan(home: Path) -> tuple[int, list[tuple[Path, bool]]]:
    """Return the bytes to copy, and (path, is to be linked), folders before their contents."""
    total, rows, folders = 0, list[tuple[Path, bool]](), [home]
    while folders:
        for entry in sorted(os.scandir(folders.pop()), key=lambda e: e.name):
            path, linked = Path(entry.path), entry.is_symlink()
            if entry.is_dir(follow_symlinks=False):
                linked = entry.name in _LINKED or (path / "pyvenv.cfg").exists()
                if not linked:
                    folders.append(path)
            elif not linked:
                found = entry.stat(follow_symlinks=False)
                if not stat.S_ISREG(found.st_mode):
                    continue
                linked = found.st_size >= _LARGE
                total += 0 if linked else found.st_size
            rows.append((path, linked))
            if total > _MOST_BYTES or len(rows) > _MOST_FILES:
                raise UsageError(
                    f"isolate: {home} is too large to be copied for each run; start in the program's own folder, or "
                    "let the runs work here with --in-place"
                )
    return total, rows
