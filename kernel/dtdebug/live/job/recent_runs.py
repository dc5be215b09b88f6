"""Runs below the state directory: the newest, those still running, and those to delete."""

from __future__ import annotations

import errno
import os
import shutil
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from dtdebug.live.hosts import join_run
from dtdebug.live.probe.liveness import living
from dtdebug.storage import state_dir
from dtdebug.storage.run_folder import RunFolder

KEPT = 20
_AT_ONCE = 50
"""Maximum number of folders deleted at one start, so that a start stays quick."""


def parent() -> Path:
    """Return the folder of all runs."""
    return state_dir.folder() / "runs"


def take(path: Path, command: Sequence[str]) -> RunFolder:
    """Return the folder that the user named for a run, created if missing; several hosts of one job share it.

    Raises:
        OSError: it can't be created, or holds something else.

    """
    path = path.absolute()  # ranks may have a different working directory
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.stat().st_uid == os.geteuid():
        path.chmod(0o700)  # others must not put their files next to ours
    elif os.geteuid():
        raise PermissionError(errno.EPERM, "belongs to another user", str(path))
    if why := join_run.refusal(path, command):
        raise FileExistsError(errno.EEXIST, why, str(path))
    return join_run.enter(path, command)


def newest() -> RunFolder | None:
    """Return the newest run that is still running, or else the newest."""
    found = _ours()
    return next((folder for folder in found if lives(folder)), found[0] if found else None)


def lives(folder: RunFolder) -> bool:
    """True if the job of the folder is still running, if this host can check it."""
    run = folder.load_run()
    if run is None or run.finished is not None:
        return False
    return run.host != socket.gethostname() or bool(living([run.pid]))


def forget_old() -> None:
    """Delete all but the newest runs that have ended."""
    old = [folder for folder in _ours()[KEPT:] if not lives(folder)]
    for folder in old[-_AT_ONCE:]:
        shutil.rmtree(folder.path, ignore_errors=True)


def _ours() -> list[RunFolder]:
    """Return folders that we made, newest first."""
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
