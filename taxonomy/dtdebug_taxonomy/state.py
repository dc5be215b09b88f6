"""Where the user's state is kept: those who write it and the editors that read it agree on the folder."""

from __future__ import annotations

import os
from pathlib import Path


def folder() -> Path:
    """`$DTDEBUG_STATE`, or the platform's state directory for dtdebug."""
    chosen = os.environ.get("DTDEBUG_STATE")
    if chosen:
        return Path(chosen)
    from platformdirs import user_state_path

    return user_state_path("dtdebug", appauthor=False)
