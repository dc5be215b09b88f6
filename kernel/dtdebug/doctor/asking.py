"""Asks programs and file systems of the host, in a child that can't hold us longer than its limit."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

FOLDER_LIMIT = 6.0
"""Seconds; a loaded file server answers in less."""


def answer_of(words: Sequence[str], limit: float, whom: str, *, failing: bool = False) -> tuple[str, str]:
    """(what it prints, why there is nothing); with `failing` what it prints counts whatever its exit status is."""
    try:
        job = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    except OSError as error:
        return "", f"{words[0]}: {error.strerror}"
    try:
        out, error_text = job.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)  # with what it has started
        with suppress(subprocess.TimeoutExpired):
            job.communicate(timeout=1.0)
        return "", f"{whom} gave no answer in {limit:g} s"
    text = out.decode(errors="replace")
    if job.returncode and not (failing and text.strip()):
        why = (error_text.decode(errors="replace") or text).strip().splitlines()
        return "", (why[-1] if why else f"{whom} refuses")[:200]
    return text, ""


def folder_answers(path: Path) -> bool:
    """False if nothing is heard of it in time; what is not there, or may not be seen, answers, too.

    A child asks, since who waits for a file server that is gone can't even be ended.
    """
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
        child.wait(FOLDER_LIMIT)
    except subprocess.TimeoutExpired:
        child.kill()
        child.returncode = -9  # it may stay until the server answers: nobody is to wait for it
        return False
    return True
