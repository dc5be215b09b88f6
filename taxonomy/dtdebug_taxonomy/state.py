"""Where the user's state is kept: those who write it and the editors that read it agree on the folder."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def folder() -> Path:
    """`$DTDEBUG_STATE`, or the platform's state directory for dtdebug."""
    chosen = os.environ.get("DTDEBUG_STATE")
    if chosen:
        return Path(chosen)
    from platformdirs import user_state_path

    return user_state_path("dtdebug", appauthor=False)


def write(path: Path, data: bytes) -> None:
    """Writes a file of 0600 by atomic rename, in a folder that exists.

    Raises:
        OSError: it can't be written; nothing is left behind.

    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # created 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).replace(path)
    except OSError:
        with suppress(OSError):
            Path(temporary).unlink()
        raise
