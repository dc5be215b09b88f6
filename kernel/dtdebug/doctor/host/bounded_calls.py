"""Queries programs and file systems in a child process, so that a hung one cannot block longer than its limit."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

FOLDER_LIMIT = 6.0
"""Seconds to wait for a folder; even a loaded file server answers sooner."""


def answer_of(words: Sequence[str], limit: float, whom: str, *, failing: bool = False) -> tuple[str, str]:
    """Return (output, error), one of them empty; with `failing`, output counts even if the exit status is not 0."""
    try:
        job = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    except OSError as error:
        return "", f"{words[0]}: {error.strerror}"
    try:
        out, error_text = job.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)  # with all its descendants
        with suppress(subprocess.TimeoutExpired):
            job.communicate(timeout=1.0)
        return "", f"{whom} gave no answer in {limit:g} s"
    text = out.decode(errors="replace")
    if job.returncode and not (failing and text.strip()):
        why = (error_text.decode(errors="replace") or text).strip().splitlines()
        return "", (why[-1] if why else f"{whom} refuses")[:200]
    return text, ""


def folder_answers(path: Path) -> bool:
    """True unless the file system fails to answer in time; a missing or unreadable folder counts as an answer.

    A child process does the `stat`, since a process blocked on a dead file server cannot even be killed.
    """
    try:
        child = subprocess.Popen(
            ["stat", "-L", "--", str(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:  # `stat` is not installed
        return True
    try:
        child.wait(FOLDER_LIMIT)
    except subprocess.TimeoutExpired:
        child.kill()
        child.returncode = -9  # it may linger until the server answers: do not wait for it
        return False
    return True
