"""The state directory of the user, shared by its writers and the editors that read it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def folder() -> Path:
    """Return `$DTDEBUG_STATE`, or the platform's state directory for dtdebug."""
    chosen = os.environ.get("DTDEBUG_STATE")
    if chosen:
        return Path(chosen)
    from platformdirs import user_state_path

    return user_state_path("dtdebug", appauthor=False)


def write(path: Path, data: bytes) -> None:
    """Write a file with mode 0600 by atomic rename, in an existing folder.

    Raises:
        OSError: it can't be written; nothing is left behind.

    """
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(data)
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise


def read_stamped(name: str, stamp: bytes, limit: int) -> memoryview | None:
    """Return a file's content after its stamp; None if the file does not begin with it, or can't be read."""
    try:
        with (folder() / name).open("rb") as file:
            data = file.read(limit)
    except OSError:
        return None
    return memoryview(data)[len(stamp) :] if data.startswith(stamp) else None


def write_stamped(name: str, stamp: bytes, data: bytes) -> None:
    """Write such a file. A folder that can't be written costs time only."""
    path = folder() / name
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write(path, stamp + data)
