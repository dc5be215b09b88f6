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


def write(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write a file by atomic rename, in an existing folder.

    Raises:
        OSError: it can't be written; nothing is left behind.

    """
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            file.write(data)
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise
