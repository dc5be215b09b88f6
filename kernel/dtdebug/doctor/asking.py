"""Asks a program of the host, in a child that can't hold us longer than its limit."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress


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
