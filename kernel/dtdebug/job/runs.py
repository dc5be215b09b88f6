"""The runs below the state directory: which is the newest, which still lives, which may go."""

from __future__ import annotations

import errno
import os
import shutil
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from dtdebug import state
from dtdebug.hosts import entry
from dtdebug.probe.watch import living
from dtdebug.records.folder import RunFolder

KEPT = 20
_AT_ONCE = 50
"""Folders that are deleted at one start, so that a start stays quick."""


def parent() -> Path:
    """Where the folders of runs are."""
    return state.folder() / "runs"


def take(path: Path, command: Sequence[str]) -> RunFolder:
    """The folder that the user named for a run, made if it is not there; several hosts of one job share it.

    Raises:
        OSError: it can't be made, or holds something else.

    """
    path = path.absolute()  # ranks may work elsewhere
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.stat().st_uid == os.geteuid():
        path.chmod(0o700)  # others must not put their files beside ours
    elif os.geteuid():
        raise PermissionError(errno.EPERM, "belongs to another user", str(path))
    if why := entry.refusal(path, command):
        raise FileExistsError(errno.EEXIST, why, str(path))
    return entry.enter(path, command)


def newest() -> RunFolder | None:
    """The newest run that still lives, or else the newest."""
    found = _ours()
    return next((folder for folder in found if lives(folder)), found[0] if found else None)


def lives(folder: RunFolder) -> bool:
    """The job of the folder still runs, as far as this host can tell."""
    run = folder.load_run()
    if run is None or run.finished is not None:
        return False
    return run.host != socket.gethostname() or bool(living([run.pid]))


def forget_old() -> None:
    """Deletes all but the newest runs that have ended."""
    old = [folder for folder in _ours()[KEPT:] if not lives(folder)]
    for folder in old[-_AT_ONCE:]:
        shutil.rmtree(folder.path, ignore_errors=True)


def _ours() -> list[RunFolder]:
    """Folders that we made, newest first."""
    found = []
    with suppress(OSError):
        for entry in os.scandir(parent()):
            with suppress(OSError):
                if (
                    entry.name.startswith("run-")
                    and entry.is_dir(follow_symlinks=False)
                    and entry.stat(follow_symlinks=False).st_uid == os.getuid()
                ):
                    found.append(((Path(entry.path) / "run.json").stat().st_mtime, entry.path))
    return [RunFolder(Path(path)) for _, path in sorted(found, reverse=True)]
