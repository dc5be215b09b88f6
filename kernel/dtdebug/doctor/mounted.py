"""Whether a folder answers: asked by a child, since who waits for a file server that is gone can't even be ended."""

from __future__ import annotations

import subprocess
from pathlib import Path

LIMIT = 6.0
"""Seconds; a loaded server answers in less."""


def answers(path: Path) -> bool:
    """False if nothing is heard of it in time; what is not there, or may not be seen, answers, too."""
    try:
        child = subprocess.Popen(
            ["stat", "-L", "--", str(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:  # no such program here
        return True
    try:
        child.wait(LIMIT)
    except subprocess.TimeoutExpired:
        child.kill()
        child.returncode = -9  # it may stay until the server answers: nobody is to wait for it
        return False
    return True
